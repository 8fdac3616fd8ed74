"""The state that tabs share, driven without a browser."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import pytest
import traitlets

from helpers.explorer_audits import bare_audit, example_audit, small_audit
from mpc_lab.explorers.state import AuditState

audit = pytest.fixture(scope="module")(example_audit)


def test_it_starts_at_the_strongest_finding_and_its_own_threshold():
    audit = small_audit()
    state = AuditState(audit)
    cell = audit.headline.sel(group=state.group, scoring_rule="baseline", pairing_mode="matched")
    assert (state.group, cell["verdict"].item()) == ("c", "undervalued")
    assert (state.scoring_rule, state.pairing_mode) == ("baseline", "matched")
    assert state.epsilon == cell["epsilon"].item()


def test_the_threshold_follows_another_group_while_it_is_the_headlines_own():
    state = AuditState(small_audit(), group="a")
    before = state.epsilon
    state.group = "b"
    assert state.epsilon == state.own_epsilon != before


def test_a_chosen_threshold_stays_when_the_group_changes(audit):
    state = AuditState(audit, group="1")
    state.epsilon = 0.02
    state.group = "2"
    assert state.epsilon == 0.02


def test_an_observer_of_the_revision_sees_group_and_threshold_settled():
    state = AuditState(small_audit(), group="a")
    seen = []
    state.observe(lambda _: seen.append((state.group, state.epsilon)), "revision")
    state.group = "b"
    assert set(seen) == {("b", state.own_epsilon)}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("group", "11", "no group '11'. Did you mean '1'"),
        ("scoring_rule", "basline", "Did you mean 'baseline'"),
        ("pairing_mode", "matchd", "Did you mean 'matched'"),
        ("epsilon", -1.0, "at least 0"),
        ("epsilon", math.nan, "finite"),
        ("epsilon", math.inf, "finite"),
    ],
)
def test_what_the_audit_lacks_is_refused_and_nothing_changes(audit, name, value, words):
    state = AuditState(audit)
    before = getattr(state, name)
    with pytest.raises(traitlets.TraitError, match=words):
        setattr(state, name, value)
    assert getattr(state, name) == before


def test_a_misspelt_option_names_the_near_match(audit):
    with pytest.raises(traitlets.TraitError, match="Did you mean 'epsilon'"):
        AuditState(audit, epsilom=0.1)


def test_thresholds_are_those_of_the_curve_and_the_cells_own(audit):
    state = AuditState(audit)
    grid = set(audit.curve["epsilon"].values.tolist())
    assert set(state.epsilons) == grid | {state.own_epsilon}
    assert list(state.epsilons) == sorted(state.epsilons)


def test_a_group_without_pairs_starts_at_a_threshold_of_the_curve():
    audit = bare_audit()
    state = AuditState(audit, group="rare")
    assert math.isnan(state.own_epsilon)
    assert state.epsilon in audit.curve["epsilon"].values


def test_the_state_asks_for_no_widgets():
    source = Path(inspect.getfile(AuditState)).read_text("utf-8")
    assert not [name for name in ("ipywidgets", "anywidget", "altair") if name in source]
