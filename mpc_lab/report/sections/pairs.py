"""A sample of the pairs themselves, only where it was asked for."""

from __future__ import annotations

import pandas as pd

from mpc_lab.report.context import Context
from mpc_lab.report.html import MINUS, Head, label, paragraphs, table, words
from mpc_lab.results.reading import Cell
from mpc_lab.results.wording import name

_TEXT = ("query", "item", "other_item")


def pairs(context: Context) -> str:
    """Return the closest pairs of the groups looked at closely."""
    if not context.pairs:
        how = "None was asked for: this page holds aggregates only. See audit.report(…, pairs=20)."
        return paragraphs([how], "note")
    how = (
        "The pairs with the smallest score gaps, with ids as they stand in the log. The item is in "
        "the group, the other item is not. They illustrate; the estimate is over all pairs."
    )
    pieces = [paragraphs([how], "soft")]
    for cell in context.focus:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_pairs, context, cell))
    return "".join(pieces)


def _pairs(context: Context, cell: Cell) -> str:
    part = context.part
    found = context.audit.pairs(cell.group, part.rule, part.mode, limit=context.pairs)
    if found.empty:
        return paragraphs(["There is no pair."], "note")
    heads = [Head(words(str(column).replace("_", " ")), column in _TEXT) for column in found]
    return table(heads, [_row(found, k) for k in range(len(found))])


def _row(found: pd.DataFrame, k: int) -> list[str]:
    cells = []
    for column in found:
        value = found[column].iloc[k]
        if column in _TEXT:
            cells.append(f"<bdi>{words(name(value))}</bdi>")
        else:
            shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
            cells.append(words(shown.replace("-", MINUS)))
    return cells
