"""Differences of gaps against double sums over the stacked pairs, written apart from them."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.params import combined
from mpc_lab.engines.memory import MemorySource
from mpc_lab.inference import stacking
from mpc_lab.results.questions import difference
from mpc_lab.text import minus

EPSILON = 0.25
PLACES, APART = (1, 2, 3, 4, 6, 10, 20), (1, 2, 3, 5, 9)


def make_log(seed: int, queries: int = 40, size: int = 8, first: int = 0) -> pd.DataFrame:
    """A log full of ties, with shared items, two scores, weights, producers and places."""
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(first, first + queries):
        items = rng.choice(30, size=size, replace=False)
        places = rng.permutation(size) + 1
        weight = float(rng.integers(1, 4))
        for item, place in zip(items, places, strict=True):
            rows.append(
                {
                    "q": f"q{q}",
                    "item": f"i{item}",
                    "seller": f"s{item % 7}",
                    "score": rng.integers(0, 10) / 16,
                    "other": rng.integers(0, 10) / 16,
                    "y": float(rng.normal() + 0.3 * (item % 3)),
                    "g": "|".join(name for k, name in enumerate("abc") if (item >> k) & 1),
                    "place": int(place),
                    "w": weight,
                }
            )
    return pd.DataFrame(rows)


def audit_of(frame: pd.DataFrame, **more) -> mpc.Audit:
    columns = {"query": "q", "item": "item", "score": "score", "outcome": "y", "group": "g"}
    options = {
        "group_sep": "|",
        "scoring_rules": ["baseline", mpc.Column("other")],
        "threshold": EPSILON,
        "epsilon": [0.125, EPSILON],
        "progress": False,
    }
    return mpc.audit(frame, **(columns | options | more))


def pairs_of(frame, group, score, mode, *, estimand="pairs", weight=None, places=False):
    """Return the parts of an estimate: lists of (weight, d, query, item, other, key, cell)."""
    found = defaultdict(list)
    for _, of_query in frame.groupby("q", sort=False):
        rows = of_query.to_dict("records")
        inside = [group in row["g"].split("|") for row in rows]
        values = [row[score] for row in rows]
        here = []
        order = sorted(range(len(rows)), key=lambda k: (-values[k], k))
        next_to = set(itertools.pairwise(order)) | set(itertools.pairwise(order[::-1]))
        for i, j in itertools.product(range(len(rows)), repeat=2):
            if not inside[i] or inside[j]:
                continue
            gap = values[j] - values[i]
            sides = {
                "matched": [(0, 1.0)] if 0 <= gap <= EPSILON else [],
                "mirrored": [(0, 1.0)] if 0 <= -gap <= EPSILON else [],
                "adjacent": [(0, 1.0)] if abs(gap) <= EPSILON and (i, j) in next_to else [],
            }.get(mode)
            cell = 0
            if mode == "symmetric" and abs(gap) <= EPSILON:
                sides = [(0, 0.5), (1, 0.5)] if gap == 0 else [(0 if gap > 0 else 1, 1.0)]
                if places:
                    mine, its = rows[i]["place"], rows[j]["place"]
                    upper, apart = min(mine, its), abs(mine - its)
                    cell = (
                        max(k for k, p in enumerate(PLACES) if p <= upper),
                        max(k for k, p in enumerate(APART) if p <= apart),
                    )
                    sides = [(0 if mine > its else 1, 1.0)]
            for side, times in sides or []:
                here.append((side, times, i, j, cell))
        n = len({(i, j) for _, _, i, j, _ in here})
        share = {"pairs": 1.0, "queries": 1 / max(n, 1), "root": max(n, 1) ** -0.5}[estimand]
        for side, times, i, j, cell in here:
            one, other = rows[i], rows[j]
            w = times * share * (one[weight] if weight else 1.0)
            key = (one["q"], *sorted((one["item"], other["item"])))
            found[side].append((w, one["y"] - other["y"], one, other, key, cell))
    return [found[side] for side in sorted(found)]


def contributions(parts, owner="item", sign=1.0):
    """Return the estimate and a list (z, share, part, query, owners, key) over its pairs."""
    cells = {cell for part in parts for *_, cell in part}
    mass = {
        (x, cell): sum(p[0] for p in part if p[5] == cell)
        for x, part in enumerate(parts)
        for cell in cells
    }
    number = {
        (x, cell): sum(1 for p in part if p[5] == cell)
        for x, part in enumerate(parts)
        for cell in cells
    }
    if cells == {0}:
        omega = {0: 1.0}
    else:
        omega = {
            cell: mass[0, cell] * mass[1, cell] / (mass[0, cell] + mass[1, cell])
            for cell in cells
            if len(parts) == 2 and min(number[0, cell], number[1, cell]) >= 2
        }
    total = sum(omega.values())
    value, found = 0.0, []
    for x, part in enumerate(parts):
        for cell, weight in omega.items():
            here = [p for p in part if p[5] == cell]
            mean = sum(p[0] * p[1] for p in here) / mass[x, cell]
            value += weight / total * mean / len(parts)
            for w, d, one, other, key, _ in here:
                share = weight / total * w / mass[x, cell]
                z = sign * share * (d - mean) / len(parts)
                owners = frozenset((one[owner], other[owner]))
                found.append((z, share, (sign, x), one["q"], owners, key))
    return value, found


def variances(stacked) -> dict[str, float]:
    """Double sums over all pairs of pairs that share a query, an item, or either."""
    z = np.array([row[0] for row in stacked])
    query = pd.factorize(np.array([row[3] for row in stacked]))[0]
    one = [min(row[4]) for row in stacked]
    other = [max(row[4]) for row in stacked]
    codes = pd.factorize(np.array(one + other))[0]
    i, j = codes[: len(z)], codes[len(z) :]
    products = np.outer(z, z)
    same_query = query[:, None] == query
    same_item = (i[:, None] == i) | (i[:, None] == j) | (j[:, None] == i) | (j[:, None] == j)
    return {
        "query": products[same_query].sum(),
        "item": products[same_item].sum(),
        "union": products[same_query | same_item].sum(),
    }


def corrected(stacked, keys) -> float:
    """Σ over clusters of the parts' sums, each divided by 1 less its share, added and squared."""
    sums, share = defaultdict(float), defaultdict(float)
    for row in stacked:
        for key in keys(row):
            sums[key, row[2]] += row[0]
            share[key, row[2]] += row[1]
    total = defaultdict(float)
    for (key, part), value in sums.items():
        total[key] += value / (1 - share[key, part])
    return sum(value**2 for value in total.values())


def check_against_brute_force(found, group, mode, new, old, owner="item"):
    """Hold a difference against the double sum, for both corrections and all clusters."""
    value_new, stacked = contributions(new, owner)
    value_old, more = contributions(old, owner, -1.0)
    stacked += more
    cell = found.data.sel(group=group, pairing_mode=mode)
    assert float(cell["difference"]) == pytest.approx(value_new - value_old, abs=1e-10)
    plain = variances(stacked)
    attrs = found.attrs
    G = float(cell["n_effective"])
    n_queries = len({row[3] for row in stacked})
    if attrs["correction"] == "plain":
        want = {
            "query": plain["query"] * n_queries / (n_queries - 1),
            "item": plain["item"] * G / (G - 1),
            "union": max(plain.values()) * G / (G - 1),
        }
    else:
        query = corrected(stacked, lambda row: [row[3]])
        both = plain["query"] + plain["item"] - plain["union"]
        items = corrected(stacked, lambda row: row[4])
        dyads = defaultdict(float)
        for row in stacked:
            if len(row[4]) == 2:
                dyads[row[4]] += row[0]
        item = items - sum(value**2 for value in dyads.values())
        union = item + query - both
        want = {
            "query": query * (n_queries - 1) / n_queries,
            "item": item,
            "union": max(query, item, union),
        }
    cluster = attrs["cluster"].replace("producer", "item")
    assert float(cell["std_error"]) ** 2 == pytest.approx(want[cluster], rel=1e-10)


MODES = ["matched", "mirrored", "adjacent", "symmetric"]


@pytest.mark.parametrize(
    ("cluster", "correction"), combined(["query", "item", "union"], ["plain", "cr3"])
)
def test_two_rules_equal_the_double_sum(cluster, correction):
    frame = make_log(1)
    audit = audit_of(frame, cluster=cluster, correction=correction, pairing_modes=MODES)
    found = audit.difference("other", "baseline")
    for group, mode in itertools.product("abc", MODES):
        two = [pairs_of(frame, group, score, mode) for score in ("other", "score")]
        check_against_brute_force(found, group, mode, *two)


@pytest.mark.parametrize(
    ("columns", "how"),
    [
        ({"weight": "w"}, {"weight": "w"}),
        ({"weight": "w", "estimand": "queries"}, {"weight": "w", "estimand": "queries"}),
        ({"estimand": "root"}, {"estimand": "root"}),
    ],
)
def test_weights_and_estimands_equal_the_double_sum(columns, how):
    frame = make_log(2)
    audit = audit_of(frame, pairing_modes=["matched", "symmetric"], **columns)
    found = audit.difference("other", "baseline")
    for group, mode in itertools.product("abc", ["matched", "symmetric"]):
        two = [pairs_of(frame, group, score, mode, **how) for score in ("other", "score")]
        check_against_brute_force(found, group, mode, *two)


@pytest.mark.parametrize("cluster", ["union", "producer"])
def test_producers_equal_the_double_sum(cluster):
    frame = make_log(3, queries=60)
    audit = audit_of(frame, producer="seller", cluster=cluster)
    found = audit.difference("other", "baseline")
    for group in "abc":
        two = [pairs_of(frame, group, score, "matched") for score in ("other", "score")]
        check_against_brute_force(found, group, "matched", *two, owner="seller")


@pytest.mark.parametrize("correction", ["plain", "cr3"])
def test_cells_of_places_equal_the_double_sum(correction):
    frame = make_log(4, queries=60)
    audit = audit_of(frame, position="place", pairing_modes=["symmetric"], correction=correction)
    found = audit.difference("other", "baseline")
    for group in "abc":
        two = [pairs_of(frame, group, s, "symmetric", places=True) for s in ("other", "score")]
        check_against_brute_force(found, group, "symmetric", *two)


def test_two_groups_equal_the_double_sum():
    frame = make_log(5)
    found = audit_of(frame, pairing_modes=MODES).difference(groups=("a", "b"))
    for mode in MODES:
        two = [pairs_of(frame, group, "score", mode) for group in "ab"]
        check_against_brute_force(found, "a − b", mode, *two)


def test_two_modes_equal_the_double_sum():
    frame = make_log(6)
    found = audit_of(frame, pairing_modes=MODES).difference(modes=("matched", "mirrored"))
    for group in "abc":
        two = [pairs_of(frame, group, "score", mode) for mode in ("matched", "mirrored")]
        check_against_brute_force(found, group, "matched − mirrored", *two)


@pytest.mark.parametrize("first", [0, 20, pytest.param(100, marks=pytest.mark.long)])
def test_two_audits_with_some_queries_in_common_equal_the_double_sum(first):
    frames = [make_log(7), make_log(8, first=first)]
    found = mpc.difference(*(audit_of(frame, pairing_modes=MODES) for frame in frames))
    for group, mode in itertools.product("abc", MODES):
        two = [pairs_of(frame, group, "score", mode) for frame in frames]
        check_against_brute_force(found, group, mode, *two)


def saved(audit, path, **how):
    audit.save(path, **how)
    return mpc.load(path)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"producer": "seller", "cluster": "producer", "correction": "plain"},
        pytest.param({"weight": "w"}, marks=pytest.mark.long),
        pytest.param({"weight": "w", "estimand": "root"}, marks=pytest.mark.long),
    ],
)
def test_saved_audits_of_other_queries_equal_those_with_rows(tmp_path, more):
    frames = [make_log(9), make_log(10, first=100)]
    audits = [audit_of(frame, pairing_modes=MODES, **more) for frame in frames]
    kept = [
        saved(audit, tmp_path / f"{k}.nc", items=True, ids=True, key="k")
        for k, audit in enumerate(audits)
    ]
    rows, sums = mpc.difference(*audits), mpc.difference(*kept)
    assert sums.attrs["from"] == "sums"
    assert sums.attrs["assumes"] == ""
    assert sums.attrs["cluster"] == more.get("cluster", "union")
    names = ["difference", "std_error", "dof", "ci_low", "p_adjusted", "sum_std_error", "sum_dof"]
    for name in names:
        np.testing.assert_allclose(sums.data[name], rows.data[name], rtol=1e-9, atol=1e-12)


def test_saved_audits_without_items_have_query_variance_and_say_so(tmp_path):
    frames = [make_log(9), make_log(10, first=100)]
    kept = [saved(audit_of(f), tmp_path / f"{k}.nc") for k, f in enumerate(frames)]
    sums = mpc.difference(*kept)
    rows = mpc.difference(*(audit_of(frame, cluster="query") for frame in frames))
    assert sums.attrs["cluster"] == "query"
    assert sums.attrs["assumes"] == "distinct queries"
    assert "items=True" in sums.summary()
    assert "no query is in both" in sums.summary()
    for name in ("difference", "std_error", "dof"):
        np.testing.assert_allclose(sums.data[name], rows.data[name], rtol=1e-9)


def test_a_sentence_names_what_is_compared():
    audit = audit_of(make_log(6), pairing_modes=MODES)
    groups = audit.difference(groups=("a", "b"))
    cell = groups.data.sel(group="a − b", pairing_mode="matched")
    old, new = (cell[side].item() for side in ("old", "new"))
    assert minus(f"; {old:.3f} for group 'b', {new:.3f} for group 'a'.") in groups.summary()
    assert " for mirrored pairs, " in audit.difference(modes=("matched", "mirrored")).summary()
    assert " for rule 'baseline', " in audit.difference("other").summary()


def test_queries_that_only_one_log_has_are_counted_in_words():
    audits = [audit_of(make_log(k, first=first)) for k, first in ((7, 0), (8, 39), (8, 100))]
    assert "1 query is in both logs." in mpc.difference(*audits[:2]).attrs["notes"]
    assert "no query is in both logs." in mpc.difference(audits[0], audits[2]).attrs["notes"]


def test_groups_that_only_one_audit_has_are_named():
    frame = make_log(7)
    audits = [audit_of(frame, groups=groups) for groups in (["a", "b"], ["b", "c"])]
    found = mpc.difference(*audits)
    assert found.groups == ("b",)
    assert "Not compared, for only one audit has them: 'a' and 'c'." in found.summary()
    later = [audit_of(make_log(8, first=100), groups=["b"]), audits[0]]
    said = mpc.trend(later).summary()
    assert "Not followed, since not all periods have it: 'a'." in said
    assert "Not compared" not in said


def test_a_saved_audit_has_its_own_differences_where_it_kept_its_queries(tmp_path):
    audit = audit_of(make_log(12), pairing_modes=MODES, cluster="query")
    kept = saved(audit, tmp_path / "kept.nc", queries=True, key="k")
    names = ["difference", "std_error", "dof", "ci_low", "p_adjusted", "sum_std_error"]
    for asked in ({"rule": "other"}, {"groups": ("a", "b")}, {"modes": ("matched", "symmetric")}):
        rows, queries = (one.difference(**asked).data[names] for one in (audit, kept))
        xr.testing.assert_allclose(queries, rows, rtol=1e-9, atol=1e-12)
    with pytest.raises(mpc.MpcError, match="or save with queries=True and a key"):
        saved(audit, tmp_path / "plain.nc").difference("other")


def is_nothing(found) -> bool:
    """Whether a difference is 0, its standard error too, and its verdict says so."""
    zero = (found.data["difference"] == 0) & (found.data["std_error"] == 0)
    same = (found.data["p_value"] == 1) & (found.data["verdict"] == "no difference")
    return bool((zero & same).all())


def test_an_audit_and_its_own_file_have_no_difference(tmp_path):
    audit = audit_of(make_log(11), pairing_modes=MODES)
    loaded, again = (saved(audit, tmp_path / f"{k}.nc", items=True) for k in range(2))
    for new, old in [(audit, loaded), (loaded, audit), (loaded, again)]:
        found = mpc.difference(new, old)
        assert is_nothing(found)
        assert found.attrs["notes"] == ""
        assert found.gate()[0] == 0


def test_an_audit_lends_its_rows_to_another_one_of_its_log(tmp_path):
    frame = make_log(11)
    new, old = audit_of(frame), audit_of(frame, threshold=0.125)
    rows = mpc.difference(new, old).data
    for two in [(new, saved(old, tmp_path / "old.nc")), (saved(new, tmp_path / "new.nc"), old)]:
        xr.testing.assert_allclose(mpc.difference(*two).data, rows, rtol=1e-12)


def test_saved_audits_of_one_log_that_differ_are_refused(tmp_path):
    frame = make_log(11)
    two = [saved(audit_of(frame, threshold=e), tmp_path / f"{e}.nc") for e in (0.125, EPSILON)]
    with pytest.raises(mpc.MpcError, match="got the same rows"):
        mpc.difference(*two)


def test_an_audit_of_a_file_that_is_walked_and_its_own_file_have_no_difference(tmp_path):
    path = tmp_path / "log.parquet"
    make_log(11).to_parquet(path)
    audit, narrow = (audit_of(path, memory="1GB", threshold=e) for e in (EPSILON, 0.125))
    loaded, again = (saved(audit, tmp_path / f"{k}.nc") for k in range(2))
    assert is_nothing(mpc.difference(audit, loaded))
    assert is_nothing(mpc.difference(loaded, again))
    with pytest.raises(mpc.MpcError, match="got the same rows"):
        mpc.difference(saved(narrow, tmp_path / "narrow.nc"), loaded)


def test_saved_audits_of_the_same_queries_are_refused(tmp_path):
    frame = make_log(11)
    twice = [
        saved(audit_of(frame, score=score), tmp_path / f"{score}.nc", ids=True, key="k")
        for score in ("score", "other")
    ]
    with pytest.raises(mpc.MpcError, match="40 queries in both"):
        mpc.difference(*twice)


def test_saved_queries_give_the_query_variance_of_the_same_queries(tmp_path):
    frame = make_log(12)
    audits = [
        audit_of(frame, score=s, pairing_modes=MODES, cluster="query") for s in ("other", "score")
    ]
    kept = [
        saved(audit, tmp_path / f"{k}.nc", queries=True, key="k") for k, audit in enumerate(audits)
    ]
    rows, sums = mpc.difference(*audits), mpc.difference(*kept)
    assert sums.attrs["from"] == "queries"
    assert "Clustered by query" in sums.summary()
    for name in ("difference", "std_error", "dof", "sum_std_error"):
        np.testing.assert_allclose(sums.data[name], rows.data[name], rtol=1e-9)


def test_two_score_columns_equal_two_rules(tmp_path):
    frame = make_log(13)
    new, old = (
        audit_of(frame, score=score, scoring_rules=["baseline"]) for score in ("other", "score")
    )
    by_rule = audit_of(frame).difference("other", "baseline")
    by_audit = mpc.difference(new, old)
    rankings = tuple(
        mpc.Ranking(frame, query="q", item="item", score=s, outcome="y", group="g", group_sep="|")
        for s in ("other", "score")
    )
    loaded = [saved(a, tmp_path / f"{k}.nc") for k, a in enumerate((new, old))]
    by_rows = mpc.difference(*loaded, ranking=rankings)
    for name in ("difference", "std_error", "dof", "n_pairs_shared", "ndcg_change", "churn"):
        np.testing.assert_allclose(by_audit.data[name], by_rule.data[name], rtol=1e-10)
        np.testing.assert_allclose(by_rows.data[name], by_rule.data[name], rtol=1e-10)


def test_an_audit_against_itself_is_exactly_nothing(tmp_path):
    audit = audit_of(make_log(14), pairing_modes=MODES)
    for found in (
        mpc.difference(audit, audit),
        audit.difference("other", "other"),
        mpc.difference(*[saved(audit, tmp_path / "a.nc")] * 2),
    ):
        assert (found.data["difference"] == 0).all()
        assert (found.data["std_error"] == 0).all()
        assert (found.data["p_value"] == 1).all()
        assert (found.data["verdict"] == "no difference").all()
        assert found.no_worse()["no_worse"].all()
        assert found.gate()[0] == 0


def test_outcomes_that_are_all_alike_do_not_make_other_pairs_the_same():
    audit = audit_of(make_log(14).assign(y=1.0))
    found = audit.difference("other", "baseline")
    assert (found.data["verdict"] == "not estimable").all()
    assert "the same pairs" not in found.summary()
    assert found.gate()[0] == 2
    assert is_nothing(audit.difference("other", "other"))


def test_a_pool_less_one_of_its_own_logs_is_refused(tmp_path):
    frames = [make_log(9), make_log(10, first=100), make_log(11, first=200)]
    one, two, three = (audit_of(frame, cluster="query") for frame in frames)
    pooled = mpc.pool([one, two])
    for new, old in [(pooled, one), (saved(two, tmp_path / "2.nc"), pooled)]:
        with pytest.raises(mpc.MpcError, match="got the same rows"):
            mpc.difference(new, old)
    with pytest.raises(mpc.MpcError, match="got the same rows in '1' and '2'"):
        mpc.trend([pooled, two])
    more = mpc.pool([saved(pooled, tmp_path / "p.nc"), three])
    with pytest.raises(mpc.MpcError, match="got two of the same rows"):
        mpc.pool([more, one])
    assert mpc.difference(three, pooled).groups == one.groups


def test_a_less_b_is_minus_b_less_a():
    audit = audit_of(make_log(15), pairing_modes=MODES)
    one, other = audit.difference("other", "baseline"), audit.difference("baseline", "other")
    for name in ("std_error", "dof", "p_adjusted", "n_effective"):
        np.testing.assert_allclose(one.data[name], other.data[name], rtol=1e-12)
    np.testing.assert_allclose(one.data["difference"], -other.data["difference"], rtol=1e-12)
    np.testing.assert_allclose(one.data["ci_low"], -other.data["ci_high"], rtol=1e-12)


def test_query_variance_equals_stacked_least_squares_of_statsmodels():
    import statsmodels.api as sm

    frame = make_log(16)
    audit = audit_of(frame, cluster="query", correction="plain")
    found = audit.difference("other", "baseline").data.sel(pairing_mode="matched")
    for group in "abc":
        new, old = (pairs_of(frame, group, score, "matched")[0] for score in ("other", "score"))
        y = np.array([p[1] for p in new + old])
        is_new = np.repeat([1.0, 0.0], [len(new), len(old)])
        query = pd.factorize(np.array([p[2]["q"] for p in new + old]))[0]
        X = np.column_stack([np.ones(len(y)), is_new])
        fit = sm.OLS(y, X).fit(cov_type="cluster", cov_kwds={"groups": query}, use_t=True)
        n = len(y)
        plain = float(fit.bse[1]) / np.sqrt((n - 1) / (n - 2))
        cell = found.sel(group=group)
        assert float(cell["difference"]) == pytest.approx(float(fit.params[1]), abs=1e-10)
        assert float(cell["std_error"]) == pytest.approx(plain, rel=1e-10)


def test_one_side_alone_has_the_standard_error_of_the_headline():
    """A gap less that of a log whose outcomes are all 0 is the gap itself."""
    frame = make_log(17)
    flat = make_log(18, first=500).assign(y=0.0, item=lambda f: "z" + f["item"])
    for mode in MODES:
        new = audit_of(frame, pairing_modes=[mode])
        found = mpc.difference(new, audit_of(flat, pairing_modes=[mode])).data
        headline = new.headline.sel(scoring_rule="baseline")
        np.testing.assert_allclose(
            found["std_error"].values, headline["std_error"].values, rtol=1e-10
        )


def test_save_and_load_give_the_same_difference(tmp_path):
    found = audit_of(make_log(19), pairing_modes=["matched", "symmetric"]).difference("other")
    found.save(tmp_path / "d.nc")
    again = mpc.Difference.load(tmp_path / "d.nc")
    assert again.summary() == found.summary()
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    assert again.gate(0.1) == found.gate(0.1)


def test_a_difference_is_shown_with_its_groups_escaped():
    frame = make_log(20).assign(g=lambda f: f["g"].str.replace("a", "<b>"))
    shown = audit_of(frame).difference("other")._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_check_fails_where_the_new_gap_is_larger():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"q": np.repeat(np.arange(300), 10), "g": np.tile(list("ab"), 1500)})
    rows["score"], rows["good"] = rng.random(3000), 0.0
    rows["y"] = (rows["g"] == "a") * 1.0 + rng.normal(size=3000)
    rows["good"] = rows["y"] + 0.1 * rng.normal(size=3000)
    audit = mpc.audit(
        rows, query="q", score="good", outcome="y", group="g", threshold=0.1,
        scoring_rules=["baseline", mpc.Column("score")], progress=False,
    )  # fmt: skip
    worse = audit.difference("score", "baseline")
    with pytest.raises(mpc.AuditFailed, match="further from 0 than the old one") as failed:
        worse.check(no_worse_by=0.1)
    assert failed.value.groups == ("a", "b")
    audit.difference("baseline", "score").check(no_worse_by=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "must have two rules"),
        ({"rule": "othr"}, "no scoring rule 'othr'"),
        ({"groups": ("a",)}, "groups must be two names"),
        ({"groups": ("a", "z")}, "no group 'z'"),
        ({"modes": ("matched", "mirrored")}, "no pairing mode 'mirrored'"),
        ({"rule": "other", "base": "baseline", "groups": ("a", "b")}, "base must be left out"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    audit = audit_of(make_log(21, queries=10))
    with pytest.raises(mpc.MpcError, match=message):
        audit.difference(**arguments)


def test_audits_that_mean_other_things_are_refused():
    frame = make_log(22, queries=10)
    one = audit_of(frame, scoring_rules=["baseline"])
    with pytest.raises(mpc.MpcError, match="with two scoring rules; got one, 'baseline'"):
        one.difference("other")
    with pytest.raises(mpc.MpcError, match="must have a group in common; got none"):
        mpc.difference(one, audit_of(frame.assign(g="x"), scoring_rules=["baseline"]))
    with pytest.raises(mpc.MpcError, match="must have one contrast"):
        mpc.difference(audit_of(frame), audit_of(frame, contrast="sign"))
    money = frame.rename(columns={"y": "money"})
    with pytest.raises(mpc.MpcError, match="must have one outcome; got 'y' and 'money'"):
        mpc.difference(audit_of(frame), audit_of(money, outcome="money"))
    mpc.difference(audit_of(frame), audit_of(money, outcome="money", outcome_name="y"))
    with pytest.raises(mpc.MpcError, match="must be audits"):
        mpc.difference(audit_of(frame), 3)


# ---- with more pairs than are listed at once, which has to give the same

BOOSTED = {"scoring_rules": ["baseline", mpc.Boosted(0.1), "calibrated"]}


@pytest.fixture
def in_blocks(monkeypatch):
    """Make blocks of 50 pairs, and items of some hundred pairs at a time."""

    def ask(call):
        with monkeypatch.context() as patch:
            patch.setattr(difference, "LISTED_AT_ONCE", 0)
            patch.setattr(stacking, "PAIRS_IN_A_BLOCK", 50)
            patch.setattr(MemorySource, "pairs_at_once", 700)
            return call()

    return ask


def test_few_pairs_that_are_walked_in_one_block_equal_one_list(monkeypatch):
    audit = audit_of(make_log(30), pairing_modes=MODES)
    listed = audit.difference("other", "baseline")
    monkeypatch.setattr(difference, "LISTED_AT_ONCE", 0)
    assert_same(audit.difference("other", "baseline"), listed)


@pytest.mark.parametrize(
    "how",
    [
        {"pairing_modes": MODES},
        {"pairing_modes": MODES, "cluster": "query", "correction": "plain"},
        {"pairing_modes": ["symmetric", "matched"], "position": "place"},
        {"pairing_modes": ["matched", "symmetric"], "weight": "w", "producer": "seller"},
        {"pairing_modes": ["symmetric"], "estimand": "root", "cluster": "item"},
        {"closeness": "query_sd", "contrast": "sign"},
        {"unit": "half", "estimand": "queries"},
        {"unit": "half", "weight": "w", "outcome": "clicks"},
    ],
)
def test_two_rules_in_blocks_equal_one_list(in_blocks, how):
    frame = make_log(30)
    frame["clicks"] = np.maximum(frame["y"] - 1.0, 0.0)
    frame.loc[frame["q"] == "q3", "clicks"] = 0.0
    audit = audit_of(frame.assign(half=frame["q"].str[1:].astype(int) // 2), **how)

    def call():
        return audit.difference("other", "baseline")

    assert_same(in_blocks(call), call())


def test_groups_modes_and_boosts_in_blocks_equal_one_list(in_blocks):
    frame = make_log(31)
    audit = audit_of(frame, pairing_modes=MODES)
    boosted = audit_of(frame, **BOOSTED)
    for call in (
        lambda: audit.difference(groups=("a", "b")),
        lambda: audit.difference(modes=("matched", "symmetric")),
        lambda: boosted.difference("boosted(0.1)", "baseline"),
        lambda: boosted.difference("calibrated", "baseline"),
    ):
        assert_same(in_blocks(call), call())


def test_a_rule_less_itself_is_exactly_nothing_in_blocks(in_blocks):
    audit = audit_of(make_log(32), pairing_modes=MODES)
    found = in_blocks(lambda: audit.difference("other", "other"))
    assert (found.data["difference"] == 0).all()
    assert (found.data["std_error"] == 0).all()
    assert (found.data["verdict"] == "no difference").all()


def test_a_group_without_pairs_is_not_estimable_in_blocks(in_blocks):
    frame = make_log(33)
    frame.loc[frame.index[:1], "g"] = "rare"
    audit = audit_of(frame, threshold=0.0)

    def call():
        return audit.difference("other", "baseline")

    assert in_blocks(call).data["verdict"].sel(group="rare").item() == "not estimable"
    assert_same(in_blocks(call), call())


def assert_same(found, expected):
    assert set(found.data) >= set(expected.data)
    for name, values in expected.data.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found.data[name], values, rtol=1e-10, atol=1e-12)
        else:
            assert (found.data[name] == values).all(), name


@pytest.mark.needs_dask
def test_a_difference_is_saved_beside_a_dask_client(dask_client, tmp_path):
    audit = audit_of(make_log(23, queries=10))
    mpc.difference(audit, audit).save(tmp_path / "same.nc")
    assert mpc.Difference.load(tmp_path / "same.nc").groups == audit.groups
