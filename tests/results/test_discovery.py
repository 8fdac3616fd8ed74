"""Slices enumerated by hand, each audited alone; the greedy choice; messages; a planted slice."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

import discovery as benchmark
import mpc_lab as mpc
from helpers.drawn import rows, subtitle, title
from mpc_lab.inference.discovery import NetTests, choose_few
from mpc_lab.ranking import attributes as cutting
from mpc_lab.ranking.attributes import read_attributes

COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
NAMES = ["genre", "price", "new"]
CUT = {"quantiles": 2, "threshold": mpc.Quantile(0.1), "progress": False, **COLUMNS}


def shop(seed=0, queries=120, effect=0.0):
    """Return 160 items with a genre, a price that is missing at times, and a flag."""
    rng = np.random.default_rng(seed)
    genre, price, new = rng.integers(0, 3, 160), rng.lognormal(size=160), rng.random(160) < 0.5
    price[:20] = np.nan
    shock = 0.2 * rng.normal(size=160) + effect * ((genre == 1) & new)
    item = np.argsort(rng.random((queries, 160)), axis=1)[:, :15].ravel()
    score = rng.integers(0, 40, len(item)) / 32
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), 15),
            "item": item,
            "score": score,
            "outcome": score + shock[item] + 0.5 * rng.normal(size=len(item)),
            "genre": np.array(["a", "b", "c"])[genre[item]],
            "price": price[item],
            "new": new[item],
        }
    )


def levels_by_hand(frame):
    """Return the rows of each level, by attribute; the median is that of the rows with a price."""
    known = frame["price"].dropna()
    median = np.quantile(known, 0.5, method="inverted_cdf")
    place = pd.cut(frame["price"], [-np.inf, median, np.inf], labels=False).fillna(2)
    return {
        "genre": {f"genre = {g}": frame["genre"] == g for g in "abc"},
        "price": {k: place == k for k in range(3)},
        "new": {f"new = {flag}": frame["new"] == flag for flag in (False, True)},
    }


def slices_by_hand(frame):
    """Return the rows of all conjunctions of up to two levels of different attributes."""
    levels = levels_by_hand(frame)
    found = [rows for of_one in levels.values() for rows in of_one.values()]
    for one, other in itertools.combinations(levels.values(), 2):
        found += [a & b for a, b in itertools.product(one.values(), other.values())]
    return [rows.to_numpy() for rows in found]


@pytest.fixture(scope="module")
def frame():
    return shop()


@pytest.fixture(scope="module")
def found(frame):
    return mpc.discover(frame, NAMES, **CUT)


def test_each_slice_is_the_group_that_its_rows_make_alone(frame, found):
    everything = found.to_frame()
    numbers = ["estimate", "std_error", "ci_low", "ci_high", "p_value", "epsilon", "n_effective"]
    left = list(everything[numbers].to_numpy())
    for inside in slices_by_hand(frame):
        alone = mpc.audit(
            frame.assign(inside=inside),
            group=["inside"],
            pairing_modes=["symmetric"],
            threshold=mpc.Quantile(0.1),
            epsilon=[0.0],
            progress=False,
            **COLUMNS,
        ).to_frame()
        one = alone[alone["pairing_mode"] == "symmetric"][numbers].to_numpy()[0]
        same = [k for k, row in enumerate(left) if np.allclose(row, one, rtol=0, atol=1e-10)]
        if one[-1] >= 20:
            assert len(same) == 1
            left.pop(same[0])
        else:
            assert not same
    assert not left


def test_adjusted_values_follow_the_order_of_the_p_values(found):
    ordered = found.to_frame().sort_values("p_value")
    assert (np.diff(ordered["p_adjusted"]) >= 0).all()
    assert (ordered["p_adjusted"] >= ordered["p_value"]).all()
    holm = ordered["p_value"] * (len(ordered) - np.arange(len(ordered)))
    assert (ordered["p_adjusted"] <= np.minimum(np.maximum.accumulate(holm), 1) + 1e-12).all()
    assert ((ordered["p_adjusted"] <= 0.05) == ordered["found"]).all()


def by_hand(table):
    """Return a test by hand: the statistic of each slice by the set of those held fixed."""

    def test(chosen, tested):
        z = np.array([table[frozenset(chosen)].get(k, np.nan) for k in tested], dtype=float)
        p = np.where(np.isnan(z), np.nan, 2 * norm.sf(z))
        return NetTests(z, np.ones_like(z), z, p)

    return test


def test_the_choice_adds_the_most_significant_and_drops_what_is_not_needed():
    """Slice 0 is a level, 1 and 2 the two conjunctions in it that have a gap; 3 is bystander."""
    table = {
        frozenset(): {0: 9.0, 1: 7.0, 2: 6.0, 3: 1.0},
        frozenset({0}): {1: 4.0, 2: 3.5, 3: 0.5},
        frozenset({0, 1}): {2: 4.5, 3: 0.2},
        frozenset({0, 1, 2}): {3: 0.1},
        frozenset({1, 2}): {0: 0.3, 3: 0.1},
        frozenset({2}): {0: 5.0, 1: 7.0, 3: 0.1},
        frozenset({0, 2}): {1: 5.0, 3: 0.1},
    }
    assert choose_few(by_hand(table), [0, 1, 2], 4, 0.95) == [1, 2]


def test_the_choice_tests_all_slices_by_holm_and_not_only_those_found():
    table = {frozenset(): {0: 5.0}, frozenset({0}): {1: 2.6, 2: np.nan}}
    table[frozenset({0, 1})] = {2: 0.0}
    table[frozenset({1})] = {0: 5.0}
    # 2.6 has p = 0.0093: below 0.05/2, above 0.05/9.
    assert choose_few(by_hand(table), [0], 3, 0.95) == [0, 1]
    assert choose_few(by_hand(table), [0], 10, 0.95) == [0]
    assert choose_few(by_hand(table), [], 10, 0.95) == []


def test_a_slice_net_of_others_is_that_of_the_joint_regression(frame, found):
    """audit.partial with these groups alone is the same fit."""
    names = [0, 3, 5]
    net = found._net
    seen = net.test(names[:2], names[2:])
    members = found._audit.ranking
    groups = found.data["slice"].values[names].tolist()
    alone = mpc.audit(
        members, groups=groups, pairing_modes=["symmetric"], threshold=0.1, progress=False
    )
    both = alone.partial(width=net.width).to_frame().loc[groups[2]]
    assert seen.estimate[0] == pytest.approx(both["estimate_net"], abs=1e-10)
    assert seen.std_error[0] == pytest.approx(both["std_error_net"], abs=1e-10)
    assert seen.p_value[0] == pytest.approx(both["p_value_net"], abs=1e-10)


@pytest.fixture(scope="module")
def planted():
    frame = shop(seed=4, queries=150, effect=0.6)
    return mpc.discover(frame, NAMES, **CUT)


def test_a_planted_slice_is_found_with_neighbours_and_explains_them(planted):
    assert planted.found[0] == "genre = b & new = True"
    assert len(planted.found) > 1
    few = planted.minimal()
    assert few.index.tolist() == ["genre = b & new = True"]
    assert few["net_ci_low"].iloc[0] < 0.6 < few["net_ci_high"].iloc[0]
    assert "Call minimal()" not in repr(planted)
    assert "One slice explains what was found" in planted.summary()


def test_words_and_table_name_the_finding(planted):
    assert "'genre = b & new = True': `outcome` is" in str(planted)
    assert "slices of 'genre', 'price' and 'new' up to depth 2 were looked at" in str(planted)
    shown = planted._repr_html_()
    assert "genre = b &amp; new = True" in shown
    assert "explains others" in shown


def test_the_chart_shows_what_explains_strongly_and_the_rest_pale(planted):
    chart = mpc.charts.discover(planted)
    shown = rows(chart, "kind")
    assert [row["kind"] for row in shown][:2] == ["explains the others", "explained by these"]
    assert len(shown) == len(planted.found)
    assert title(chart).startswith(f"One slice explains the {len(planted.found)} that have a gap")
    few = mpc.charts.discover(planted, limit=1)
    assert f"The 1 most significant of {len(planted.found)} found" in subtitle(few)


def test_a_slice_that_only_the_joint_fit_shows_is_said_to_be_one():
    """Most new items are imitations, whose lower outcomes hide that new ones are higher."""
    rng = np.random.default_rng(0)
    new = rng.random(3000) < 0.5
    copied = rng.random(3000) < np.where(new, 0.75, 0.25)
    score = rng.random(3000)
    outcome = score - 0.6 * copied + 0.3 * new + 0.1 * rng.normal(size=3000)
    tags = np.where(copied, "copy|", "|").astype(object) + np.where(new, "new", "")
    log = {"query": np.repeat(np.arange(300), 10), "score": score, "outcome": outcome}
    columns = {name: name for name in log} | {"group": "tags", "group_sep": "|"}
    found = mpc.discover(log | {"tags": tags}, ["tags"], depth=1, progress=False, **columns)
    assert found.found == ("copy",)
    assert sorted(found.minimal().index) == ["copy", "new"]
    assert "'new' is not significant without the others held fixed." in found.summary()
    assert title(mpc.charts.discover(found)) == "One slice has a gap: 'copy'"


def test_honest_halves_share_no_query_and_test_only_what_the_first_found(frame):
    log = shop(seed=4, queries=300, effect=0.8)
    found = mpc.discover(log, NAMES, honest=True, **CUT)
    attrs = found.data.attrs
    assert attrs["n_queries_first"] == attrs["n_queries_second"] == 150
    assert 1 <= found.data.sizes["slice"] <= attrs["n_first"] < attrs["n_slices"]
    assert "genre = b" in found.found
    drawn = np.random.default_rng(0).permutation(300)
    second = log[np.isin(log["query"], drawn[150:])]
    inside = (second["genre"] == "b").to_numpy()
    alone = mpc.audit(
        second.assign(inside=inside),
        group=["inside"],
        pairing_modes=["symmetric"],
        threshold=mpc.Quantile(0.1),
        progress=False,
        **COLUMNS,
    ).headline
    one = found.data.sel(slice="genre = b")
    assert one["estimate"].item() == pytest.approx(alone["estimate"].values.ravel()[0], abs=1e-10)
    assert f"{found.data.sizes['slice']} were tested on the other 150" in str(found)


def test_levels_are_cut_without_outcomes_and_say_what_they_are():
    rng = np.random.default_rng(1)
    n = 400
    log = mpc.Ranking(
        {
            "query": np.repeat(np.arange(40), 10),
            "score": rng.random(n),
            "y": rng.random(n),
            "many": np.array([f"c{k}" for k in np.minimum(rng.geometric(0.2, n), 30)]),
            "few": rng.integers(0, 8, n),
            "number": np.round(rng.normal(size=n), 3),
            "gone": np.where(rng.random(n) < 0.3, None, "here"),
            "g": rng.random(n) < 0.5,
        },
        query="query",
        score="score",
        outcome="y",
        group=["g"],
    )
    many, few, number, gone = read_attributes(log, ["many", "few", "number", "gone"], 4)
    counts = pd.Series(log.column("many")).value_counts()
    assert many.levels[-1] == "many is any other"
    assert set(many.levels[:-1]) == {f"many = {label}" for label in counts.index[:7]}
    assert few.levels == tuple(f"few = {k}" for k in range(8))
    assert len(number.levels) == 4
    assert np.bincount(number.code).min() >= 95
    assert gone.levels == ("gone = here", "gone is missing")


def test_overlapping_groups_are_attributes_with_one_level_each():
    log = mpc.Ranking(
        {
            "query": np.repeat(np.arange(60), 10),
            "score": np.tile(np.arange(10) / 10, 60),
            "y": np.random.default_rng(0).normal(size=600),
            "tags": np.resize(["a|b", "a", "b", "", "a|c", "b", "c"], 600),
        },
        query="query",
        score="score",
        outcome="y",
        group="tags",
        group_sep="|",
    )
    found = mpc.discover(log, ["tags"], threshold=0.5, progress=False)
    assert set(found.data["slice"].values) == {"a", "b", "c", "a & b", "a & c"}


def test_without_groups_a_frame_of_any_kind_gives_the_same(frame, found):
    other = mpc.discover(pl.from_pandas(frame), NAMES, **CUT)
    pd.testing.assert_frame_equal(other.to_frame(), found.to_frame())


@pytest.mark.parametrize(
    ("attributes", "options", "message"),
    [
        (["genra"], {}, r"no column 'genra'.*mean 'genre'"),
        ([], {}, "attributes must name at least one column; got none"),
        (["genre", "genre"], {}, "attributes must be different columns"),
        (["genre"], {"depth": 0}, "depth must be a whole number of at least 1; got 0"),
        ({"one": np.ones(1800)}, {}, "Attribute 'one' must vary between rows"),
        ({"one": np.ones(3)}, {}, "must have one value for each of 1,800 rows"),
        (["genre"], {"quantiles": 9}, "quantiles must be a whole number from 2 to 8"),
        (["genre"], {"pairing_mode": "machted"}, "one of the pairing modes; .* mean 'matched'"),
        (["genre"], {"honest": 1}, "honest must be True or False"),
        (["genre"], {"quantile": 3}, "has no option 'quantile'. Did you mean 'quantiles'"),
        ([["genre"]], {}, r"attributes must be names of columns.*got \['genre'\] among them"),
        ({"odd": [{}] * 1800}, {}, "Attribute 'odd' must hold values that can be compared"),
        ([COLUMNS["outcome"]], {}, "An attribute must not be the outcome"),
        (["query"], {}, "must tell the items of a query apart; got 'query', the same in all"),
        ({"rare": np.arange(1800) < 3}, {}, "20 or more effective clusters .*; got none among 2"),
        ({"when": np.resize(np.array(["2026-01-01"], "M8[D]"), 1800)}, {}, "got dates"),
        ({f"a{k}": np.resize(np.arange(8), 1800) for k in range(30)}, {}, r"got 28,080\. Name"),
    ],
)
def test_a_bad_argument_is_named(frame, attributes, options, message):
    with pytest.raises(mpc.MpcError, match=message):
        mpc.discover(frame, attributes, progress=False, **{**COLUMNS, **options})


def test_a_log_that_cannot_be_searched_says_why(frame):
    with pytest.raises(mpc.MpcError, match="Outcomes must differ between rows; got 1 in every row"):
        mpc.discover(frame.assign(outcome=1.0), ["genre"], progress=False, **COLUMNS)
    audit = mpc.audit(frame, group="genre", progress=False, **COLUMNS)
    with pytest.raises(mpc.MpcError, match=r"got Audit\. Pass audit\.ranking"):
        mpc.discover(audit, ["genre"])
    alone = frame.assign(query=np.arange(len(frame)))
    with pytest.raises(mpc.MpcError, match="got none among 3 in 1,800 queries"):
        mpc.discover(alone, ["genre"], progress=False, **COLUMNS)


def test_too_many_slices_are_counted(frame, monkeypatch):
    monkeypatch.setattr(cutting, "MOST_SLICES", 5)
    message = r"at most 5 slices to look at; got 1\d\. Name fewer attributes.*or pass depth=1"
    with pytest.raises(mpc.MpcError, match=message):
        mpc.discover(frame, ["genre", "new"], **CUT)


def test_a_chart_of_something_else_is_refused(frame):
    with pytest.raises(mpc.MpcError, match=r"found must be what mpc.discover\(\) returned"):
        mpc.charts.discover(frame)


@pytest.mark.long
def test_null_logs_rarely_have_a_slice_and_planted_ones_come_down_to_it():
    """The full study is benchmarks/discovery.py."""
    null = [benchmark.seen({}, seed)[2] for seed in range(5)]
    planted = [benchmark.seen({"effect": benchmark.EFFECT}, seed) for seed in range(4)]
    assert np.mean(null) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 5)
    assert np.mean([one[2] for one in planted]) >= 0.75
    assert np.mean([one[3] for one in planted]) >= 0.75
