"""Sums over the close pairs of a log, each pair visited once or none at all."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.pairing.close import count_within
from mpc_lab.pairing.log import sort_rows


@pytest.mark.parametrize(("width", "pairs"), [(-1.0, 0), (np.nan, 0), (0.0, 1), (0.5, 3), (2.0, 4)])
def test_pairs_within_a_width_are_counted(width, pairs):
    log = {
        "query": [0, 0, 0, 1, 1],
        "score": [0.25, 0.25, 0.75, 1.0, 2.5],
        "outcome": [0, 1, 0, 1, 0],
        "own": [True, False, True, False, True],
    }
    columns = {name: name for name in ("query", "score", "outcome")}
    rows = sort_rows(mpc.Ranking(log, **columns, group=["own"]))
    assert count_within(width, rows, 0, len(rows.units) - 1) == pairs
