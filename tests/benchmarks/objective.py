"""What the objective and the rival measures cost beside ranx, beside a sort, and for a slider.

    python tests/benchmarks/objective.py

One thread, everything warmed once, the least of three runs. Needs ranx.
"""

from __future__ import annotations

import os

for _name in ("MPC_LAB_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import sys

import numba
import numpy as np
import pandas as pd
import ranx

import mpc_lab as mpc
from logs import overlapping_groups
from mpc_lab.comparators.base import Case
from mpc_lab.comparators.pairwise_accuracy import pairwise_accuracy
from mpc_lab.objective.boosts import Boosts, boost_curve
from mpc_lab.objective.ndcg import query_objective
from mpc_lab.pairing.log import sort_rows
from timing import least_of, report

ROWS = 1_000_000
COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
SLIDER_SECONDS = 0.05


def build(frame: pd.DataFrame) -> mpc.Ranking:
    return mpc.Ranking(frame, **COLUMNS, group="groups", group_sep="|")


def ranx_lists(frame: pd.DataFrame, by: str) -> numba.typed.List:
    """Return what ranx's metrics take: (item, number) of each query, sorted by the number."""
    ranked = frame.sort_values(["query", by], ascending=[True, False], kind="stable")
    values = ranked[["item", by]].to_numpy(dtype=np.float64)
    ends = np.flatnonzero(np.diff(ranked["query"].to_numpy())) + 1
    lists = numba.typed.List()
    for part in np.split(values, ends):
        lists.append(np.ascontiguousarray(part))
    return lists


def ranx_tables(frame: pd.DataFrame) -> tuple[ranx.Qrels, ranx.Run]:
    text = frame.assign(
        query=frame["query"].astype(str).astype(object),
        item=frame["item"].astype(str).astype(object),
    )
    names = {"q_id_col": "query", "doc_id_col": "item"}
    return (
        ranx.Qrels.from_df(text, **names, score_col="outcome"),
        ranx.Run.from_df(text, **names, score_col="score"),
    )


def against_ranx(frame: pd.DataFrame, ranking: mpc.Ranking) -> list[tuple[str, float, float]]:
    log = sort_rows(ranking)
    whole, found = least_of(3, lambda: query_objective(ranking).ndcg)
    kernel, _ = least_of(3, lambda: query_objective(ranking, log=log).ndcg)
    qrels, run = ranx_lists(frame, "outcome"), ranx_lists(frame, "score")
    theirs, mean = least_of(3, lambda: ranx.evaluate(qrels, run, "ndcg"))
    # ranx counts a query without relevant items as 0, we leave it out.
    assert abs(np.nan_to_num(found).mean() - mean) < 1e-12, (np.nan_to_num(found).mean(), mean)
    tables = ranx_tables(frame)
    public, _ = least_of(3, lambda: ranx.evaluate(*tables, "ndcg"))
    print(f"NDCG: {whole:.3f} s, sorted {kernel:.3f} s; ranx {public:.3f} s, sorted {theirs:.3f} s")
    return [
        ("NDCG of a Ranking / ranx.evaluate of Qrels and Run", whole / public, 1.0),
        ("NDCG of sorted rows / ranx.evaluate of sorted lists", kernel / theirs, 1.0),
    ]


def accuracy(what: str, ranking: mpc.Ranking) -> tuple[str, float, float]:
    sort, _ = least_of(3, lambda: sort_rows(ranking))
    group = ranking.groups[-1]
    seconds, _ = least_of(3, lambda: pairwise_accuracy(Case(ranking, group)))
    print(f"pairwise accuracy, {what}: {seconds:.3f} s; its sort {sort:.3f} s")
    return (f"pairwise accuracy, {what}, sort included / its sort", seconds / sort, 5.0)


def slider() -> tuple[str, float, float]:
    ranking = build(overlapping_groups(100_000, queries=1_000, items=5_000))
    ready = Boosts(ranking, ranking.groups[-1])
    seconds, _ = least_of(3, lambda: boost_curve(ready, ranking.groups[-1], 0.01, [0.1]))
    print(f"a step of the boost curve of 100,000 rows: {1000 * seconds:.1f} ms")
    return ("a step of the boost curve / 50 ms", seconds / SLIDER_SECONDS, 1.0)


def main() -> int:
    frame = overlapping_groups(ROWS, queries=10_000, items=50_000)
    ranking = build(frame)
    noise = np.random.default_rng(1).normal(size=ROWS)
    continuous = build(frame.assign(outcome=frame["score"] + noise))
    rows = [
        *against_ranx(frame, ranking),
        accuracy("outcomes 0 and 1", ranking),
        accuracy("outcomes all different", continuous),
        slider(),
    ]
    print()
    return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
