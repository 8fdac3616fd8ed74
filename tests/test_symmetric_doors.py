"""Every question that an audit of both sides of a tie is asked, in memory and out of it."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers import sides_oracle
from helpers.pairing_logs import small_ranking
from test_symmetric import log_of

GRID = [0.0, 0.004, 0.01, 0.03]
OPTIONS = {"pairing_modes": ("symmetric", "matched"), "threshold": 0.01, "epsilon": GRID}
# Without the correction for heavy clusters, which a pool has as a series and statsmodels has not.
PLAIN = OPTIONS | {"correction": "plain"}
NUMBERS = ("n_pairs", "n_queries", "n_items", "estimate", "std_error", "n_effective", "p_adjusted")


def frame_of(ranking):
    frame = {"query": ranking.query_code, "item": ranking.item_code}
    frame |= {"score": ranking.score, "outcome": ranking.outcome}
    if ranking.position is not None:
        frame["position"] = ranking.position
    return pd.DataFrame(frame | {group: ranking.member(group) for group in ranking.groups})


def roles_of(ranking):
    names = ["query", "item", "score", "outcome"]
    names += [] if ranking.position is None else ["position"]
    return {name: name for name in names} | {"group": list(ranking.groups)}


def placed(seed=0, **shape):
    """A log whose items were shown near the order of their scores, but not in it."""
    shape = {"queries": 40, "size": 12} | shape
    rng = np.random.default_rng(100 + seed)
    score = small_ranking(seed, **shape).score.reshape(shape["queries"], shape["size"])
    order = np.argsort(-score + rng.normal(0, 0.01, score.shape), axis=1)
    place = np.argsort(order, axis=1) + 1
    return small_ranking(seed, **shape, position=place.ravel())


def same(ours, theirs, names=NUMBERS, rtol=1e-10):
    for name in names:
        if name in theirs:
            np.testing.assert_allclose(
                ours[name], theirs[name], rtol=rtol, atol=1e-12, err_msg=name
            )


@pytest.mark.parametrize("make", [small_ranking, placed])
def test_duckdb_walks_to_the_same_numbers(make, tmp_path):
    ranking = make(queries=60)
    frame_of(ranking).to_parquet(tmp_path / "log.parquet")
    memory = mpc.audit(ranking, **OPTIONS, progress=False)
    walked = mpc.audit(
        tmp_path / "log.parquet", memory="1GB", **OPTIONS, **roles_of(ranking), progress=False
    )
    same(walked.headline, memory.headline)
    same(walked.curve, memory.curve)
    np.testing.assert_allclose(walked.curve.band_low, memory.curve.band_low, rtol=1e-8)


@pytest.mark.parametrize("make", [small_ranking, placed])
def test_saving_and_loading_keep_every_bit(make, tmp_path):
    ranking = make()
    audit = mpc.audit(ranking, **OPTIONS, progress=False)
    audit.save(tmp_path / "one.nc", items=True)
    back = mpc.load(tmp_path / "one.nc")
    assert back.headline.identical(audit.headline)
    assert back.curve.identical(audit.curve)
    # Only rows tell how far outcomes spread, which a summary gives the least gap in.
    known = mpc.load(tmp_path / "one.nc", ranking=ranking)
    assert known.summary() == audit.summary()
    np.testing.assert_array_equal(back.power(effect=0.5).mde, audit.power(effect=0.5).mde)


@pytest.mark.parametrize("saved", [False, True])
def test_a_pool_of_three_is_an_audit_of_all_rows(saved, tmp_path):
    days = [small_ranking(seed, queries=25, size=10) for seed in range(3)]
    frames = [frame_of(day).assign(query=lambda f, k=k: f["query"] + 1000 * k)
              for k, day in enumerate(days)]  # fmt: skip
    roles = roles_of(days[0])
    audits = [mpc.audit(frame, **roles, **PLAIN, progress=False) for frame in frames]
    if saved:
        for k, audit in enumerate(audits):
            audit.save(tmp_path / f"{k}.nc", items=True)
        audits = [mpc.load(tmp_path / f"{k}.nc") for k in range(3)]
    pooled = mpc.pool(audits)
    whole = mpc.audit(pd.concat(frames), **roles, **PLAIN, progress=False)
    assert pooled.headline.pairing_mode.values.tolist() == list(OPTIONS["pairing_modes"])
    assert pooled.attrs["cluster"] == "union"
    same(pooled.headline, whole.headline)
    same(pooled.curve, whole.curve)
    np.testing.assert_allclose(pooled.curve.band_high, whole.curve.band_high, rtol=1e-8)


def test_the_bootstrap_draws_queries_and_takes_the_mean_of_both_sides():
    ranking = small_ranking()
    audit = mpc.audit(ranking, **OPTIONS, progress=False)
    found = audit.bootstrap(99, seed=3).sel(pairing_mode="symmetric", group="g1").squeeze()
    log = log_of(ranking)
    kept, entries = sides_oracle.two_sides(log, "g1", 0.01)
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    query = np.array([log.query[i] for i, _ in kept])
    rng, drawn = np.random.default_rng(3), []
    for _ in range(99):
        times = np.bincount(rng.integers(40, size=40), minlength=40)
        means = []
        for side in ("below", "above"):
            here = [e for e in entries if e.side == side]
            w = np.array([e.weight * times[query[e.pair]] for e in here])
            means.append(w @ d[[e.pair for e in here]] / w.sum())
        drawn.append(np.mean(means))
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.percentile_low.item() == pytest.approx(low)
    assert found.percentile_high.item() == pytest.approx(high)
    assert found.studentised_low < found.studentised_high


def hold_correlation(audit, ranking):
    """Hold the correlation of groups against what single queries add in the double loops."""
    log = log_of(ranking)
    by_query = []
    for group in ranking.groups:
        cell = sides_oracle.sums(log, group, 0.01)
        code = np.array([log.query[i] for i, _ in cell.pairs])
        by_query.append(np.bincount(code, cell.contribution, minlength=40))
    wanted = np.array(by_query) @ np.array(by_query).T
    scale = np.sqrt(np.diag(wanted))
    kept = audit.moments["correlation"].sel(pairing_mode="symmetric").values
    np.testing.assert_allclose(kept, wanted / np.outer(scale, scale), atol=1e-10)


def test_romano_wolf_goes_by_what_queries_add():
    ranking = small_ranking()
    audit = mpc.audit(
        ranking, **OPTIONS | {"pairing_modes": ["symmetric"]}, adjust="romano_wolf",
        cluster="query", progress=False,
    )  # fmt: skip
    hold_correlation(audit, ranking)


def test_the_limit_is_the_mean_of_the_two_one_sided_ones():
    ranking = mpc.datasets.synthetic(queries=3000)
    audit = mpc.audit(ranking, pairing_modes=["symmetric"], progress=False)
    found = audit.limit("1", pairing_mode=["matched", "mirrored", "symmetric"])
    one, other, both = (found.isel(pairing_mode=k) for k in range(3))
    assert both.estimate.item() == pytest.approx((one.estimate + other.estimate).item() / 2)
    assert both.place_effect.item() == pytest.approx((other.estimate - one.estimate).item() / 2)
    assert both.ci_low < both.estimate < both.ci_high
    assert both.bandwidth == one.bandwidth
    assert both.std_error < one.std_error


def test_the_regression_has_the_estimate_and_the_query_standard_error():
    ranking = small_ranking()
    audit = mpc.audit(ranking, **PLAIN, cluster="query", progress=False)
    cell = audit.headline.sel(group="g0", pairing_mode="symmetric").squeeze()
    fitted = audit.regression("g0", pairing_mode="symmetric")
    n = int(fitted.nobs)
    assert float(fitted.params["MPC"]) == pytest.approx(cell.estimate.item(), abs=1e-12)
    # statsmodels corrects for two coefficients as well.
    assert float(fitted.bse["MPC"]) == pytest.approx(
        cell.std_error.item() * np.sqrt((n - 1) / (n - 2)), rel=1e-10
    )


def test_pairs_are_listed_once_with_ties_and_both_sides():
    ranking = small_ranking()
    audit = mpc.audit(ranking, **OPTIONS, progress=False)
    listed = audit.pairs("g0", pairing_mode="symmetric")
    assert len(listed) == audit.headline.n_pairs.sel(group="g0", pairing_mode="symmetric").item()
    assert (listed.distance <= 0.01).all()
    assert {-1.0, 0.0, 1.0} == set(np.sign(listed.other_score - listed.score))


@pytest.mark.parametrize(
    "ask",
    [
        lambda audit: audit.balance(pairing_mode="symmetric"),
        lambda audit: audit.by_segment(pairing_mode="symmetric"),
        lambda audit: audit.by_position("g0", pairing_mode="symmetric"),
    ],
    ids=["balance", "by_segment", "by_position"],
)
def test_what_is_a_mean_over_pairs_is_refused(ask):
    audit = mpc.audit(small_ranking(), **OPTIONS, progress=False)
    with pytest.raises(mpc.MpcError, match="which is the mean of two sides"):
        ask(audit)


def test_the_curve_of_one_cell_has_intervals_and_a_band_inside_cells_of_places():
    ranking = placed(queries=30)
    audit = mpc.audit(ranking, **PLAIN, progress=False)
    curve = audit.curve_of("g1", pairing_mode="symmetric")
    log = log_of(ranking)
    by_query = []
    for epsilon in GRID[1:]:
        wanted = sides_oracle.sums(log, "g1", epsilon)
        raw, g = wanted.raw(log), wanted.effective(log, "union")
        used = max(raw["union"], raw["query"], raw["item"]) * g / (g - 1)
        cell = curve.sel(epsilon=epsilon)
        assert float(cell.estimate) == pytest.approx(wanted.estimate)
        assert float(cell.std_error) == pytest.approx(np.sqrt(used))
        code = np.array([log.query[i] for i, _ in wanted.pairs])
        by_query.append(np.bincount(code, wanted.contribution, minlength=30))
    assert (curve.band_low[1:] < curve.ci_low[1:]).all()
    moving = np.array(by_query) @ np.array(by_query).T
    scale = np.sqrt(np.diag(moving))
    from mpc_lab.inference.bands import sup_t_band

    wanted = sup_t_band(
        curve.estimate.values[1:], curve.std_error.values[1:], curve.dof.values[1:],
        moving / np.outer(scale, scale), level=0.95, seed=0,
    )  # fmt: skip
    if np.isnan(curve.std_error.values[0]):
        np.testing.assert_allclose(curve.band_low[1:], wanted.low, rtol=1e-6)


def test_the_jump_at_a_tie_is_computed_where_places_or_both_sides_are_asked_for():
    ranking = small_ranking()
    modes = ("matched", "mirrored", "symmetric", "adjacent")
    matched = mpc.audit(ranking, **OPTIONS | {"pairing_modes": modes[:1]}, progress=False)
    assert not [name for name in matched.headline.data_vars if "place" in str(name)]
    asked = mpc.audit(ranking, **OPTIONS | {"pairing_modes": modes}, progress=False).headline
    effect, low = asked.place_effect, asked.place_effect_low
    for mode in modes[:2]:
        assert (effect.sel(pairing_mode=mode) == effect.sel(pairing_mode="symmetric")).all()
        assert np.isfinite(low.sel(pairing_mode=mode)).all()
    assert np.isnan(effect.sel(pairing_mode="adjacent")).all()
    # The same question at a distance of 0 needs no other audit.
    found = matched.limit("g1", pairing_mode="symmetric", bandwidth=0.03)
    assert found.place_effect_low < found.place_effect < found.place_effect_high


def test_with_positions_the_bootstrap_and_romano_wolf_go_by_cells():
    ranking = placed()
    audit = mpc.audit(ranking, **OPTIONS, adjust="romano_wolf", cluster="query", progress=False)
    hold_correlation(audit, ranking)
    found = audit.bootstrap(201, seed=1).sel(pairing_mode="symmetric").squeeze()
    cells = audit.headline.sel(pairing_mode="symmetric").squeeze()
    assert (
        (found.percentile_low < cells.estimate) & (cells.estimate < found.percentile_high)
    ).all()
    width = (found.percentile_high - found.percentile_low) / (cells.ci_high - cells.ci_low)
    assert ((width > 0.6) & (width < 1.4)).all()


def test_with_positions_the_limit_compares_sides_by_place():
    audit = mpc.audit(placed(queries=200), **OPTIONS, progress=False)
    found = audit.limit("g1", pairing_mode="symmetric", bandwidth=0.03)
    assert found.ci_low < found.estimate < found.ci_high
    assert found.place_effect_low < found.place_effect < found.place_effect_high
    with pytest.raises(mpc.MpcError, match="without place cells"):
        audit.regression("g1", pairing_mode="symmetric")


def with_a_long_list(rows=6500):
    """A log with places, and one query whose pairs are all close: more than can be looked at."""
    short = frame_of(placed(queries=60)).assign(
        query=lambda frame: "short " + frame["query"].astype(str)
    )
    rng = np.random.default_rng(5)
    long = pd.DataFrame({"query": "the long one", "item": np.arange(rows) + 10**6})
    long = long.assign(score=rng.uniform(0.4, 0.405, rows), outcome=rng.normal(size=rows))
    long = long.assign(position=rng.permutation(rows) + 1)
    groups = list(short.columns[5:])
    long[groups] = rng.random((rows, len(groups))) < 0.4
    return short, long, {**roles_of(placed()), "group": groups}


@pytest.mark.long
def test_a_query_with_too_many_pairs_is_left_out_counted_and_named(tmp_path, no_charts):
    short, long, roles = with_a_long_list()
    how = {"threshold": 0.01, "epsilon": [0.004, 0.01], "cluster": "query", "progress": False}
    whole = mpc.audit(pd.concat([short[:300], long, short[300:]]), **roles, **how)
    without = mpc.audit(short, **roles, **how)
    symmetric = {"pairing_mode": "symmetric"}
    names = ("n_pairs", "estimate", "std_error", "place_effect", "place_overlap")
    same(whole.headline.sel(symmetric), without.headline.sel(symmetric), names)
    same(whole.curve.sel(symmetric), without.curve.sel(symmetric), ("n_pairs", "estimate"))
    assert whole.headline.n_pairs.sel(pairing_mode="matched").min() > 10**6
    assert whole.attrs["n_left_out_of_sides"] == 1
    said = "1 query ({}) with more than 20,000,000 close pairs had to be left out of symmetric"
    assert said.format("query 'the long one'") in whole.summary()
    assert "left out of symmetric" not in without.summary()
    number = int(json.loads(whole.attrs["left_out_of_sides"])[0])
    numbered = said.format(f"query {number} of 61")
    whole.save(tmp_path / "long.nc")
    assert numbered in mpc.load(tmp_path / "long.nc").summary()
    whole.report(tmp_path / "long.html")
    page = (tmp_path / "long.html").read_text(encoding="utf-8")
    assert numbered in page
    assert "the long one" not in page


def test_an_engine_leaves_out_the_same_query(tmp_path):
    short, long, roles = with_a_long_list()
    pd.concat([short, long]).to_parquet(tmp_path / "log.parquet")
    how = {"threshold": 0.01, "epsilon": [0.01], "cluster": "query", "progress": False}
    walked = mpc.audit(tmp_path / "log.parquet", memory="1GB", **roles, **how)
    memory = mpc.audit(pd.concat([short, long]), **roles, **how)
    same(walked.headline, memory.headline)
    assert walked.attrs["n_left_out_of_sides"] == 1
    assert re.search(r"query \d+ of 61\) with more than", walked.summary())
