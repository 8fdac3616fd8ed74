"""Questions about the logged scores share one sort of the rows."""

import numpy as np

import mpc_lab as mpc
from mpc_lab.pairing import log


def test_rows_are_sorted_once_for_all_questions(monkeypatch):
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    sorts, sort_rows = [], log.sort_rows

    def count(*given, **options):
        sorts.append(1)
        return sort_rows(*given, **options)

    monkeypatch.setattr(log, "sort_rows", count)
    # Modules that have it by name are asked through it too.
    monkeypatch.setattr("mpc_lab.objective.boosts.sort_rows", count)
    monkeypatch.setattr("mpc_lab.comparators.base.sort_rows", count)
    audit.limit("1")
    audit.compare()
    audit.partial()
    audit.fair_boost("1")
    audit.boost_curve("1", np.array([0.0, 0.1]))
    assert len(sorts) == 1
