"""Questions, pools and files of audits whose pairs do not count alike."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import mpc_lab as mpc

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
ESTIMANDS = ("pairs", "queries", "root")
GRID = [0.0, 0.01, 0.05, 0.1, 0.3]


def log_of(seed=0, queries=90, first=0):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 16, queries)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    return pd.DataFrame(
        {
            "query": query + first,
            "item": np.concatenate([rng.permutation(80)[:k] for k in size]),
            "score": rng.integers(0, 200, n) / 256,
            "outcome": rng.normal(size=n).round(3),
            "group": rng.choice(["a", "b"], n),
            "w": rng.uniform(0.5, 3, queries)[query],
            "place": np.concatenate([rng.permutation(k) + 1 for k in size]),
            "market": np.where(query % 2, "x", "y"),
        }
    )


def run(frame, **options):
    options = {"threshold": 0.05, "epsilon": GRID, "progress": False, "weight": "w"} | options
    return mpc.audit(frame, **COLUMNS, **options)


@pytest.fixture(
    scope="module",
    params=[pytest.param(e, marks=() if e == "root" else pytest.mark.long) for e in ESTIMANDS],
)
def audit(request):
    modes = ("matched", "mirrored", "symmetric")
    return run(log_of(), estimand=request.param, segment="market", pairing_modes=modes)


def pair_weights(audit, pairs):
    weight = audit.ranking.to_frame().groupby("query")["w"].first()[pairs["query"]].to_numpy()
    size = pairs.groupby("query")["query"].transform("size").to_numpy()
    estimand = json.loads(audit.attrs["options"])["estimand"]
    return weight / {"pairs": 1.0, "queries": size, "root": np.sqrt(size)}[estimand]


@pytest.mark.parametrize("mode", ["matched", "symmetric"])
def test_regression_is_least_squares_with_weights(audit, mode):
    fitted = audit.regression("a", pairing_mode=mode)
    cell = audit.headline.sel(group="a", scoring_rule="baseline", pairing_mode=mode)
    assert fitted.params["MPC"] == pytest.approx(float(cell.estimate), rel=1e-9)
    if mode == "matched":
        by_query = run(log_of(), estimand=json.loads(audit.attrs["options"])["estimand"])
        plain = by_query.headline["std_error_by"].sel(
            group="a", scoring_rule="baseline", pairing_mode="matched", variance="query"
        )
        assert fitted.bse["MPC"] == pytest.approx(float(plain), rel=1e-9)


def test_the_limit_is_least_squares_with_the_weights_of_pairs_inside_the_bandwidth(audit):
    found = audit.limit("a", bandwidth=0.1)
    pairs = audit.pairs("a", epsilon=0.1)
    pairs = pairs[pairs["distance"] < 0.1]
    x = pairs["distance"].to_numpy()
    w = pair_weights(audit, pairs) * (1 - x / 0.1)
    fitted = sm.WLS(pairs["difference"], np.column_stack([np.ones(len(x)), x, x**2]), weights=w)
    assert float(found.estimate) == pytest.approx(fitted.fit().params.iloc[0], rel=1e-8)


def test_segments_and_positions_are_means_with_weights(audit):
    pairs = audit.pairs("a")
    pairs["w"] = pair_weights(audit, pairs)
    pairs["market"] = np.where(pairs["query"] % 2, "x", "y")
    for market, part in pairs.groupby("market"):
        mean = np.average(part["difference"], weights=part["w"])
        found = audit.by_segment().estimate.sel(group="a", segment=market)
        assert float(found) == pytest.approx(mean, rel=1e-9)
    by_place = audit.by_position("a").estimate
    for place, part in pairs.groupby("position"):
        mean = np.average(part["difference"], weights=part["w"])
        ours = float(by_place.sel(position=place))
        assert ours == pytest.approx(mean, rel=1e-9)


def test_the_bootstrap_is_about_the_estimate(audit):
    found = audit.bootstrap(99)
    inside = (found.percentile_low < audit.headline.estimate) & (
        audit.headline.estimate < found.percentile_high
    )
    assert bool(inside.all())


def test_the_placebo_sees_the_same_estimate(audit):
    found = audit.balance(group="a", permutations=20)
    both = audit.pairs("a", pairing_mode="symmetric")
    mean = np.average(both["difference"], weights=pair_weights(audit, both))
    assert float(found["placebo_observed"][0]) == pytest.approx(mean, rel=1e-9)


def test_a_saved_audit_is_the_same_and_a_pool_is_one_audit_of_all_rows(audit, tmp_path):
    estimand = json.loads(audit.attrs["options"])["estimand"]
    modes = ("matched", "symmetric", "adjacent")
    parts = [log_of(seed, 40, 1000 * seed) for seed in (1, 2, 3)]
    audits = []
    for k, part in enumerate(parts):
        made = run(part, estimand=estimand, pairing_modes=modes, correction="plain")
        made.save(tmp_path / f"{k}.nc", items=True)
        audits.append(mpc.load(tmp_path / f"{k}.nc"))
        pd.testing.assert_frame_equal(audits[-1].to_frame(), made.to_frame())
    pooled = mpc.pool(audits)
    whole = run(pd.concat(parts), estimand=estimand, pairing_modes=modes, correction="plain")
    for name in ("estimate", "std_error", "n_effective", "n_pairs", "n_items"):
        for part in ("headline", "curve"):
            ours, theirs = getattr(pooled, part)[name], getattr(whole, part)[name]
            # CR3 of queries with small shares is a series.
            rtol = 2e-4 if name == "std_error" else 1e-10
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-12, err_msg=name)
    assert json.loads(pooled.attrs["options"])["estimand"] == estimand


def test_audits_of_other_estimands_are_not_pooled():
    one, other = run(log_of(1)), run(log_of(2, first=1000), estimand="root")
    with pytest.raises(mpc.MpcError, match="must have one estimand"):
        mpc.pool([one, other])


def test_the_summary_names_the_estimand_and_the_weights(audit):
    estimand = json.loads(audit.attrs["options"])["estimand"]
    words = {
        "pairs": "counts the weight of its query ('w')",
        "queries": "(estimand 'queries')",
        "root": "(estimand 'root')",
    }
    assert words[estimand] in str(audit.summary())


def test_what_is_for_pairs_that_count_alike_is_refused_in_words(audit):
    with pytest.raises(mpc.MpcError, match=r"estimand=|weight="):
        audit.confidence_sequence()
    if json.loads(audit.attrs["options"])["estimand"] != "pairs":
        with pytest.raises(mpc.MpcError, match="without estimand="):
            audit.fair_boost("a")


def test_a_boost_counts_weights():
    frame = log_of()
    audit = run(frame)
    curve = audit.boost_curve("a", [0.0])
    cell = audit.headline.sel(group="a", scoring_rule="baseline", pairing_mode="matched")
    assert float(curve.estimate[0]) == pytest.approx(float(cell.estimate), rel=1e-9)


def test_against_goes_with_weights_and_estimands():
    frame = log_of()
    frame["group"] = np.where(frame["item"] % 3 == 0, "c", frame["group"])
    audit = run(frame, estimand="root", against="b", groups=["a"])
    pairs = audit.pairs("a")
    mean = np.average(pairs["difference"], weights=pair_weights(audit, pairs))
    assert float(audit.headline.estimate.sel(group="a").squeeze()) == pytest.approx(mean, rel=1e-9)


# ---- what a new user does


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (0.0, "above 0"),
        (-1.0, "above 0"),
        (np.inf, "above 0"),
        (np.nan, "must be complete"),
    ],
)
def test_a_weight_must_be_a_number_above_0(bad, words):
    frame = log_of()
    frame.loc[frame["query"] == 3, "w"] = bad
    with pytest.raises(mpc.MpcError, match=words) as caught:
        run(frame)
    assert "'w'" in str(caught.value)


def test_a_weight_must_be_one_number_a_query():
    frame = log_of()
    frame.loc[5, "w"] = 9.0
    query = frame.loc[5, "query"]
    with pytest.raises(mpc.MpcError, match=f"got .* and 9 for query {query}"):
        run(frame)


def test_a_weight_in_words_is_refused():
    with pytest.raises(mpc.MpcError, match="must hold numbers"):
        run(log_of().assign(w="heavy"))


def test_rows_without_a_weight_can_be_left_out():
    frame = log_of()
    frame.loc[frame["query"] == 3, "w"] = np.nan
    audit = run(frame, missing="drop")
    same = run(frame[frame["query"] != 3])
    np.testing.assert_array_equal(audit.headline.estimate, same.headline.estimate)
    assert audit.attrs["n_dropped"] == int((frame["query"] == 3).sum())


def test_a_misspelt_estimand_gets_the_near_match():
    with pytest.raises(mpc.MpcError, match="'queries'"):
        run(log_of(), estimand="querys")
