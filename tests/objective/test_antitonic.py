"""The antitonic fit and its tests, held against listed pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression

import mpc_lab as mpc
from helpers.params import combined
from mpc_lab.objective import antitonic
from mpc_lab.objective.antitonic import (
    LEAST,
    MOST,
    PAIRS,
    TOTAL,
    WEIGHT,
    add_cells,
    default_steps,
    fit_antitonic,
    join_cells,
    split_cells,
    steps_not_rejected,
)
from mpc_lab.objective.boosts import Boosts

WIDTHS = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]


def log(seed, *, queries=60, coarse=False, slope=1.0, weighted=False, units=False):
    """Return a ranking with group "g"; coarse scores are multiples of 1/64."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), rng.integers(2, 16, queries))
    n = len(query)
    score = rng.integers(0, 40, n) / 64 if coarse else rng.random(n)
    member = rng.random(n) < 0.4
    outcome = slope * score + 0.15 * member + 0.3 * rng.normal(size=n)
    frame = {"q": query, "s": score, "y": outcome, "g": member}
    more = {}
    if weighted:
        frame["w"], more["weight"] = rng.uniform(0.5, 3, queries)[query], "w"
    if units:
        frame["u"], more["unit"] = query // 3, "u"
    return mpc.Ranking(frame, query="q", score="s", outcome="y", group=["g"], **more)


LOGS = {
    "continuous": {},
    "coarse": {"coarse": True},
    "weighted": {"weighted": True},
    "units": {"units": True, "queries": 120},
    "rising": {"slope": -1.0, "coarse": True},
}
every_log = pytest.mark.parametrize("kind", LOGS)


def listed(ranking):
    """Return distance, difference, weight and cluster of all pairs within ±σ, by loops."""
    member, found = ranking.member("g"), []
    sigma = np.std(ranking.score)
    cluster = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    for q in range(ranking.n_queries):
        rows = np.flatnonzero(ranking.query_code == q)
        for i in rows[member[rows]]:
            for j in rows[~member[rows]]:
                distance = ranking.score[j] - ranking.score[i]
                if abs(distance) <= sigma:
                    weight = 1.0 if ranking.weight is None else ranking.weight[i]
                    d = ranking.outcome[i] - ranking.outcome[j]
                    found.append((distance, d, weight, cluster[i]))
    return np.array(found).T


def cells_of(ranking):
    ready = Boosts(ranking, "g")
    half = np.arange(len(ready.runs.units) - 1) % 2 == 0
    return ready, join_cells(*add_cells(ready.runs, half, ready.query_weight, ranking.score_std))


def root_of(distance, fitted):
    if not ((fitted > 1e-12).any() and (fitted < -1e-12).any()):
        return np.nan
    return (distance[fitted > 1e-12].max() + distance[fitted < -1e-12].min()) / 2


@pytest.mark.parametrize(("kind", "seed"), combined(LOGS, range(4)))
def test_the_root_is_that_of_the_fit_to_all_pairs(seed, kind):
    ranking = log(100 + seed, **{"queries": 150} | LOGS[kind])
    distance, d, weight, _ = listed(ranking)
    exact = IsotonicRegression(increasing=False).fit(distance, d, weight).predict(distance)
    found = Boosts(ranking, "g").fit
    np.testing.assert_allclose(found.root, root_of(distance, exact), atol=1e-12)
    assert found.count.sum() == pytest.approx(weight.sum())
    # Elsewhere a step may begin one cell earlier or later.
    sure = np.array([len(np.unique(distance[exact == one])) for one in exact]) > 3
    assert np.abs(found.at(distance) - exact)[sure].mean() < 0.02


@every_log
def test_the_fit_is_that_of_pairs_at_the_place_of_their_cell(kind):
    ranking = log(7, **LOGS[kind])
    distance, d, weight, _ = listed(ranking)
    width = np.std(ranking.score) / 800
    place = np.sign(distance) * np.ceil(np.abs(distance) / width)
    exact = IsotonicRegression(increasing=False).fit(place, d, weight).predict(place)
    cells = cells_of(ranking)[1]
    found = fit_antitonic(cells[:, cells[PAIRS] > 0])
    np.testing.assert_allclose(found.at(distance), exact, atol=1e-10)
    np.testing.assert_allclose(found.root, root_of(distance, exact), atol=1e-12)


def test_cells_alone_may_give_another_root_and_the_result_says_so(monkeypatch):
    ranking = log(100, queries=150)
    ready, cells = cells_of(ranking)
    every = np.ones(len(ready.runs.units) - 1, dtype=bool)
    arguments = (ready.runs, every, ready.query_weight, ranking.score_std, cells)
    root = ready.fit.root
    assert split_cells(*arguments)[1]
    monkeypatch.setattr(antitonic, "MOST_LISTED", 1)
    whole, exact = split_cells(*arguments)
    assert not exact
    assert fit_antitonic(whole).root != root


def kept_by_loops(ranking, level):
    """Return which of every fifth step no test rejects, window by window over listed pairs."""
    distance, d, weight, cluster = listed(ranking)
    sigma = np.std(ranking.score)
    kept = []
    for step in range(-100, 101, 5):
        alpha, rejected = step * sigma / 100, False
        for width in WIDTHS:
            for side in (1, -1):
                ahead = side * (distance - alpha)
                window = (ahead > 0) & (ahead < width * sigma)
                if window.sum() < 50:
                    continue
                w, x, k = weight[window], d[window], cluster[window]
                mean = (w * x).sum() / w.sum()
                sums = np.array([(w * (x - mean))[k == one].sum() for one in np.unique(k)])
                share = np.array([w[k == one].sum() for one in np.unique(k)]) / w.sum()
                effective = 1 / (share**2).sum()
                variance = ((sums / (1 - share)) ** 2).sum() / w.sum() ** 2
                variance *= (len(share) - 1) / len(share)
                if effective < 3 or variance == 0:
                    continue
                critical = stats.t.ppf(1 - (1 - level) / 12, effective - 1)
                rejected |= side * mean / np.sqrt(variance) > critical
        kept.append(not rejected)
    return np.array(kept)


@every_log
def test_steps_are_kept_as_by_loops_over_pairs(kind):
    ranking = log(3, **{"queries": 60} | LOGS[kind])
    ready, cells = cells_of(ranking)
    found = steps_not_rejected(ready.runs, cells, ready.query_weight, ranking.score_std, 0.8)
    wanted = kept_by_loops(ranking, 0.8)
    assert 0 < wanted.sum() < len(wanted)
    assert found[::5].tolist() == wanted.tolist()


def test_a_long_list_is_added_up_by_its_rows_to_the_same_sums():
    """Where pairs are many the sums are made bound by bound; both ways are compared."""
    rng = np.random.default_rng(5)
    n = 27_000
    score = rng.integers(0, 500, n) / 512
    frame = {"q": np.zeros(n, int), "s": score, "y": rng.integers(0, 3, n).astype(float)}
    frame["g"] = rng.random(n) < 0.5
    ranking = mpc.Ranking(frame, query="q", score="s", outcome="y", group=["g"])
    ready = Boosts(ranking, "g")
    inside, outside = ready.runs.inside, ready.runs.outside
    assert len(inside.score) * len(outside.score) > 4 * antitonic.N_CELLS * n
    found = add_cells(ready.runs, np.array([True]), np.array([2.0]), ranking.score_std)[0]
    distances, counts = {}, {}
    others = list(zip(*_by_score(outside), strict=True))
    for a, y_a in zip(*_by_score(inside), strict=True):
        for b, y_b in others:
            key = b - a
            distances[key] = distances.get(key, 0) + 2 * (y_a[1] * y_b[0] - y_b[1] * y_a[0])
            counts[key] = counts.get(key, 0) + 2 * y_a[0] * y_b[0]
    kept = sorted(key for key in counts if abs(key) <= ranking.score_std)
    known = found[:, found[PAIRS] > 0]
    assert known[LEAST].tolist() == known[MOST].tolist() == kept
    assert known[WEIGHT].tolist() == (2 * known[PAIRS]).tolist() == [counts[key] for key in kept]
    np.testing.assert_allclose(known[TOTAL], [distances[key] for key in kept], atol=1e-6)


def _by_score(run):
    values = np.unique(run.score)
    sums = [(np.sum(run.score == v), run.outcome[run.score == v].sum()) for v in values]
    return values, sums


def test_the_other_side_of_a_group_has_the_mirrored_root():
    ranking = mpc.datasets.synthetic(queries=500)
    one, other = (Boosts(ranking, name).fit for name in ("1", "2"))
    assert one.root == pytest.approx(-other.root, abs=1e-15)
    np.testing.assert_allclose(one.value, -other.value[::-1], atol=1e-12)


def test_the_steps_are_201_over_one_standard_deviation():
    steps = default_steps(0.3)
    assert len(steps) == 201
    assert (steps[0], steps[100], steps[-1]) == (-0.3, 0.0, 0.3)
