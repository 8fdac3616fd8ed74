"""Audits that reports are made of, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import COLUMNS, log

import mpc_lab as mpc
from mpc_lab.report.page import page


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep the tests that read a report on the one worker that makes it."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.get_closest_marker("needs_browser") is None:
            item.add_marker(pytest.mark.xdist_group("report"))


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
    return mpc.audit(log(), **COLUMNS, threshold=0.1, progress=False)


@pytest.fixture(scope="session")
def hostile_text(hostile):
    return page(hostile, pairs=3)
