"""``mpc-lab audit`` and ``mpc-lab demo``: from a log to a table, to files, to the gate's answer.

An audit is shown in words and as a table, and written as CSV that no spreadsheet obeys.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
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
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files
from mpc_lab.roles import NEEDED_ROLES, ROLES
from mpc_lab.text import FEW, NOTHING, decimals, entry, is_few, middle_cut, plain
from mpc_lab.writing import target_path, write_text

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

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

# What is said of the columns, beside their names.
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
        _check_outputs(given, check_run(given))
        result = audit_run(given, _chosen(given))
    elif given.get("files"):
        files = find_files(given["files"], given.get("sep"), given.get("encoding"))
        _check_outputs(given, files.paths)
        result = _audit(files, given)
    else:
        raise MpcError(
            "An audit must have a file; got none. Name one, or several, or a pattern of names."
        )
    planned = given.get("planned", _PLANNED) if given.get("anytime") else None
    answer, sentence = _gate(result, given, planned) if given.get("gate") else (0, "")
    _write(result, given, planned)
    to_stdout = any(given.get(name) == _STDOUT for name in _PRINTED)
    if given.get("preflight"):
        _show_checks(result, error=to_stdout)
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


def _check_outputs(given: dict[str, Any], inputs: Sequence[str]) -> None:
    """Refuse a hopeless path before the work, not after it."""
    printed = [f"--{name}" for name in _PRINTED if given.get(name) == _STDOUT]
    if len(printed) > 1:
        listed = " and ".join(printed)
        raise MpcError(
            f'At most one output must be "-", which prints it; got {listed}. Give the rest a file.'
        )
    taken = {Path(path).resolve(): "a log that is read" for path in inputs}
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
        single["examined"] = _examined(single["examined"], known)
    return {**single, **{name: given[name] for name in _SAID if name in given}}


def _examined(given: str, known: Sequence[str]) -> Any:
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
        roles = _guessed(files, given, roles) | roles
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


def _guessed(
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
    """Tell a number of pairs to show from the modes that pairs are made by."""
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
    """Return the keywords of an audit, whatever the log."""
    chosen = {option.keyword: given[option.name] for option in AUDITED if option.name in given}
    if "modes" in given:
        chosen["pairing_modes"] = names(given["modes"], ())
    return {**chosen, "progress": _shows_progress(given)}


def _audit(files: Files, given: dict[str, Any]) -> Audit:
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
    """Write whatever was asked for, with the gate as it was decided, and say where it is."""
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
    _check_outputs(given, ())
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


_ROWS = 200
_HEADS = {"scoring_rule": "rule", "pairing_mode": "pairs of"}
# A spreadsheet takes a text that starts with one of these as a formula.
_OBEYED = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def _show_checks(result: Audit, *, error: bool) -> None:
    """Print what every check of the preflight says."""
    from mpc_lab.results.preflight import every_line

    lines = "\n".join([*_typed(every_line(result._checked, shell=True)), ""])
    print(plain(lines, lines=True), file=sys.stderr if error else sys.stdout)


def _typed(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with options of the line for keywords, but for calls that are Python whole."""
    yield from (line if "= mpc.audit(" in line else as_typed(line) for line in lines)


def show(
    result: Audit,
    *,
    error: bool = False,
    checked: bool = False,
    title: str | None = None,
    typed: bool = False,
) -> None:
    """Print an audit.

    Parameters
    ----------
    result : Audit
    error : bool
        To standard error, where standard output is for something else.
    checked : bool
        Whether the preflight was printed, so that the summary need not repeat it.
    title : str, optional
        What the audit is about: the line above the table.
    typed : bool
        Whether it was made by options of the line, which advice then names, and not by Python.
    """
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if error else sys.stdout
    said = {one.line for one in result._checked} if checked else set()
    lines = [line for line in result.summary().splitlines() if line not in said]
    if typed:
        in_shell = {one.line: one.for_shell.line for one in result._checked}
        lines = [*_typed(in_shell.get(line, line) for line in lines)]
    print(plain("\n".join(lines), lines=True), file=stream)
    print(file=stream)
    if title:
        print(plain(title), file=stream)
    frame = result.to_frame()
    console = PipedConsole(highlight=False, file=stream)
    if not console.is_terminal:
        console.width = _UNLIMITED  # what reads a file or a pipe takes lines of any length
    console.print(headline_table(frame.head(_ROWS), console.width))
    if len(frame) > _ROWS:
        more = f"and {len(frame) - _ROWS:,} more rows; --csv and --save have them all."
        print(more, file=stream)


_UNLIMITED = 10_000
_BRACKET = "adjusted\nbracket"
_NUMBERS = ("gap", _BRACKET, "pairs", "queries", "ε")
_GIVE_WAY = ("ε", "queries", "pairs", _BRACKET, "gap")
_FIRST_TO_GO = _GIVE_WAY[:-1]
_LEAST_NAME = 16


def headline_table(frame: pd.DataFrame, width: int = _UNLIMITED) -> Table:
    """Lay out the headline: one row for each audited cell.

    Names are never broken, nor left out: in a narrow terminal the last columns give way to them,
    and only where verdict and gap would go too they are cut in the middle.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of ``audit.to_frame()``.
    width : int
        How many characters fit into a line.
    """
    from rich.table import Table
    from rich.text import Text

    columns = _columns(frame)
    kept = {name: cells for name, cells in columns.items() if name not in _FIRST_TO_GO}
    if (too_wide := _width(kept) - width) > 0:
        columns["group"] = _short(frame["group"], columns["group"], too_wide)
    for name in _GIVE_WAY:
        if _width(columns) <= width:
            break
        columns.pop(name, None)
    table = Table()
    for name in columns:
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        # Text, not str: rich reads a str as markup.
        table.add_row(*map(Text, row))
    return table


def _short(groups: pd.Series, shown: list[str], too_wide: int) -> list[str]:
    """Return names without the middle of the long ones, and still different."""
    from rich.cells import cell_len

    at_most = max(max(map(cell_len, shown)) - too_wide, _LEAST_NAME)
    wide = max(math.ceil(cell_len(name) / max(len(name), 1)) for name in shown)  # as in Chinese
    known = list(dict.fromkeys(groups))
    short = dict(zip(known, middle_cut(known, at_most // wide), strict=True))
    return [short[group] for group in groups]


def _width(columns: dict[str, list[str]]) -> int:
    """Return how wide a table of these columns is: a rule and two spaces for each."""
    from rich.cells import cell_len

    lines = [[*name.split("\n"), *cells] for name, cells in columns.items()]
    return 1 + sum(3 + max(map(cell_len, column)) for column in lines)


def _columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the cells of the table by the heads of its columns; numbers of one share digits."""
    several = [name for name in ("scoring_rule", "pairing_mode") if _differ(frame, name)]
    low, high = frame["bracket_low"].tolist(), frame["bracket_high"].tolist()
    places = _shared_places(low, high)
    made = {"group": [plain(name) for name in frame["group"]]}
    made |= {_HEADS[name]: [plain(cell) for cell in frame[name]] for name in several}
    made["verdict"] = [plain(verdict) for verdict in frame["verdict"]]
    if "exploratory" in frame:
        made["declared"] = ["no: exploratory" if flag else "yes" for flag in frame["exploratory"]]
    return made | {
        "gap": [_signed(value, places) for value in frame["estimate"].tolist()],
        # The interval that the verdict rests on.
        _BRACKET: [
            f"{_signed(a, places)} to {_signed(b, places)}" if a == a else NOTHING
            for a, b in zip(low, high, strict=True)
        ],
        "pairs": [f"{count:,}" for count in frame["n_pairs"]],
        "queries": [f"{count:,}" for count in frame["n_queries"]],
        "ε": _thresholds(frame["epsilon"].tolist()),
    }


def _shared_places(low: list[float], high: list[float]) -> int:
    """Return the decimals of all gaps: those that the narrowest interval deserves, up to 6."""
    known = [decimals(*ends) for ends in zip(low, high, strict=True) if ends[0] == ends[0]]
    return min(max(known, default=3), 6)


def _signed(value: float, places: int) -> str:
    return entry(value, f"+,.{places}f")


def _thresholds(values: list[float]) -> list[str]:
    """Return thresholds with three digits of the smallest, unless they are very far apart."""
    known = [abs(value) for value in values if math.isfinite(value) and value]
    if not known or max(known) > 10_000 * min(known):
        return [entry(value, ".3g") for value in values]
    places = max(2 - math.floor(math.log10(min(known))), 0)
    return [entry(value, f",.{places}f" if places <= 8 else ".3g") for value in values]


def _differ(frame: pd.DataFrame, name: str) -> bool:
    return name in frame and len(set(frame[name])) > 1


def to_csv(audit: Audit) -> str:
    """Return the headline as CSV.

    A name that a spreadsheet would obey has ``'`` before it, and fewer than 10 queries are "< 10".
    """
    frame = audit.to_frame()
    few = frame["n_queries"].map(is_few)
    if few.any():
        frame["n_queries"] = frame["n_queries"].astype(object).where(~few, f"< {FEW}")
    for name in frame.columns[[frame[name].dtype.kind not in "biuf" for name in frame.columns]]:
        frame[name] = [neutral(value) for value in frame[name]]
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def neutral(value: object) -> str:
    r"""Return a text that a spreadsheet shows and does not obey.

    Examples
    --------
    >>> neutral('=HYPERLINK("http://x")'), neutral("Drama")
    ('\'=HYPERLINK("http://x")', 'Drama')
    """
    text = plain(value)
    return f"'{text}" if text.lstrip().startswith(_OBEYED) else text
