"""How rows, problems and code look on the way to an audit; every name is plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mpc_lab.charts.words import plural
from mpc_lab.explorers.plain_table import plain_table
from mpc_lab.explorers.problems import Problem
from mpc_lab.ranking.table import open_table, pandas_frame, take_rows
from mpc_lab.results.wording import name

_PREVIEW_ROWS, _PREVIEW_COLUMNS = 5, 12
_SIGNS = {"stop": "✕", "drop": "!", "note": "i"}
_WORDS = {
    "stop": "stops the audit",
    "drop": "stops the audit, unless such rows are left out",
    "note": "to be known",
}


def preview_html(frame: Any) -> str:
    """Return the first rows of a table."""
    table = open_table(frame)
    shown = list(table.columns)[:_PREVIEW_COLUMNS]
    head = pandas_frame(table.head(_PREVIEW_ROWS))
    rows = [[head[column].iloc[row] for column in shown] for row in range(len(head))]
    more = len(table.columns) - len(shown)
    caption = f"The first {len(head)} of {plural(len(table), 'row')}"
    caption += f", without {plural(more, 'more column')}" if more > 0 else ""
    return plain_table(list(map(str, shown)), [_texts(row) for row in rows], caption=caption)


def problems_html(
    problems: Sequence[Problem], frame: Any, columns: Mapping[str, Any], *, leave_out: bool
) -> str:
    """Return each problem beside the rows that have it, the first one unfolded."""
    if not problems:
        return _status("Nothing stands in the way of an audit.")
    parts = [
        _problem_html(one, frame, columns, first=place == 0, leave_out=leave_out)
        for place, one in enumerate(problems)
    ]
    return f'<div class="mpc-problems mathjax_ignore tex2jax_ignore">{"".join(parts)}</div>'


def _problem_html(
    problem: Problem, frame: Any, columns: Mapping[str, Any], *, first: bool, leave_out: bool
) -> str:
    met = leave_out and problem.kind == "drop"
    kind = "note" if met else problem.kind
    words = "such rows are left out" if met else _WORDS[kind]
    line = (
        f'<span class="mpc-sign mpc-{kind}-sign" role="img" aria-label="{words}" '
        f'title="{words}">{_SIGNS[kind]}</span> '
        f'<span dir="auto">{escape(problem.sentence)}</span>'
        f' <span class="mpc-note">({words})</span>'
    )
    if not problem.rows:
        return f'<div class="mpc-problem">{line}</div>'
    rows = _rows_html(problem, frame, columns)
    unfolded = " open" if first else ""
    return f'<details class="mpc-problem"{unfolded}><summary>{line}</summary>{rows}</details>'


def _rows_html(problem: Problem, frame: Any, columns: Mapping[str, Any]) -> str:
    """Return the rows of a problem with the columns that have a part, the bad one marked."""
    table = open_table(frame)
    rows = pandas_frame(take_rows(table, np.array(problem.rows, dtype=np.int64)))
    others = [
        (role, column)
        for role in ("query", "item", "score", "outcome", "group", "position", "unit", "segment")
        if role != problem.role and (column := columns.get(role)) is not None
        if not isinstance(column, list)
    ]
    header = ["row", f"{problem.role} (amiss)", *(_heading(*other) for other in others)]
    body = [
        [number, value, *_texts([rows[column].iloc[place] for _, column in others])]
        for place, (number, value) in enumerate(zip(problem.rows, problem.values, strict=True))
    ]
    made = plain_table(header, body, bad=1)
    more = f"<p>and {plural(problem.more, 'row')} more</p>" if problem.more else ""
    return f"{made}{more}<p class='mpc-note'>Rows count from 0.</p>"


def _heading(role: str, column: Any) -> str:
    return role if role == str(column) else f"{role}: {name(column)}"


def code_html(code: str) -> str:
    """Return Python to copy, folded away."""
    return (
        "<details class='mpc-code'><summary>The same in Python</summary>"
        f"<pre>{escape(code)}</pre></details>"
    )


def _status(words: str) -> str:
    return f'<div role="status"><p>✓ {escape(words)}</p></div>'


def _texts(values: Sequence[Any]) -> list[Any]:
    """Return values of cells: numbers as they are, lists and the like as text."""
    kinds = (bool, int, float, np.bool_, np.integer, np.floating, str)
    return [value if value is None or isinstance(value, kinds) else str(value) for value in values]
