"""Audits that explorers are shown, and the log with strange names."""

from __future__ import annotations

from functools import cache

import mpc_lab as mpc
from helpers.hostile import COLUMNS, log


@cache
def example_audit():
    """Return the paper's example under two rules, in both orders."""
    return mpc.audit(
        mpc.datasets.synthetic(queries=600),
        scoring_rules=("baseline", mpc.Boosted(0.1)),
        pairing_modes=("matched", "mirrored"),
        threshold=0.05,
        progress=False,
    )


@cache
def small_audit():
    """Return three groups, each with a threshold of its own."""
    threshold = mpc.Quantile(0.1)
    return mpc.audit(log(["a", "b", "c"]), **COLUMNS, threshold=threshold, progress=False)


@cache
def hostile_audit(scoring_rules=("baseline",)):
    """Return groups whose names a page or an expression could obey."""
    rules = {"scoring_rules": scoring_rules}
    return mpc.audit(log(), **COLUMNS, **rules, threshold=0.2, progress=False)


@cache
def bare_audit():
    """Return an audit in which group 'rare' has no pair."""
    frame = log(["common", "other"])
    frame["group"][0] = "rare"
    # The rare row is alone in its query: no pair at any threshold.
    keep = frame["query"] != frame["query"][0]
    keep[0] = True
    kept = {name: values[keep] for name, values in frame.items()}
    return mpc.audit(kept, **COLUMNS, progress=False)


def without_rows(audit):
    """Return the audit as it comes from a file."""
    from mpc_lab.results import Audit

    return Audit(audit.headline, audit.curve, audit.moments, audit.attrs)
