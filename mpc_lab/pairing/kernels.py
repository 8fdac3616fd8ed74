"""How kernels are compiled, and what they all use: bits, sorts, and a flag that stops them.

Kernels run without the GIL, are cached where a cache can be written, and are announced: compiling
takes seconds and happens once on a machine, so a person who waits reads why.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event

from mpc_lab.errors import MpcError
from mpc_lab.vocabulary import Bins, Bytes, Floats, Ints, Masks

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
Stop = Bytes


def kernel(function: Function) -> Function:
    """Compile a function of plain arrays when it is first called.

    Kernels run without the GIL so that threads can share the blocks of a log. They are never
    compiled with ``parallel=True``: its threading layers do not survive forks and concurrent entry.
    """
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        # Neither the package folder nor the user's cache folder can be written.
        compiled = numba.njit(nogil=True)(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """Compile a helper that kernels call in their inner loops."""
    return cast(Function, numba.njit(inline="always")(function))


def tight(function: Function) -> Function:
    """Compile a loop of arithmetic that kernels call: a division by 0 is not an error in it."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


def inlined_late(function: Function) -> Function:
    """Compile a `tight` helper into its one caller, where many arrays cost more to pass.

    Unlike `inlined`, after types are known, so that the caller takes no longer to analyse.
    """
    late = numba.njit(nogil=True, error_model="numpy", forceinline=True)
    return cast(Function, late(function))


class _Announcement(event.Listener):
    """Says once, at the start of the first compilation, why there is a pause."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = True
            print(
                "mpc_lab compiles its kernels, once on this machine …", file=sys.stderr, flush=True
            )

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announce_compilation(wanted: bool = True) -> Iterator[None]:
    """Tell the user on stderr if a kernel has to be compiled inside this block."""
    if not wanted:
        yield
        return
    with event.install_listener("numba:compile", _Announcement()):
        yield


# ---- the set bits of a 64-bit group mask

ONE = np.uint64(1)
_SHIFT = np.uint64(58)
# A de Bruijn sequence: its product with a lone bit has a different top six bits for each bit.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_INDEX = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _INDEX[(int(_SEQUENCE) << _bit) % 2**64 >> 58] = _bit


@inlined
def lowest(bits: np.uint64) -> np.int64:
    """Return the index of the lowest set bit."""
    lone = bits & (~bits + ONE)
    return _INDEX[(lone * _SEQUENCE) >> _SHIFT]  # type: ignore[no-any-return]


@inlined
def contrast(difference: float, sign: bool) -> float:
    """Return what a pair counts: the difference of its outcomes, or its sign."""
    if not sign:
        return difference
    return 1.0 if difference > 0 else (-1.0 if difference < 0 else 0.0)


@inlined
def groups_within(local: Bins) -> Masks:
    """Return the groups whose bins a distance up to an edge falls in, as (band, edge)."""
    found = np.zeros((local.shape[0], local.shape[1]), dtype=np.uint64)
    for band in range(local.shape[0]):
        for edge in range(local.shape[1]):
            for g in range(local.shape[2]):
                if local[band, edge, g] >= 0:
                    found[band, edge] |= ONE << np.uint64(g)
    return found


@tight
def longer(values: Bins) -> Bins:
    """Return the same values with twice the room."""
    more = np.empty(2 * len(values), dtype=np.int32)
    # Not as one slice, whose check for differing shapes takes seconds to compile.
    for k in range(len(values)):
        more[k] = values[k]
    return more


# ---- sorts

_RUN = 12
_BITS = 11


@inlined
def sort_order(key: Floats, order: Ints, spare: Ints) -> None:
    """Write to the start of `order` the order that sorts `key`; equal ones stay as they are.

    Not ``np.sort`` or ``np.argsort``: numba tells their inner functions apart by a counter that
    starts over in every process, so that kernels cached by different processes, ours or another
    package's, can call each other's inner functions, and the process dies. Inlined code has no name
    that could be confused.

    Runs are sorted by insertion and merged. `order` and `spare` have room for one entry a key.
    """
    n = len(key)
    for first in range(0, n, _RUN):
        for k in range(first, min(first + _RUN, n)):
            place = k
            while place > first and key[order[place - 1]] > key[k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
    width = _RUN
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            one, other = first, middle
            for k in range(first, last):
                if other == last or (one < middle and key[order[one]] <= key[order[other]]):
                    spare[k] = order[one]
                    one += 1
                else:
                    spare[k] = order[other]
                    other += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2


def stable_order(key: Ints) -> Ints:
    """Return the order that sorts whole numbers, 0 or above; equal ones stay as they are.

    Linear in their number, with no memory of the size of their range.
    """
    bits = int(key.max(initial=0)).bit_length()
    return _radix(key, max(1, -(-bits // _BITS)))


@kernel
def _radix(key: Ints, passes: int) -> Ints:
    # Loops, where numpy's functions would be compiled for longer than all of them.
    order, sorted_ = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    place = np.empty((1 << _BITS) + 1, dtype=np.int64)
    for e in range(len(key)):
        order[e] = e
    for k in range(passes):
        shift = k * _BITS
        for digit in range(len(place)):
            place[digit] = 0
        for e in range(len(key)):
            place[((key[e] >> shift) & ((1 << _BITS) - 1)) + 1] += 1
        for digit in range(1, len(place)):
            place[digit] += place[digit - 1]
        for e in range(len(key)):
            entry = order[e]
            digit = (key[entry] >> shift) & ((1 << _BITS) - 1)
            sorted_[place[digit]] = entry
            place[digit] += 1
        order, sorted_ = sorted_, order
    return order


# ---- how a kernel that runs for seconds learns that nobody is waiting for it

# A log of fewer rows is done sooner than a thread is started.
FEW_ROWS = 1 << 13
_WAIT = 0.2  # seconds

_here = threading.local()
_NEVER = np.zeros(1, dtype=np.uint8)


def stop_flag() -> Stop:
    """Return the flag of this thread's kernels: once it is 1, they end early without a result.

    A kernel checks it in a loop that writes to an array; in any other loop the compiler may read it
    only once.
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


@lru_cache(maxsize=1)
def can_start_threads() -> bool:
    """Whether a thread can be started; Python in a browser has only one."""
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def n_threads() -> int:
    """Return how many threads to use: what ``MPC_LAB_THREADS`` says, else the cores there are.

    It is 1 where no thread can be started, whatever was asked for.
    """
    if not can_start_threads():
        return 1
    wanted = os.environ.get("MPC_LAB_THREADS", "").strip()
    if not wanted:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not wanted.isdigit() or int(wanted) < 1:
        raise MpcError(f"MPC_LAB_THREADS must be a whole number of at least 1; got {wanted!r}.")
    return int(wanted)


class _Here(Executor):
    """An executor that runs each job immediately, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do a job and return its result as a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def start_pool(threads: int) -> Executor:
    """Return a pool of threads; if none can be started, jobs run in the calling thread."""
    return ThreadPoolExecutor(threads) if can_start_threads() else _Here()


def wait_for(future: Future[Result]) -> Result:
    """Return the result of a future, and see Ctrl-C while waiting for it.

    In short waits: a signal that comes just before a wait begins is seen only when it ends.
    """
    while not wait([future], _WAIT).done:
        pass
    return future.result()


def wait_out(future: Future[Any]) -> None:
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


def finish(work: Callable[[], object]) -> None:
    """Run a clean-up to its end, in another thread, which Ctrl-C does not reach."""
    pool = start_pool(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    wait_out(future)
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

    pool = start_pool(1)
    try:
        return wait_for(pool.submit(with_flag))
    finally:
        stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)
