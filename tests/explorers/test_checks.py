"""The tab of checks: quick ones at once, long ones when they are asked to run."""

from __future__ import annotations

import numpy as np
import pytest
import traitlets
import xarray as xr

import mpc_lab as mpc
from helpers.explorer_audits import bare_audit, example_audit, hostile_audit, without_rows
from helpers.hostile import COLUMNS, HOSTILE, log
from mpc_lab.explorers.checks import CHECKS, ChecksExplorer, comparable_columns

LONG = [name for name, check in CHECKS.items() if check.long]


@pytest.fixture
def explorer():
    made = ChecksExplorer(example_audit(), group="1", permutations=5)
    _ = made.widget
    return made


@pytest.fixture(scope="module")
def rich():
    """Return an audit of a log with other columns to compare."""
    frame = log(["a", "b"])
    draw = np.random.default_rng(1)
    n = len(frame["score"])
    frame["price"] = draw.normal(size=n) + frame["score"]
    frame["<b>shop"] = draw.choice(["x", "<i>"], n)
    frame["device"] = (frame["query"] % 2).astype(str)
    frame["name"] = np.array([f"item {k}" for k in range(n)])
    frame["hole"] = np.where(np.arange(n) == 3, np.nan, 1.0)
    return mpc.audit(frame, **COLUMNS, threshold=0.1, progress=False)


@pytest.mark.parametrize("check", ["ladder", "power"])
def test_a_quick_check_is_drawn_at_once(explorer, check):
    explorer.check = check
    assert explorer.error == ""
    assert explorer.controls["run"].layout.display == "none"
    assert explorer.selection is not None
    assert explorer.run().identical(explorer.selection)


@pytest.mark.parametrize("check", LONG)
def test_a_long_check_waits_for_its_button(explorer, check):
    explorer.check = check
    assert explorer.selection is None
    assert (explorer.controls["run"].layout.display, explorer.controls["chart"].layout.display) == (
        "",
        "none",
    )
    explorer.controls["run"].click()
    assert explorer.error == ""
    assert explorer.selection is not None
    assert (explorer.controls["run"].layout.display, explorer.controls["chart"].layout.display) == (
        "none",
        "",
    )


def test_each_check_has_its_own_chart(explorer):
    titles = set()
    for check in CHECKS:
        explorer.check = check
        explorer.controls["run"].click()
        titles.add(explorer.controls["chart"].title)
    assert len(titles) == len(CHECKS)


def test_balance_and_placebo_are_those_of_the_audit_at_the_shown_threshold(explorer):
    epsilon = explorer.state.epsilons[-2]
    explorer.epsilon, explorer.check = epsilon, "placebo"
    wanted = example_audit().balance((), "1", epsilon=epsilon, permutations=5)
    xr.testing.assert_identical(explorer.run(), wanted)


def test_what_was_found_is_kept_until_the_threshold_changes_and_found_again(explorer, monkeypatch):
    explorer.check = "balance"
    before, own = explorer.run(), explorer.epsilon
    explorer.epsilon = explorer.state.epsilons[-2]
    assert explorer.selection is None
    explorer.epsilon = own
    assert explorer.selection is before
    monkeypatch.setattr(mpc.Audit, "balance", None)
    assert explorer.run() is before


def test_the_density_is_the_same_for_all_thresholds(explorer):
    explorer.check = "density"
    found = explorer.run()
    explorer.epsilon = explorer.state.epsilons[-2]
    assert explorer.selection is found


def test_progress_is_reported_for_every_placebo(explorer):
    told = []
    explorer.check = "placebo"
    explorer.run(lambda done, total: told.append((done, total)))
    assert told == [(k, 5) for k in range(6)]


def test_what_goes_wrong_behind_the_button_is_shown(explorer, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("no luck")

    monkeypatch.setattr(mpc.Audit, "limit", fails)
    explorer.check = "density"
    explorer.controls["run"].click()
    assert explorer.error == "no luck"
    assert not explorer.controls["run"].disabled


def test_columns_that_vary_inside_queries_can_be_compared(rich):
    assert comparable_columns(rich.ranking) == ["price", "<b>shop"]
    explorer = ChecksExplorer(rich, check="balance")
    assert explorer.covariates == ("price", "<b>shop")
    names = explorer.run()["covariate"].values.tolist()
    assert names == ["position", "price", "<b>shop=<i>", "<b>shop=x"]


def test_columns_are_chosen_in_the_list(rich):
    explorer = ChecksExplorer(rich, check="balance")
    _ = explorer.widget
    explorer.controls["covariates"].value = ("price",)
    assert explorer.covariates == ("price",)
    assert explorer.run()["covariate"].values.tolist() == ["position", "price"]
    with pytest.raises(traitlets.TraitError, match=r"no column 'pric'.*'price'"):
        explorer.covariates = ("pric",)


def test_without_other_columns_the_list_is_hidden_and_the_reason_said(explorer):
    explorer.check = "balance"
    assert explorer.controls["covariates"].layout.display == "none"
    assert "no other column" in explorer.controls["note"].text


def test_the_number_of_placebos_can_be_chosen(explorer):
    explorer.check = "placebo"
    explorer.controls["permutations"].value = 50
    assert explorer.permutations == 50
    explorer.permutations = 77
    assert (explorer.controls["permutations"].value, explorer.permutations) == (77, 77)


@pytest.mark.parametrize("check", LONG)
def test_without_rows_a_long_check_says_how_to_give_them(check):
    explorer = ChecksExplorer(without_rows(example_audit()), check=check)
    _ = explorer.widget
    assert "mpc.load" in explorer.error


@pytest.mark.parametrize("check", ["ladder", "power"])
def test_without_rows_a_quick_check_is_drawn(check):
    explorer = ChecksExplorer(without_rows(example_audit()), check=check)
    _ = explorer.widget
    assert explorer.error == ""


@pytest.mark.parametrize("check", CHECKS)
def test_strange_names_and_a_group_without_pairs_are_drawn(check):
    for audit, group in ((hostile_audit(), HOSTILE[0]), (bare_audit(), "rare")):
        explorer = ChecksExplorer(audit, group=group, check=check, permutations=3)
        _ = explorer.widget
        explorer.controls["run"].click()
        assert explorer.error == ""
