"""An audit on the terminal, in words and as a table, and as CSV that no spreadsheet obeys."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from mpc_lab.text import FEW, NOTHING, entry, is_few, plain

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from mpc_lab.results import Audit

_ROWS = 200
_HEADS = {"scoring_rule": "rule", "pairing_mode": "pairs of"}
# A spreadsheet takes a text that starts with one of these as a formula.
_OBEYED = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def show(result: Audit, *, error: bool = False) -> None:
    """Print an audit.

    Parameters
    ----------
    result : Audit
    error : bool
        To standard error, where standard output is for something else.
    """
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if error else sys.stdout
    print(plain(result.summary(), lines=True), file=stream)
    print(file=stream)
    frame = result.to_frame()
    PipedConsole(highlight=False, file=stream).print(headline_table(frame.head(_ROWS)))
    if len(frame) > _ROWS:
        more = f"and {len(frame) - _ROWS:,} more rows; --csv and --save have them all."
        print(more, file=stream)


def headline_table(frame: pd.DataFrame) -> Table:
    """Lay out the headline: one row for each audited cell.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of ``audit.to_frame()``.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table()
    several = [name for name in ("scoring_rule", "pairing_mode") if _differ(frame, name)]
    for name in ("group", *several):
        table.add_column(_HEADS.get(name, name), overflow="fold")
    table.add_column("verdict", no_wrap=True)
    if "exploratory" in frame:
        table.add_column("declared", no_wrap=True)
    for name in ("gap", "adjusted\nbracket", "pairs", "queries", "ε"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in frame.reset_index().to_dict("records"):
        # Text, not str: rich reads a str as markup.
        table.add_row(*(Text(plain(cell)) for cell in _cells(row, several)))
    return table


def _differ(frame: pd.DataFrame, name: str) -> bool:
    return name in frame and len(set(frame[name])) > 1


def _cells(row: dict[Hashable, Any], several: list[str]) -> tuple[str, ...]:
    low, high = row["bracket_low"], row["bracket_high"]
    return (
        row["group"],
        *(row[name] for name in several),
        row["verdict"],
        *(["no: exploratory" if row["exploratory"] else "yes"] if "exploratory" in row else []),
        entry(row["estimate"], "+.3f"),
        # The interval that the verdict rests on.
        f"{entry(low, '+.3f')} to {entry(high, '+.3f')}" if low == low else NOTHING,
        f"{row['n_pairs']:,}",
        f"{row['n_queries']:,}",
        entry(row["epsilon"], ".3g"),
    )


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
