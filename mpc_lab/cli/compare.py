"""``mpc-lab compare``: two saved audits, or two score columns of one log."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab.cli.options import BY_NAME, COLUMN_OPTIONS, Command, add_option, add_path, names
from mpc_lab.cli.options import threshold as read_threshold
from mpc_lab.errors import MpcError, check_number
from mpc_lab.files import find_files
from mpc_lab.text import plain, quote
from mpc_lab.writing import write_text

if TYPE_CHECKING:
    from mpc_lab.results.difference import Difference

_SAVED = (".nc", ".h5")
_STDOUT = Path("-")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(
        parser, "files", nargs="+", metavar="FILE", help="two saved audits, new and old; or a log"
    )
    for name in COLUMN_OPTIONS:
        add_option(parser, BY_NAME[name])
    parser.add_argument("--against", metavar="COLUMN", help="with a log: the old score")
    parser.add_argument("--threshold", metavar="T", help="with a log: as for mpc-lab audit")
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
    if all(path.suffix.lower() in _SAVED for path in paths):
        if len(paths) != 2:
            raise MpcError(
                f"compare must have two saved audits, new and old; got {len(paths)}. Name both."
            )
        for name in (*COLUMN_OPTIONS, "against", "threshold"):
            if getattr(options, name, None):
                raise MpcError(
                    f"--{name.replace('_', '-')} must go with a log; got saved audits. Leave it "
                    "out."
                )
        return difference(load(paths[0]), load(paths[1]))
    if len(paths) != 1:
        raise MpcError(f"compare must have one log, or two saved audits; got {len(paths)} files.")
    return _of_columns(paths[0], options)


def _of_columns(path: Path, options: argparse.Namespace) -> Difference:
    from mpc_lab.run import audit
    from mpc_lab.scoring import Column

    if not options.score or not options.against:
        raise MpcError("compare must have --score NEW and --against OLD; got one or none of them.")
    files = find_files(path, options.sep, options.encoding)
    given: dict[str, Any] = {}
    for name in COLUMN_OPTIONS:
        value = getattr(options, name)
        if value is None:
            continue
        if BY_NAME[name].is_list:
            several = names(value, files.names)
            value = several[0] if len(several) == 1 else several
        given[name] = value
    new, given["score"] = str(given["score"]), options.against
    if options.threshold is not None:
        given["threshold"] = read_threshold(options.threshold)
    found = audit(str(path), scoring_rules=["baseline", Column(new)], progress=False, **given)
    made = found.difference(new, "baseline")
    # On the command line there are two columns, and no rule.
    made.data.attrs |= {"new": f"score {quote(new)}", "old": f"score {quote(options.against)}"}
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
