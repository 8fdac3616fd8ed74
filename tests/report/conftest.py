"""Audits that reports are made of, each once."""

from __future__ import annotations

import os

import pytest

import mpc_lab as mpc
from helpers.hostile import CORPUS, HOSTILE_COLUMNS, log, with_hostile_columns
from mpc_lab.report import page


@pytest.fixture(scope="session")
def audit():
    """Return the paper's example; group 1 is undervalued, group 2 overvalued."""
    return mpc.audit(
        mpc.datasets.synthetic(queries=4000), threshold=0.03, tolerance=0.01, progress=False
    )


def written(audit, pairs):
    """Return the report of an audit, with fewer placebos than a user's."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("context", "sections.checks"):
            patch.setattr(f"mpc_lab.report.{module}.PLACEBOS", 20)
        return page(audit, pairs=pairs)


@pytest.fixture(scope="session")
def text(audit):
    """Return its report, with pairs."""
    return written(audit, pairs=4)


@pytest.fixture(scope="session")
def hostile():
    """Return an audit in which every name is one that something could obey; in CI all of them."""
    names = CORPUS if os.environ.get("CI") else (*CORPUS[:50:10], *CORPUS[-8:-3])
    rows = log(names, items=24, better=(0, 31), lift=0.6)
    columns = HOSTILE_COLUMNS
    return mpc.audit(with_hostile_columns(rows), **columns, threshold=0.1, progress=False)


@pytest.fixture(scope="session")
def hostile_text(hostile):
    return written(hostile, pairs=3)
