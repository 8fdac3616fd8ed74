"""A comparator is one entry: defined here alone, it is seen wherever comparators are."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.comparators.base import Case, Comparison, Conditions, comparison
from mpc_lab.comparators.registry import COMPARATORS, Comparator
from mpc_lab.inference.clustered import ratio


def outcome_gap(case: Case) -> list[Comparison]:
    """The mean outcome of the group's rows above 0.3, whatever their scores and queries."""
    lists = case.lists
    member = case.member[lists.row]
    over = np.where(member, case.ranking.outcome[lists.row] - 0.3, 0.0)
    found = ratio(lists.by_cluster(over), lists.by_cluster(member), level=case.level)
    conditions = Conditions(scores="all", queries="all", looks_at="outcomes")
    return [comparison("outcome_gap", found, conditions, high_is="undervalued")]


@pytest.fixture
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=300), progress=False)


def test_a_comparator_registered_here_is_listed_with_the_others(audit, monkeypatch):
    before = audit.compare(["1"])
    entry = Comparator(outcome_gap, {"outcome_gap": "the made-up outcome gap"})
    monkeypatch.setitem(COMPARATORS, "outcome", entry)
    after = audit.compare(["1"])
    names = before["measure"].values.tolist()
    assert after["measure"].values.tolist() == [*names, "outcome_gap"]
    assert after.sel(measure=names).drop_vars("explanation").equals(before.drop_vars("explanation"))
    found = after.sel(measure="outcome_gap", group="1")
    ranking = audit.ranking
    assert found["estimate"] == pytest.approx(ranking.outcome[ranking.member("1")].mean() - 0.3)
    assert bool(found["flagged"])
    assert "the made-up outcome gap" in str(after["explanation"].values[0])
    assert "outcome gap" in mpc.charts.rivals(audit, "1", found=after).to_json()
