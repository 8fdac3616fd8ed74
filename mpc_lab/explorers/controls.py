"""Controls, notes, boxes and tables that all tabs are made of, in one look."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import numpy as np
import pandas as pd
import traitlets

from mpc_lab.errors import MpcError
from mpc_lab.html import NO_MATH, Head, escape, label, paragraphs
from mpc_lab.html import table as html_table
from mpc_lab.text import NOTHING, entry
from mpc_lab.text import column as shared
from mpc_lab.text import name as shown_name

_HERE = Path(__file__).parent
# A page that draws formulas must not take a name such as "$a$" for one.
_ROWS_AT_MOST = 2_000
# In the page a minus is as long as a plus; the number itself is what the table sorts by.
_MINUS = (
    "function (data, type) {{ return type === 'display' && typeof data === 'number' "
    "? data.toFixed({places}).replace('-', '\u2212') : data; }}"
)
# Significant digits of the smallest number in a column.
_DIGITS = 4


class Beacon(anywidget.AnyWidget):
    """Brings the style, and hides the static picture of its output once the live one is drawn."""

    _esm = _HERE / "beacon.js"
    _css = _HERE / "explorer.css"


class Note(widgets.HTML):  # type: ignore[misc]
    """Words below or beside a control; always plain text.

    Parameters
    ----------
    text : str
    kind : {"note", "sentence", "finding", "warning", "crumbs"}
        A sentence changes with the controls; a finding is shown above everything else.
    """

    text = traitlets.Unicode()
    kind = traitlets.Enum(("note", "sentence", "finding", "warning", "crumbs"), "note")

    def __init__(self, text: str = "", kind: str = "note", **options: Any) -> None:
        super().__init__(**options)
        self.kind, self.text = kind, text
        self._set()

    @traitlets.observe("text", "kind")
    def _set(self, _change: Any = None) -> None:
        role = ' role="status"' if self.kind == "sentence" else ""
        body = paragraphs(self.text.split("\n"))
        self.value = f'<div class="mpc-{self.kind} {NO_MATH}"{role}>{body}</div>'
        self.layout.display = "" if self.text else "none"


class NumberRow(widgets.HTML):  # type: ignore[misc]
    """A row of numbers with their names; always plain text."""

    def show(self, numbers: Sequence[tuple[str, str]]) -> None:
        """Show pairs of name and number."""
        cells = "".join(
            f'<div><span class="mpc-label">{escape(label)}</span>'
            f'<span class="mpc-value">{escape(value)}</span></div>'
            for label, value in numbers
        )
        self.value = f'<div class="mpc-numbers {NO_MATH}">{cells}</div>'


class ErrorBox(widgets.HTML):  # type: ignore[misc]
    """What went wrong, in a red box; empty and hidden when nothing did."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def show(self, error: Exception) -> None:
        """Show an error: the sentence of an `MpcError` alone, else with its traceback folded."""
        message = str(error) or type(error).__name__
        folded = ""
        if not isinstance(error, MpcError):
            message = f"{type(error).__name__}: {message}"
            lines = "".join(traceback.format_exception(error))
            inside = f"<pre>{escape(lines, lines=True)}</pre>"
            folded = f"<details><summary>Traceback</summary>{inside}</details>"
        body = f"<p>{escape(message)}</p>{folded}"
        self.value = f'<div class="mpc-error {NO_MATH}" role="alert">{body}</div>'
        self.layout.display = ""

    def clear(self) -> None:
        """Show nothing."""
        self.value = ""
        self.layout.display = "none"


class ProgressRow(widgets.HBox):  # type: ignore[misc]
    """The progress of long work, and its current step; hidden when there is no work."""

    def __init__(self) -> None:
        self._bar = widgets.IntProgress(min=0, max=1)
        self._words = widgets.Label()
        super().__init__([self._bar, self._words])
        self.add_class("mpc-progress")
        self.clear()

    def show(self, words: str, done: int, total: int) -> None:
        """Show a step in words and how many are done."""
        with self._bar.hold_sync():
            self._bar.max, self._bar.value = max(total, 1), done
        self._words.value = words
        self.layout.display = ""

    def clear(self) -> None:
        """Show nothing."""
        self.layout.display = "none"


def dropdown(label: str, options: Sequence[Any], value: Any, **more: Any) -> widgets.Dropdown:
    """Return a labelled dropdown; `options` are values, or pairs of what is shown and value."""
    box = widgets.Dropdown(options=list(options), value=value, description=label, **more)
    return _label(box)


def slider(
    label: str, value: float, low: float, high: float, step: float, **more: Any
) -> widgets.FloatSlider:
    """Return a labelled slider over numbers."""
    box = widgets.FloatSlider(value=value, min=low, max=high, step=step, description=label, **more)
    return _label(box)


def whole_slider(label: str, value: int, low: int, high: int, **more: Any) -> widgets.IntSlider:
    """Return a labelled slider over whole numbers."""
    options = {"continuous_update": False, **more}
    return _label(widgets.IntSlider(value=value, min=low, max=high, description=label, **options))


def range_slider(label: str, **more: Any) -> widgets.FloatRangeSlider:
    """Return a labelled slider with two ends."""
    options = {"continuous_update": False, "readout_format": ".3", **more}
    return _label(widgets.FloatRangeSlider(description=label, **options))


def checkbox(label: str, value: bool, **more: Any) -> widgets.Checkbox:
    """Return a labelled box to tick."""
    return _label(widgets.Checkbox(value=value, description=label, indent=False, **more))


def text_field(label: str, value: str = "", placeholder: str = "", **more: Any) -> widgets.Text:
    """Return a labelled line of text."""
    box = widgets.Text(value=value, placeholder=placeholder, description=label, **more)
    return _label(box)


def button(label: str, why: str = "", **more: Any) -> widgets.Button:
    """Return a button; `why` is shown when the pointer rests on it."""
    box = widgets.Button(description=label, tooltip=why or label, **more)
    box.add_class("mpc-button")
    return box


def _label(box: Any) -> Any:
    box.style.description_width = "initial"
    box.add_class("mpc-control")
    box.layout.width = "auto"
    box.layout.max_width = "100%"
    return box


def controls_row(*parts: widgets.Widget) -> widgets.Widget:
    """Return controls beside each other, in several rows where there is no room."""
    row = widgets.Box(list(parts))
    row.add_class("mpc-controls")
    return row


def column(*parts: widgets.Widget) -> widgets.Widget:
    """Return parts below each other."""
    box = widgets.VBox(list(parts))
    box.add_class("mpc-column")
    return box


def beside(*parts: widgets.Widget) -> widgets.Widget:
    """Return parts beside each other, or below each other where there is no room."""
    box = widgets.Box(list(parts))
    box.add_class("mpc-beside")
    return box


def table(frame: pd.DataFrame, **options: Any) -> Any:
    """Return a sortable table that works without a network; names in it are plain text.

    ``table.selected_rows`` are the numbers of the chosen rows; ``table.update(frame)`` shows other
    rows.
    """
    from itables.widget import ITable

    settings: dict[str, Any] = {
        "select": "single",
        "allow_html": False,
        "classes": "display compact",
    }
    settings |= {"maxBytes": "1MB", "pageLength": 10, "showIndex": False, **options}
    made = ITable(plain_frame(frame), columnDefs=real_minus(frame), **settings)
    made.add_class("mpc-table")
    return made


def real_minus(shown: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how columns with negative numbers are written: one number of decimals, and a −."""
    from itables import JavascriptFunction

    made = []
    for place, header in enumerate(shown):
        values = shown[header]
        if values.dtype.kind not in "if" or not (values < 0).any():
            continue
        ends = [f"{value:.4g}".partition(".")[2] for value in values.tolist()]
        places = max(map(len, ends)) if values.dtype.kind == "f" else 0
        made.append({"targets": place, "render": JavascriptFunction(_MINUS.format(places=places))})
    return made


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first rows of a frame with names that move no cursor."""
    shown = frame.head(_ROWS_AT_MOST).copy()
    for column_name in shown.columns:
        if not pd.api.types.is_numeric_dtype(shown[column_name]):
            shown[column_name] = [shown_name(value) for value in shown[column_name]]
    return shown


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
        Numbers are aligned right, all else left.
    caption : str
        What the table holds; shown above it.
    kinds : list of str
        For each row the class it has, from our own words; "" for none.
    marked : list of str
        For each row the words in its last column, "" for none.
    bad : int, optional
        The column that has a problem.
    long : bool
        Show texts of any length; by default they are cut like names.
    """
    heads = [
        Head(label(one), not _all_numbers([row[k] for row in rows]), "mpc-bad" * (k == bad))
        for k, one in enumerate(header)
    ]
    columns = [_same_decimals([row[k] for row in rows]) for k in range(len(header))]
    body = [[_cell(value, long) for value in row] for row in zip(*columns, strict=True)]
    if any(marked):
        heads.append(Head("", is_text=True, kind="mpc-mark"))
        body = [[*row, escape(words)] for row, words in zip(body, marked, strict=True)]
    return html_table(heads, body, kind=f"mpc-plain {NO_MATH}", caption=caption, row_kinds=kinds)


def _same_decimals(values: Sequence[Any]) -> list[Any]:
    """Return the cells of a column; numbers that need not be whole have the same decimals."""
    numbers = [value for value in values if isinstance(value, float | np.floating)]
    if not numbers or not _all_numbers(values):
        return list(values)
    texts = iter(shared(map(float, numbers), _DIGITS))
    return [next(texts) if isinstance(one, float | np.floating) else one for one in values]


def _cell(value: Any, long: bool) -> str:
    """Return a value as HTML, kept apart from the text around it."""
    return f"<bdi>{escape(value if long else shown_cell(value))}</bdi>"


def shown_cell(value: Any) -> str:
    """Return a value as a person reads it: numbers short, names safe and cut, nothing as a dash."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return entry(int(value), "d")
    if isinstance(value, float | np.floating):
        return entry(float(value), ".4g")
    return NOTHING if value is None else shown_name(value)


def _all_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, beside cells that are empty or leave rows out."""
    kinds = (int, float, np.integer, np.floating)
    known = [value for value in values if not (isinstance(value, str) and value in ("", "…"))]
    return bool(known) and all(
        isinstance(value, kinds) and not isinstance(value, bool | np.bool_) for value in known
    )
