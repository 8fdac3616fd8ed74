"""A small table of plain text, for what needs no sorting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mpc_lab.charts.words import signed
from mpc_lab.results.wording import name
from mpc_lab.terminal import plain

_PLAIN = "mathjax_ignore tex2jax_ignore"


def plain_table(
    header: Sequence[object],
    rows: Sequence[Sequence[Any]],
    *,
    caption: str = "",
    kinds: Sequence[str] = (),
    marked: Sequence[str] = (),
    bad: int | None = None,
    long: bool = False,
) -> str:
    """Return a table as HTML in which every name is plain text.

    Parameters
    ----------
    header : list
        Names of the columns.
    rows : list of lists
        Numbers stand at the right, all else at the left.
    caption : str
        What the table holds; shown above it.
    kinds : list of str
        For each row the class it has, from our own words; "" for none.
    marked : list of str
        For each row the words that stand in its last column, "" for none.
    bad : int, optional
        The column in which something is amiss.
    long : bool
        Show texts of any length; by default they are cut like names.
    """
    numeric = [_all_numbers([row[k] for row in rows]) for k in range(len(header))]
    heads = "".join(
        f'<th scope="col" class="{_side(right)}" dir="auto">{escape(name(label))}</th>'
        for label, right in zip(header, numeric, strict=True)
    )
    heads += "<th></th>" if any(marked) else ""
    body = []
    for place, row in enumerate(rows):
        cells = "".join(
            f'<td class="{_side(right)}{" mpc-bad" if k == bad else ""}" dir="auto">'
            f"{escape(plain(value) if long else shown_cell(value))}</td>"
            for k, (value, right) in enumerate(zip(row, numeric, strict=True))
        )
        if any(marked):
            cells += f'<td class="mpc-left mpc-mark">{escape(marked[place])}</td>'
        kind = f' class="{escape(kinds[place])}"' if kinds and kinds[place] else ""
        body.append(f"<tr{kind}>{cells}</tr>")
    above = f'<caption dir="auto">{escape(caption)}</caption>' if caption else ""
    return (
        f'<div class="mpc-wide"><table class="mpc-plain {_PLAIN}">{above}'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def shown_cell(value: Any) -> str:
    """Return a value as a person reads it: numbers short, names safe and cut, nothing as a dash."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return signed(str(value))
    if isinstance(value, float | np.floating):
        return signed(f"{float(value):.4g}") if math.isfinite(value) else _not_finite(float(value))
    return "–" if value is None else name(value)


def _not_finite(value: float) -> str:
    return "–" if math.isnan(value) else signed(str(value))


def _all_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, beside cells that are empty or leave rows out."""
    kinds = (int, float, np.integer, np.floating)
    known = [value for value in values if not (isinstance(value, str) and value in ("", "…"))]
    return bool(known) and all(
        isinstance(value, kinds) and not isinstance(value, bool | np.bool_) for value in known
    )


def _side(right: bool) -> str:
    return "mpc-right" if right else "mpc-left"
