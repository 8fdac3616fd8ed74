"""Which engine walks what was given to an audit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mpc_lab.engines.files import are_paths, find_files
from mpc_lab.engines.limits import as_limits
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import MemorySource, Source
from mpc_lab.errors import MpcError
from mpc_lab.ranking import ColumnNames, Ranking, as_ranking
from mpc_lab.ranking.names import check_named, column_names, drops

if TYPE_CHECKING:
    from mpc_lab.ranking import Known
    from mpc_lab.results.plan import Plan


class OpenLog(Protocol):
    """A log of which the columns and groups are known, and the rows not yet read.

    Attributes
    ----------
    ranking : Ranking or None
        The rows, where they stay in memory.
    """

    @property
    def known(self) -> Known:
        """Its columns and groups."""
        ...

    @property
    def ranking(self) -> Ranking | None:
        """The rows, where they stay in memory."""
        ...

    def source(self, plan: Plan, progress: Progress | None) -> AbstractContextManager[Source]:
        """Make the log ready for a plan; what that takes is given back at the end."""
        ...


@dataclass(frozen=True)
class InMemory:
    """A log that is a `Ranking`."""

    ranking: Ranking

    @property
    def known(self) -> Known:
        """The ranking."""
        return self.ranking

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Sort the rows."""
        yield MemorySource(self.ranking, plan.groups, progress)


def open_log(data: Any, columns: dict[str, Any], memory: Any, spill: Any) -> OpenLog:
    """Choose the engine for what was given.

    Parameters
    ----------
    data : Ranking, table, path or paths
    columns : dict
        The keywords of `Ranking`.
    memory, spill
        The keywords of :func:`mpc_lab.audit`, for files.
    """
    if are_paths(data):
        from mpc_lab.engines.duck import DuckLog

        names, drop = _named(columns)
        how = {"drop": drop, "limits": as_limits(memory), "spill": spill}
        return DuckLog(find_files(data), names, **how)
    if memory is not None or spill is not None:
        raise MpcError(
            "memory and spill are for logs in files, but the rows came in another way: leave them "
            "out, or give the path of the files."
        )
    if _comes_from(data, "dask"):
        from mpc_lab.engines.dask_cluster import DaskLog

        names, drop = _named(columns)
        return DaskLog(data, names, drop=drop)
    if _comes_from(data, "pyspark"):
        from mpc_lab.engines.spark_cluster import SparkLog

        names, drop = _named(columns)
        return SparkLog(data, names, drop=drop)
    return InMemory(as_ranking(data, **columns))


def _comes_from(data: Any, package: str) -> bool:
    """Tell whether the rows are a frame of a package that need not be installed."""
    return type(data).__module__.split(".")[0] == package and hasattr(data, "columns")


def _named(columns: dict[str, Any]) -> tuple[ColumnNames, bool]:
    """Return the names of columns, and whether rows with a missing value are left out."""
    given = {name: value for name, value in columns.items() if value is not None}
    check_named(given)
    drop = drops(given.pop("missing", "raise"))
    return column_names(**given), drop
