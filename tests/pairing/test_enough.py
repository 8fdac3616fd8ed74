"""The threshold for small logs, against a double loop and near both of its limits."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, RULES, assert_agree, random_log
from helpers.enough_oracle import enough, matched_distances
from mpc_lab.engines import running
from mpc_lab.pairing import enough as search
from mpc_lab.scoring import as_rule

ASKED = [(1, 1), (12, 7), (40, 30), (150, 5), (5, 37), (60, 59.5), (100_000, 1)]


def expected(ranking, group, rule, pairs, queries, estimand="pairs"):
    score = ranking.score if rule == "baseline" else as_rule(rule).scores(ranking, group)
    found = matched_distances(ranking.query_code, ranking.member(group), score)
    codes = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    unit_of = dict(zip(ranking.query_code.tolist(), codes.tolist(), strict=True))
    return enough(found, unit_of, 0.1 * float(np.std(score)), pairs, queries, estimand)


def spread(seed, queries=60):
    """Return a log with few ties, whose queries have very different numbers of close pairs."""
    frame, rng = random_log(seed, queries=queries), np.random.default_rng(seed)
    # Queries have levels of their own, so that a tenth of the spread is far inside a list.
    level = (frame["query"] % 97).to_numpy() / 10
    frame["score"] = level + rng.integers(0, 900, len(frame)) / 1024
    return frame


# How many pairs may be collected at once: all of them, or so few that ranges are halved.
@pytest.mark.parametrize("collected", [1 << 20, 4])
@pytest.mark.parametrize(
    ("asked", "estimand"),
    [*((asked, "pairs") for asked in ASKED), ((12, 7), "queries"), ((20, 15), "root")],
    ids=str,
)
def test_it_is_the_first_distance_that_is_enough(asked, estimand, collected, monkeypatch):
    monkeypatch.setattr(search, "_COLLECTED_AT_MOST", collected)
    monkeypatch.setattr(search, "_AT_FIRST", 1 if collected < 100 else 8)
    ranking = mpc.Ranking(
        spread(3, queries=35), item="item", unit="user", group=BOOLEANS, **COLUMNS
    )
    rules = ["baseline", mpc.Boosted(0.05), mpc.Column("new"), "calibrated"]
    how = {"scoring_rules": rules, "estimand": estimand, "progress": False}
    found = mpc.audit(ranking, threshold=mpc.Enough(*asked), **how).headline
    for rule, label in zip(rules, found.scoring_rule.values, strict=True):
        for group in BOOLEANS:
            cell = found.sel(group=group, scoring_rule=label, pairing_mode="matched")
            epsilon, short = expected(ranking, group, rule, *asked, estimand)
            np.testing.assert_equal(float(cell.epsilon), epsilon, f"{label} {group}")
            assert bool(cell.short_of_pairs) == short, (label, group)


def test_the_cases_asked_for_are_short_of_pairs_in_part():
    ranking = mpc.Ranking(spread(3), group=BOOLEANS, **COLUMNS)
    short = [expected(ranking, "g0", "baseline", *asked)[1] for asked in ASKED]
    assert {True, False} == set(short)


def one_pair_a_query(distances):
    """Return a log whose queries have one matched pair each, at these distances."""
    n = len(distances)
    score = np.stack([np.zeros(n), distances], axis=1) + 100 * (np.arange(n) % 2)[:, None]
    return mpc.Ranking(
        {
            "query": np.repeat(np.arange(n), 2),
            "score": score.ravel(),
            "outcome": np.tile([1.0, 0.0], n) + np.arange(2 * n) % 3,
            "group": np.tile(["a", "b"], n),
        },
        query="query",
        score="score",
        outcome="outcome",
        group="group",
    )


def headline_of(ranking, threshold):
    found = mpc.audit(ranking, groups=["a"], threshold=threshold, progress=False).headline
    return found.isel(scoring_rule=0, pairing_mode=0, group=0)


@pytest.mark.parametrize(("pairs", "queries", "expected"), [(50, 1, 50), (51, 1, 51), (9, 80, 80)])
def test_it_stops_at_the_pair_that_is_enough(pairs, queries, expected):
    ranking = one_pair_a_query(np.arange(1, 101) / 1024)
    cell = headline_of(ranking, mpc.Enough(pairs, queries))
    assert int(cell.n_pairs) == expected
    assert not cell.short_of_pairs
    assert float(cell.tie_inflation) == 1


def test_it_does_not_pass_a_tenth_of_the_spread():
    ranking = one_pair_a_query(np.arange(1, 101) / 10)
    reach = ranking.score_std / 10
    inside = int((np.arange(1, 101) / 10 <= reach).sum())
    assert 40 < inside < 60
    enough_there = headline_of(ranking, mpc.Enough(inside, 1))
    assert not enough_there.short_of_pairs
    too_few = headline_of(ranking, mpc.Enough(inside + 1, 1))
    assert too_few.short_of_pairs
    assert float(too_few.epsilon) <= reach
    assert int(too_few.n_pairs) == inside


@pytest.mark.parametrize("size", [1e-300, 1e160, 1e300])
def test_scores_whose_squares_are_no_numbers_change_nothing(size):
    rng, rows = np.random.default_rng(0), {"query": "q", "score": "s", "outcome": "y", "group": "g"}
    log = {"q": np.repeat(np.arange(200), 4), "s": rng.random(800), "y": rng.random(800)}
    log["g"] = np.tile(["a", "b"], 400)
    how = {**rows, "threshold": mpc.Enough(10**6, 1), "progress": False}
    found = [mpc.audit({**log, "s": log["s"] * by}, **how).headline for by in (1.0, size)]
    np.testing.assert_array_equal(*(one["n_pairs"].values for one in found))


def test_outcomes_play_no_part_in_it():
    frame = spread(5)
    other = frame.assign(outcome=np.random.default_rng(1).exponential(size=len(frame)))
    how = {**COLUMNS, "group": BOOLEANS, "threshold": mpc.Enough(20, 10), "progress": False}
    one, two = mpc.audit(frame, **how).headline, mpc.audit(other, **how).headline
    np.testing.assert_array_equal(one.epsilon, two.epsilon)
    assert (one.epsilon > 0).any()


@pytest.mark.parametrize("closeness", ["score", "query_sd", "percentile"])
def test_files_agree_with_memory(closeness, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(running, "_MOST_ROWS", 64)
    frame = spread(7)
    frame.to_parquet(tmp_path / "log.parquet")
    how = {"group": BOOLEANS, "threshold": mpc.Enough(20, 10), "closeness": closeness, **COLUMNS}
    how |= {"scoring_rules": RULES, "progress": False}
    in_memory = mpc.audit(frame, **how)
    assert_agree(in_memory, mpc.audit(tmp_path / "log.parquet", memory="1GB", **how))
    assert not in_memory.headline["short_of_pairs"].all()


def test_ties_that_bring_in_more_pairs_are_counted():
    ranking = one_pair_a_query(np.repeat([1, 2], 50) / 1024)
    cell = headline_of(ranking, mpc.Enough(20, 10))
    assert int(cell.n_pairs) == 50
    assert float(cell.tie_inflation) == 2.5


@pytest.mark.parametrize("bad", [(0, 5), (1.5, 5), (True, 5), (5, 0.5), (5, np.inf), (5, "many")])
def test_it_takes_numbers_of_at_least_1(bad):
    with pytest.raises(mpc.MpcError, match=r"Enough\((pairs|queries)\) must be a"):
        mpc.Enough(*bad)


def test_a_pool_takes_the_first_shared_point_that_is_enough():
    how = {**COLUMNS, "group": BOOLEANS, "threshold": mpc.Enough(20, 10), "progress": False}
    grid = [0.001, 0.002, 0.004, 0.008, 0.016, 0.03]
    parts = [mpc.audit(spread(seed), epsilon=grid, **how) for seed in (3, 5)]
    pooled = mpc.pool(parts).headline.isel(scoring_rule=0, pairing_mode=0)
    curves = [part.curve.isel(scoring_rule=0, pairing_mode=0).n_pairs for part in parts]
    for group in BOOLEANS:
        cell = pooled.sel(group=group)
        together = sum(curve.sel(group=group) for curve in curves)
        at = float(cell.epsilon)
        assert int(cell.n_pairs) == int(together.sel(epsilon=at))
        own = max(float(part.headline.epsilon.sel(group=group).max()) for part in parts)
        assert at <= own
        if not cell.short_of_pairs:
            assert int(cell.n_pairs) >= 20
