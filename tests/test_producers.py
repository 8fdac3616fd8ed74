"""Pairs that share a producer move together: against double sums over pairs of pairs.

The oracle knows no producers. It knows pairs that have a label in common, and gets the producers
of the two items as these labels: a pair of two items of one producer has one label.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import oracle, sides_oracle
from helpers.agreeing import random_log
from helpers.strategies import GRID, STEP, calmly, logs
from mpc_lab.engines import running
from mpc_lab.pairing import items as sums_over_items
from mpc_lab.pairing import long_lists, sweep
from mpc_lab.results.assemble import headline_moments, infer
from mpc_lab.results.sums import moments_by_rule

MODES = ["matched", "mirrored", "adjacent", "symmetric"]
FAMILIES = ("naive", "query", "producer", "both", "union")
COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
SHORT = {"query": "q", "item": "i", "producer": "p", "score": "s", "outcome": "y", "group": "g"}
some, few = calmly(60), calmly(24)


def owners(log, producers):
    """Return the label of each row's producer; items that leave a rest of 1 have none."""
    return [f"item {item}" if item % 5 == 1 else f"p{item % producers}" for item in log.item]


def ranking_of(log, producers):
    frame = pd.DataFrame(
        {
            "query": log.query,
            "item": log.item,
            "score": log.score,
            "outcome": log.outcome,
            "groups": [sorted(member) for member in log.groups],
            "seller": [
                None if label.startswith("item") else label for label in owners(log, producers)
            ],
        }
    )
    names = dict(COLUMNS, group="groups", producer="seller")
    for name in ("unit", "position"):
        if getattr(log, name) is not None:
            frame[name] = getattr(log, name)
            names[name] = name
    return mpc.Ranking(frame, **names)


def audit_of(log, producers, epsilon=7 * STEP, **options):
    options = {"pairing_modes": MODES, "epsilon": GRID, "adjust": "none"} | options
    return mpc.audit(ranking_of(log, producers), threshold=epsilon, progress=False, **options)


def close(ours, theirs, tolerance=1e-10):
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)


def as_owners(log, producers):
    """Return the log as the oracle gets it: the producer of a row is what pairs have in common."""
    return replace(log, item=owners(log, producers))


def hold(found, at, log, group, mode, epsilon):
    """Hold the raw variances and the effective number of one cell against the double loops."""
    if mode == "symmetric":
        wanted = sides_oracle.sums(log, group, epsilon)
        if wanted is None:
            assert math.isnan(found.estimate[at])
            return
        raw, estimate = wanted.raw(log), wanted.estimate
        effective = wanted.effective(log, "union", items_recur=oracle.items_recur(log))
    else:
        kept = oracle.pairs(log, group, mode, epsilon)
        if not kept:
            assert math.isnan(found.estimate[at])
            return
        d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept], dtype=np.float64)
        u, n = (d - d.mean()) / len(d), len(d)
        in_query = oracle.same([log.cluster[i] for i, _ in kept])
        together = oracle.share_item(log, kept)
        raw = {
            "naive": u @ u,
            "query": u @ in_query @ u,
            "item": u @ together @ u,
            "both": u @ (together & in_query) @ u,
            "union": u @ (together | in_query) @ u,
        }
        estimate = d.mean()
        effective = float(oracle.effective([log.cluster[i] for i, _ in kept]))
        recur = {(label, log.cluster[i]) for i, j in kept for label in (log.item[i], log.item[j])}
        if len(recur) > len({label for label, _ in recur}):
            effective = min(effective, float(oracle.item_effective(log, kept)))
        assert n
    assert close(found.estimate[at], estimate)
    for name in FAMILIES:
        value = raw["item" if name == "producer" else name]
        assert close(found.variance_by[name][at], value), name
    if mode != "symmetric":
        assert close(found.n_effective[at], effective, 1e-9)


def hold_all(moments, log, producers):
    found = infer(moments, cluster="union", level=0.95)
    assert "item" not in found.variance_by
    theirs = as_owners(log, producers)
    for row, mode in enumerate(moments.mode_names):
        for g, group in enumerate(log.names):
            for k, epsilon in enumerate(moments.edges[g]):
                if moments.cells is not None and mode == "symmetric" and len(moments.edges[g]) > 1:
                    continue  # inside cells of places only the headline knows its variance
                hold(found, (row, g, k), theirs, group, mode, epsilon)


@some
@given(logs(), st.sampled_from([2, 4, 7]), st.sampled_from([0, STEP, 7 * STEP]))
def test_the_headline_is_that_of_the_double_loops(log, producers, epsilon):
    audit = audit_of(log, producers, epsilon)
    hold_all(headline_moments(audit)[0], log, producers)
    for g, group in enumerate(log.names):
        kept = oracle.pairs(log, group, "matched", epsilon)
        counted = audit.headline.n_items.sel(pairing_mode="matched").values[g, 0]
        assert counted == len({log.item[row] for pair in kept for row in pair})


@few
@given(logs(), st.sampled_from([2, 5]))
def test_the_curve_is_that_of_the_double_loops(log, producers):
    audit = audit_of(log, producers)
    _ = audit.curve
    hold_all(moments_by_rule(audit)[0], log, producers)


@few
@given(logs(), st.sampled_from([2, 5]))
def test_shares_of_the_keys_add_up(log, producers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_over_items, "PAIRS_AT_ONCE", 7)
        audit = audit_of(log, producers)
        hold_all(headline_moments(audit)[0], log, producers)


@few
@given(logs(positions=False), st.sampled_from([3, 5]))
def test_long_lists_see_a_pair_inside_a_producer_once(log, producers):
    """Windows take dyads as occurring once, which the variance over producers alone shows."""
    modes = ["matched", "mirrored"]
    listed = headline_moments(audit_of(log, producers, pairing_modes=modes))[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lists, "LEAST_PAIRS", 0)
        patch.setattr(long_lists, "PAIRS_PER_STEP", 0)
        patch.setattr(sweep, "PAIR_COST", 0.0)
        windows = headline_moments(audit_of(log, producers, pairing_modes=modes))[0]
    for name in ("item", "item_query"):
        for square in ("cc", "cu", "uu"):
            ours, theirs = (getattr(m.by[name], square) for m in (windows, listed))
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    for side in ("inside", "outside"):
        np.testing.assert_allclose(windows.squares[side], listed.squares[side])
    # Of dyads, those of two producers, each pair by itself.
    theirs = as_owners(log, producers)
    for row, mode in enumerate(listed.mode_names):
        for g, group in enumerate(log.names):
            kept = oracle.pairs(theirs, group, mode, 7 * STEP)
            apart = [p for p in kept if theirs.item[p[0]] != theirs.item[p[1]]]
            assert windows.by["dyad"].cc[row, g, 0] in (len(apart), listed.by["dyad"].cc[row, g, 0])


@some
@given(logs())
def test_one_item_a_producer_is_clustering_by_item(log):
    frame = ranking_of(log, 3).to_frame()
    frame["own"] = [f"seller of {item}" for item in frame["item"]]
    names = dict(COLUMNS, group="groups")
    names |= {name: name for name in ("unit", "position") if getattr(log, name) is not None}
    how = {"threshold": 7 * STEP, "pairing_modes": MODES, "epsilon": GRID, "progress": False}
    by_item = mpc.audit(frame, **names, **how)
    by_producer = mpc.audit(frame, **names, producer="own", **how)
    for name in by_item.headline.data_vars:
        ours, theirs = by_producer.headline[name], by_item.headline[name]
        if name == "std_error_by":
            same = theirs.sel(variance="item"), ours.sel(variance="producer")
            np.testing.assert_allclose(same[1], same[0], rtol=1e-12)
            ours, theirs = (one.sel(variance=["naive", "query", "union"]) for one in (ours, theirs))
        if name == "variance_from":
            theirs = theirs.where(theirs != "item", "producer")
        if name == "verdict_reason":
            # Too few producers are named as such; too few items are clusters.
            ours = ours.str.replace("effective producers", "effective clusters")
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15, err_msg=name)
        else:
            assert (ours.values == theirs.values).all(), name
    for name in ("estimate", "std_error", "band_low"):
        np.testing.assert_allclose(
            by_producer.curve[name], by_item.curve[name], rtol=1e-12, atol=1e-15
        )


@some
@given(logs(), st.sampled_from([2, 4]), st.sampled_from(["matched", "mirrored", "adjacent"]))
def test_listed_pairs_have_the_variances_of_the_sums(log, producers, mode):
    """What limit, slices, certificate and placebos rest on."""
    from mpc_lab.inference.clustered import cell_means, estimate_listed
    from mpc_lab.results.questions.pairs import open_cell

    audit = audit_of(log, producers)
    moments = headline_moments(audit)[0]
    found = infer(moments, cluster="union", level=0.95)
    row = moments.mode_names.index(mode)
    for g, group in enumerate(log.names):
        pairs = open_cell(audit, "test", group, "baseline", mode).pairs(mode, 7 * STEP)
        if not len(pairs.d):
            continue
        center = float(pairs.d.mean())
        listed = estimate_listed(pairs.d - center, center, pairs.codes(), cluster="union")
        one = np.zeros(len(pairs.d), dtype=np.int64)
        means = cell_means(one, pairs.codes(), pairs.d, 1, cluster="union").estimates
        for name in FAMILIES:
            wanted = found.variance_by[name][row, g, 0]
            assert close(float(listed.variance_by[name]), wanted), name
            assert close(float(means.variance_by[name][0]), wanted), name
        assert close(float(listed.n_effective), found.n_effective[row, g, 0], 1e-9)


@pytest.mark.parametrize("estimand", ["pairs", "queries", "root"])
def test_weighted_pairs_share_producers_too(estimand):
    frame = seller_log(heavy=True).assign(weight=lambda rows: 1.0 + rows["user"] % 4)
    frame["owner"] = frame["seller"].where(frame["seller"].notna(), frame["title"])
    how = HOW | {"threshold": 0.005, "weight": "weight", "estimand": estimand}
    found = infer(headline_moments(mpc.audit(frame, **how))[0], cluster="union", level=0.95)
    power = {"pairs": 0.0, "queries": 1.0, "root": 0.5}[estimand]
    for g, group in enumerate(HOW["group"]):
        both = frame[frame[group]].merge(frame[~frame[group]], on="query", suffixes=("", "_j"))
        distance = both["score_j"] - both["score"]
        kept = both[(distance >= 0) & (distance <= 0.005)]
        size = kept.groupby("query")["query"].transform("size")
        w = (kept["weight"] / size**power).to_numpy()
        d = (kept["outcome"] - kept["outcome_j"]).to_numpy(dtype=np.float64)
        u = w * (d - (w @ d) / w.sum()) / w.sum()
        one, other = (kept[name].to_numpy(dtype=object) for name in ("owner", "owner_j"))
        share = (one[:, None] == one) | (one[:, None] == other)
        share |= (other[:, None] == one) | (other[:, None] == other)
        in_query = kept["query"].to_numpy()[:, None] == kept["query"].to_numpy()
        related = {"producer": share, "query": in_query, "both": share & in_query}
        for name, table in related.items():
            assert close(found.variance_by[name][0, g, 0], u @ table @ u), name


# ---- engines


def seller_log(seed=1, *, heavy=False, queries=60):
    """Return a random log whose items belong to sellers, of some of whom nothing is known."""
    frame = random_log(seed, queries=queries)
    sellers = np.array([f"seller {k}" for k in range(9)], dtype=object)
    of_item = sellers[np.arange(40) % 9]
    of_item[::7] = None
    if heavy:
        of_item[:9] = "the large one"
    return frame.assign(seller=of_item[frame["item"]])


def assert_same(one, other):
    for name in ("estimate", "std_error", "n_effective", "share_items", "std_error_by"):
        np.testing.assert_allclose(
            other.headline[name], one.headline[name], rtol=1e-10, err_msg=name
        )
    for name in ("variance_from", "verdict", "n_items", "n_pairs"):
        assert (other.headline[name].values == one.headline[name].values).all(), name
    assert one.attrs["n_items"] == other.attrs["n_items"]


HOW = {
    "query": "query",
    "item": "title",
    "producer": "seller",
    "score": "score",
    "outcome": "outcome",
    "group": ["g0", "g1", "g2"],
    "progress": False,
    "epsilon": [0.002, 0.01],
}
WALKS = {
    "two sides": {"pairing_modes": ["matched", "symmetric"]},
    "places and units": {"position": "position", "unit": "user"},
    "rules, by producer": {
        "scoring_rules": ["baseline", "boosted", "calibrated"],
        "cluster": "producer",
        "groups": ["g0"],
    },
    "by item": {"cluster": "item"},
}


ENGINES = [
    pytest.param("duckdb"),
    pytest.param("dask", marks=pytest.mark.needs_dask),
    pytest.param("spark", marks=pytest.mark.needs_spark),
]
on_every_engine = pytest.mark.parametrize("walk", ENGINES, indirect=True)


@pytest.fixture
def walk(request, tmp_path, monkeypatch):
    """Return a function that audits a frame in several parts, on an engine."""
    monkeypatch.setattr(running, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(running, "_MOST_ROWS", 64)

    def audit(frame, **how):
        if request.param == "duckdb":
            frame.to_parquet(tmp_path / "log.parquet")
            return mpc.audit(tmp_path / "log.parquet", memory="1GB", **how)
        if request.param == "dask":
            import dask.dataframe as dd

            request.getfixturevalue("dask_client")
            return mpc.audit(dd.from_pandas(frame, npartitions=6), **how)
        texts = ("name", "label", "title", "country", "seller")
        plain = frame.astype(dict.fromkeys(texts, object))
        plain = plain.where(plain.notna(), None)
        spark = request.getfixturevalue("spark")
        return mpc.audit(spark.createDataFrame(plain).repartition(6), **how)

    audit.engine = request.param
    return audit


# Every pass of Spark is a job of a second or more; Dask takes the same steps.
RUNS = [
    pytest.param(*engine.values, how, id=f"{engine.values[0]}-{name}", marks=engine.marks)
    for engine in ENGINES
    for name, how in WALKS.items()
    if engine.values[0] != "spark" or name == "places and units"
]


@pytest.mark.parametrize(("walk", "how"), RUNS, indirect=["walk"])
def test_engines_agree_with_memory(walk, how):
    frame = seller_log(heavy=True)
    here = mpc.audit(frame, **HOW, **how)
    there = walk(frame, **HOW, **how)
    assert_same(here, there)
    if walk.engine != "spark":
        np.testing.assert_allclose(there.curve.std_error, here.curve.std_error, rtol=1e-10)
    owner = "item" if how.get("cluster") == "item" else "producer"
    assert np.isfinite(there.headline.std_error_by.sel(variance=owner)).any()
    other = {"item": "producer", "producer": "item"}[owner]
    assert np.isnan(there.headline.std_error_by.sel(variance=other)).all()


def test_duckdb_walks_many_chunks(tmp_path, monkeypatch):
    from mpc_lab.engines.duckdb import chunks, rows

    monkeypatch.setattr(rows, "_BATCH", 1024)
    seen = []
    append = chunks.Spool.append
    monkeypatch.setattr(chunks.Spool, "append", lambda *given: (seen.append(1), append(*given))[1])
    monkeypatch.setattr(running, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(running, "_MOST_ROWS", 64)
    frame = seller_log(heavy=True, queries=1600)  # DuckDB gives at least 2,048 rows at a time
    frame.to_parquet(tmp_path / "log.parquet")
    assert_same(mpc.audit(frame, **HOW), mpc.audit(tmp_path / "log.parquet", memory="1GB", **HOW))
    assert len(seen) >= 7


@pytest.mark.parametrize("saved", [False, True])
def test_a_pool_of_three_is_one_audit(tmp_path, saved):
    frame = seller_log(heavy=True)
    how = HOW | {"threshold": 0.01, "pairing_modes": ["matched", "symmetric"]}
    how |= {"correction": "plain"}  # the other is a series in a pool
    parts = [mpc.audit(frame[frame["query"] % 3 == k], **how) for k in range(3)]
    if saved:
        for k, part in enumerate(parts):
            part.save(tmp_path / f"{k}.nc", items=True)
        parts = [mpc.load(tmp_path / f"{k}.nc") for k in range(3)]
    with pytest.warns(UserWarning, match="the number of items: sums by producer do not hold it"):
        pooled = mpc.pool(parts)
    whole = mpc.audit(frame, **how)
    for name in ("estimate", "std_error", "n_effective"):
        np.testing.assert_allclose(pooled.headline[name], whole.headline[name], rtol=1e-10)
        np.testing.assert_allclose(pooled.curve[name], whole.curve[name], rtol=1e-10)
    assert (pooled.headline.variance_from.values == whole.headline.variance_from.values).all()


def test_audits_by_items_and_by_producers_are_not_pooled():
    frame = seller_log()
    half = frame["query"] % 2 == 0
    one = mpc.audit(frame[half], **HOW)
    other = mpc.audit(frame[~half], **{**HOW, "producer": None})
    with pytest.raises(mpc.MpcError, match="must have one owner"):
        mpc.pool([one, other])


# ---- what goes wrong


@on_every_engine
def test_an_item_with_two_producers_is_named(walk):
    frame = seller_log()
    row = int(np.flatnonzero(frame["title"] == "item 5")[-1])
    frame.loc[row, "seller"] = "somebody else"
    with pytest.raises(mpc.MpcError, match=r"one producer; got .* for item 'item 5'"):
        walk(frame, **HOW)


@on_every_engine
def test_an_item_with_a_producer_in_some_rows_alone_is_named(walk):
    frame = seller_log()
    row = int(np.flatnonzero(frame["title"] == "item 5")[-1])
    frame.loc[row, "seller"] = None
    with pytest.raises(mpc.MpcError, match=r"one producer; got .* for item 'item 5'"):
        walk(frame, **HOW)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"producer": "seler"}, "There is no column 'seler'.*'seller'"),
        ({"item": None}, "producer must be given together with item"),
        ({"producer": ["seller", "name"]}, "producer must be the name of one column"),
        ({"producer": None, "cluster": "producer"}, "must know the producers"),
        ({"cluster": "produce"}, "'producer'"),
    ],
)
def test_a_wrong_choice_is_explained(change, said):
    with pytest.raises(mpc.MpcError, match=said):
        mpc.audit(seller_log(), **{**HOW, **change})


@pytest.mark.parametrize(
    "values",
    [
        [1, 1, 2, 2],
        [1.0, 1.0, 2.0, 2.0],
        ["a", "a", "b", "b"],
        pd.array([1, 1, 2, 2], dtype="Int64"),
        pd.Categorical(["a", "a", "b", "b"]),
    ],
)
def test_producers_may_be_numbers_or_texts(values):
    frame = pd.DataFrame(
        {"q": [1, 1, 2, 2], "i": [1, 2, 3, 4], "y": 1.0, "s": 0.5, "g": list("abab")}
    )
    frame["p"] = values
    ranking = mpc.Ranking(frame, **SHORT)
    assert ranking.producer_code.tolist() == [0, 0, 1, 1]
    assert ranking.n_producers == 2
    assert "2 producers" in repr(ranking)
    assert ranking.producer_labels([0, 1]).tolist() == [values[0], values[2]]


@pytest.mark.parametrize("nothing", [None, "", "   ", float("nan")])
def test_a_missing_producer_is_the_item_itself(nothing):
    frame = pd.DataFrame(
        {
            "q": [1, 1, 2, 2],
            "i": [1, 2, 1, 3],
            "p": pd.Series([nothing, "a", nothing, nothing], dtype=object),
            "y": 1.0,
            "s": 0.5,
            "g": list("abab"),
        }
    )
    ranking = mpc.Ranking(frame, **SHORT)
    assert ranking.producer_code.tolist() == [1, 0, 1, 2]
    assert ranking.dropped == 0
    part = ranking.subset(np.array([True, False, False, True]))
    assert part.producer_code.tolist() == [0, 1]
    assert part.producer_labels([0]).tolist() == [None]
    assert mpc.Ranking(frame, **SHORT, missing="drop").n_rows == 4


def test_the_fingerprint_tells_producers_apart():
    frame = seller_log()
    names = {name: HOW[name] for name in ("query", "item", "score", "outcome", "group")}
    without = mpc.Ranking(frame, **names)
    with_them = mpc.Ranking(frame, **names, producer="seller")
    assert without.fingerprint() != with_them.fingerprint()
    again = mpc.audit(with_them, cluster="item", progress=False)
    assert again.ranking.fingerprint() == with_them.fingerprint()


# ---- what is said


def own_brand_log(queries=120, seed=0):
    """Return a log with an own brand of a third of the items, and 30 other sellers."""
    rng = np.random.default_rng(seed)
    item = np.concatenate([rng.permutation(60)[:8] for _ in range(queries)])
    seller = np.where(item < 20, "own brand", [f"seller {k}" for k in item % 30])
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), 8),
            "item": item,
            "seller": seller,
            "score": rng.random(len(item)).round(2),
            "outcome": rng.normal(size=len(item)),
            "group": np.where(item < 20, "own", np.where(item % 2, "odd", "even")),
        }
    )


BRANDS = dict(COLUMNS, group="group", threshold=0.1, progress=False)


def test_a_group_of_one_producer_is_not_estimable_and_the_summary_offers_a_way():
    frame = own_brand_log()
    audit = mpc.audit(frame, producer="seller", **BRANDS)
    cell = audit.headline.sel(group="own", pairing_mode="matched", scoring_rule="baseline")
    assert cell.verdict.item() == "not estimable"
    assert cell.verdict_reason.item() == "effective producers below 3"
    said = audit.summary()
    assert "fewer than 3 effective producers" in said
    assert 'for these producers as they are, use cluster="query"' in said
    assert "clustered by query and by producer (cluster 'union')" in said
    as_they_are = mpc.audit(frame, producer="seller", cluster="query", **BRANDS)
    assert (as_they_are.headline.verdict != "not estimable").all()


def test_few_queries_are_not_blamed_on_producers():
    frame = own_brand_log(queries=2)
    audit = mpc.audit(frame, producer="seller", **BRANDS)
    assert set(audit.headline.verdict_reason.values.ravel()) <= {
        "effective clusters below 3",
        "no pairs",
    }


def shocked_log(queries, seed=1):
    """Return a log whose sellers have shocks, and whose items belong to groups by seller."""
    rng = np.random.default_rng(seed)
    item = np.concatenate([rng.permutation(80)[:8] for _ in range(queries)])
    seller = item // 4
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), 8),
            "item": item,
            "seller": seller,
            "score": rng.random(len(item)).round(2),
            "outcome": rng.normal(size=20)[seller] + 0.1 * rng.normal(size=len(item)),
            "group": np.where(seller % 2, "odd", "even"),
        }
    )


def test_power_has_the_floor_by_producers():
    frame = shocked_log(200)
    by_item = mpc.audit(frame, **BRANDS)
    by_producer = mpc.audit(frame, producer="seller", **BRANDS)
    low, high = (a.power(effect=0.05).mde_floor.values for a in (by_item, by_producer))
    assert (high > 1.3 * low).all()
    # The floor is what producers have in common beyond single queries.
    own = headline_moments(by_producer)[0]
    found = infer(own, cluster="union", level=0.95)
    floor = np.maximum(0, found.variance_by["producer"] - found.variance_by["both"])
    assert (floor > 0).all()
    from mpc_lab.inference.verdicts import mde

    wanted = mde(np.sqrt(floor), found.dof, level=0.95, power=0.8, sides=2).max(axis=0)
    np.testing.assert_allclose(high[:, 0, 0], wanted[:, 0], rtol=1e-10)
    # More queries of the same sellers do not pass it.
    assert np.isinf(by_producer.power(effect=0.05).queries_needed).all()
    more = mpc.audit(shocked_log(2000), producer="seller", **BRANDS)
    assert (more.power().mde > 0.5 * high).all()


def test_the_ladder_has_a_rung_for_producers():
    audit = mpc.audit(shocked_log(60), producer="seller", **BRANDS)
    drawn = mpc.charts.ladder(audit).to_dict()
    text = str(drawn)
    assert "by producer" in text
    assert "by query and producer" in text
    domain = next(
        layer["encoding"]["color"]["scale"]["domain"]
        for layer in drawn["layer"]
        if "scale" in layer["encoding"].get("color", {})
    )
    assert domain == [
        "naive: pairs independent",
        "by query",
        "by producer",
        "by query and producer",
        "by query with CR3",
    ]


def test_questions_cluster_as_the_audit_does():
    frame = shocked_log(120).assign(country=lambda f: np.where(f["query"] % 2, "fr", "de"))
    how = dict(BRANDS, segment="country")
    by_item, by_producer = mpc.audit(frame, **how), mpc.audit(frame, producer="seller", **how)
    answers = {
        "limit": lambda audit: audit.limit("odd").std_error,
        "by_segment": lambda audit: audit.by_segment().std_error,
        "by_position": lambda audit: audit.by_position("odd").std_error,
        "boosts": lambda audit: audit.boost_curve("odd", alphas=[0.0]).std_error,
    }
    for name, ask in answers.items():
        ours, theirs = np.ravel(ask(by_producer).values), np.ravel(ask(by_item).values)
        known = np.isfinite(ours) & np.isfinite(theirs)
        assert (ours[known] > theirs[known]).mean() > 0.8, name
    # Asked to cluster by item, the same audit gives what it gives without producers.
    again = mpc.audit(frame, producer="seller", cluster="item", **how)
    plain = mpc.audit(frame, cluster="item", **how)
    for ask in answers.values():
        np.testing.assert_allclose(ask(again).values, ask(plain).values, rtol=1e-12)


def test_a_saved_audit_asks_its_questions_by_producer(tmp_path):
    frame = shocked_log(120)
    audit = mpc.audit(frame, producer="seller", **BRANDS)
    audit.save(tmp_path / "a.nc")
    names = {name: BRANDS[name] for name in (*COLUMNS, "group")}
    again = mpc.load(tmp_path / "a.nc", ranking=mpc.Ranking(frame, producer="seller", **names))
    assert again.limit("odd").std_error.values == audit.limit("odd").std_error.values
    assert again.headline.equals(audit.headline)
    np.testing.assert_allclose(again.power().mde_floor, audit.power().mde_floor, rtol=1e-12)


def test_guessing_leaves_the_group_its_column():
    from mpc_lab.ranking.names import guess_columns

    base = {"query": [1, 1, 2, 2], "item": [1, 2, 3, 1], "score": [0.1, 0.2, 0.3, 0.4]}
    base["clicked"] = [0, 1, 0, 1]
    sellers = ["a", "b", "b", "a"]
    guessed = guess_columns({**base, "seller": sellers})
    assert (guessed["group"], guessed["producer"]) == ("seller", None)
    guessed = guess_columns({**base, "seller": sellers, "genre": ["x", "y", "x", "x"]})
    assert (guessed["group"], guessed["producer"]) == ("genre", "seller")
    # One that varies for an item is no producer of it.
    guessed = guess_columns({**base, "author": ["a", "b", "b", "c"], "genre": list("xyxx")})
    assert guessed["producer"] is None


def test_the_command_line_and_a_config_take_a_producer(tmp_path, capsys):
    from mpc_lab.cli import main

    shocked_log(60).to_csv(tmp_path / "log.csv", index=False)
    line = ["audit", str(tmp_path / "log.csv"), "--query", "query", "--item", "item"]
    line += ["--score", "score", "--outcome", "outcome", "--group", "group", "--threshold", "0.1"]
    assert main([*line, "--producer", "seller"]) == 0
    assert "by query and by producer" in capsys.readouterr().out
    (tmp_path / "audit.toml").write_text('producer = "seller"\n', encoding="utf-8")
    assert main([*line, "--config", str(tmp_path / "audit.toml")]) == 0
    assert "by query and by producer" in capsys.readouterr().out


def test_the_start_panel_knows_what_is_wrong_with_producers():
    from mpc_lab.explorers.problems import find_problems

    frame = shocked_log(20)
    names = {name: BRANDS[name] for name in (*COLUMNS, "group")} | {"producer": "seller"}
    assert not [p for p in find_problems(frame, names) if p.role == "producer"]
    frame["seller"] = frame["seller"].astype(object).where(frame["item"] != 7, None)
    assert not [p for p in find_problems(frame, names) if p.role == "producer"]
    frame.loc[np.flatnonzero(frame["item"] == 9)[-1], "seller"] = "another"
    (found,) = [p for p in find_problems(frame, names) if p.role == "producer"]
    assert "differs for one item" in found.sentence
    assert "item 9" in found.values[0]
    alone = {role: name for role, name in names.items() if role != "item"}
    (found,) = [p for p in find_problems(frame, alone) if p.role == "producer"]
    assert "choose the item too" in found.sentence
