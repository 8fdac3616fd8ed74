"""The alarm of a trend in a few simulated runs; `trend_alarm.py` makes many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from trend_alarm import ITEMS, changes, draw, rang


def test_the_alarm_rarely_rings_without_a_change():
    # At a rate of 5 %, more than 7 of 50 have a probability below 1 %.
    assert sum(rang(0.0, seed)[0] for seed in range(50)) <= 7


def test_changes_without_a_step_are_standard_normal():
    z = np.concatenate([changes(seed, 0.0, 20) for seed in range(40)])
    assert z.std() == pytest.approx(1, abs=0.1)
    assert z.mean() == pytest.approx(0, abs=0.15)


def test_a_step_of_two_standard_errors_is_found():
    assert np.mean([rang(2.0, seed)[0] for seed in range(10)]) >= 0.8


def as_log(week, query, i, j, d):
    """A list of two for each pair, and the query that it was drawn for as its unit."""
    lists = 1000 * week + np.arange(len(d))
    of_group = pd.DataFrame({"item": i, "outcome": d, "group": "a"})
    other = pd.DataFrame({"item": ITEMS + j, "outcome": 0.0, "group": "b"})
    same = {"query": lists, "unit": 1000 * week + query, "score": 0.0}
    return pd.concat([one.assign(**same) for one in (of_group, other)], ignore_index=True)


@pytest.mark.long
@pytest.mark.parametrize(("correction", "close"), [("plain", 0.03), ("cr3", 0.1)])
def test_the_simulated_changes_are_those_of_audits(correction, close):
    columns = {name: name for name in ("query", "unit", "item", "score", "outcome", "group")}
    weeks = [
        mpc.audit(
            as_log(k, *pairs), **columns, groups=["a"], threshold=0.5, epsilon=[0.5],
            correction=correction, progress=False,
        )
        for k, pairs in enumerate(draw(3, 0.0, 8))
    ]  # fmt: skip
    z = mpc.trend(weeks).data["total_z"].squeeze("group").values[1:]
    drawn = changes(3, 0.0, 8)
    # Audits correct for few clusters, and the simulation does not: their z is no larger.
    assert (abs(z) <= abs(drawn) * (1 + 1e-9)).all()
    assert z == pytest.approx(drawn, rel=close)
