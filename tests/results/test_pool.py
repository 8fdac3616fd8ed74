import json

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc

GRID = [0.0, 0.01, 0.03, 0.1]
COLUMNS = {
    "query": "query",
    "item": "item",
    "score": "score",
    "outcome": "outcome",
    "group": "group",
}


def day(k, queries=40):
    rng = np.random.default_rng(k)
    query = np.repeat(np.arange(queries) + 1000 * k, 15)
    item = np.concatenate([rng.permutation(60)[:15] for _ in range(queries)])
    return pd.DataFrame(
        {
            "query": query,
            "item": item,
            "score": rng.integers(0, 500, len(query)) / 512,
            "outcome": rng.normal(size=len(query)) + item / 60,
            "group": np.where(item < 20 + k, "a", np.where(item < 40, "b", "c")),
        }
    )


def audit_of(frame, **options):
    options = {"epsilon": GRID, "threshold": 0.05, "progress": False} | options
    options = {"correction": "plain"} | options
    modes = ("matched", "mirrored", "adjacent")
    return mpc.audit(frame, **COLUMNS, pairing_modes=modes, **options)


@pytest.fixture(scope="module")
def week():
    return [day(k) for k in range(7)]


def assert_same(one, other):
    for part in ("headline", "curve"):
        ours, theirs = getattr(one, part), getattr(other, part)
        # Sums do not tell what one query makes up.
        theirs = theirs.drop_vars(["heavy_share", "largest_query_share"], errors="ignore")
        assert set(ours.data_vars) == set(theirs.data_vars)
        for name in ours.data_vars:
            if name == "std_error_by":
                # Three terms of a series make up the correction of light queries.
                corrected = ours.variance == "query_cr3"
                tolerance = np.where(corrected, 2e-4, 1e-9)
                apart = np.abs(ours[name] - theirs[name])
                assert (apart <= tolerance * theirs[name]).where(~np.isnan(apart), True).all()
            elif ours[name].dtype.kind == "f":
                np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)
            else:
                assert (ours[name].values == theirs[name].values).all(), name


@pytest.mark.parametrize(
    ("cluster", "saved"),
    [
        ("query", False),
        ("union", True),
        *(
            pytest.param(*which, marks=pytest.mark.long)
            for which in (("query", True), ("item", False), ("item", True), ("union", False))
        ),
    ],
)
def test_heavy_queries_of_a_week_are_those_of_all_rows(week, cluster, saved, tmp_path):
    # A query with a quarter of a day, and of the week: it is kept by itself.
    heavy = week[0].assign(query="heavy", item=np.arange(len(week[0])), score=0.5)
    frames = [pd.concat([week[0], heavy]), *week[1:]]
    options = {"cluster": cluster, "correction": "cr3"}
    audits = [audit_of(frame, **options) for frame in frames]
    if saved:
        for k, audit in enumerate(audits):
            audit.save(tmp_path / f"{k}.nc", items=True)
        audits = [mpc.load(tmp_path / f"{k}.nc") for k in range(len(audits))]
    pooled, whole = mpc.pool(audits), audit_of(pd.concat(frames), **options)
    shares = whole.headline.largest_query_share
    assert float(shares.max()) > 0.2
    for part in ("headline", "curve"):
        ours, theirs = getattr(pooled, part), getattr(whole, part)
        assert json.loads(pooled.attrs["options"])["correction"] == "cr3"
        # Of the light queries three terms are summed; items are exact.
        tolerance = 1e-9 if cluster == "item" else 2e-4
        np.testing.assert_allclose(ours["std_error"], theirs["std_error"], rtol=tolerance)
        assert np.isfinite(theirs["std_error"]).any()


def test_a_pooled_week_is_one_audit_of_all_rows(week):
    rules = ("baseline", mpc.Boosted(0.05))
    pooled = mpc.pool([audit_of(frame, scoring_rules=rules) for frame in week])
    whole = audit_of(pd.concat(week), scoring_rules=rules)
    assert pooled.attrs["cluster"] == "union"
    assert_same(pooled, whole)


def test_saved_days_pool_as_they_do_with_their_rows(week, tmp_path):
    for k, frame in enumerate(week[:3]):
        audit_of(frame).save(tmp_path / f"{k}.nc", items=True, ids=True, key="secret")
    pooled = mpc.pool([mpc.load(tmp_path / f"{k}.nc") for k in range(3)])
    assert pooled.attrs["assumes"] == ""
    assert_same(pooled, audit_of(pd.concat(week[:3])))


def test_days_clustered_by_query_pool_without_their_items(week):
    with_rows = [audit_of(frame, cluster="query") for frame in week]
    pooled = mpc.pool(with_rows)
    whole = audit_of(pd.concat(week), cluster="query")
    drop = ["n_items"]
    for part in ("headline", "curve"):
        ours, theirs = getattr(pooled, part).drop_vars(drop), getattr(whole, part).drop_vars(drop)
        for name in ("std_error", "band_low") if part == "curve" else ("std_error", "p_adjusted"):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)


def test_a_query_of_two_days_is_found_when_ids_were_saved(week, tmp_path):
    for k, frame in enumerate([week[0], pd.concat([week[1], week[0].head(15)])]):
        audit_of(frame).save(tmp_path / f"{k}.nc", ids=True, key="secret")
    with pytest.raises(mpc.MpcError, match="Each query must be in one of the audits; got 1"):
        mpc.pool([mpc.load(tmp_path / f"{k}.nc") for k in range(2)])


def test_without_item_tables_the_pool_clusters_by_query_and_says_so(week, tmp_path):
    for k, frame in enumerate(week[:2]):
        audit_of(frame).save(tmp_path / f"{k}.nc")
    with pytest.warns(UserWarning, match="union variance"):
        pooled = mpc.pool([mpc.load(tmp_path / f"{k}.nc") for k in range(2)])
    assert pooled.attrs["cluster"] == "query"
    assert pooled.attrs["assumes"] == "distinct queries"
    assert "assumes distinct queries" in pooled.summary()
    assert "band_low" not in pooled.curve


def test_a_group_absent_on_a_day_counts_as_no_pairs(week):
    without = week[0][week[0].group != "b"]
    pooled = mpc.pool([audit_of(without), audit_of(week[1])])
    assert_same(pooled, audit_of(pd.concat([without, week[1]])))


def test_a_group_without_matched_pairs_has_no_threshold():
    def day_of(k):
        top = {"score": [2.0, 1.0] * 3, "outcome": [k, 0.0] * 3, "group": ["top", "low"] * 3}
        query = np.repeat(np.arange(3) + 10 * k, 2)
        return pd.DataFrame({"query": query, "item": np.arange(6), **top})

    how = {"threshold": mpc.Quantile(0.5), "epsilon": [0.5, 1.0]}
    pooled = mpc.pool([audit_of(day_of(k), **how) for k in range(2)])
    cell = pooled.headline.sel(group="top", scoring_rule="baseline")
    assert np.isnan(cell["epsilon"]).all()
    assert (cell["n_pairs"] == 0).all()


def test_a_group_not_asked_for_on_a_day_is_not_pooled(week):
    with pytest.warns(UserWarning, match="group 'b'"):
        pooled = mpc.pool([audit_of(week[0], groups=["a", "c"]), audit_of(week[1])])
    assert pooled.groups == ("a", "c")


def test_rules_that_differ_from_day_to_day_are_not_pooled(week):
    rules = ("baseline", "boosted", "calibrated")
    with pytest.warns(UserWarning, match="'boosted'.*'calibrated'"):
        pooled = mpc.pool([audit_of(frame, scoring_rules=rules) for frame in week[:2]])
    assert pooled.headline["scoring_rule"].values.tolist() == ["baseline"]
    assert len(json.loads(pooled.attrs["not_pooled"])) == 2


def test_the_headline_of_a_quantile_is_the_smallest_shared_threshold_with_enough_pairs(week):
    how = {"threshold": mpc.Quantile(0.05)}
    pooled = mpc.pool([audit_of(frame, **how) for frame in week])
    matched = pooled.headline.sel(pairing_mode="matched", scoring_rule="baseline")
    pairs = pooled.curve["n_pairs"].sel(pairing_mode="matched", scoring_rule="baseline")
    wanted = matched["n_pairs"] / matched["tie_inflation"]
    for group in pooled.groups:
        at = GRID.index(float(matched["epsilon"].sel(group=group)))
        assert pairs.sel(group=group)[at] >= wanted.sel(group=group)
        assert at == 0 or pairs.sel(group=group)[at - 1] < wanted.sel(group=group)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"level": 0.9}, "one level"), ({"epsilon": [0.02]}, "threshold of their grids in common")],
)
def test_audits_made_differently_are_refused(week, options, match):
    with pytest.raises(mpc.MpcError, match=match):
        mpc.pool([audit_of(week[0]), audit_of(week[1], **options)])


def test_one_log_is_not_pooled_with_itself(week, tmp_path):
    audit = audit_of(week[0])
    audit.save(tmp_path / "a.nc")
    with pytest.raises(mpc.MpcError, match="same rows"):
        mpc.pool([audit, mpc.load(tmp_path / "a.nc")])


def test_ids_need_a_key_and_items_need_items(week, tmp_path):
    with pytest.raises(mpc.MpcError, match="key="):
        audit_of(week[0]).save(tmp_path / "a.nc", ids=True)
    options = {name: column for name, column in COLUMNS.items() if name != "item"}
    without = mpc.audit(week[0], **options, progress=False)
    with pytest.raises(mpc.MpcError, match="item column"):
        without.save(tmp_path / "a.nc", items=True)
