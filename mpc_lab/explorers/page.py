"""Widgets that answer in the page: a rail, words with buttons, and what can be taken along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

_HERE = Path(__file__).parent


class Rail(anywidget.AnyWidget):
    """A slider over given steps; charts of the same `link` follow it before the kernel does.

    Attributes
    ----------
    description : str
        What it moves; its label.
    steps : list of float
    texts : list of str
        What each step is called, as a screen reader speaks it: "ε 0.007, 11,021 pairs".
    value : float
        The step that it is at.
    home : float or None
        The step with a tick, where nothing was moved.
    param : str
        The parameter of charts that follows it.
    link : str
        Which charts do: those with the same one.
    """

    _esm = _HERE / "rail.js"

    description = traitlets.Unicode().tag(sync=True)
    steps = traitlets.List(traitlets.Float()).tag(sync=True)
    texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    value = traitlets.Float().tag(sync=True)
    home = traitlets.Float(None, allow_none=True).tag(sync=True)
    home_words = traitlets.Unicode().tag(sync=True)
    param = traitlets.Unicode("at").tag(sync=True)
    link = traitlets.Unicode().tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)

    def show(
        self, steps: Sequence[float], texts: Sequence[str], value: float, home: float | None
    ) -> None:
        """Set steps and value in one message."""
        with self.hold_sync():
            self.steps, self.texts = list(steps), list(texts)
            self.home, self.value = home, value


class ActiveHtml(anywidget.AnyWidget):
    """HTML of our own making in which an element with ``data-press`` is a button.

    Parameters
    ----------
    on_press : callable
        Called with the name of what was pressed; with `by_keys`, "previous" and "next" for ← and →.
    by_keys : bool
        Whether it takes the focus and answers to ← and →.
    spoken : str
        What a screen reader calls it.
    """

    _esm = _HERE / "active.js"

    value = traitlets.Unicode().tag(sync=True)
    pressed = traitlets.List(traitlets.Any()).tag(sync=True)
    by_keys = traitlets.Bool(False).tag(sync=True)
    spoken = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, on_press: Callable[[str], None], *, by_keys: bool = False, spoken: str = ""
    ) -> None:
        super().__init__(by_keys=by_keys, spoken=spoken)
        self._on_press = on_press
        self.observe(self._told, "pressed")

    def _told(self, change: Any) -> None:
        if change["new"]:
            self._on_press(str(change["new"][0]))


class TakeAlong(anywidget.AnyWidget):
    """Buttons that copy the code of what is shown and save its picture, both in the page."""

    _esm = _HERE / "take_along.js"

    code = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
