import itertools

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.inference.balance import item_labels, item_strata, placebo, shuffle_strata
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import list_pairs
from placebo import DESIGNS, own_p
from simulated import shared_catalogue


def rows_of(ranking, group="g"):
    log = sort_rows(ranking)
    return log, ranking.member(group)[log.row], ranking.query_code[log.row]


@pytest.fixture(scope="module")
def rows():
    """Rows whose items are each in one query only."""
    return rows_of(synthetic(queries=400, seed=3), "1")


@pytest.fixture(scope="module")
def catalogue():
    return rows_of(shared_catalogue(np.random.default_rng(5), item_sd=0.5))


def strata_by_hand(shown, label):
    """Cut ranks into five, keep ties together, and join what has one label to the next."""
    n, ranked = len(shown), sorted(shown)
    ends = [ranked[max(-(-k * n // 5) - 1, 0)] for k in range(1, 5)]
    of = [sum(count > end for end in ends) for count in shown]
    parts = [[i for i in range(n) if of[i] == k] for k in range(5)]
    parts = [part for part in parts if part]
    k = 0
    while len(parts) > 1 and k < len(parts):
        if len({label[i] for i in parts[k]}) == 2:
            k += 1
        elif k + 1 < len(parts):
            parts[k : k + 2] = [parts[k] + parts[k + 1]]
        else:
            parts[k - 1 : k + 1] = [parts[k - 1] + parts[k]]
    return {frozenset(part) for part in parts}


@pytest.mark.parametrize("seed", range(40))
def test_strata_are_quintiles_that_hold_both_labels(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    shown, label = rng.integers(1, rng.integers(2, 30), n), rng.random(n) < rng.choice([0.05, 0.4])
    found = item_strata(shown, label)
    parts = {frozenset(np.flatnonzero(found == k).tolist()) for k in np.unique(found)}
    assert parts == strata_by_hand(shown.tolist(), label.tolist())
    assert found.max() + 1 == len(parts)


def test_labels_move_inside_strata_only_and_all_orders_are_equally_likely():
    stratum, label = np.array([1, 0, 1, 0, 0]), np.array([True, True, False, False, False])
    rng = np.random.default_rng(0)
    seen = {}
    for _ in range(6_000):
        key = tuple(shuffle_strata(stratum, label, rng).tolist())
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 2 * 3
    assert {sum(itertools.compress(key, stratum)) for key in seen} == {1}
    assert max(abs(count - 1_000) for count in seen.values()) < 5 * np.sqrt(1_000)


def test_an_item_keeps_its_label_in_every_query(catalogue, monkeypatch):
    log, member, query = catalogue
    drawn = []

    def seen(stratum, label, rng):
        drawn.append(shuffle_strata(stratum, label, rng))
        return drawn[-1]

    monkeypatch.setattr("mpc_lab.inference.balance.shuffle_strata", seen)
    found = placebo(log, member, query, epsilon=0.05, item=log.item, permutations=3)
    assert found.by == "item"
    assert [one.sum() for one in drawn] == [item_labels(log.item, member).sum()] * 3


@pytest.mark.parametrize("known", [True, False])
def test_rows_are_permuted_where_membership_varies_or_items_are_not_known(catalogue, known):
    log, member, query = catalogue
    mixed = member.copy()
    mixed[::7] ^= True
    found = placebo(
        log, mixed, query, epsilon=0.05, item=log.item if known else None, permutations=3
    )
    assert found.by == "row"
    assert found.expected == 0


def test_what_placebos_centre_on_is_their_mean_over_all_labels():
    """Six items in two strata: all 3 · 3 labels are tried."""
    rng = np.random.default_rng(2)
    query = np.repeat(np.arange(12), 4)
    item = np.concatenate(
        [rng.choice(6, 4, replace=False, p=[4, 4, 4, 1, 1, 1] / np.full(6, 15)) for _ in range(12)]
    )
    outcome = (item < 3) * 2.0 + rng.normal(size=48)
    columns = {"q": query, "s": rng.integers(0, 3, 48) / 4, "y": outcome, "i": item}
    columns["g"] = np.isin(item, [0, 1, 3])
    names = {"query": "q", "score": "s", "outcome": "y", "item": "i", "group": ["g"]}
    log, member, code = rows_of(mpc.Ranking(columns, **names))
    often = np.zeros(6, dtype=int)
    often[log.item] = item[log.row] < 3
    label = item_labels(log.item, member)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpc_lab.inference.balance.item_strata", lambda *_: often)
        found = placebo(log, member, code, epsilon=0.25, item=log.item, permutations=1)
    sums, pairs = 0.0, 0
    for one, other in itertools.product(range(3), range(3)):
        drawn = label.copy()
        drawn[often == 1], drawn[often == 0] = np.arange(3) != one, np.arange(3) == other
        inside = drawn[log.item]
        close = np.abs(log.score[:, None] - log.score) <= 0.25
        kept = close & (code[:, None] == code) & inside[:, None] & ~inside
        sums += (kept * (log.outcome[:, None] - log.outcome)).sum()
        pairs += kept.sum()
    assert found.expected == pytest.approx(sums / pairs, rel=1e-10)
    assert abs(found.expected) > 0.1


def test_placebos_centre_on_what_is_expected(catalogue):
    log, member, query = catalogue
    found = placebo(log, member, query, epsilon=0.05, item=log.item, permutations=300)
    spread = found.estimate.std() / np.sqrt(300)
    assert abs(found.estimate.mean() - found.expected) < 4 * spread


def test_rows_without_shared_items_are_rejected_at_the_nominal_rate(rows):
    log, member, query = rows
    found = placebo(log, member, query, epsilon=0.1, permutations=400, level=0.9)
    assert found.n_estimable == 400
    assert found.rejected == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 400))
    assert found.rejected_low < found.rejected < found.rejected_high
    assert found.rejected_high - found.rejected_low == pytest.approx(2 * 1.96 * 0.015, rel=0.15)


def test_the_group_itself_has_its_pairs_in_both_orders():
    ranking = synthetic(queries=400, seed=3)
    log, member, query = rows_of(ranking, "1")
    found = placebo(log, member, query, epsilon=0.1, permutations=1)
    sides = [list_pairs(ranking, "1", None, mode, 0.1) for mode in ("matched", "mirrored")]
    row_i, d = (np.concatenate([side[name] for side in sides]) for name in ("row_i", "d"))
    expected = estimate_listed(d, 0.0, pair_codes(ranking.query_code[row_i]), cluster="query")
    assert found.observed == pytest.approx(expected.estimate)


def test_the_p_value_is_the_rank_of_t_among_the_permutations(catalogue):
    log, member, query = catalogue
    how = {"epsilon": 0.05, "item": log.item, "permutations": 30}
    union, by_query = (placebo(log, member, query, cluster=c, **how) for c in ("union", "query"))
    np.testing.assert_array_equal(union.estimate, by_query.estimate)
    # The rank is counted from p-values, which fall with |t| where the degrees of freedom are near.
    own = placebo(log, member, query, epsilon=0.05, item=log.item, permutations=1, seed=9)
    assert own.observed == union.observed
    assert round(31 * union.observed_p_value, 9) in range(1, 32)
    assert union.rejected <= by_query.rejected


def test_the_seed_decides(rows):
    log, member, query = rows
    one, same, other = (
        placebo(log, member, query, epsilon=0.1, permutations=5, seed=seed).estimate
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_a_group_without_pairs_is_not_estimable(rows):
    log, member, query = rows
    found = placebo(log, np.ones_like(member), query, epsilon=0.1, permutations=3)
    assert found.n_estimable == 0
    numbers = [found.observed, found.observed_p_value, found.rejected, found.rejected_low]
    assert np.isnan(numbers).all()


def test_there_must_be_a_permutation(rows):
    log, member, query = rows
    with pytest.raises(MpcError, match="permutations must be a whole number of at least 1; got 0"):
        placebo(log, member, query, epsilon=0.1, permutations=0)


@pytest.mark.long
def test_the_p_value_of_a_group_holds_its_level_under_item_shocks():
    p = np.array([own_p(DESIGNS["item shocks"], 19, 5000 + seed) for seed in range(50)])
    by_item, by_row = (p <= 0.05).mean(axis=0)
    assert by_item <= 0.05 + 4 * np.sqrt(0.0475 / 50)
    assert by_row > by_item
