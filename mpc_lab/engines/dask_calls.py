"""The few calls of Dask that are used, under one roof; it is imported when they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def later(function: Any, *, parts: int | None = None) -> Callable[..., Any]:
    """Return a function that is called on the cluster, or a value that is sent there once."""
    from dask import delayed as module  # type: ignore[attr-defined]

    delayed: Any = module
    return delayed(function, pure=False, nout=parts)  # type: ignore[no-any-return]


def compute(asked: Sequence[Any]) -> list[Any]:
    """Return the results of delayed calls, in order."""
    from dask import base

    dask: Any = base
    return list(dask.compute(*asked))


def persist(asked: Sequence[Any]) -> list[Any]:
    """Compute delayed calls and keep their results where they lie."""
    from dask import base

    dask: Any = base
    return list(dask.persist(*asked))


def client() -> Any:
    """Return the client of the scheduler that is in use, None if it is not a distributed one."""
    from dask import base

    dask: Any = base
    owner = getattr(dask.get_scheduler(), "__self__", None)
    return owner if type(owner).__module__.split(".")[0] == "distributed" else None


def each_done(futures: Sequence[Any], done: Callable[[], None] | None) -> None:
    """Wait for futures, and say so after each."""
    import distributed

    completed: Any = distributed.as_completed
    for _ in completed(futures):
        if done:
            done()
