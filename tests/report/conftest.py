"""Audits that reports are made of, each once."""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.hostile import CORPUS, HOSTILE_COLUMNS, log, with_hostile_columns
from mpc_lab.report import page


@pytest.fixture(scope="session")
def audit():
    """Return the paper's example; group 1 is undervalued, group 2 overvalued."""
    return mpc.audit(
        mpc.datasets.synthetic(queries=6000), threshold=0.03, tolerance=0.01, progress=False
    )


@pytest.fixture(scope="session")
def text(audit):
    """Return its report, with pairs."""
    return page(audit, pairs=4)


@pytest.fixture(scope="session")
def hostile():
    """Return an audit in which every name is one that something could obey."""
    rows = log(CORPUS, items=24, better=(0, 30), lift=0.6)
    columns = HOSTILE_COLUMNS
    return mpc.audit(with_hostile_columns(rows), **columns, threshold=0.1, progress=False)


@pytest.fixture(scope="session")
def hostile_text(hostile):
    return page(hostile, pairs=3)
