"""What is said of a cluster that is gone, out of the pages that its own errors fill."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpc_lab.errors import MpcError

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
_OUT_OF_REACH = (*_CANCELLED, TimeoutError, ConnectionError)


@contextmanager
def reaching_spark() -> Iterator[None]:
    """Say of a Spark session that is gone inside the block that it is."""
    with _reaching(
        _is_lost_spark,
        "The Spark session does not answer any more ({}). Start a session, make the frame again "
        "from it, and run the audit again.",
    ):
        yield


@contextmanager
def reaching_dask() -> Iterator[None]:
    """Say of a Dask cluster whose scheduler or workers are gone inside the block that they are."""
    with _reaching(
        is_lost_dask,
        "The Dask cluster did not finish the audit ({}). Check that its scheduler and its workers "
        "run and have memory enough, connect to it again, and run the audit again.",
    ):
        yield


@contextmanager
def _reaching(is_lost: Callable[[BaseException], bool], sentence: str) -> Iterator[None]:
    try:
        yield
    except MpcError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        lost = next((one for one in _chain(error) if is_lost(one)), None)
        if lost is None:
            raise
        raise MpcError(sentence.format(_in_short(lost))) from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from: the loss itself may lie deep below."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _in_short(error: BaseException) -> str:
    """Return the name of an error and its first sentence."""
    first = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")
    return ": ".join([type(error).__name__, *([first] if first else [])])


def _package(error: BaseException) -> str:
    return type(error).__module__.split(".")[0]


def is_lost_dask(error: BaseException) -> bool:
    """Tell whether Dask itself speaks, of a worker that died or of a scheduler that is gone."""
    return isinstance(error, _OUT_OF_REACH) or _package(error) == "distributed"


def _is_lost_spark(error: BaseException) -> bool:
    """Tell whether an error is of the way to Spark, or of a session that was stopped."""
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return True
    if _package(error) == "grpc":  # a session on a server
        return "UNAVAILABLE" in str(error)
    return "stopped SparkContext" in str(error) or _is_stopped(error)


def _is_stopped(error: BaseException) -> bool:
    """Tell whether PySpark asserts in vain that there is a session."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return isinstance(error, AssertionError) and not getattr(context, "_active_spark_context", True)
