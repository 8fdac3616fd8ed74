"""``mpc-lab audit`` and ``mpc-lab demo``: from a log to a table, to files, to the gate's answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab.cli.options import (
    AUDITED,
    BY_NAME,
    LARGE,
    OPTIONS,
    Command,
    add_options,
    add_path,
    as_typed,
    names,
    read_settings,
)
from mpc_lab.cli.runs import RUN_ALONE, audit_run, check_run
from mpc_lab.cli.show import show, show_checks, to_csv
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files
from mpc_lab.roles import NEEDED_ROLES, ROLES
from mpc_lab.text import plain
from mpc_lab.writing import target_path, write_text

if TYPE_CHECKING:
    from mpc_lab.results import Audit


_DESCRIPTION = """\
Audit whether a ranker undervalues groups of items, from log files with one row for each
item shown: CSV, JSON lines, Parquet or Feather. Several files are read as one log: a query that
occurs in two of them is one query.
"""
_EXAMPLES = """\
examples:
  mpc-lab audit log.csv --query user --item movie --score score --outcome rating \\
      --group genres --group-sep "|"
  mpc-lab audit "logs/2026-*/*.parquet" --query user,day --score s --outcome clicked \\
      --group is_new,is_local --report report.html --save audit.nc
  mpc-lab audit log.csv --guess                           look at the guess, then name the columns
  mpc-lab audit --run bm25.run --qrels qrels.txt --groups sources.csv
  mpc-lab audit --config audit.toml --tolerance 0.02 --gate && deploy

config file: every option is a key, with files = ["logs/*.csv"]; its paths are relative to the
folder that it is in, and options on the line override it:
  files = "logs/*.csv"
  query = ["user", "day"]
  score = "score"
  outcome = "clicked"
  group = "genres"
  group_sep = "|"
  threshold = "quantile:0.01"
  tolerance = 0.02
  gate = true

exit codes: 0 done (with --gate: passed), 1 and 2 of --gate alone, 3 bad input or lost output,
70 a fault of mpc-lab, 128 and its number for a signal: 129 hung up, 130 interrupted, 141 the
reader of the output left, 143 terminated.
"""

# Options that describe the columns, besides their names.
_SAID = ("group_sep", "missing", "ascending", "outcome_name", "examined_floor")
_OUTPUTS = ("report", "save", "json", "csv", "card")
_STDOUT = Path("-")
# A path of "-" prints these instead.
_PRINTED = ("json", "csv", "card")
_PLANNED = 1000
_LEAST = ("min_pairs", "min_effective")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(
        parser, "files", nargs="*", metavar="FILE", help="files, or patterns such as 'logs/*.csv'"
    )
    add_path(
        parser, "--config", type=Path, metavar="AUDIT.toml", help="take options from this TOML file"
    )
    add_options(parser)


def _run(options: argparse.Namespace) -> int:
    """Audit the files and return the exit code."""
    given = _sort_pairs(read_settings(options))
    _check_gate(given)
    if RUN_ALONE.intersection(given):
        check_outputs(given, check_run(given))
        result = audit_run(given, _chosen(given))
    elif given.get("files"):
        files = find_files(given["files"], given.get("sep"), given.get("encoding"))
        check_outputs(given, files.paths)
        result = audit_files(files, given)
    else:
        raise MpcError(
            "An audit must have a file; got none. Name one, or several, or a pattern of names."
        )
    planned = given.get("planned", _PLANNED) if given.get("anytime") else None
    answer, sentence = _gate(result, given, planned) if given.get("gate") else (0, "")
    _write(result, given, planned)
    to_stdout = any(given.get(name) == _STDOUT for name in _PRINTED)
    if given.get("preflight"):
        show_checks(result, error=to_stdout)
    if not given.get("quiet"):
        checked, title = bool(given.get("preflight")), given.get("title")
        show(result, error=to_stdout, checked=checked, title=title, typed=True)
    if sentence:
        print(plain(as_typed(sentence)), file=sys.stderr if to_stdout else sys.stdout)
    return answer


def _check_gate(given: dict[str, Any]) -> None:
    if not given.get("gate"):
        for name in ("anytime", "planned", "gate_rule", "min_pairs", "min_effective"):
            if name in given and given[name] is not False:
                raise MpcError(
                    f"{BY_NAME[name].flag} must go with --gate, whose decision it is about; got "
                    "it alone. Add --gate."
                )
    elif "planned" in given and not given.get("anytime"):
        raise MpcError(
            "--planned must go with --anytime, whose intervals it is about; got it alone. Add "
            "--anytime."
        )
    if given.get("planned", _PLANNED) < 1:
        raise MpcError(
            f"--planned must be a number of queries, at least 1; got {given['planned']}."
        )
    if given.get("anytime") and not isinstance(given.get("threshold"), float):
        raise MpcError(
            "--anytime must have a threshold that was fixed before the first look; got one that "
            "depends on the log. Give --threshold a number of score units."
        )


def check_outputs(given: dict[str, Any], inputs: Sequence[str]) -> None:
    """Refuse a path that cannot be written before the work, not after it."""
    printed = [f"--{name}" for name in _PRINTED if given.get(name) == _STDOUT]
    if len(printed) > 1:
        listed = " and ".join(printed)
        raise MpcError(
            f'At most one output must be "-", which prints it; got {listed}. Give the rest a file.'
        )
    taken = {Path(path).resolve(): "a file that is read" for path in inputs}
    for name in _OUTPUTS:
        if name not in given or (name in _PRINTED and given[name] == _STDOUT):
            continue
        try:
            target = target_path(given[name]).resolve()
        except MpcError as error:
            raise MpcError(f"--{name}: {error}") from error
        if target in taken:
            raise MpcError(
                f"--{name} must be a file of its own; got {taken[target]}, "
                f"{str(given[name])!r}. Name another."
            )
        taken[target] = f"the file of --{name}"


# -- the log ---------------------------------------------------------------------------------


def _keywords(
    roles: dict[str, list[str]], given: dict[str, Any], known: Sequence[str]
) -> dict[str, Any]:
    """Return the columns as an audit takes them."""
    single: dict[str, Any] = {
        name: found[0] if len(found) == 1 else found for name, found in roles.items()
    }
    if "examined" in single:
        single["examined"] = _read_examined(single["examined"], known)
    return {**single, **{name: given[name] for name in _SAID if name in given}}


def _read_examined(given: str, known: Sequence[str]) -> Any:
    """Return a column, or the power law of an exponent that is given."""
    from mpc_lab.ranking import PowerLaw

    if given in known:
        return given
    try:
        eta = float(given)
    except ValueError:
        return given
    return PowerLaw(eta)


def _roles(files: Files, given: dict[str, Any]) -> dict[str, list[str]]:
    roles, known = {}, files.names
    for name in ROLES:
        value = given.get(name)
        if value is not None:
            roles[name] = names(value, known) if isinstance(value, list) else [value]
    if given.get("guess"):
        roles = _guess(files, given, roles) | roles
    ranked = {"score"} if roles.get("position") else set()
    absent = [name for name in NEEDED_ROLES if not roles.get(name) and name not in ranked]
    if absent:
        listed = ", ".join(f"--{name}" for name in absent)
        has = ", ".join(map(repr, known[:12])) + (" and more" if len(known) > 12 else "")
        raise MpcError(
            f"An audit must have {listed}; got no such columns. Name one for each from "
            f"{files.paths[0]!r}, which has "
            f"{has}{_or_guess(given)}."
        )
    return roles


def _or_guess(given: dict[str, Any]) -> str:
    if given.get("guess"):
        return ". --guess found no column for them by name and values"
    return ", or let --guess choose"


def _guess(
    files: Files, given: dict[str, Any], roles: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Guess the columns from the first rows, and print the guess."""
    from mpc_lab.ranking.names import guess_columns

    found_first = guess_columns(files.head())
    guess = {name: value for name, value in found_first.items() if value is not None}
    separator = guess.pop("group_sep", None)
    if separator and "group" not in given:
        given.setdefault("group_sep", separator)
    taken = {column for named in roles.values() for column in named}
    found = {
        name: [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        for name, value in guess.items()
        if name in ROLES and name not in roles
    }
    # A column that was given a role keeps it.
    found = {name: several for name, several in found.items() if taken.isdisjoint(several)}
    fresh = [f"--{name} {','.join(several)}" for name, several in found.items()]
    fresh += [f"--group-sep {separator}"] if separator and "group" not in given else []
    print(plain(f"Guessed: {' '.join(fresh) or 'nothing'}"), file=sys.stderr)
    return found


def _shows_progress(given: dict[str, Any]) -> bool:
    return bool(given.get("progress", sys.stderr.isatty()))


# -- the audit and what is made of it --------------------------------------------------------


def _sort_pairs(given: dict[str, Any]) -> dict[str, Any]:
    """Split ``--pairs`` into how many pairs to show and which pairing modes to use."""
    words = given.pop("pairs", ())
    counts = [int(word) for word in words if word.lstrip("-").isdecimal()]
    modes = [word for word in words if not word.lstrip("-").isdecimal()]
    if modes and "modes" in given:
        raise MpcError(
            "Only one of modes and pairs must name pairing modes; got both. Give --modes alone."
        )
    return {
        **given,
        **({"pairs": counts[-1]} if counts else {}),
        **({"modes": modes} if modes else {}),
    }


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of an audit that do not depend on the log."""
    chosen = {option.keyword: given[option.name] for option in AUDITED if option.name in given}
    if "modes" in given:
        chosen["pairing_modes"] = names(given["modes"], ())
    return {**chosen, "progress": _shows_progress(given)}


def audit_files(files: Files, given: dict[str, Any]) -> Audit:
    """Audit log files by options that were given, columns and large logs among them."""
    from mpc_lab.engines.memory import open_log
    from mpc_lab.engines.running import Progress
    from mpc_lab.run import audit

    chosen = _chosen(given)
    large = [option.name for option in OPTIONS if option.section == LARGE]
    how = {name: given[name] for name in large if name in given}
    with Progress(chosen["progress"], unit="file") as bar:
        log = open_log(
            files,
            _keywords(_roles(files, given), given, files.names),
            rules=chosen.get("scoring_rules", ()),
            progress=bar,
            **how,
        )
    if "groups" in given:
        chosen["groups"] = names(given["groups"], log.known.groups)
    return audit(log, **chosen)


def _gate(result: Audit, given: dict[str, Any], planned: int | None) -> tuple[int, str]:
    from mpc_lab.results.gate import Least, decide, explain

    least = Least(*(given.get(name, 0) for name in _LEAST))
    decision = decide(result, planned=planned, scoring_rule=given.get("gate_rule"), least=least)
    return decision.answer, explain(result, decision)


def _write(result: Audit, given: dict[str, Any], planned: int | None) -> None:
    """Write every file that was asked for, with the gate's decision, and say where each is."""
    made = []
    gate: dict[str, Any] = {"planned": planned, "gate_rule": given.get("gate_rule")}
    gate |= {name: given[name] for name in _LEAST if name in given}
    about: dict[str, Any] = {"title": given.get("title")}
    if "save" in given:
        result.save(given["save"])
        made.append("save")
    if "report" in given:
        shown = _shows_progress(given)
        how = {"pairs": given.get("pairs", 0), "show_ids": given.get("show_ids", False)}
        result.report(given["report"], **how, progress=shown, **gate, **about)
        made.append("report")
    if "json" in given:
        _put(given["json"], result.to_json(**gate) + "\n")
        made.append("json")
    if "csv" in given:
        _put(given["csv"], to_csv(result))
        made.append("csv")
    if "card" in given:
        _put(given["card"], result.model_card(**gate, **about))
        made.append("card")
    for name in made:
        if given[name] != _STDOUT:
            print(f"Written: {plain(given[name])}", file=sys.stderr)


def _put(path: Path, text: str) -> None:
    """Write a text to its file, or print it."""
    if path == _STDOUT:
        sys.stdout.write(text)
    else:
        write_text(path, text)


# -- the commands ----------------------------------------------------------------------------

AUDIT = Command(
    "audit",
    "audit log files: a table, a report, a gate for a pipeline",
    _add_arguments,
    _run,
    {
        "allow_abbrev": False,
        "usage": "mpc-lab audit FILE… --query COLUMN --score COLUMN --outcome COLUMN --group "
        "COLUMN [options]",
        "description": _DESCRIPTION,
        "epilog": _EXAMPLES,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    },
)


def _add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=20_000, help="queries to draw (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (%(default)s)")
    for name in ("save", "report"):
        add_path(
            parser,
            BY_NAME[name].flag,
            type=Path,
            metavar=BY_NAME[name].metavar,
            help=BY_NAME[name].help,
        )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")


def _run_demo(options: argparse.Namespace) -> int:
    asked = {"save": options.save, "report": options.report}
    given: dict[str, Any] = {name: path for name, path in asked.items() if path is not None}
    given["progress"] = sys.stderr.isatty() and not options.no_progress
    check_outputs(given, ())
    from mpc_lab.datasets import synthetic
    from mpc_lab.pairing.kernels import announce_compilation
    from mpc_lab.run import audit

    ranking = synthetic(queries=options.queries, seed=options.seed)
    # An audit that shows its progress announces compilation itself; the demo always does.
    with announce_compilation(not given["progress"]):
        result = audit(ranking, progress=given["progress"])
    _write(result, given, None)
    show(result)
    return 0


DEMO = Command(
    "demo",
    "audit the synthetic example, whose gap is known",
    _add_demo_arguments,
    _run_demo,
    {"description": "Audit the synthetic example of the paper's appendix A, whose gap is known."},
)
