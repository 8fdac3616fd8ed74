"""Inequalities at each rank, as an audit gives them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.oracle import Log
from helpers.rival_oracle import Weights, inequality

RANKS = range(1, 11)


def one_log(queries=300, shown=14):
    """Return a frame whose third place is worth less than the fourth, if the fourth is of "a"."""
    rng = np.random.default_rng(0)
    place = np.tile(np.arange(1, shown + 1), queries)
    group = np.where(rng.random(place.size) < 0.5, "a", "b")
    worth = (place == 4) & (group == "a")
    outcome = rng.normal(0, 1, place.size) + 3 * worth - 0.1 * place
    query = np.repeat(np.arange(queries), shown)
    return pd.DataFrame({"query": query, "place": place, "worth": outcome, "kind": group})


def audit_of(frame, **more):
    columns = {"query": "query", "position": "place", "outcome": "worth", "group": "kind"}
    return mpc.audit(frame, **columns, **more, progress=False)


@pytest.fixture(scope="module")
def by_rank():
    return audit_of(one_log(), score=None).compare(by_rank=True)


def test_a_log_without_scores_has_the_inequality_of_each_rank_as_a_double_loop(by_rank):
    frame = one_log()
    groups = [frozenset({name}) for name in frame["kind"]]
    score, outcome = (-frame["place"]).tolist(), frame["worth"].tolist()
    log = Log(query=frame["query"].tolist(), score=score, outcome=outcome, groups=groups)
    for side in ("above", "below"):
        for rank in RANKS:
            found = by_rank.estimate.sel(group="a", measure=f"inequality_group_{side}_{rank}")
            expected = inequality(side == "above", rank)(log, "a", Weights())
            assert float(found) == pytest.approx(expected, abs=1e-10)


def test_the_rank_at_which_the_order_is_wrong_is_flagged_and_no_other(by_rank):
    names = [f"inequality_group_{side}_{rank}" for side in ("above", "below") for rank in RANKS]
    flagged = by_rank.flagged.sel(group="a", measure=names)
    assert [name for name, flag in zip(names, flagged.values, strict=True) if flag] == [
        "inequality_group_below_3"
    ]
    joint = by_rank.sel(group="a", measure="inequalities_joint_by_rank")
    assert bool(joint.flagged)
    assert joint.says.item() == "undervalued"


def test_by_rank_leaves_the_other_measures_as_they_are():
    frame = one_log()
    audit = audit_of(frame.assign(score=-frame["place"]), score="score")
    plain, both = audit.compare(), audit.compare(by_rank=True)
    assert both.sizes["measure"] == plain.sizes["measure"] + 21
    xr.testing.assert_identical(plain, both.isel(measure=slice(plain.sizes["measure"])))


def test_by_rank_is_a_yes_or_a_no():
    with pytest.raises(mpc.MpcError, match="by_rank must be True or False; got 3"):
        audit_of(one_log(20), score=None).compare(by_rank=3)


def test_a_log_without_scores_is_not_said_to_have_close_ones(by_rank):
    said = by_rank.explanation.sel(group="a").item()
    assert "comparing outcomes of neighbours in the list" in said
    assert by_rank.compares_scores.sel(measure="mpc").item() == "neighbours"
