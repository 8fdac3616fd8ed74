"""Offsets from sums over windows, against the regression pair by pair and brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab.inference.partial import fit_partial
from mpc_lab.objective.offsets import fit_close, fit_offsets, shift_scores
from mpc_lab.pairing.close import Design
from mpc_lab.pairing.close_windows import Window
from mpc_lab.pairing.log import PlainWalk, sort_rows


def make_log(seed=0, queries=40, n=900, groups=3, **columns):
    """Rows full of ties, with overlapping groups, places, units and weights."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"q": rng.integers(0, queries, n), "s": rng.normal(size=n).round(1)})
    for g in range(groups):
        frame[f"g{g:02}"] = rng.random(n) < 0.4
    effect = 0.4 * frame["g00"] - 0.3 * frame["g01"]
    frame["y"] = 3 + frame["s"] + effect + 0.3 * rng.normal(size=n)
    frame["place"] = frame.groupby("q").cumcount() + 1
    frame["unit"], frame["w"] = frame["q"] // 3, 1.0 + frame["q"] % 5
    names = [f"g{g:02}" for g in range(groups)]
    return mpc.Ranking(frame, query="q", score="s", outcome="y", group=names, **columns)


def by_root(ranking):
    return replace(sort_rows(ranking), estimand="root")


@pytest.mark.parametrize(
    "columns", [{}, {"position": "place"}, {"unit": "unit", "weight": "w"}, {"groups": 70}]
)
def test_windows_give_the_regression_over_all_pairs(columns):
    ranking = make_log(**columns)
    n, width = len(ranking.groups), ranking.score_std / 2
    by_place, walk = ranking.position is not None, PlainWalk(by_root(ranking))
    found = fit_close(walk, Window(n, width, by_place))
    pairwise = fit_partial(walk, Design(n, width, by_place), ridge=1e-3)
    np.testing.assert_allclose(found.gap, pairwise.net.estimate[:n], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.std_error, pairwise.net.std_error[:n], rtol=0, atol=1e-10)
    slope = [found.slope, found.slope_low, found.slope_high]
    wanted = [getattr(pairwise.net, name)[n] for name in ("estimate", "ci_low", "ci_high")]
    np.testing.assert_allclose(slope, wanted, rtol=1e-10)
    assert (found.n_pairs, found.n_queries) == (pairwise.n_pairs, pairwise.n_queries)


def test_a_group_and_its_complement_share_one_offset():
    ranking = make_log()
    frame = ranking.to_frame().assign(rest=~ranking.member("g00"))
    both = mpc.Ranking(frame, query="q", score="s", outcome="y", group=["g00", "rest"])
    found = fit_offsets(by_root(both), 2, both.score_std)
    assert found.first.kept.tolist() == [True, False]
    assert found.values[1] == 0
    assert found.values[0] > 0


def regression(frame, score, width, names):
    """Weighted least squares over listed pairs, with its errors clustered by query."""
    rows, weight, query = [], [], []
    for q, part in frame.assign(s=score).groupby("q"):
        pairs = []
        for i, j in combinations(part.index, 2):
            low, high = (i, j) if part.s[i] <= part.s[j] else (j, i)
            distance = part.s[high] - part.s[low]
            if 1 - distance / width > 0:
                pairs.append((low, high, distance))
        for low, high, distance in pairs:
            turns = [(high, low, 1.0)] if distance else [(high, low, 0.5), (low, high, 0.5)]
            for upper, lower, half in turns:
                member = [float(part[g][upper]) - float(part[g][lower]) for g in names]
                d = part.y[upper] - part.y[lower]
                rows.append([*member, part.s[upper] - part.s[lower], 1.0, d])
                weight.append(half * (1 - distance / width) / np.sqrt(len(pairs)))
                query.append(q)
    x, w, q = np.array(rows), np.array(weight), np.array(query)
    x, d = x[:, :-1], x[:, -1]
    ridge = np.diag([1e-3 * w.sum()] * len(names) + [0.0, 0.0])
    inverse = np.linalg.inv(x.T @ (x * w[:, None]) + ridge)
    fit = inverse @ x.T @ (w * d)
    scores = np.array([(x * (w * (d - x @ fit))[:, None])[q == one].sum(0) for one in set(q)])
    return fit, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse)), len(scores), len(set(q))


def test_offsets_are_those_of_brute_force():
    ranking = make_log(3, queries=12, n=120)
    found = fit_offsets(by_root(ranking), 3, ranking.score_std)
    frame, names, sigma = ranking.to_frame(), list(ranking.groups), ranking.score_std
    member = frame[names].to_numpy(dtype=float)
    offsets, slope = np.zeros(3), 0.0
    for _ in range(found.n_steps):
        fit, *_ = regression(frame, ranking.score + member @ offsets, sigma / 2, names)
        slope = slope or fit[3]
        offsets = offsets + np.clip(fit[:3] / slope, -sigma / 4, sigma / 4)
    assert found.n_steps >= 1
    np.testing.assert_allclose(found.values, offsets, rtol=0, atol=1e-8)


def test_steps_end_once_no_gap_exceeds_half_its_error():
    ranking = make_log(5, queries=60, n=1500)
    found = fit_offsets(by_root(ranking), 3, ranking.score_std)
    assert found.settled
    assert 1 <= found.n_steps <= 10
    assert (np.abs(found.last.gap) <= 0.5 * found.last.std_error).all()
    assert (np.abs(found.first.gap) > 0.5 * found.first.std_error).any()


def test_a_slope_that_may_be_0_gives_no_offsets():
    ranking = make_log()
    frame = ranking.to_frame().assign(y=np.random.default_rng(0).normal(size=ranking.n_rows))
    noise = mpc.Ranking(frame, query="q", score="s", outcome="y", group=["g00", "g01"])
    found = fit_offsets(by_root(noise), 2, noise.score_std)
    assert not found.slope_is_clear
    assert not found.values.any()


def test_offsets_of_a_row_add_up():
    masks = np.array([[1, 3, 0]], dtype=np.uint64)
    moved = shift_scores(np.zeros(3), masks, np.array([0.1, 0.2]))
    assert moved.tolist() == [0.1, 0.1 + 0.2, 0.0]


def test_offsets_of_many_groups_are_added_in_their_order():
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2**63, (2, 50), dtype=np.uint64)
    offsets = rng.normal(size=70) * (rng.random(70) < 0.8)
    score = np.r_[-0.0, np.nan, rng.normal(size=48)]
    expected = score.copy()
    for g in np.flatnonzero(offsets):
        member = (masks[g // 64] >> np.uint64(g % 64)) & np.uint64(1) != 0
        expected += np.where(member, offsets[g], 0.0)
    assert shift_scores(score, masks, offsets).tobytes() == expected.tobytes()
    assert shift_scores(score, masks, np.zeros(70)).tobytes() == score.tobytes()
