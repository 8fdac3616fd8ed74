"""How a log is walked: in memory, in chunks from files, or on a Dask or Spark cluster.

Four protocols separate rows from sums. Engines implement them; code that sums knows no engine::

    path, frame or Ranking
        │  memory.open_log              chooses the engine
        ▼
    OpenLog    columns and groups are known, rows are not yet walked
        │  .source(plan)                sorts the rows; what that takes is given back at the end
        ▼
    Source     the log, ready to be walked
        │  .walks(rule)                 one walk for all groups, or one for each
        ▼
    Walk       hands every block of whole units to a task, and adds what the tasks return
        │  .collect .total .exchange    (a log in memory is one part, and needs none of these)
        ▼
    Parts      where the rows are: chunks on disk, or partitions on a cluster

                 OpenLog     Source         Walk         Parts
    memory       InMemory    MemorySource   MemoryWalk
    duckdb/      DuckLog     PartsSource    PartsWalk    Chunks
    dask         DaskLog     PartsSource    PartsWalk    DaskParts
    spark        SparkLog    PartsSource    PartsWalk    SparkParts

`Source` and `Walk` are defined in `pairing.walk`, `Parts` in `parts`, and `OpenLog` here. A *part*
holds whole units: a chunk or a partition. Tasks travel to the parts, sums come back, and rows stay
where they are.

May import from the rooms up to `results`; of the outside world duckdb, dask, pyspark and pyarrow,
each when it is first used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress
    from mpc_lab.pairing.walk import Source
    from mpc_lab.ranking import Known, Ranking
    from mpc_lab.results.plan import Plan


class OpenLog(ABC):
    """A log of which the columns and groups are known, and the rows not yet walked.

    Attributes
    ----------
    known : Known
        Its columns and groups.
    ranking : Ranking or None
        The rows, where they stay in memory.
    origin : mapping
        Where the rows come from, in numbers and texts: ``kind``, and for files how to find them
        again.
    """

    known: Known
    ranking: Ranking | None = None
    origin: Mapping[str, Any] = MappingProxyType({"kind": "rows"})

    @abstractmethod
    def source(self, plan: Plan, progress: Progress | None) -> AbstractContextManager[Source]:
        """Make the log ready for a plan; release everything that this takes at the end."""

    def with_cap(self, cap: float | None) -> OpenLog:
        """Return the log with outcomes above a cap set to it, where rows are in memory.

        A log that is walked is capped as it is read.
        """
        return self

    def with_owner(self, owner: str) -> OpenLog:
        """Return the log with items that move with their producers, or each on its own.

        A log that is walked is read in that way.
        """
        return self

    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Read the rows into memory, with further columns, for a question that needs them."""
        raise NotImplementedError
