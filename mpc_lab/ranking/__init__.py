"""A log becomes a `Ranking`: columns are read, checked once, and kept as plain arrays.

Strict core, lenient door: any table may enter here, and no room below checks types again.
This room may import narwhals, numpy, pandas, `mpc_lab.errors`,
`mpc_lab.vocabulary` and `mpc_lab.files`.
"""

from __future__ import annotations

from mpc_lab.ranking.examination import PowerLaw
from mpc_lab.ranking.names import ColumnNames, Facts, Known, LogFacts
from mpc_lab.ranking.ranking import (
    Ranking,
    as_ranking,
    cap_outcomes,
    group_index,
    read_ranking,
    regroup,
    sum_by,
)

__all__ = [
    "ColumnNames",
    "Facts",
    "Known",
    "LogFacts",
    "PowerLaw",
    "Ranking",
    "as_ranking",
    "cap_outcomes",
    "group_index",
    "read_ranking",
    "regroup",
    "sum_by",
]
