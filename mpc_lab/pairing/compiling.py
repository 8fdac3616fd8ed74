"""How kernels are compiled: without the GIL, cached where a cache can be written, and announced.

Compiling takes seconds and happens once on a machine, so a person who waits is told why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


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
def announced_compilation(wanted: bool = True) -> Iterator[None]:
    """Tell the user on stderr if a kernel has to be compiled inside this block."""
    if not wanted:
        yield
        return
    with event.install_listener("numba:compile", _Announcement()):
        yield
