"""How a kernel that runs for seconds learns that nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mpc_lab.pairing.arrays import Stop

Result = TypeVar("Result")

# A log of fewer rows is done sooner than a thread is started.
FEW_ROWS = 1 << 13
_WAIT = 0.2  # seconds

_here = threading.local()
_NEVER = np.zeros(1, dtype=np.uint8)


def stop_flag() -> Stop:
    """Return what kernels of this thread look at: they end early, with no result, once it is 1.

    A kernel looks at it in a loop that writes to an array; in one that does not, the compiler may
    look once for all rounds.
    """
    return getattr(_here, "flag", _NEVER)


@contextmanager
def stopped_by(flag: Stop) -> Iterator[None]:
    """Let kernels that this thread calls inside the block look at this flag."""
    before = stop_flag()
    _here.flag = flag
    try:
        yield
    finally:
        _here.flag = before


def waited_for(future: Future[Result]) -> Result:
    """Return the result of a future, and see Ctrl-C while waiting for it.

    In short waits: a signal that comes just before a wait begins is seen only when it ends.
    """
    while not wait([future], _WAIT).done:
        pass
    return future.result()


def waited_out(future: Future[Any]) -> None:
    """Wait for the end of a future, however often Ctrl-C is pressed meanwhile."""
    pressed: KeyboardInterrupt | None = None
    while True:
        try:
            wait([future])
            break
        except KeyboardInterrupt as error:
            pressed = pressed or error
    if pressed is not None:
        raise pressed


def finished(work: Callable[[], object]) -> None:
    """Do what tidies up to its end, in another thread, which Ctrl-C does not reach."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    waited_out(future)
    future.result()


def interruptible(rows: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """Do work that may take seconds in kernels, so that Ctrl-C is seen while they run.

    Python sees Ctrl-C only between two of its own steps in the main thread. So the work is done in
    another thread while the main one waits, unless there are few rows.
    """
    main = threading.current_thread() is threading.main_thread()
    if rows < FEW_ROWS or not main:
        return work(*arguments)
    stop = np.zeros(1, dtype=np.uint8)

    def with_flag() -> Result:
        with stopped_by(stop):
            return work(*arguments)

    pool = ThreadPoolExecutor(1)
    try:
        return waited_for(pool.submit(with_flag))
    finally:
        stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)
