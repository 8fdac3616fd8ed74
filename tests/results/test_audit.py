"""An Audit answers from labelled numbers, and from rows only where it has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.handmade import EMPTY, Rows
from mpc_lab.errors import MpcError
from mpc_lab.pairing.measure import measure
from mpc_lab.results import Audit

COLUMNS = ["query", "item", "other_item", "score", "other_score", "distance", "position"]
COLUMNS += ["other_position", "outcome", "other_outcome", "difference"]


@pytest.fixture(scope="module")
def ranking():
    """Two users with three movies each; "Heat" alone is in the group "crime"."""
    log = {
        "user": ["p", "p", "p", "q", "q", "q"],
        "movie": ["Up", "Heat", "Alien", "Up", "Heat", "Alien"],
        "score": [0.75, 0.5, 0.25, 0.5, 0.5, 0.25],
        "rating": [1.0, 5.0, 2.0, 4.0, 3.0, 3.0],
        "genre": ["", "crime", "", "", "crime", ""],
    }
    names = {"query": "user", "item": "movie", "score": "score", "outcome": "rating"}
    return mpc.Ranking(pd.DataFrame(log), **names, group="genre")


@pytest.fixture
def crime(make_audit, ranking):
    return make_audit(("crime",), ranking=ranking, cells={"crime": {"epsilon": 0.25}})


def test_the_curve_is_made_once_and_when_asked_for(make_audit, audit):
    made = []

    def make() -> xr.Dataset:
        made.append(1)
        return audit.curve

    lazy = make_audit(curve=make)
    assert made == []
    assert lazy.curve is lazy.curve
    assert made == [1]


def test_the_grid_is_swept_when_a_curve_is_asked_for(ranking, monkeypatch):
    """Most pairs are beyond the headline's threshold: an audit of a log in memory leaves them."""
    swept = []

    def noted(source, rule, edges, **how):
        swept.append(edges.shape)
        return measure(source, rule, edges, **how)

    monkeypatch.setattr("mpc_lab.run.measure", noted)
    audit = mpc.audit(ranking, epsilon=[0.0, 0.25, 0.5], progress=False)
    assert swept == [(1, 1)]
    curve = audit.curve
    assert swept == [(1, 1), (1, 4)]
    assert audit.curve is curve
    assert len(swept) == 2
    own = audit.headline.sel(group="crime", scoring_rule="baseline", pairing_mode="matched")
    there = curve.sel(group="crime", scoring_rule="baseline", pairing_mode="matched")
    assert float(own.estimate) == float(there.estimate.sel(epsilon=own.epsilon, method="nearest"))


def test_a_curve_of_other_groups_is_refused(make_audit, audit):
    other = make_audit(("1", "3"), curve=audit.curve)
    with pytest.raises(MpcError, match=r"curve\.group must hold the labels of headline\.group"):
        other.curve  # noqa: B018


def test_the_tree_holds_the_parts_and_the_attributes(audit):
    tree = audit.tree
    assert list(tree.children) == ["headline", "curve", "objective", "moments"]
    assert tree.attrs["schema_version"] == 2
    xr.testing.assert_identical(tree["curve"].to_dataset(), audit.curve)


def test_the_tree_carries_the_fingerprint_of_the_rows(audit, audit_with_rows):
    assert "fingerprint" not in audit.tree.attrs
    assert audit_with_rows.tree.attrs["fingerprint"] == "f00d"


def test_an_attribute_of_another_kind_is_refused(audit):
    with pytest.raises(MpcError, match="Attribute 'seed' must be a number or text; got NoneType"):
        Audit(audit.headline, audit.curve, attrs={"seed": None})


def test_groups_are_in_the_order_of_the_headline(make_audit):
    assert make_audit(("b", "a")).groups == ("b", "a")


def test_the_frame_has_one_row_for_each_cell(make_audit):
    audit = make_audit(("b", "a"), modes=("matched", "mirrored"))
    frame = audit.to_frame()
    assert frame["group"].tolist() == ["b", "b", "a", "a"]
    assert frame["pairing_mode"].tolist() == ["matched", "mirrored"] * 2
    assert frame["n_pairs"].tolist() == audit.headline["n_pairs"].values.ravel().tolist()
    assert frame["std_error_union"].equals(frame["std_error"].rename("std_error_union"))


def test_pairs_name_both_items_and_what_became_of_them(crime):
    frame = crime.pairs("crime")
    assert frame.columns.tolist() == COLUMNS
    assert frame.iloc[0].tolist() == ["q", "Heat", "Up", 0.5, 0.5, 0.0, 2, 1, 3.0, 4.0, -1.0]
    assert frame.iloc[1].tolist() == ["p", "Heat", "Up", 0.5, 0.75, 0.25, 2, 1, 5.0, 1.0, 4.0]
    assert len(frame) == 2


def test_pairs_take_a_mode_a_threshold_and_a_limit(crime):
    mirrored = crime.pairs("crime", pairing_mode="mirrored")
    assert mirrored["other_item"].tolist() == ["Up", "Alien", "Alien"]
    assert crime.pairs("crime", epsilon=0.1)["query"].tolist() == ["q"]
    assert crime.pairs("crime", limit=1)["distance"].tolist() == [0.0]
    assert crime.pairs("crime", limit=0).columns.tolist() == COLUMNS


def test_pairs_of_another_rule_use_its_scores(make_audit, ranking):
    asked = []

    def scores(rule: str, group: str) -> np.ndarray | None:
        asked.append((rule, group))
        return ranking.score[::-1].copy()

    audit = make_audit(("crime",), rules=("baseline", "turned"), ranking=ranking, scores=scores)
    frame = audit.pairs("crime", "turned", epsilon=1.0)
    assert asked == [("turned", "crime")]
    assert frame["other_item"].tolist() == ["Alien", "Alien"]
    assert frame["other_score"].tolist() == [0.5, 0.75]


def test_pairs_without_items_have_no_item_columns(make_audit):
    log = {"q": [1, 1], "s": [0.5, 0.5], "y": [1.0, 0.0], "g": ["a", ""]}
    ranking = mpc.Ranking(log, query="q", score="s", outcome="y", group="g")
    frame = make_audit(("a",), ranking=ranking).pairs("a")
    assert frame.columns.tolist() == [name for name in COLUMNS if "item" not in name]
    assert frame["difference"].tolist() == [1.0]


def test_regression_gives_the_mean_difference(make_audit):
    log = {"q": [1, 1, 2, 2, 3, 3], "s": [0.5] * 6, "g": ["a", ""] * 3}
    log["y"] = [1.0, 0.0, 3.0, 0.0, 2.0, 1.0]
    ranking = mpc.Ranking(log, query="q", score="s", outcome="y", group="g")
    fitted = make_audit(("a",), ranking=ranking).regression("a")
    assert fitted.params.iloc[0] == pytest.approx(5 / 3)
    assert fitted.nobs == 3


def test_regression_clusters_by_unit_where_there_is_one(make_audit, monkeypatch):
    log = {"q": [1, 1, 2, 2], "u": ["x"] * 4, "s": [0.5] * 4}
    log |= {"y": [1.0, 0.0] * 2, "g": ["a", ""] * 2}
    ranking = mpc.Ranking(log, query="q", unit="u", score="s", outcome="y", group="g")
    monkeypatch.setattr("mpc_lab.inference.sides.fit", lambda *given: given)
    _, codes, weight = make_audit(("a",), ranking=ranking).regression("a")
    assert weight.tolist() == [1.0, 1.0]
    assert codes.tolist() == [0, 0]


@pytest.mark.parametrize("method", ["pairs", "regression"])
def test_without_rows_an_error_says_how_to_give_them(audit, method):
    hint = rf'audit\.{method}\(\) must have the rows .* mpc\.load\("a\.nc", ranking=ranking\)'
    with pytest.raises(MpcError, match=hint):
        getattr(audit, method)("1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("crmie",), "no group 'crmie'. Did you mean 'crime'"),
        (("crime", "base_line"), "no scoring rule 'base_line'. Did you mean 'baseline'"),
        (("crime", "baseline", "match"), "no pairing mode 'match'. Did you mean 'matched'"),
        (("crime", "baseline", "matched", -0.1), "epsilon must be .* at least 0; got -0.1"),
        (("crime", "baseline", "matched", "tiny"), "epsilon must be .* got 'tiny'"),
        (("crime", "baseline", "matched", None, -1), "limit must be .* got -1"),
    ],
)
def test_a_cell_that_is_not_there_is_named(crime, arguments, message):
    with pytest.raises(MpcError, match=message):
        crime.pairs(*arguments)


def test_a_cell_without_a_threshold_asks_for_one(make_audit):
    audit = make_audit(cells={"1": EMPTY}, ranking=Rows())
    with pytest.raises(MpcError, match=r"Group '1' must have pairs under rule .*Give epsilon"):
        audit.pairs("1")


def test_scores_that_were_not_kept_are_said_to_be_lost(make_audit):
    audit = make_audit(rules=("baseline", "boosted"), ranking=Rows())
    with pytest.raises(
        MpcError,
        match=r"scores of rule 'boosted' must be known .* a saved audit, which does not keep them",
    ):
        audit.pairs("1", "boosted")
