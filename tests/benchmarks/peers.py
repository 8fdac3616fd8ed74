"""One cell with its clustered standard error, and NDCG, asked of other tools.

    python tests/benchmarks/peers.py [--rows 1000000]

One thread where a tool lets itself be told, the least of three runs after one to warm up. The audit
answers 20 groups × 50 ε at once; the others are asked for the largest group at one ε. pandas,
Polars and DuckDB list the pairs; statsmodels or pyfixest regress them on a constant, clustered by
query. They test s(j) ≤ s(i) + ε, which rounds differently for a pair just at the threshold.
"""

from __future__ import annotations

import os

for _name in ("MPC_LAB_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
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


def by_pandas(rows: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    pairs = rows[rows.member].merge(rows[~rows.member], on="query", suffixes=("_i", "_j"))
    gap = pairs.score_j - pairs.score_i
    kept = pairs[(gap >= 0) & (gap <= epsilon)]
    return pd.DataFrame({"d": kept.outcome_i - kept.outcome_j, "query": kept["query"]})


def by_polars(rows: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    frame = pl.from_pandas(rows)
    inside = frame.filter(pl.col("member")).with_columns(top=pl.col("score") + epsilon).lazy()
    pairs = inside.join_where(
        frame.filter(~pl.col("member")).lazy(),
        pl.col("query") == pl.col("query_right"),
        pl.col("score") <= pl.col("score_right"),
        pl.col("top") >= pl.col("score_right"),
    ).select("query", d=pl.col("outcome") - pl.col("outcome_right"))
    return pairs.collect().to_pandas()


def by_duckdb(rows: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("log", rows)
    connection.sql("CREATE TABLE log_rows AS SELECT * FROM log")
    return connection.sql(
        "SELECT i.outcome - j.outcome AS d, i.query AS query FROM log_rows i JOIN log_rows j "
        f"ON i.query = j.query AND j.score >= i.score AND j.score <= i.score + {epsilon!r} "
        "WHERE i.member AND NOT j.member"
    ).df()


def by_statsmodels(pairs: pd.DataFrame) -> tuple[float, float]:
    import statsmodels.api as sm

    codes = pd.factorize(pairs["query"])[0]
    fitted = sm.OLS(pairs.d.to_numpy(float), np.ones(len(pairs))).fit(
        cov_type="cluster", cov_kwds={"groups": codes}
    )
    return float(fitted.params[0]), float(fitted.bse[0])


def by_pyfixest(pairs: pd.DataFrame) -> tuple[float, float]:
    import pyfixest

    fitted = pyfixest.feols("d ~ 1", pairs, vcov={"CRV1": "query"})
    return float(fitted.coef().iloc[0]), float(fitted.se().iloc[0])


def ndcg_by_sklearn(frame: pd.DataFrame) -> float:
    from sklearn.metrics import ndcg_score

    lists = [rows for _, rows in frame.groupby("query") if len(rows) > 1]
    found = [ndcg_score([rows.outcome], [rows.score]) for rows in lists if rows.outcome.any()]
    return float(np.mean(found))


def ndcg_by_ranx(frame: pd.DataFrame) -> float:
    from ranx import Qrels, Run, evaluate

    # ranx asks for texts as objects.
    texts = frame.assign(
        q=frame["query"].astype(str).astype(object), i=frame["item"].astype(str).astype(object)
    )
    qrels = Qrels.from_df(texts, q_id_col="q", doc_id_col="i", score_col="outcome")
    run = Run.from_df(texts, q_id_col="q", doc_id_col="i", score_col="score")
    return float(evaluate(qrels, run, "ndcg"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    size = parser.parse_args().rows
    frame = overlapping_groups(size, queries=size // 100, items=50_000)
    ranking = mpc.Ranking(frame, **COLUMNS, group="groups", group_sep="|")
    top = float(mpc.audit(ranking, progress=False).headline.epsilon.max())
    how = {"epsilon": np.linspace(top / 50, top, 50), "cluster": "query", "progress": False}
    auditing, audit = least_of(3, lambda: mpc.audit(ranking, **how))
    group = max(audit.groups, key=lambda name: frame.groups.str.contains(name).mean())
    cell = audit.headline.sel(group=group, scoring_rule="baseline", pairing_mode="matched")
    epsilon, error = float(cell.epsilon), float(cell.std_error)
    rows = frame[["query", "score", "outcome"]].assign(member=frame.groups.str.contains(group))
    table: list[tuple[str, float, float | None]] = []
    for name, join in (("pandas", by_pandas), ("Polars", by_polars), ("DuckDB", by_duckdb)):
        for fit_name, fit in (("statsmodels", by_statsmodels), ("pyfixest", by_pyfixest)):
            seconds, (_, found) = least_of(1, lambda join=join, fit=fit: fit(join(rows, epsilon)))
            assert abs(found / error - 1) < 0.01, (name, fit_name, found, error)
            table.append((f"{name} + {fit_name}, one cell / audit", seconds / auditing, None))
    fresh = [mpc.audit(ranking, **how) for _ in range(3)]  # an audit keeps what it was asked
    objective, value = least_of(2, lambda: fresh.pop().objective.ndcg.values[0, 0])
    for name, ask in (("scikit-learn", ndcg_by_sklearn), ("ranx", ndcg_by_ranx)):
        seconds, found = least_of(1, lambda ask=ask: ask(frame))
        assert abs(found - value) < 0.01, (name, found, value)
        table.append((f"NDCG by {name} / ours", seconds / objective, None))
    print(f"{size:,} rows; {described('pandas', 'polars', 'duckdb', 'pyfixest')}\n")
    print(f"audit of 20 groups × 50 ε: {auditing:.2f} s\n")
    return 0 if report(table) else 1


if __name__ == "__main__":
    sys.exit(main())
