"""The base of the tabs: traits tied to the state, when it draws, errors in the panel."""

from __future__ import annotations

import pytest
import traitlets

from helpers.explorer_audits import example_audit, small_audit
from mpc_lab.errors import MpcError
from mpc_lab.explorers import AuditState, Explorer

audit = pytest.fixture(scope="module")(example_audit)


class Tab(Explorer):
    """Counts its drawings and fails on request."""

    title = "Tab"
    fail = traitlets.Any(None, allow_none=True).tag(redraw=True)
    other = traitlets.Int(0)

    def prepare(self):
        self.seen = []

    def draw(self):
        if self.fail is not None:
            raise self.fail
        self.seen.append((self.group, self.epsilon))


def test_traits_go_to_the_state_and_come_from_it(audit):
    tab = Tab(audit, group="1")
    tab.epsilon = 0.02
    tab.state.group = "2"
    assert (tab.state.epsilon, tab.group) == (0.02, "2")


def test_two_tabs_share_one_state(audit):
    state = AuditState(audit, group="1")
    one, other = Tab(audit, state=state), Tab(audit, state=state)
    one.group = "2"
    assert other.group == "2"


def test_an_observer_of_a_tab_hears_a_change(audit):
    tab, heard = Tab(audit), []
    tab.observe(lambda change: heard.append(change["new"]), "epsilon")
    tab.epsilon = 0.03
    assert heard == [0.03]


def test_a_refused_value_leaves_tab_and_state_as_they_were(audit):
    tab = Tab(audit, group="1")
    with pytest.raises(traitlets.TraitError, match="no group 'one'"):
        tab.group = "one"
    assert tab.group == tab.state.group == "1"


def test_a_start_that_the_tab_lacks_names_the_near_match(audit):
    with pytest.raises(traitlets.TraitError, match=r"'grup'.* Did you mean 'group'"):
        Tab(audit, grup="1")


def test_nothing_is_drawn_before_the_widget_is_asked_for(audit):
    tab = Tab(audit)
    tab.epsilon = 0.03
    assert tab.drawn == 0
    assert tab.widget is tab.widget
    assert tab.drawn == 1


def test_a_change_of_group_draws_once_with_the_threshold_settled():
    tab = Tab(small_audit(), group="a")
    _ = tab.widget
    tab.group = "b"
    assert tab.seen[1:] == [("b", tab.state.own_epsilon)]


def test_a_tab_without_traits_of_its_own_draws_when_the_state_changes(audit):
    class Plain(Explorer):
        pass

    tab = Plain(audit, group="1")
    _ = tab.widget
    tab.group = "2"
    assert tab.drawn == 2


def test_a_trait_without_the_tag_does_not_draw(audit):
    tab = Tab(audit)
    _ = tab.widget
    tab.other = 1
    assert tab.drawn == 1


def test_a_hidden_tab_draws_when_it_is_shown_and_only_if_something_changed(audit):
    tab = Tab(audit, group="1", visible=False)
    _ = tab.widget
    assert tab.drawn == 0
    tab.visible = True
    tab.visible = False
    tab.visible = True
    assert tab.drawn == 1
    tab.visible = False
    tab.group = "2"
    assert tab.drawn == 1
    tab.visible = True
    assert tab.drawn == 2


def test_an_error_is_shown_with_its_traceback_and_cleared_by_the_next_success(audit):
    tab = Tab(audit, fail=KeyError("<b>boom</b>"))
    _ = tab.widget
    assert "boom" in tab.error
    assert 'role="alert"' in tab.controls["error"].value
    assert "&lt;b&gt;boom" in tab.controls["error"].value
    assert "<b>" not in tab.controls["error"].value
    assert "Traceback" in tab.controls["error"].value
    tab.fail = None
    assert (tab.error, tab.controls["error"].value, tab.controls["error"].layout.display) == (
        "",
        "",
        "none",
    )


def test_our_own_errors_show_no_traceback(audit):
    tab = Tab(audit, fail=MpcError("Give more rows."))
    _ = tab.widget
    assert "Give more rows." in tab.controls["error"].value
    assert "Traceback" not in tab.controls["error"].value


def test_an_error_in_one_tab_leaves_the_other_alone(audit):
    state = AuditState(audit, group="1")
    bad, good = Tab(audit, state=state, fail=ValueError("no")), Tab(audit, state=state)
    _ = bad.widget, good.widget
    state.group = "2"
    assert bad.error == "no"
    assert good.seen[-1][0] == "2"


def test_display_shows_the_words_then_the_live_form_then_the_pictures(audit, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda what, raw=False: shown.append(what))
    tab = Tab(audit)
    tab._ipython_display_()
    assert 'class="mpc-static"' in shown[0].data
    live = shown[1]["application/vnd.jupyter.widget-view+json"]
    assert live["model_id"] == tab.widget.model_id
    assert 'class="mpc-static"' in shown[2].data
