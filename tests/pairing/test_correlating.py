"""One visit of the close pairs for all groups gives the products that each group gives alone."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.pairing import correlating


def log_of(groups, rng, queries=40, shown=9):
    n = queries * shown
    log = {
        "query": np.repeat(np.arange(queries), shown),
        "user": np.repeat(np.arange(queries) // 3, shown),
        "item": np.concatenate([rng.permutation(25)[:shown] for _ in range(queries)]),
        "score": rng.integers(0, 12, n) / 8,
        "clicks": rng.normal(size=n),
        "place": np.concatenate([rng.permutation(shown) + 1 for _ in range(queries)]),
        "weight": np.repeat(rng.uniform(0.5, 2, queries), shown),
    }
    return log | {f"g{k:02d}": rng.random(n) < 0.3 for k in range(groups)}


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({}, {}),
        ({"position": "place"}, {}),
        ({"unit": "user"}, {"contrast": "sign"}),
        ({"weight": "weight"}, {"estimand": "root"}),
    ],
)
def test_all_groups_at_once_vary_as_each_group_alone(monkeypatch, columns, options):
    rng = np.random.default_rng(3)
    log = log_of(70, rng)  # two words of the masks
    log["g05"] = np.zeros(len(log["item"]), dtype=bool)  # has no threshold
    names = {"query": "query", "item": "item", "score": "score", "outcome": "clicks"}
    ranking = mpc.Ranking(log, **names, group=[g for g in log if g[0] == "g"], **columns)

    def correlations():
        found = mpc.audit(
            ranking,
            pairing_modes=["symmetric"],
            adjust="romano_wolf",
            threshold=mpc.Quantile(0.3),
            epsilon=[0.1],
            progress=False,
            **options,
        )
        return found.moments["correlation"].values, found.headline["p_adjusted"].values

    once = correlations()
    monkeypatch.setattr(correlating, "_can_visit_once", lambda log, epsilon: False)
    apart = correlations()
    assert np.isfinite(once[0]).any()
    for one, other in zip(once, apart, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("modes", [["symmetric"], ["matched"], ["symmetric", "matched"]])
def test_groups_that_no_list_mixes_have_no_pairs_to_visit(monkeypatch, modes):
    monkeypatch.setattr(correlating, "unit_sides", _no_visit)
    rng = np.random.default_rng(5)
    log = log_of(0, rng)
    log |= {"even": log["query"] % 2 == 0, "third": log["query"] % 3 == 0}
    names = {"query": "query", "item": "item", "score": "score", "outcome": "clicks"}
    found = mpc.audit(
        mpc.Ranking(log, **names, group=["even", "third"]),
        pairing_modes=modes,
        adjust="romano_wolf",
        progress=False,
    )
    assert (found.headline["n_pairs"] == 0).all()
    assert found.headline["p_adjusted"].isnull().all()


def _no_visit(*_):
    raise AssertionError("there is no pair to visit")
