"""What a new user brings: logs with little in them, odd numbers, misspelt options."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers import oracle
from helpers.oracle import Log
from helpers.strategies import STEP, boolean_ranking, ranking_of

MODES = oracle.MODES


def small_ranking(name="drama"):
    """Return four queries of four items, half of them in one group."""
    rng = np.random.default_rng(0)
    columns = {
        "query": np.repeat(np.arange(4), 4),
        "score": rng.integers(0, 8, 16) * STEP,
        "outcome": rng.integers(0, 6, 16).astype(float),
        "group": [name, None] * 8,
    }
    return mpc.Ranking(
        pd.DataFrame(columns), query="query", score="score", outcome="outcome", group="group"
    )


def headline_of(ranking, **options):
    return mpc.audit(ranking, pairing_modes=MODES, **options).headline


def assert_empty(headline):
    """No pair: counts are 0, numbers are NaN, the verdict says so and the group is still there."""
    for name in ("n_pairs", "n_queries", "n_items"):
        assert headline[name].dtype == np.int64
        assert (headline[name].values == 0).all()
    for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value", "p_adjusted", "dof"):
        assert np.isnan(headline[name].values).all(), name
    assert set(headline["verdict"].values.ravel()) == {"not estimable"}


def assert_not_estimable(headline):
    for name in ("std_error", "ci_low", "ci_high", "p_value"):
        assert np.isnan(headline[name].values).all(), name
    assert set(headline["verdict"].values.ravel()) == {"not estimable"}


# Logs with little in them -------------------------------------------------------------------------


@pytest.mark.parametrize("member", [True, False])
def test_a_group_of_all_items_or_of_none_has_no_pairs(member):
    ranking = boolean_ranking([0.1, 0.2, 0.3], [1, 0, 1], g=[member] * 3)
    headline = headline_of(ranking)
    assert headline["group"].values.tolist() == ["g"]
    assert_empty(headline)


def test_an_empty_group_does_not_disturb_the_others():
    rng = np.random.default_rng(0)
    score, outcome, query = rng.integers(0, 4, 40), rng.integers(0, 3, 40), np.arange(40) // 5
    groups = {"a": np.arange(40) % 2 == 0, "none": np.zeros(40, bool), "all": np.ones(40, bool)}
    headline = headline_of(boolean_ranking(score, outcome, query, **groups))
    alone = headline_of(boolean_ranking(score, outcome, query, a=groups["a"]))
    assert_empty(headline.sel(group=["all", "none"]))
    np.testing.assert_array_equal(
        headline["ci_low_adjusted"].sel(group=["a"]), alone["ci_low_adjusted"]
    )


def test_a_single_row():
    assert_empty(headline_of(boolean_ranking([0.5], [1.0], g=[True])))


def test_queries_of_one_item_each():
    ranking = boolean_ranking([0.5, 0.5, 0.5], [1, 0, 1], [1, 2, 3], g=[True, False, True])
    assert_empty(headline_of(ranking))


def test_no_item_of_the_group_is_below_another():
    ranking = boolean_ranking([2.0, 1.0] * 3, [1, 0] * 3, [1, 1, 2, 2, 3, 3], g=[True, False] * 3)
    headline = headline_of(ranking)
    assert np.isnan(headline["epsilon"].values).all()
    assert_empty(headline)


def test_a_group_without_threshold_has_no_pairs_beside_one_that_has():
    ranking = boolean_ranking([2.0, 1.0], [1, 0], top=[True, False], bottom=[False, True])
    headline = headline_of(ranking)
    assert headline["epsilon"].sel(pairing_mode="matched").values.ravel().tolist()[0] == 1.0
    assert_empty(headline.sel(group=["top"]))


def test_one_query_has_a_mean_but_no_interval():
    ranking = boolean_ranking([0.1, 0.2, 0.3], [1.0, 0.0, 2.0], g=[True, False, False])
    headline = headline_of(ranking, threshold=0.5)
    assert headline["n_pairs"].sel(pairing_mode="matched").item() == 2
    assert headline["estimate"].sel(pairing_mode="matched").item() == 0.0
    assert_not_estimable(headline)


@pytest.mark.parametrize("cluster", ["query", "naive"])
def test_constant_outcomes_have_no_variance(cluster):
    score = np.arange(40) % 7
    ranking = boolean_ranking(score, np.full(40, 0.1), np.arange(40) // 5, g=np.arange(40) % 2 == 0)
    headline = headline_of(ranking, threshold=5, cluster=cluster)
    assert (headline["n_pairs"].values > 0).all()
    assert_not_estimable(headline)


def test_all_scores_tie():
    log = Log(
        query=[row // 4 for row in range(24)],
        score=[3.0] * 24,
        outcome=[row * 7 % 5 for row in range(24)],
        groups=[frozenset("a") if row % 4 < 2 else frozenset() for row in range(24)],
    )
    headline = headline_of(ranking_of(log)).squeeze()
    assert headline["epsilon"].values.tolist() == [0.0] * 3
    assert headline["n_pairs"].values.tolist() == [24, 24, 6]
    assert headline["tie_inflation"].sel(pairing_mode="matched").item() == 24
    matched, mirrored = (headline.sel(pairing_mode=mode)["estimate"] for mode in MODES[:2])
    assert matched == mirrored


def test_rows_in_no_group_are_reported():
    log = Log([1, 1], [0.1, 0.2], [1, 0], [frozenset(), frozenset()])
    with pytest.raises(mpc.MpcError, match="group"):
        mpc.audit(ranking_of(log))


def test_one_group_in_every_row_is_reported_and_not_dropped():
    log = Log([1, 1, 2, 2], [0.1, 0.2, 0.1, 0.2], [1, 0, 1, 1], [frozenset({"only"})] * 4)
    audit = mpc.audit(ranking_of(log))
    assert_empty(audit.headline)
    assert "only" in str(audit.summary())


def test_the_curve_of_an_audit_without_pairs_can_be_asked_for():
    curve = mpc.audit(boolean_ranking([0.5], [1.0], g=[True])).curve
    assert (curve["n_pairs"].values == 0).all()


# Odd names and numbers ----------------------------------------------------------------------------


def test_a_group_called_script_is_shown_as_text():
    audit = mpc.audit(small_ranking("<script>"))
    assert audit.headline["group"].values.tolist() == ["<script>"]
    assert "<script>" in str(audit.summary())
    assert "<script>" not in audit._repr_html_()


def test_a_hundred_and_thirty_groups():
    rng = np.random.default_rng(5)
    log = Log(
        query=[row // 10 for row in range(600)],
        score=(rng.integers(0, 20, 600) * STEP).tolist(),
        outcome=rng.integers(0, 3, 600).tolist(),
        groups=[frozenset({f"g{row % 130:03d}", f"g{row % 3:03d}"}) for row in range(600)],
    )
    headline = headline_of(ranking_of(log), threshold=4 * STEP, adjust="none").squeeze()
    assert headline["group"].values.tolist() == log.names
    for group in ("g063", "g064", "g129"):
        for mode in MODES:
            kept = oracle.pairs(log, group, mode, 4 * STEP)
            assert headline["n_pairs"].sel(group=group, pairing_mode=mode).item() == len(kept)


def test_float32_scores_are_widened_before_they_are_subtracted():
    score = np.array([0.1, 0.3], dtype=np.float32)
    gap = float(score[1]) - float(score[0])
    ranking = boolean_ranking(score, [1, 0], g=[True, False])
    for epsilon, pairs in ((gap, 1), (np.nextafter(gap, 0), 0)):
        headline = mpc.audit(ranking, threshold=float(epsilon)).headline
        assert headline["n_pairs"].item() == pairs
    assert mpc.audit(ranking).headline["epsilon"].item() == gap


@pytest.mark.parametrize(
    ("low", "high", "epsilon", "pairs"),
    [(0.2, 0.9, 0.7, 1), (0.1, 0.4, 0.3, 0)],  # low + epsilon says the opposite of both
)
def test_the_gap_is_subtracted_and_not_added_to_the_score(low, high, epsilon, pairs):
    ranking = boolean_ranking([low, high], [1, 0], g=[True, False])
    assert mpc.audit(ranking, threshold=epsilon).headline["n_pairs"].item() == pairs


def test_the_two_zeros_tie():
    ranking = boolean_ranking(
        [-0.0, 0.0, 0.0, -0.0], [1, 0, 1, 0], [1, 1, 2, 2], g=[True, False] * 2
    )
    headline = headline_of(ranking, threshold=0).squeeze()
    assert headline["n_pairs"].values.tolist() == [2, 2, 2]


def test_scores_of_all_sizes():
    score = [1e300, 1e-300, 0.0, 1e300, -1e300]
    log = Log(
        [1] * 5,
        score,
        [1, 0, 1, 0, 2],
        [frozenset("a") if k % 2 else frozenset() for k in range(5)],
    )
    for epsilon in (0.0, 1e-300, 1e300, 1.5e300):
        headline = headline_of(ranking_of(log), threshold=epsilon).squeeze()
        for mode in MODES:
            kept = oracle.pairs(log, "a", mode, epsilon)
            assert headline["n_pairs"].sel(pairing_mode=mode).item() == len(kept), (mode, epsilon)


def test_huge_and_tiny_outcomes_keep_their_digits():
    rng = np.random.default_rng(3)
    query, member = np.arange(120) // 6, np.arange(120) % 2 == 0
    score, outcome = rng.integers(0, 5, 120), rng.normal(size=120)
    plain = mpc.audit(boolean_ranking(score, outcome, query, g=member), threshold=2).headline
    for factor in (2.0**200, 2.0**-200):
        scaled = boolean_ranking(score, outcome * factor, query, g=member)
        found = mpc.audit(scaled, threshold=2).headline
        np.testing.assert_allclose(found["std_error"], plain["std_error"] * factor, rtol=1e-12)


def test_outcomes_far_from_zero_keep_their_spread():
    rng = np.random.default_rng(4)
    query, member = np.arange(120) // 6, np.arange(120) % 2 == 0
    score, outcome = rng.integers(0, 5, 120), rng.integers(0, 4, 120)
    one, far = (
        mpc.audit(boolean_ranking(score, outcome + shift, query, g=member), threshold=2).headline
        for shift in (0.0, 2.0**40)
    )
    np.testing.assert_allclose(far["std_error"], one["std_error"], rtol=1e-12)


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pairing_modes": ("matchd",)}, "matchd.*matched"),
        ({"pairing_modes": ()}, "pairing_modes"),
        ({"scoring_rules": ("basline",)}, "basline.*baseline"),
        ({"scoring_rules": ()}, "scoring_rules"),
        ({"scoring_rules": ("baseline", "baseline")}, "baseline"),
        ({"groups": ["drmaa"]}, "drmaa.*drama"),
        ({"groups": []}, "at least one group"),
        ({"cluster": "querry"}, "querry.*query"),
        ({"cluster": "item"}, "item"),
        ({"cluster": "union"}, "item"),
        ({"adjust": "hollm"}, "hollm.*holm"),
        ({"level": 0}, r"level.* got 0\."),
        ({"level": 1}, r"level.* got 1\."),
        ({"level": 95}, "level.*95"),
        ({"level": float("nan")}, "level.*nan"),
        ({"level": "high"}, "level.*high"),
        ({"tolerance": -0.1}, "tolerance.*-0.1"),
        ({"tolerance": float("nan")}, "tolerance.*nan"),
        ({"epsilon": [-0.1, 0.1]}, "epsilon.*-0.1"),
        ({"epsilon": [0.1, float("nan")]}, "epsilon.*nan"),
        ({"epsilon": []}, "epsilon"),
        ({"epsilon": [0.2, 0.1]}, "epsilon"),
        ({"epsilon": [0.1, 0.1]}, "epsilon"),
        ({"epsilon": ["small"]}, "epsilon"),
        ({"threshold": -1}, "threshold.*-1"),
        ({"threshold": float("nan")}, "threshold.*nan"),
        ({"threshold": "small"}, "threshold.*small"),
    ],
)
def test_a_bad_option_is_refused_in_one_line(options, says):
    with pytest.raises(mpc.MpcError, match=says) as told:
        mpc.audit(small_ranking(), **options)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("share", [0, 1.5, -0.1, float("nan"), "0.01"])
def test_quantile_takes_a_share(share):
    with pytest.raises(mpc.MpcError, match=f"Quantile.*{share}"):
        mpc.Quantile(share)


@pytest.mark.parametrize("wanted", [0, -3, 1.5, "2"])
def test_smallest_takes_a_whole_number(wanted):
    with pytest.raises(mpc.MpcError, match=f"Smallest.*{wanted}"):
        mpc.Smallest(wanted)


def test_more_pairs_asked_for_than_there_are():
    ranking = small_ranking()
    everything = mpc.audit(ranking, threshold=1e9).headline["n_pairs"].item()
    headline = mpc.audit(ranking, threshold=mpc.Smallest(10**6)).headline
    assert headline["n_pairs"].item() == everything


def test_a_grid_given_by_the_user_is_used_as_it_is():
    grid = [0.0, 3 * STEP, 4 * STEP]
    assert mpc.audit(small_ranking(), epsilon=grid).curve["epsilon"].values.tolist() == grid


def test_an_option_that_does_not_exist():
    with pytest.raises(mpc.MpcError, match="treshold"):
        mpc.audit(small_ranking(), treshold=0.1)


def test_an_unknown_group_of_a_method_lists_the_near_match():
    audit = mpc.audit(small_ranking())
    with pytest.raises(mpc.MpcError, match=r"drana.*drama"):
        audit.regression("drana")
    with pytest.raises(mpc.MpcError, match=r"drana.*drama"):
        audit.pairs("drana")
