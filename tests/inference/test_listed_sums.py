"""Estimates of many choices of listed pairs at once equal those of each choice by itself."""

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.inference.balance import shuffle_strata
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.listed import estimate_each, sum_listed
from mpc_lab.pairing.both_orders import cross_pairs, share_pairs

NAMES = ("estimate", "std_error", "dof", "n_effective", "p_value")


def draw(seed, items):
    rng = np.random.default_rng(seed)
    query = np.sort(rng.integers(0, 25, 300))
    one, other = rng.integers(0, items, (2, 300))
    return rng, query, one, other, rng.normal(size=300)


@pytest.mark.parametrize("cluster", ["naive", "query", "item", "union", "producer"])
@pytest.mark.parametrize("items", [6, 40, 3000])
@pytest.mark.parametrize("weighted", [False, True])
def test_choices_of_pairs_are_estimated_as_each_alone(cluster, items, weighted):
    rng, query, one, other, d = draw(items, items)
    owner = "producer" if cluster == "producer" else "item"
    if owner == "item":
        other = np.where(one == other, (one + 1) % items, other)
    shared = share_pairs(query, one, other)
    weight = rng.random(300) + 0.1 if weighted else None
    every, alone = [], []
    for share in (0.0, 0.3, 1.0):
        chosen = np.flatnonzero(rng.random(300) < share)
        inside = rng.random(len(chosen)) < 0.5
        here = None if weight is None else weight[chosen]
        every.append(sum_listed(shared, chosen, inside, d[chosen], here))
        i = np.where(inside, one[chosen], other[chosen])
        j = np.where(inside, other[chosen], one[chosen])
        codes = pair_codes(query[chosen], i, j, owner, weight=here)
        center = codes.mean(d[chosen]) if len(chosen) else 0.0
        alone.append(estimate_listed(d[chosen] - center, center, codes, cluster=cluster))
    found = estimate_each(every, cluster, owner=owner)
    for name in NAMES:
        expected = [float(getattr(one, name)) for one in alone]
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-11, err_msg=name)
    assert found.reason.tolist() == [str(one.reason) for one in alone]


def test_pairs_with_one_member_come_with_the_outcome_of_the_member_first():
    label = np.array([True, False, True])
    one, other = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 1])
    chosen, d, inside = cross_pairs(label, one, other, np.array([1.0, 2.0, 3.0, 4.0]))
    assert chosen.tolist() == [0, 2, 3]
    assert d.tolist() == [1.0, -3.0, 4.0]
    assert inside.tolist() == [True, False, True]


def test_labels_are_those_of_a_stable_sort_also_where_draws_are_equal():
    class Drawn:
        def __init__(self, values):
            self.values = values

        def random(self, n):
            return self.values

    rng = np.random.default_rng(0)
    for digits in (1, 17):
        values = np.round(rng.random(200), digits)
        stratum, label = rng.integers(0, 3, 200), rng.random(200) < 0.4
        order = np.lexsort((values, stratum))
        expected = np.empty_like(label)
        expected[order] = label[np.argsort(stratum, kind="stable")]
        assert (shuffle_strata(stratum, label, Drawn(values)) == expected).all()


def test_groups_share_one_sorted_log(monkeypatch):
    audit = mpc.audit(synthetic(queries=300), progress=False)
    count = []
    whole = mpc.pairing.log.sort_rows
    monkeypatch.setattr(
        "mpc_lab.pairing.log.sort_rows", lambda *a, **k: count.append(1) or whole(*a, **k)
    )
    for group in audit.groups:
        audit.limit(group)
        audit.balance(group=group, permutations=0)
    assert count == [1]
