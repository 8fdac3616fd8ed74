"""An audit on the terminal, in words and as a table, and as CSV that no spreadsheet obeys."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from mpc_lab.cli.options import as_typed
from mpc_lab.text import FEW, NOTHING, decimals, entry, is_few, middle_cut, minus, plain

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from mpc_lab.results import Audit

_ROWS = 200
_HEADS = {"scoring_rule": "rule", "pairing_mode": "pairs of"}
_UNLIMITED = 10_000
_BRACKET = "adjusted\nbracket"
_NUMBERS = ("gap", _BRACKET, "pairs", "queries", "ε")
_GIVE_WAY = ("ε", "queries", "pairs", _BRACKET, "gap")
_FIRST_TO_GO = _GIVE_WAY[:-1]
_LEAST_NAME = 16
_TO_PASTE = ("mpc.", "mpc-lab ", " --")
# A spreadsheet takes a text that starts with one of these as a formula.
_OBEYED = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def fit(text: str, stream: TextIO) -> str:
    """Return a text for a stream: on a terminal broken between words, with minus signs.

    What is piped stays as it is, one line for each sentence, and so does a line to paste.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    fitted = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        to_paste = any(word in line for word in _TO_PASTE)
        broken = textwrap.wrap(
            minus(line),
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        fitted += [line] if to_paste or not broken else broken
    return "\n".join(fitted)


def show_checks(result: Audit, *, error: bool) -> None:
    """Print what every check of the preflight says."""
    from mpc_lab.results.preflight import every_line

    lines = "\n".join([*_write_as_typed(every_line(result._checked, shell=True)), ""])
    print(plain(lines, lines=True), file=sys.stderr if error else sys.stdout)


def _write_as_typed(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with command-line options for keywords, but leave Python calls alone."""
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
        Whether it was made on the command line: advice then names options, not Python.
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
        lines = [*_write_as_typed(in_shell.get(line, line) for line in lines)]
    print(fit(plain("\n".join(lines), lines=True), stream), file=stream)
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


def headline_table(frame: pd.DataFrame, width: int = _UNLIMITED) -> Table:
    """Lay out the headline: one row for each audited cell.

    Names are never broken or left out. In a narrow terminal the last columns are dropped to make
    room for them; only when verdict and gap would have to go as well are names cut in the middle.

    Parameters
    ----------
    frame : pandas.DataFrame
        What ``audit.to_frame()`` returns.
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
    """Return names, the long ones without their middle, that all still differ."""
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
    """Return the cells of the table by column head; numbers of one column share their decimals."""
    several = [name for name in ("scoring_rule", "pairing_mode") if _differ(frame, name)]
    low, high = frame["bracket_low"].tolist(), frame["bracket_high"].tolist()
    places = _shared_places(low, high)
    made = {"group": [plain(name) for name in frame["group"]]}
    made |= {_HEADS[name]: [plain(cell) for cell in frame[name]] for name in several}
    made["verdict"] = [plain(verdict) for verdict in frame["verdict"]]
    if "exploratory" in frame:
        made["declared"] = ["no: exploratory" if flag else "yes" for flag in frame["exploratory"]]
    return made | {
        "gap": [_write_signed(value, places) for value in frame["estimate"].tolist()],
        # The interval that the verdict rests on.
        _BRACKET: [
            f"{_write_signed(a, places)} to {_write_signed(b, places)}" if a == a else NOTHING
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


def _write_signed(value: float, places: int) -> str:
    return entry(value, f"+,.{places}f")


def _thresholds(values: list[float]) -> list[str]:
    """Return thresholds that show three digits of the smallest, unless they are very far apart."""
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
