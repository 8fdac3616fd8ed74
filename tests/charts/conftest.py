"""Audits that the charts are drawn from: one of the paper's example, one with strange names."""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.hostile import COLUMNS, log


def audited(groups, **options):
    size = {name: options.pop(name) for name in ("queries", "items") if name in options}
    return mpc.audit(
        log(groups, **{"queries": 150, **size}, better=()), **COLUMNS, progress=False, **options
    )


@pytest.fixture(scope="session")
def make_audit():
    return audited


@pytest.fixture(scope="session")
def audit():
    """Return the paper's example under two rules, in both orders; group 1 is undervalued."""
    return mpc.audit(
        mpc.datasets.synthetic(queries=4000),
        scoring_rules=("baseline", mpc.Boosted(0.1)),
        pairing_modes=("matched", "mirrored"),
        threshold=0.05,
        tolerance=0.01,
        progress=False,
    )


@pytest.fixture(scope="session")
def hostile():
    """Return an audit whose groups have names that a page or an expression could obey."""
    modes = ("matched", "mirrored")
    return mpc.audit(log(), **COLUMNS, pairing_modes=modes, threshold=0.2, progress=False)


@pytest.fixture(scope="session")
def empty():
    """Return an audit with a threshold that no pair of group 'rare' meets."""
    frame = log(["common", "other"])
    frame["group"][0] = "rare"
    modes = ("matched", "mirrored")
    return mpc.audit(frame, **COLUMNS, pairing_modes=modes, threshold=1e-4, progress=False)
