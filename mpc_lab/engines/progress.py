"""One progress bar for an audit, shown only when the work turns out to be long."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

_SECONDS_BEFORE_IT_SHOWS = 1.5

Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def progress_told_to(listener: Listener) -> Iterator[None]:
    """Tell the progress of the work inside to a function instead of drawing a bar.

    Parameters
    ----------
    listener : callable
        (label, steps done, steps announced so far), called in the thread that asked for the work.
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


class Progress:
    """A bar that grows as work is announced.

    Parameters
    ----------
    wanted : bool or None
        None: in a terminal or a notebook only.
    unit : str
        What a step is called.
    """

    def __init__(self, wanted: bool | None, unit: str = "block") -> None:
        notebook = _in_notebook()
        self.wanted = (notebook or sys.stderr.isatty()) if wanted is None else bool(wanted)
        self._bar: Any = None
        self._listener = _listener.get()
        self._done = self._total = 0
        if self._listener is not None:
            self.wanted = False
        if self.wanted:
            self._bar = _tqdm(notebook)(
                total=0, delay=_SECONDS_BEFORE_IT_SHOWS, leave=False, unit=unit
            )

    def __call__(self, label: str, steps: int) -> Callable[[], None] | None:
        """Announce some steps of work; call what is returned after each of them."""
        if self._listener is not None:
            return self._tell(self._listener, label, steps)
        if self._bar is None:
            return None
        self._bar.total += steps
        self._bar.set_description(label, refresh=False)
        return lambda: self._bar.update(1)

    def _tell(self, listener: Listener, label: str, steps: int) -> Callable[[], None]:
        self._total += steps

        def done() -> None:
            self._done += 1
            listener(label, self._done, self._total)

        listener(label, self._done, self._total)
        return done

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and type(instance).__name__ == "ZMQInteractiveShell"


def _tqdm(notebook: bool) -> Any:
    if notebook and importlib.util.find_spec("ipywidgets"):
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm
    return tqdm
