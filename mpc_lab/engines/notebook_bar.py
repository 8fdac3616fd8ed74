"""A bar of progress in a notebook that leaves nothing in it once the work is done."""

from __future__ import annotations

import time
from typing import Any

from mpc_lab.html import escape

_SECONDS_BETWEEN = 0.1
# What stays in the notebook, and in what is made of it.
_NOTHING = {"text/html": "", "text/plain": ""}


class NotebookBar:
    """A bar with the methods of one of tqdm's.

    Those of tqdm are widgets, whose last state stays in a saved notebook as text.

    Parameters
    ----------
    total : int
    delay : float
        The bar shows after this many seconds.
    unit : str
        What a step is called.
    """

    def __init__(self, total: int, delay: float, unit: str) -> None:
        self.total, self.done = total, 0
        self._label, self._unit = "", unit
        self._started = time.monotonic()
        self._next = self._started + delay
        self._shown: Any = None

    def set_description(self, label: str, refresh: bool = True) -> None:
        """Say what is done."""
        self._label = label
        if refresh:
            self.update(0)

    def update(self, steps: int) -> None:
        """Count steps that are done."""
        self.done += steps
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SECONDS_BETWEEN
        self._show(self._words(now - self._started))

    def close(self) -> None:
        """Take the bar away."""
        if self._shown is not None:
            self._show(_NOTHING)

    def _words(self, seconds: float) -> dict[str, str]:
        said = f"{self._label}, {self.done:,} of {self.total:,} {self._unit}s, {seconds:.0f} s"
        bar = f'<progress max="{max(self.total, 1)}" value="{self.done}"></progress>'
        return {"text/html": f"<div>{bar} {escape(said)}</div>", "text/plain": said}

    def _show(self, bundle: dict[str, str]) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(bundle, raw=True)
