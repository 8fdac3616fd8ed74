"""Controls, notes and boxes that all tabs are made of, in one look."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import pandas as pd
import traitlets

from mpc_lab.errors import MpcError
from mpc_lab.results.wording import name as shown_name

_HERE = Path(__file__).parent
# A page that draws formulas must not take a name such as "$a$" for one.
_PLAIN = "mathjax_ignore tex2jax_ignore"
_ROWS_AT_MOST = 2_000


class Beacon(anywidget.AnyWidget):
    """Brings the style, and hides the static picture of its output once the live one is drawn."""

    _esm = _HERE / "beacon.js"
    _css = _HERE / "explorer.css"


class Note(widgets.HTML):  # type: ignore[misc]
    """Words below or beside a control; always plain text.

    Parameters
    ----------
    text : str
    kind : {"note", "reading", "finding", "warning"}
        A reading is a sentence that changes with the controls; a finding stands above all.
    """

    text = traitlets.Unicode()
    kind = traitlets.Enum(("note", "reading", "finding", "warning"), "note")

    def __init__(self, text: str = "", kind: str = "note", **options: Any) -> None:
        super().__init__(**options)
        self.kind, self.text = kind, text
        self._set()

    @traitlets.observe("text", "kind")
    def _set(self, _change: Any = None) -> None:
        role = ' role="status"' if self.kind == "reading" else ""
        body = paragraphs(self.text)
        self.value = f'<div class="mpc-{self.kind} {_PLAIN}"{role}>{body}</div>'
        self.layout.display = "" if self.text else "none"


class Facts(widgets.HTML):  # type: ignore[misc]
    """A row of numbers with their names; always plain text."""

    def show(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show pairs of name and number."""
        cells = "".join(
            f'<div><span class="mpc-fact">{escape(label)}</span>'
            f'<span class="mpc-value">{escape(value)}</span></div>'
            for label, value in facts
        )
        self.value = f'<div class="mpc-facts {_PLAIN}">{cells}</div>'


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
            folded = f"<details><summary>Traceback</summary><pre>{escape(lines)}</pre></details>"
        body = f"<p>{escape(message)}</p>{folded}"
        self.value = f'<div class="mpc-error {_PLAIN}" role="alert">{body}</div>'
        self.layout.display = ""

    def clear(self) -> None:
        """Show nothing."""
        self.value = ""
        self.layout.display = "none"


class Progress(widgets.HBox):  # type: ignore[misc]
    """How far long work has come, with the step it is at; hidden when there is none."""

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


def paragraphs(text: str) -> str:
    """Return text as escaped HTML, a paragraph for each line."""
    # No line break inside "95 %".
    lines = (escape(line).replace(" %", "\u00a0%") for line in text.split("\n") if line)
    return "".join(f'<p dir="auto">{line}</p>' for line in lines)


def dropdown(label: str, options: Sequence[Any], value: Any, **more: Any) -> widgets.Dropdown:
    """Return a labelled dropdown; `options` are values, or pairs of what is shown and value."""
    box = widgets.Dropdown(options=list(options), value=value, description=label, **more)
    return _labelled(box)


def step_slider(
    label: str, steps: Sequence[tuple[str, float]], value: float, **more: Any
) -> widgets.SelectionSlider:
    """Return a labelled slider over given steps, which shows the step it is at."""
    box = widgets.SelectionSlider(
        options=list(steps), value=value, description=label, continuous_update=True, **more
    )
    return _labelled(box)


def slider(
    label: str, value: float, low: float, high: float, step: float, **more: Any
) -> widgets.FloatSlider:
    """Return a labelled slider over numbers."""
    box = widgets.FloatSlider(value=value, min=low, max=high, step=step, description=label, **more)
    return _labelled(box)


def whole_slider(label: str, value: int, low: int, high: int, **more: Any) -> widgets.IntSlider:
    """Return a labelled slider over whole numbers."""
    options = {"continuous_update": False, **more}
    return _labelled(
        widgets.IntSlider(value=value, min=low, max=high, description=label, **options)
    )


def range_slider(label: str, **more: Any) -> widgets.FloatRangeSlider:
    """Return a labelled slider with two ends."""
    options = {"continuous_update": False, "readout_format": ".3g", **more}
    return _labelled(widgets.FloatRangeSlider(description=label, **options))


def checkbox(label: str, value: bool, **more: Any) -> widgets.Checkbox:
    """Return a labelled box to tick."""
    return _labelled(widgets.Checkbox(value=value, description=label, indent=False, **more))


def text_field(label: str, value: str = "", placeholder: str = "", **more: Any) -> widgets.Text:
    """Return a labelled line of text."""
    box = widgets.Text(value=value, placeholder=placeholder, description=label, **more)
    return _labelled(box)


def button(label: str, why: str = "", **more: Any) -> widgets.Button:
    """Return a button; `why` is shown when the pointer rests on it."""
    box = widgets.Button(description=label, tooltip=why or label, **more)
    box.add_class("mpc-button")
    return box


def _labelled(box: Any) -> Any:
    box.style.description_width = "initial"
    box.add_class("mpc-control")
    box.layout.width = "auto"
    box.layout.max_width = "100%"
    return box


def with_note(control: widgets.Widget, note: Note) -> widgets.Widget:
    """Return a control with a note beside it, such as why it is disabled."""
    return controls_row(control, note)


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
    made = ITable(plain_frame(frame), **settings)
    made.add_class("mpc-table")
    return made


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first rows of a frame with names that move no cursor."""
    shown = frame.head(_ROWS_AT_MOST).copy()
    for label in shown.columns:
        if not pd.api.types.is_numeric_dtype(shown[label]):
            shown[label] = [shown_name(value) for value in shown[label]]
    return shown
