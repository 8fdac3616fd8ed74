"""Audits on other terms against double loops, and what terms do not change."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import mpc_lab as mpc
from helpers import oracle, terms_oracle
from helpers.params import combined
from helpers.terms_oracle import draw_log, frame_of
from mpc_lab.pairing import sweep
from mpc_lab.pairing.log import percentiles, sort_rows, spread_of_queries

MODES = ["matched", "mirrored", "adjacent"]
TERMS = {
    "query_sd": {"closeness": "query_sd"},
    "percentile": {"closeness": "percentile"},
    "against": {"against": "b"},
    "sign": {"contrast": "sign"},
    "cap": {"outcome_cap": 3.0},
    "all": {"closeness": "query_sd", "against": "c", "contrast": "sign"},
    "capped ranks": {"closeness": "percentile", "against": "b", "outcome_cap": 2.0},
}
COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
COUNTS = ("n_pairs", "n_queries", "n_items")
NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "n_effective", "dof")


def ranking_of(log):
    position = {} if log.position is None else {"position": "position"}
    return mpc.Ranking(frame_of(log), **COLUMNS, **position, group=log.names)


def audit_of(log, **options):
    how = {"pairing_modes": MODES, "adjust": "none", "progress": False, **options}
    return mpc.audit(ranking_of(log), **how)


def split(terms):
    """Return what says which pairs there are, and what says how they count."""
    which = {name: terms[name] for name in ("closeness", "against") if name in terms}
    how = {"contrast": terms.get("contrast", "difference"), "cap": terms.get("outcome_cap", np.inf)}
    return which, how


def hold(found, cell):
    for name in COUNTS:
        assert int(found[name]) == getattr(cell, name), name
    for name in NUMBERS:
        if not cell.estimable and name in ("n_effective", "dof"):
            continue
        ours, theirs = float(found[name]), getattr(cell, name)
        same = math.isnan(ours) and math.isnan(theirs)
        assert same or math.isclose(ours, theirs, rel_tol=1e-10, abs_tol=1e-10), name


def hold_all(audits, log, rules, wanted, grid, terms):
    """Hold audits that differ in their clusters alone: the loops over their pairs are shared."""
    which, how = split(terms)
    groups = next(iter(audits.values())).groups
    # To pick a cell out of some variables takes a tenth of the time that it takes out of all.
    headlines = {of: audit.headline[["epsilon", *COUNTS, *NUMBERS]] for of, audit in audits.items()}
    curves = {of: audit.curve[[*COUNTS, *NUMBERS]] for of, audit in audits.items()}
    for group, rule, mode in itertools.product(groups, rules, MODES):
        scores = rules[rule](group)
        epsilon = terms_oracle.threshold(log, group, wanted, scores=scores, **which)
        cell = {"group": group, "scoring_rule": rule, "pairing_mode": mode}
        every = terms_oracle.pairs(log, group, mode, scores=scores, **which)
        for at in (epsilon, *grid):
            kept = terms_oracle.within(every, at, **which)
            sums = terms_oracle.sums(log, kept, **how)
            for cluster in audits:
                own = headlines[cluster].sel(cell)
                assert np.isclose(own.epsilon, epsilon, rtol=1e-9, equal_nan=True)
                found = own if at is epsilon else curves[cluster].sel({**cell, "epsilon": at})
                hold(found, oracle.cell(sums, cluster))


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.long) for k in (0, 2, 3))])
def test_every_cell_is_what_double_loops_find(terms, seed):
    log = draw_log(seed, position=seed % 2 == 1)
    ranking = ranking_of(log)
    grid, boosts = [0.0, 0.123, 0.7531, 2.345], (mpc.Boosted(0.37), mpc.Demoted(0.21))
    how = {"threshold": mpc.Quantile(0.3), "epsilon": grid, **terms}
    rules = ["baseline", *boosts]
    audits = {
        cluster: audit_of(log, cluster=cluster, scoring_rules=rules, **how)
        for cluster in ("query", "union")
    }
    scores = {"baseline": lambda group: None}
    for rule in boosts:
        scores[rule.label] = lambda group, rule=rule: rule.scores(ranking, group).tolist()
    hold_all(audits, log, scores, ("quantile", 0.3), grid, terms)


def test_percentiles_are_half_way_between_ranks_and_ties_share_theirs():
    starts = np.array([0, 4, 4, 7])
    found = percentiles(starts, np.array([1.0, 2.0, 2.0, 5.0, -3.0, 0.0, 8.0]))
    assert np.allclose(found, [1 / 8, 4 / 8, 4 / 8, 7 / 8, 1 / 6, 3 / 6, 5 / 6], atol=1e-14)


@pytest.mark.parametrize("n", [3, 7, 20, 100, 1000, 99_991])
def test_as_many_ranks_apart_is_the_same_distance(n):
    found = percentiles(np.array([0, n]), np.arange(n, dtype=np.float64))
    assert len(np.unique(np.diff(found))) == 1
    # Never above k/n, so that a threshold of k/n holds all pairs that are k ranks apart.
    assert 0 <= 1 / n - np.diff(found)[0] < 1e-9 / n
    assert (found[2] - found[0]) <= 2 / n


def test_the_spread_of_a_query_is_its_population_standard_deviation():
    rng = np.random.default_rng(0)
    starts = np.array([0, 5, 5, 6, 300])
    score = np.sort(1e6 + rng.normal(size=300))
    found = spread_of_queries(starts, score)
    assert np.allclose(found[[0, 3]], [np.std(score[:5]), np.std(score[6:])], rtol=1e-9)
    assert found[1] == found[2] == 0


@pytest.mark.parametrize("score", [np.full(4, 0.1), np.array([0, 5e-324, 5e-324, 1e-323])])
def test_only_one_distinct_score_has_no_spread(score):
    spread = spread_of_queries(np.array([0, 4]), score)[0]
    assert (spread > 0) == (len(np.unique(score)) > 1)


@pytest.mark.parametrize("closeness", ["query_sd", "percentile"])
def test_the_order_inside_a_query_does_not_change(closeness):
    log = draw_log(5)
    ranking = ranking_of(log)
    plain, other = (
        mpc.audit(ranking, closeness=how, progress=False, threshold=1e9, epsilon=[1e9])
        for how in ("score", closeness)
    )
    spread = {q for q in log.query if len({log.score[row] for row in log.rows_of(q)}) > 1}
    frame = plain.pairs("a")
    kept = frame if closeness == "percentile" else frame[frame["query"].isin(spread)]
    columns = ["query", "item", "other_item", "position", "other_position", "score", "outcome"]
    by = columns[:3]
    ours = other.pairs("a")[columns].sort_values(by, ignore_index=True)
    assert ours.equals(kept[columns].sort_values(by, ignore_index=True))


@pytest.mark.parametrize(("terms", "mode"), combined(TERMS.values(), MODES))
def test_listed_pairs_are_those_of_the_headline(terms, mode):
    audit = audit_of(draw_log(2, position=True), threshold=mpc.Quantile(0.5), **terms)
    for group in audit.groups:
        found = audit.headline.sel(group=group, scoring_rule="baseline", pairing_mode=mode)
        listed = audit.pairs(group, pairing_mode=mode)
        assert len(listed) == int(found.n_pairs)
        assert np.isclose(listed["difference"].mean(), found.estimate, equal_nan=True)
        assert (listed["distance"] <= float(found.epsilon)).all()


def test_listed_pairs_show_original_outcomes_and_places():
    log = draw_log(4)
    plain = audit_of(log, threshold=9.0).pairs("a")
    capped = audit_of(log, threshold=9.0, outcome_cap=1.0, against="b").pairs("a")
    both = plain.merge(capped, on=["query", "item", "other_item"], suffixes=("", "_capped"))
    assert len(both) == len(capped) > 0
    for name in ("outcome", "other_outcome", "position", "other_position", "score"):
        assert (both[name] == both[f"{name}_capped"]).all()
    expected = both["outcome"].clip(upper=1) - both["other_outcome"].clip(upper=1)
    assert (both["difference_capped"] == expected).all()


def test_signs_in_a_long_list_are_visited():
    rng = np.random.default_rng(1)
    n = 800  # lists long enough for windows, were it not for the signs
    frame = {"q": np.arange(n) // 400, "s": rng.normal(size=n), "y": rng.exponential(size=n)}
    frame |= {"g": rng.random(n) < 0.5, "i": np.arange(n)}
    ranking = mpc.Ranking(frame, query="q", item="i", score="s", outcome="y", group=["g"])
    audit = mpc.audit(ranking, contrast="sign", threshold=2.0, epsilon=[2.0], progress=False)
    log = sort_rows(ranking)
    total = count = 0.0
    for first, last in zip(log.starts[:-1], log.starts[1:], strict=True):
        s, y, g = (part[first:last] for part in (log.score, log.outcome, log.masks[0] != 0))
        apart = s[None, :] - s[:, None]
        pair = g[:, None] & ~g[None, :] & (apart >= 0) & (apart <= 2.0)
        total += np.sign(y[:, None] - y[None, :])[pair].sum()
        count += pair.sum()
    found = audit.headline.sel(group="g", scoring_rule="baseline", pairing_mode="matched")
    assert int(found.n_pairs) == count
    assert np.isclose(found.estimate, total / count, rtol=1e-12)


def test_more_signs_than_can_be_visited_are_refused(monkeypatch):
    monkeypatch.setattr("mpc_lab.pairing.sweep.MOST_VISITED", 10)
    with pytest.raises(mpc.MpcError, match='contrast="sign" must have at most 10'):
        audit_of(draw_log(1), contrast="sign", threshold=100.0)


@pytest.mark.parametrize(
    ("terms", "how"), combined([{}, *TERMS.values()], ["visited", "by windows"])
)
def test_the_heaviest_query_is_found(monkeypatch, how, terms):
    if how == "by windows":
        monkeypatch.setattr(sweep, "PAIR_COST", np.inf)
    log = draw_log(8, n_queries=14)
    audit = audit_of(log, threshold=mpc.Quantile(0.6), **terms)
    for group in audit.groups:
        for mode in MODES:
            cell = audit.headline.sel(group=group, pairing_mode=mode, scoring_rule="baseline")
            listed = audit.pairs(group, pairing_mode=mode)
            apart = listed["difference"] - listed["difference"].mean()
            squares = apart.groupby(listed["query"]).sum() ** 2
            expected = squares.max() / squares.sum() if squares.sum() > 1e-12 else np.nan
            assert np.isclose(cell.heavy_share, expected, rtol=1e-10, equal_nan=True)
