"""``mpc-lab compare``: two saved audits, or two score columns of one log."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab.cli.audit import audit_files, check_outputs
from mpc_lab.cli.options import (
    COLUMNS,
    COMPARED,
    INFERENCE,
    LARGE,
    OPTIONS,
    Command,
    add_option,
    add_path,
    from_line,
)
from mpc_lab.errors import MpcError, check_number
from mpc_lab.files import find_files
from mpc_lab.text import plain, quote
from mpc_lab.writing import write_text

if TYPE_CHECKING:
    from mpc_lab.results.difference import Difference

_SAVED = (".nc", ".h5")
_STDOUT = Path("-")
# These belong to an audit alone: here --against is the old score, and the rules are both scores.
_NOT_HERE = ("against", "rules", "primary", "bounds", "pairs_cap", "bootstrap")
_OF_A_LOG = tuple(
    option
    for option in OPTIONS
    if option.section in (COLUMNS, COMPARED, INFERENCE, LARGE) and option.name not in _NOT_HERE
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(
        parser, "files", nargs="+", metavar="FILE", help="two saved audits, new and old; or a log"
    )
    sections: dict[str, Any] = {}
    for option in _OF_A_LOG:
        if option.section not in sections:
            title = option.section if option.section == COLUMNS else f"of a log: {option.section}"
            sections[option.section] = parser.add_argument_group(title)
        add_option(sections[option.section], option)
    sections[COLUMNS].add_argument("--against", metavar="COLUMN", help="the old score")
    parser.add_argument("--gate", action="store_true", help="exit with 0, 1 or 2: see below")
    parser.add_argument(
        "--no-worse-by", type=float, default=0.0, metavar="X", help="how much further from 0 (0)"
    )
    add_path(parser, "--json", type=Path, metavar="OUT.json", help='write the numbers; "-" prints')
    add_path(parser, "--save", type=Path, metavar="OUT.nc", help="save the difference")
    parser.add_argument("--quiet", action="store_true", help="print no summary")


def _run(options: argparse.Namespace) -> int:
    """Compare and return the exit code."""
    margin = check_number("--no-worse-by", options.no_worse_by, at_least=0)
    found = _difference(options)
    answer, sentence, groups = found.gate(margin)
    if options.save is not None:
        found.save(options.save)
    if options.json is not None:
        gate = {"answer": answer, "sentence": sentence, "groups": list(groups), "margin": margin}
        written = json.dumps({**found.to_dict(), "gate": gate}, indent=2) + "\n"
        if options.json == _STDOUT:
            sys.stdout.write(written)
        else:
            write_text(options.json, written)
    to = sys.stderr if options.json == _STDOUT else sys.stdout
    if not options.quiet:
        print(plain(found.summary(), lines=True), file=to)
    if not options.gate:
        return 0
    print(plain(sentence), file=to)
    return answer


def _difference(options: argparse.Namespace) -> Difference:
    from mpc_lab.results import load
    from mpc_lab.results.two_audits import difference

    paths = [Path(name) for name in options.files]
    given = {
        option.name: from_line(option, getattr(options, option.name))
        for option in _OF_A_LOG
        if getattr(options, option.name) is not None
    }
    if all(path.suffix.lower() in _SAVED for path in paths):
        if len(paths) != 2:
            raise MpcError(
                f"compare must have two saved audits, new and old; got {len(paths)}. Name both."
            )
        of_log = [*given, *(["against"] if options.against else [])]
        if of_log:
            flag = f"--{of_log[0].replace('_', '-')}"
            raise MpcError(f"{flag} must go with a log; got saved audits. Leave it out.")
        check_outputs(_outputs(options), options.files)
        return difference(load(paths[0]), load(paths[1]))
    if len(paths) != 1:
        raise MpcError(
            f"compare must have one log, or two saved audits; got {len(paths)} files. Name the "
            'files of one log by a pattern in quotes, such as "logs/*.csv", or two files of --save.'
        )
    return _of_columns(options, given)


def _outputs(options: argparse.Namespace) -> dict[str, Any]:
    return {name: path for name in ("save", "json") if (path := getattr(options, name)) is not None}


def _of_columns(options: argparse.Namespace, given: dict[str, Any]) -> Difference:
    from mpc_lab.scoring import Baseline, Column

    new, old = given.get("score"), options.against
    if not new or not old:
        raise MpcError("compare must have --score NEW and --against OLD; got one or none of them.")
    files = find_files(options.files, given.get("sep"), given.get("encoding"))
    check_outputs(_outputs(options), files.paths)
    rules = [Baseline(), Column(new)]
    found = audit_files(files, {**given, "score": old, "rules": rules, "progress": False})
    made = found.difference(new, "baseline")
    # The command line knows two columns and no rules.
    made.data.attrs |= {"new": f"score {quote(new)}", "old": f"score {quote(old)}"}
    return made


COMPARE = Command(
    "compare",
    "compare two saved audits, or two score columns of a log",
    _add_arguments,
    _run,
    {
        "allow_abbrev": False,
        "usage": "mpc-lab compare NEW.nc OLD.nc [options]\n"
        "       mpc-lab compare LOG --score NEW --against OLD --query … --outcome … --group … "
        "[options]",
        "description": "Subtract the gap of each group under old from its gap under new, with an "
        "interval for each difference.",
        "epilog": "exit codes of --gate: 0 every gap is shown to be no further from 0 than the old "
        "one by more than --no-worse-by, 1 some gap is shown to be further by more, 2 the data "
        "cannot tell; 3 and above are errors.",
    },
)
