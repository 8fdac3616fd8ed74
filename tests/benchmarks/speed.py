"""What an audit costs beside a sort of its rows and beside one cell asked of other tools.

    python tests/benchmarks/speed.py [--large]

One thread, everything warmed once, the least of three runs. ``--large`` adds ten times the rows.
"""

from __future__ import annotations

import os

for _name in ("MPC_LAB_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from timing import least_of, report

COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}


def build(frame: pd.DataFrame) -> mpc.Ranking:
    return mpc.Ranking(frame, **COLUMNS, group="groups", group_sep="|")


def by_duckdb(frame: pd.DataFrame, epsilon: float) -> tuple[float, float]:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("log", frame)
    connection.sql("CREATE TABLE rows AS SELECT * FROM log")
    asked = f"""
        SELECT avg(i.outcome - j.outcome) FROM rows i JOIN rows j
        ON i.query = j.query AND j.score >= i.score AND j.score <= i.score + {epsilon!r}
        WHERE i.member AND NOT j.member"""
    return least_of(3, lambda: connection.sql(asked).fetchall()[0][0])


def by_polars(frame: pd.DataFrame, epsilon: float) -> tuple[float, float]:
    rows = pl.from_pandas(frame)
    inside = rows.filter(pl.col("member")).with_columns(top=pl.col("score") + epsilon).lazy()
    outside = rows.filter(~pl.col("member")).lazy()
    asked = inside.join_where(
        outside,
        pl.col("query") == pl.col("query_right"),
        pl.col("score") <= pl.col("score_right"),
        pl.col("top") >= pl.col("score_right"),
    ).select((pl.col("outcome") - pl.col("outcome_right")).mean())
    return least_of(3, lambda: asked.collect().item())


def by_pandas(frame: pd.DataFrame, epsilon: float) -> tuple[float, float]:
    def ask() -> float:
        inside, outside = frame[frame.member], frame[~frame.member]
        pairs = inside.merge(outside, on="query", suffixes=("_i", "_j"))
        gap = pairs.score_j - pairs.score_i
        kept = pairs[(gap >= 0) & (gap <= epsilon)]
        return float((kept.outcome_i - kept.outcome_j).mean())

    return least_of(1, ask)


def one_cell(frame: pd.DataFrame, audit: mpc.Audit) -> dict[str, float]:
    """Time the largest group at its own threshold, with no inference, elsewhere."""
    share = {group: frame.groups.str.contains(group).mean() for group in audit.groups}
    largest = max(share, key=share.get)
    cell = audit.headline.sel(group=largest, scoring_rule="baseline", pairing_mode="matched")
    rows = frame[["query", "score", "outcome"]].assign(member=frame.groups.str.contains(largest))
    times = {}
    for name, ask in (("DuckDB", by_duckdb), ("Polars", by_polars), ("pandas", by_pandas)):
        times[name], answer = ask(rows, float(cell.epsilon))
        # They test s(j) ≤ s(i) + ε, which rounds differently for a pair just at the threshold.
        assert abs(answer - float(cell.estimate)) < 1e-3, (name, answer)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="add ten times the rows")
    large = parser.parse_args().large

    frame = overlapping_groups(1_000_000, queries=10_000, items=50_000)
    query, score = frame["query"].to_numpy(), frame["score"].to_numpy()
    sort, _ = least_of(3, lambda: np.lexsort((score, query)))
    building, ranking = least_of(3, lambda: build(frame))
    top = float(mpc.audit(ranking, progress=False).headline.epsilon.max())
    grid = np.linspace(top / 50, top, 50)
    how = {"epsilon": grid, "cluster": "query", "adjust": "none", "progress": False}
    auditing, audit = least_of(3, lambda: mpc.audit(ranking, **how))
    cells = one_cell(frame, audit)
    fastest = min(cells.values())
    rows = [
        ("audit of 20 groups × 50 ε / np.lexsort of its rows", auditing / sort, 2.0),
        ("building the Ranking / np.lexsort of its rows", building / sort, 4.0),
        ("audit of 1,000 cells / fastest other tool on one cell", auditing / fastest, 3.0),
        *(
            (f"{name} on one cell / np.lexsort", seconds / sort, None)
            for name, seconds in cells.items()
        ),
    ]
    if large:
        frame = overlapping_groups(10_000_000, queries=100_000, items=50_000)
        ranking = build(frame)
        longer, _ = least_of(3, lambda: mpc.audit(ranking, **how))
        rows.append(("audit of 10,000,000 rows / of 1,000,000", longer / auditing, 12.0))
    print(f"1,000,000 rows, one thread; {described('numpy', 'pandas', 'polars', 'duckdb')}\n")
    print(f"np.lexsort of 1,000,000 rows: {sort:.2f} s\n")
    return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
