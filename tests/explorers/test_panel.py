"""The panel of all tabs: shared controls, tabs made when they are shown."""

from __future__ import annotations

import pytest
import traitlets

import mpc_lab as mpc
from helpers.explorer_audits import example_audit, hostile_audit, small_audit, without_rows
from helpers.hostile import HOSTILE
from mpc_lab.explorers import AuditExplorer, Explorer, tabs
from mpc_lab.explorers.controls import Note
from mpc_lab.explorers.explorer import SharedControls
from mpc_lab.explorers.state import SHARED, AuditState
from mpc_lab.explorers.tabs import TABS
from mpc_lab.results.view import preflight_view

audit = pytest.fixture(scope="module")(example_audit)


def shown(audit, **start):
    explorer = AuditExplorer(audit, **start)
    _ = explorer.widget
    return explorer


def test_explore_opens_the_panel_at_the_given_group_and_tab(audit):
    explorer = audit.explore(group="2", tab="Epsilon")
    assert isinstance(explorer, AuditExplorer)
    assert {tab.group for tab in explorer.tabs.values()} == {"2"}
    assert explorer.tab == "Epsilon"


# The tab of places is there only where positions are known: test_place draws it.
EVERYWHERE = [kind for kind in TABS if kind.title != "Place"]


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_every_tab_draws_without_an_error(audit, kind):
    explorer = shown(audit, tab=kind.title)
    assert explorer.error == ""
    assert explorer.tabs[kind.title].error == ""
    assert explorer.tabs[kind.title].drawn == 1


@pytest.mark.parametrize(
    "kind",
    [EVERYWHERE[0], *(pytest.param(kind, marks=pytest.mark.long) for kind in EVERYWHERE[1:])],
)
def test_every_tab_draws_groups_of_strange_names(kind):
    hostile = hostile_audit(("baseline", "boosted"))  # there is a tab for two rules
    explorer = shown(hostile, tab=kind.title, group=HOSTILE[0])
    explorer.group = HOSTILE[1]
    assert explorer.tabs[kind.title].error == ""


class SizesExplorer(Explorer):
    """A tab that is defined here alone."""

    title = "Sizes"

    def make_view(self):
        self.controls["sentence"] = Note(kind="sentence")
        return (self.controls["sentence"],)

    def draw(self):
        self.controls["sentence"].text = f"{self.cell.pairs} pairs"


def test_a_tab_is_one_class_in_the_list(audit, monkeypatch):
    monkeypatch.setattr(tabs, "TABS", (*TABS, SizesExplorer))
    explorer = shown(audit, tab="Sizes", group="2")
    made = explorer.tabs["Sizes"]
    assert (made.error, made.group) == ("", "2")
    assert made.controls["sentence"].text == f"{made.cell.pairs} pairs"
    assert "Sizes" in explorer.controls["tabs"].titles


def test_only_the_tab_that_is_shown_is_made_and_drawn(audit):
    explorer = shown(audit)
    made = [name for name, tab in explorer.tabs.items() if "widget" in tab.__dict__]
    assert made == ["Groups"]
    explorer.group = "1"
    assert [tab.drawn for tab in explorer.tabs.values()][1:] == [0] * (len(EVERYWHERE) - 1)


def test_the_first_tab_draws_the_gaps_before_it_asks_for_any_curve():
    audit = mpc.audit(mpc.datasets.synthetic(queries=300), threshold=0.05, progress=False)
    make, shown_first = audit._curve_part, []
    explorer = AuditExplorer(audit)
    groups = explorer.tabs["Groups"]

    def listened(*cell):
        shown_first.append(groups.controls["chart"].title)
        return make(*cell)

    audit._curve_part = listened
    _ = explorer.widget
    assert groups.error == ""
    assert shown_first
    assert all(shown_first)
    assert set(audit.grid.tolist()) <= set(explorer.state.epsilons)


def test_the_rail_speaks_its_value_and_the_pairs_of_each_step(audit):
    # Before its curve is made, a rail cannot know how many pairs a step has.
    assert audit.curve.sizes["epsilon"] > 1
    explorer = shown(audit, group="1")
    rail = explorer.controls["epsilon"]
    assert rail.steps == sorted(explorer.state.epsilons)
    assert rail.home == explorer.state.own_epsilon
    pairs = explorer.state.curve_cell["n_pairs"].values.tolist()
    spoken = dict(zip(rail.steps, rail.texts, strict=True))
    at = float(audit.grid[-1])
    assert spoken[at].startswith(f"ε {at:.3g}, {pairs[-1]:,} pair")
    assert spoken[rail.home].endswith("headline")


def test_charts_and_the_rail_share_the_link_of_their_panel(audit):
    one, other = shown(audit), shown(audit)
    rail = one.controls["epsilon"]
    assert rail.link == one.tabs["Groups"].controls["chart"].link != ""
    assert rail.link != other.controls["epsilon"].link


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_what_is_copied_as_python_runs_and_makes_something(audit, kind):
    explorer = shown(audit, tab=kind.title, group="1")
    code = explorer.state.shown
    assert eval(code, {"mpc": mpc, "audit": audit}) is not None
    crumbs, take = explorer.widget.children[4].children
    assert take.code == f"import mpc_lab as mpc\n\n{code}"
    assert "1 › matched pairs › ε" in crumbs.text


def test_what_is_selected_is_said_and_a_look_beside_the_headline_too(audit):
    explorer = shown(audit, group="1")
    crumbs, _ = explorer.widget.children[4].children
    assert crumbs.text.endswith("(headline)")
    explorer.epsilon = explorer.state.epsilons[0]
    assert crumbs.text.endswith("not the ε of the verdict")


def test_a_click_on_a_tab_shows_it_and_hides_the_other(audit):
    explorer = shown(audit)
    place = list(explorer.tabs).index("Epsilon")
    explorer.controls["tabs"].selected_index = place
    assert explorer.tab == "Epsilon"
    assert [name for name, tab in explorer.tabs.items() if tab.visible] == ["Epsilon"]
    assert explorer.controls["tabs"].children[place].children == (explorer.tabs["Epsilon"].widget,)


def test_a_tab_that_is_set_by_code_is_turned_to(audit):
    explorer = shown(audit)
    explorer.tab = "Boost"
    assert explorer.controls["tabs"].selected_index == list(explorer.tabs).index("Boost")


def test_an_unknown_tab_names_the_near_match(audit):
    with pytest.raises(traitlets.TraitError, match="Did you mean 'Epsilon'"):
        AuditExplorer(audit, tab="Epsilo")


def test_the_shared_controls_move_the_state_and_follow_it(audit):
    explorer = shown(audit, group="1")
    boxes = explorer.controls
    boxes["group"].value = "2"
    assert explorer.group == "2"
    explorer.epsilon = 0.02
    assert boxes["epsilon"].value == 0.02
    boxes["epsilon"].value = explorer.state.epsilons[0]
    assert explorer.epsilon == explorer.state.epsilons[0]


def test_controls_that_a_tab_does_not_use_are_off_and_say_why(audit):
    explorer = shown(audit, tab="Boost")
    boxes = {name: explorer.controls[name] for name in SHARED}
    note = explorer.controls["shared_note"]
    assert boxes["scoring_rule"].disabled
    assert "Scoring rule: a boost starts from the scores as logged" in note.text
    explorer.tab = "Epsilon"
    assert not any(box.disabled for box in boxes.values())
    assert note.text == ""


def test_a_control_with_one_choice_is_not_shown():
    shared = SharedControls(AuditState(small_audit()))
    assert shared.boxes["pairing_mode"].layout.display == "none"
    assert shared.boxes["group"].layout.display == ""
    assert shared.note.text == ""


def test_every_shared_control_has_a_label(audit):
    shared = SharedControls(AuditState(audit))
    assert all(box.description for box in shared.boxes.values())


def test_names_in_the_list_differ_and_lead_to_their_groups():
    state = AuditState(hostile_audit())
    box = SharedControls(state).boxes["group"]
    shown_names, groups = zip(*box.options, strict=True)
    assert set(groups) == set(state.groups)
    assert len(set(shown_names)) == len(groups)


def test_the_finding_is_shown_above_as_text():
    explorer = shown(hostile_audit())
    for part in explorer.widget.children[1:3]:
        assert "<script>" not in part.value


def test_an_audit_without_rows_shows_what_it_can(audit):
    explorer = shown(without_rows(audit))
    assert explorer.tabs["Groups"].error == ""
    explorer.tab = "Boost"
    assert "must have the rows" in explorer.tabs["Boost"].error
    explorer.tab = "Epsilon"
    assert explorer.tabs["Epsilon"].error == ""


def test_the_selection_is_that_of_the_tab_that_is_shown(audit):
    explorer = shown(audit, group="1")
    assert explorer.selection.identical(explorer.tabs["Groups"].selection)


def test_words_of_a_tab_have_a_row_of_their_own_so_that_the_rail_keeps_its_length(audit):
    explorer = shown(audit, tab="Boost")
    note = explorer.controls["shared_note"]
    assert note.text
    assert "mpc-own-row" in note._dom_classes


def test_what_the_preflight_notes_is_folded_below_its_marks(audit):
    found = preflight_view(audit)
    assert '<summary class="mpc-preflight">Preflight' in found
    assert "<details open>" not in found
