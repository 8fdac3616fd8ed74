"""Gaps net of other groups, against regressions and double sums over listed pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import mpc_lab as mpc
from mpc_lab.inference.partial import check_assumption, choose_width, fit_partial
from mpc_lab.pairing.close import Design
from mpc_lab.pairing.log import PlainWalk, sort_rows

WIDTH = 0.3


def make_log(
    seed: int = 0, queries: int = 40, *, ties: bool = False, position: bool = False, **kwargs: Any
) -> mpc.Ranking:
    rng = np.random.default_rng(seed)
    n = queries * 8
    item = np.concatenate([rng.permutation(25)[:8] for _ in range(queries)])
    a, b = item % 3 == 0, item % 4 == 1
    score = rng.random(n).round(1) if ties else rng.random(n)
    frame = pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), 8),
            "item": item,
            "score": score,
            "a": a,
            "b": b,
            "age": rng.normal(size=n),
            "weight": np.repeat(rng.random(queries) + 0.5, 8),
            "seller": item % 7,
        }
    )
    frame["place"] = frame.groupby("query")["score"].rank(method="first", ascending=False)
    frame["place"] = frame["place"].astype(int)
    if position:
        swap = frame["place"].replace({1: 2, 2: 1})
        frame["place"] = np.where(frame["query"] % 2 == 0, swap, frame["place"])
    frame["y"] = frame["score"] + 0.5 * a - 0.3 * b + 0.2 * frame["age"] + rng.normal(size=n)
    columns = {"query": "query", "item": "item", "score": "score", "outcome": "y"}
    if position:
        columns["position"] = "place"
    return mpc.Ranking(frame, **columns, group=["a", "b"], **kwargs)


def list_pairs(ranking: mpc.Ranking, width: float, x: np.ndarray | None = None) -> dict[str, Any]:
    """List oriented rows of the regression, and the pair that each is of."""
    frame = ranking.to_frame()
    rows, d, w, pair, ends = [], [], [], [], []
    for _, part in frame.groupby("query"):
        for i, j in combinations(part.index, 2):
            distance = abs(frame.score[i] - frame.score[j])
            if not (distance < width):
                continue
            if ranking.position is not None:
                up, low = (i, j) if frame.place[i] < frame.place[j] else (j, i)
            else:
                up, low = (i, j) if frame.score[i] > frame.score[j] else (j, i)
            turns = [(up, low)]
            if ranking.position is None and distance == 0:
                turns.append((low, up))
            for u, v in turns:
                more = [] if x is None else [x[u] - x[v]]
                row = [float(frame[g][u]) - float(frame[g][v]) for g in ("a", "b")]
                rows.append([*row, frame.score[u] - frame.score[v], 1.0, *more])
                d.append(frame.y[u] - frame.y[v])
                w.append((1 - distance / width) / len(turns))
                pair.append(len(ends))
            ends.append((up, low))
    return {
        "X": np.array(rows, dtype=float),
        "d": np.array(d),
        "w": np.array(w),
        "pair": np.array(pair),
        "ends": ends,
    }


def walk_of(ranking: mpc.Ranking, x: np.ndarray | None = None) -> PlainWalk:
    log = sort_rows(ranking)
    return PlainWalk(log if x is None else replace(log, extra=x))


@pytest.mark.parametrize("position", [False, True])
def test_it_equals_weighted_least_squares_of_statsmodels(position: bool) -> None:
    ranking = make_log(position=position)
    x = ranking.to_frame()["age"].to_numpy()
    listed = list_pairs(ranking, WIDTH, x)
    query = ranking.to_frame()["query"].to_numpy()[[up for up, _ in listed["ends"]]]
    model = sm.WLS(listed["d"], listed["X"], weights=listed["w"])
    expected = model.fit(cov_type="cluster", cov_kwds={"groups": query})
    design = Design(2, WIDTH, position, 1)
    found = fit_partial(walk_of(ranking, x[:, None]), design)
    np.testing.assert_allclose(found.net.estimate, expected.params, rtol=1e-8)
    np.testing.assert_allclose(found.net.std_error, expected.bse, rtol=1e-8)
    k = 5
    n = len(listed["d"])
    covariance = found.covariance * (n - 1) / (n - k)
    np.testing.assert_allclose(covariance, expected.cov_params(), rtol=1e-7, atol=1e-12)
    for g in range(2):
        alone = sm.WLS(listed["d"], listed["X"][:, [g, 2, 3]], weights=listed["w"])
        alone = alone.fit(cov_type="cluster", cov_kwds={"groups": query})
        np.testing.assert_allclose(found.alone.estimate[g], alone.params[0], rtol=1e-8)
        np.testing.assert_allclose(found.alone.std_error[g], alone.bse[0], rtol=1e-8)


@pytest.mark.parametrize("owner", ["item", "producer"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_union_equals_the_double_sum_over_pairs(ties: bool, owner: str, weighted: bool) -> None:
    more: dict[str, Any] = {"producer": "seller"} if owner == "producer" else {}
    more |= {"weight": "weight"} if weighted else {}
    ranking = make_log(1, ties=ties, **more)
    listed, frame = list_pairs(ranking, WIDTH), ranking.to_frame()
    X, d, w, pair = listed["X"], listed["d"], listed["w"].copy(), listed["pair"]
    up, low = np.array(listed["ends"]).T
    if weighted:
        w *= frame["weight"].to_numpy()[up[pair]]
    inverse = np.linalg.inv(X.T @ (w[:, None] * X))
    e = d - X @ inverse @ X.T @ (w * d)
    psi = np.zeros((len(up), 4))
    np.add.at(psi, pair, (X * (w * e)[:, None]) @ inverse)
    query = frame["query"].to_numpy()[up]
    key = frame["seller" if owner == "producer" else "item"].to_numpy()
    one, other = key[up], key[low]
    same_query = query[:, None] == query[None]
    share = (
        (one[:, None] == one[None])
        | (one[:, None] == other[None])
        | (other[:, None] == one[None])
        | (other[:, None] == other[None])
    )
    variances = {
        name: np.einsum("pa,pq,qa->a", psi, linked.astype(float), psi)
        for name, linked in {
            "query": same_query,
            owner: share,
            "union": same_query | share,
        }.items()
    }
    design = Design(2, WIDTH)
    found = fit_partial(walk_of(ranking), design, cluster="union", owner=owner)
    for name, expected in variances.items():
        np.testing.assert_allclose(found.net.variance_by[name], expected, rtol=1e-8, atol=1e-12)


def test_one_group_across_it_without_weights_and_slope_is_symmetric() -> None:
    ranking = make_log(2, ties=True)
    one = mpc.Ranking(
        ranking.to_frame(), query="query", item="item", score="score", outcome="y", group=["a"]
    )
    audit = mpc.audit(one, threshold=0.2, pairing_modes=("symmetric",), progress=False)
    design = Design(1, 0.2, uniform=True, across=True, no_slope=True)
    found = fit_partial(walk_of(one), design)
    expected = audit.headline["estimate"].sel(group="a").item()
    assert found.net.estimate[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("covariates", [False, True])
def test_parts_add_up_to_the_gap_alone(covariates: bool) -> None:
    ranking = make_log(3, ties=True)
    x = ranking.to_frame()[["age"]].to_numpy()
    design = Design(2, WIDTH, n_covariates=int(covariates))
    found = fit_partial(walk_of(ranking, x), design)
    np.testing.assert_allclose(found.parts.sum(axis=1), found.alone.estimate, atol=1e-10)
    np.testing.assert_allclose(found.parts[[0, 1], [0, 1]], found.net.estimate[:2], atol=1e-10)


def test_a_group_and_its_complement_leave_the_second_out() -> None:
    ranking = mpc.datasets.synthetic(queries=200)
    found = fit_partial(walk_of(ranking), Design(2, 0.2))
    assert found.kept.tolist() == [True, False, True, True]
    assert np.isnan(found.net.estimate[1])
    assert found.alone.estimate[1] == pytest.approx(-found.alone.estimate[0])
    np.testing.assert_allclose(found.parts.sum(axis=1), found.alone.estimate, atol=1e-10)


def test_the_order_of_tied_rows_changes_nothing() -> None:
    frame = make_log(2, ties=True).to_frame()
    names = {"query": "query", "item": "item", "score": "score", "outcome": "y"}
    both = []
    for rows in (frame, frame.iloc[::-1]):
        ranking = mpc.Ranking(rows, **names, group=["a", "b"])
        walk = walk_of(ranking, ranking.to_frame()[["age"]].to_numpy())
        both.append(fit_partial(walk, Design(2, WIDTH, n_covariates=1), cluster="union"))
    for name in ("estimate", "std_error", "n_effective", "ci_low"):
        one, other = (getattr(found.net, name) for found in both)
        np.testing.assert_allclose(one, other, rtol=1e-10, err_msg=name)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = make_log(4)
    design = Design(2, WIDTH)
    whole = fit_partial(walk_of(ranking), design, cluster="union")
    monkeypatch.setattr("mpc_lab.pairing.log.ROWS_IN_A_BLOCK", 40)
    monkeypatch.setattr("mpc_lab.inference.partial._ROOM", 100)
    walk = walk_of(ranking)
    assert len(walk.log.blocks) >= 7
    parts = fit_partial(walk, design, cluster="union")
    for name in ("estimate", "std_error", "ci_low", "dof"):
        np.testing.assert_allclose(
            getattr(parts.net, name), getattr(whole.net, name), rtol=1e-10, err_msg=name
        )


def test_given_scores_and_a_ridge() -> None:
    ranking = make_log(5)
    moved = ranking.score + 0.1 * ranking.member("a")
    walk = PlainWalk(replace(sort_rows(ranking, moved), estimand="root"))
    found = fit_partial(walk, Design(2, WIDTH), ridge=1e-3)
    plain = fit_partial(walk, Design(2, WIDTH))
    assert found.n_pairs == plain.n_pairs
    assert (np.abs(found.net.estimate[:2] - plain.net.estimate[:2]) < 0.02).all()
    assert (found.net.estimate[:2] != plain.net.estimate[:2]).all()


def test_the_width_has_twenty_pairs_a_coefficient() -> None:
    walk = walk_of(make_log(6))
    width = choose_width(walk, 1e-9, 4)
    distances = []
    for _, part in make_log(6).to_frame().groupby("query"):
        distances += [abs(a - b) for a, b in combinations(part["score"], 2)]
    assert width == pytest.approx(np.sort(distances)[79], rel=1e-6)
    assert choose_width(walk, 0.4, 4) == 0.8


def test_the_assumption_of_the_theorem_fails_in_the_example_of_the_paper() -> None:
    ranking = mpc.datasets.synthetic(queries=5_000)
    segment = np.zeros(ranking.n_queries, dtype=np.int64)
    segment[ranking.query_code] = ranking.segment_code
    log = sort_rows(ranking, masks=ranking.member("1").astype(np.uint64)[None])
    found = check_assumption(PlainWalk(log), Design(1, 0.2), segment, 2)
    assert found.p_value < 1e-3
    assert found.n_terms == 5


def test_the_assumption_holds_where_only_the_distance_matters() -> None:
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 300 * 8
        score, member = rng.random(n), rng.random(n) < 0.5
        frame = {
            "query": np.repeat(np.arange(300), 8),
            "score": score,
            "y": score + 0.3 * member + rng.normal(size=n),
            "a": member,
        }
        ranking = mpc.Ranking(frame, query="query", score="score", outcome="y", group=["a"])
        rejected += check_assumption(walk_of(ranking), Design(1, 0.3)).p_value < 0.05
    assert rejected <= 6
