"""What a run may use, and how far it has come: memory, threads, packages, one progress bar."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral
from types import TracebackType
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.html import escape

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LEAST = 10**9
_LIBRARIES = 4 * 10**8  # what Python and the libraries take before any row is read
BYTES_OF_A_ROW = 400  # bytes per row of an audit in memory, ids and labels included
_BYTES_IN_A_PAIR = 300
_FEWEST_ROWS, _MOST_ROWS = 1 << 16, 1 << 20
_PACKAGES = {
    "duckdb": ("duckdb",),
    "dask": ("dask", "distributed"),
    "spark": ("pyspark",),
}


@dataclass(frozen=True)
class Limits:
    """The memory that may be used, in bytes."""

    memory: int

    @property
    def sorting(self) -> int:
        """What the sort may hold before it writes to disk."""
        return (self.memory - _LIBRARIES) * 6 // 10

    def rows_at_once(self, bytes_in_a_row: int) -> int:
        """Rows of a chunk, of which every thread holds one or two with their copies."""
        from mpc_lab.pairing.kernels import n_threads

        rows = (self.memory - _LIBRARIES) // (8 * n_threads() * bytes_in_a_row)
        return int(min(max(rows, _FEWEST_ROWS), _MOST_ROWS))

    @property
    def pairs_at_once(self) -> int:
        """Pairs whose items and dyads are held at once, with the copies that sorting makes."""
        return int(max((self.memory - _LIBRARIES) // _BYTES_IN_A_PAIR, 1 << 16))


def as_limits(memory: str | int | None) -> Limits:
    """Read a bound on memory: ``"4GB"``, ``"3.5 GiB"``, or bytes; None is half of the machine."""
    if memory is None:
        return Limits(max(_LEAST, _physical_memory() // 2))
    if isinstance(memory, Integral) and not isinstance(memory, bool):
        size = int(memory)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", str(memory), re.IGNORECASE)
        if not match:
            raise MpcError(
                f'memory must be a size such as "4GB" or a number of bytes; got {memory!r}.'
            )
        units = _BINARY if match[3] else _UNITS
        size = int(float(match[1]) * units[match[2].upper()])
    if size < _LEAST:
        raise MpcError(f'memory must be at least "1GB"; got {memory!r}.')
    return Limits(size)


def check_fits(needed: int) -> None:
    """Refuse to read rows that would take more than half of the machine's memory."""
    room = as_limits(None).memory
    if needed > room:
        raise MpcError(
            f"The rows of the log, about {needed / 1e9:.1f} GB, must fit into memory for this "
            f"method; got {room / 1e9:.1f} GB. Audit a part of the log and call it on that audit."
        )


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 8 * 10**9


def need_extra(extra: str, purpose: str) -> None:
    """Raise if the packages of an extra are not installed; the error names the extra."""
    absent = [name for name in _PACKAGES[extra] if find_spec(name) is None]
    if absent:
        raise MpcError(
            f"{' and '.join(absent)} must be installed to audit {purpose}. Run "
            f'pip install "mpc-lab[{extra}]".'
        )


# ---- progress: a bar that shows only when the work turns out to be long

_SECONDS_BEFORE_IT_SHOWS = 1.5
_SECONDS_BETWEEN = 0.1
# What stays in a notebook, and in files made from it, once the work is done.
_NOTHING = {"text/html": "", "text/plain": ""}

Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def report_progress_to(listener: Listener) -> Iterator[None]:
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
            self._bar = _bar(notebook, unit)

    def __call__(self, label: str, steps: int) -> Callable[[], None] | None:
        """Announce some steps of work, and return the function to call after each of them."""
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


def _bar(notebook: bool, unit: str) -> Any:
    delay = _SECONDS_BEFORE_IT_SHOWS
    if notebook:
        return NotebookBar(total=0, delay=delay, unit=unit)
    from tqdm import tqdm

    return tqdm(total=0, delay=delay, leave=False, unit=unit)


class NotebookBar:
    """A bar with the methods of one of tqdm's.

    The bars of tqdm are widgets, whose last state stays in a saved notebook as text.

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
        """Say what is being done."""
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
