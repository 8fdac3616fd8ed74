"""Pools of logs with positions: symmetric pairs and the effect of place, with their intervals."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mpc_lab as mpc
from helpers import sides_oracle
from helpers.oracle import Log
from helpers.pairing_logs import small_ranking
from mpc_lab.inference.estimates import NOT_POOLED
from mpc_lab.results.assemble import headline_moments, infer
from mpc_lab.results.pooled_places import PLACES

GRID = [0.0, 0.004, 0.01, 0.03]
GROUPS = ["g0", "g1", "g2"]
ROLES = {name: name for name in ("query", "item", "score", "outcome", "position")} | {
    "group": GROUPS
}
PLAIN = {"epsilon": GRID, "threshold": 0.01, "cluster": "query", "correction": "plain"}
PLACE = ("place_effect", "place_effect_low", "place_effect_high", "place_effect_p_value")
OF_PLACES = (*PLACE, "place_overlap", "shown_above")
NUMBERS = (
    *("n_pairs", "n_queries", "estimate", "std_error", "dof", "n_effective", "ci_low", "ci_high"),
    *("p_adjusted", "mde_adjusted", *OF_PLACES),
)


def day(seed, queries=25, size=10, **columns):
    """A log whose items were shown near the order of their scores, but not in it."""
    shape = {"queries": queries, "size": size}
    rng = np.random.default_rng(100 + seed)
    score = small_ranking(seed, **shape).score.reshape(queries, size)
    place = np.argsort(np.argsort(-score + rng.normal(0, 0.01, score.shape), axis=1), axis=1) + 1
    ranking = small_ranking(seed, **shape, position=place.ravel())
    frame = {"query": ranking.query_code + 1000 * seed, "item": ranking.item_code}
    frame |= {"score": ranking.score, "outcome": ranking.outcome, "position": ranking.position}
    frame |= {group: ranking.member(group) for group in GROUPS}
    return pd.DataFrame(frame).assign(**columns)


def with_a_heavy_query(frame):
    """Add a long list, which has a good part of all close pairs."""
    heavy = day(50, queries=1, size=30)
    return pd.concat([frame, heavy.assign(query=999_999)])


def audit_of(frame, modes=("symmetric", "matched"), **options):
    options = PLAIN | options
    return mpc.audit(frame, **ROLES, pairing_modes=modes, progress=False, **options)


def saved(audits, path):
    for k, audit in enumerate(audits):
        audit.save(path / f"{k}.nc")
    return [mpc.load(path / f"{k}.nc") for k in range(len(audits))]


def same(ours, theirs, names=NUMBERS, rtol=1e-10):
    for name in names:
        np.testing.assert_allclose(
            ours[name].values, theirs[name].values, rtol=rtol, atol=1e-12, err_msg=name
        )


@pytest.fixture(scope="module")
def frames():
    return [with_a_heavy_query(day(0)), day(1), day(2)]


@pytest.mark.parametrize("keep", [False, True])
def test_a_pool_is_one_audit_of_all_rows(frames, keep, tmp_path):
    audits = [audit_of(frame) for frame in frames]
    pooled = mpc.pool(saved(audits, tmp_path) if keep else audits)
    whole = audit_of(pd.concat(frames))
    assert float(whole.headline.largest_query_share.max()) > 0.1
    assert np.isfinite(pooled.headline.place_effect_low).all()
    same(pooled.headline, whole.headline)
    same(pooled.curve, whole.curve, ("n_pairs", "estimate"))
    assert (pooled.headline.verdict.values == whole.headline.verdict.values).all()


def test_the_numbers_are_those_of_the_double_loops(frames):
    pooled = mpc.pool([audit_of(frame) for frame in frames])
    rows = pd.concat(frames).reset_index(drop=True)
    log = Log(
        query=rows["query"].tolist(),
        score=rows.score.tolist(),
        outcome=rows.outcome.tolist(),
        groups=[frozenset(g for g in GROUPS if row[g]) for _, row in rows.iterrows()],
        position=rows.position.tolist(),
    )
    cells = pooled.headline.sel(pairing_mode="symmetric", scoring_rule="baseline")
    for group in GROUPS:
        cell = cells.sel(group=group)
        for start, made in (("", sides_oracle.sums), ("place_effect", sides_oracle.place_effect)):
            wanted = made(log, group, 0.01)
            estimate = cell[start or "estimate"].item()
            assert estimate == pytest.approx(wanted.estimate, rel=1e-10)
            n = len({log.query[i] for i, _ in wanted.pairs})
            error = np.sqrt(wanted.raw(log)["query"] * n / (n - 1))
            low = cell[f"{start}_low" if start else "ci_low"].item()
            # The half-width is t times the standard error.
            freedom = wanted.effective(log, "query") - 1
            half = stats.t.ppf(0.975, freedom) * error
            assert estimate - low == pytest.approx(half, rel=1e-8)


def test_symmetric_pairs_are_clustered_by_query_and_matched_ones_by_items_too(frames, tmp_path):
    audits = [audit_of(frame, cluster="union", correction="cr3") for frame in frames]
    for k, audit in enumerate(audits):
        audit.save(tmp_path / f"{k}.nc", items=True)
    with pytest.warns(UserWarning, match="union variance of symmetric .*correction cr3 of symm"):
        pooled = mpc.pool([mpc.load(tmp_path / f"{k}.nc") for k in range(3)])
    cells, by_query = pooled.headline, audit_of(pd.concat(frames)).headline
    union = audit_of(pd.concat(frames), cluster="union", correction="cr3").headline
    assert (cells.variance_from.sel(pairing_mode="symmetric") == "query").all()
    names = ("estimate", "std_error", "dof", "ci_low")
    symmetric, matched = ({"pairing_mode": mode} for mode in ("symmetric", "matched"))
    same(cells.sel(symmetric), by_query.sel(symmetric), (*names, *OF_PLACES))
    same(cells.sel(matched), union.sel(matched), names, rtol=2e-4)
    assert pooled.attrs["cluster"] == "union"
    assert "Not pooled: union variance of symmetric pairs" in pooled.summary()
    assert "Not pooled: the correction cr3 of symmetric pairs" in pooled.summary()


def test_the_difference_from_a_pool_has_its_plain_variance(frames, tmp_path):
    how = {"cluster": "query", "correction": "cr3"}
    audits = saved([audit_of(frame, **how) for frame in [*frames, day(3)]], tmp_path)
    new, old = audits[3], mpc.pool(audits[:3])
    found = mpc.difference(new, old).data.sel(pairing_mode="symmetric")
    gaps = [audit.headline.sel(pairing_mode="symmetric", scoring_rule="baseline")
            for audit in (new, old)]  # fmt: skip
    n = [gap.n_queries for gap in gaps]
    # Each audit's sum over queries, which its own correction has multiplied, with the joint one.
    raw = gaps[0].std_error ** 2 * n[0] / (n[0] - 1) + gaps[1].std_error ** 2 * n[1] / (n[1] - 1)
    wanted = np.sqrt(raw * (sum(n) - 1) / sum(n))
    np.testing.assert_allclose(found.std_error.squeeze(), wanted, rtol=1e-9)
    assert "Symmetric pairs of a pool have the plain correction" in found.attrs["notes"]


def test_a_pool_that_was_saved_says_the_same_again(frames, tmp_path):
    (again,) = saved([mpc.pool([audit_of(frame, cluster="union") for frame in frames])], tmp_path)
    found = infer(headline_moments(again)[0], cluster="union", level=0.95, correction="plain")
    row = headline_moments(again)[0].two_sided
    cells = again.headline.sel(pairing_mode="symmetric", scoring_rule="baseline")
    for name in ("estimate", "std_error", "dof"):
        np.testing.assert_allclose(getattr(found, name)[row, :, 0], cells[name], rtol=1e-12)


def test_a_pool_can_be_pooled_again(frames, tmp_path):
    audits = saved([audit_of(frame) for frame in frames], tmp_path)
    (two,) = saved([mpc.pool(audits[:2])], tmp_path)
    same(mpc.pool([two, audits[2]]).headline, mpc.pool(audits).headline)


@pytest.mark.parametrize("threshold", [mpc.Quantile(0.05), mpc.Smallest(150)])
def test_a_threshold_that_the_pool_chooses_was_kept(frames, threshold, tmp_path):
    grid = [0.002, 0.004, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05]
    audits = [audit_of(frame, threshold=threshold, epsilon=grid) for frame in frames]
    pooled = mpc.pool(saved(audits, tmp_path))
    for group in GROUPS:
        epsilon = float(pooled.headline.epsilon.sel(group=group).values.ravel()[0])
        whole = audit_of(pd.concat(frames), threshold=epsilon, epsilon=grid)
        names = ("n_pairs", "estimate", "std_error", "dof", *OF_PLACES)
        same(pooled.headline.sel(group=group), whole.headline.sel(group=group), names)
    assert np.isfinite(pooled.headline.std_error).all()


@pytest.mark.parametrize("estimand", ["pairs", "root", "queries"])
def test_weights_and_estimands(estimand):
    days = [day(k).assign(weight=lambda f: 1.0 + f["query"] % 3) for k in range(3)]
    how = {"weight": "weight", "estimand": estimand}
    pooled = mpc.pool([audit_of(frame, **how) for frame in days])
    same(pooled.headline, audit_of(pd.concat(days), **how).headline)


def test_far_outcomes_and_what_if_scores_and_a_group_of_one_day():
    days = [day(k).assign(outcome=lambda f: f["outcome"] + 1e6 * f["g0"]) for k in range(3)]
    days[1]["g2"] = False
    how = {"scoring_rules": ["baseline", mpc.Boosted(0.003)]}
    pooled = mpc.pool([audit_of(frame, **how) for frame in days])
    whole = audit_of(pd.concat(days), **how)
    same(pooled.headline, whole.headline, rtol=1e-7)


def test_matched_pairs_alone_are_guarded_by_the_order_shown():
    turned = [day(k).assign(position=lambda f: 11 - f["position"]) for k in range(3)]
    pooled = mpc.pool([audit_of(frame, modes=("matched",)) for frame in turned])
    whole = audit_of(pd.concat(turned), modes=("matched",))
    same(pooled.headline, whole.headline)
    assert float(pooled.headline.shown_above.min()) > 0.25


def test_files_of_before_give_estimates_and_say_what_to_do(frames, tmp_path):
    audits = saved([audit_of(frame) for frame in frames], tmp_path)
    del audits[1]._saved[PLACES]
    with pytest.warns(UserWarning, match="not all audits have kept it.*Save them again"):
        pooled = mpc.pool(audits)
    symmetric = pooled.headline.sel(pairing_mode="symmetric")
    whole = audit_of(pd.concat(frames))
    same(pooled.headline, whole.headline, ("n_pairs", "estimate"))
    assert np.isnan(symmetric.std_error).all()
    assert (symmetric.verdict_reason == NOT_POOLED).all()
    assert np.isnan(pooled.headline.place_effect).all()
    assert "Next: audit all rows in one call" in pooled.summary()
    for wrong in ("effective queries or items", "a gap of any size", "audit.power"):
        assert wrong not in pooled.summary()
    (said,) = [line for line in json.loads(pooled.attrs["not_pooled"]) if "tie" in line]
    assert said.startswith("what compares both sides of a tie ('g0', 'g1' and 'g2')")


def test_damaged_sums_of_places_are_refused(frames, tmp_path):
    audits = saved([audit_of(frame) for frame in frames], tmp_path)
    audits[0]._saved[PLACES]["part"][:] = 200
    with pytest.raises(mpc.MpcError, match="sums of places in a saved audit"):
        mpc.pool(audits)


def test_a_log_in_files_keeps_the_same(frames, tmp_path):
    walked = []
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
        walked.append(audit_of(str(tmp_path / f"{k}.parquet")))
    same(mpc.pool(walked).headline, audit_of(pd.concat(frames)).headline)


def test_logs_with_and_without_places_are_not_pooled_where_pairs_go_by_places():
    roles = {name: column for name, column in ROLES.items() if name != "position"}
    placed = audit_of(day(0))
    bare = mpc.audit(day(1), **roles, pairing_modes=["symmetric"], progress=False, **PLAIN)
    with pytest.raises(mpc.MpcError, match="symmetric pairs must have positions, or none of them"):
        mpc.pool([placed, bare])


def test_a_mode_that_not_all_audits_have_is_named():
    one, other = audit_of(day(0)), audit_of(day(1), modes=("matched",))
    with pytest.warns(UserWarning, match="symmetric pairs: not all audits have them"):
        pooled = mpc.pool([one, other])
    assert pooled.headline["pairing_mode"].values.tolist() == ["matched"]
