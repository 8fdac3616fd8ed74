"""The address of the app says what is shown, and leads there again."""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.explorer_audits import hostile_audit
from mpc_lab.explorers.address import Address, restore, words_of
from mpc_lab.explorers.start_panel import Start


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(
        mpc.datasets.synthetic(queries=500),
        scoring_rules=["baseline", mpc.Boosted(0.1)],
        pairing_modes=["matched", "mirrored"],
        progress=False,
    )


def test_an_address_leads_back_to_what_is_shown(audit):
    shown = audit.explore(
        group="2", scoring_rule="boosted(0.1)", pairing_mode="mirrored", tab="Pairs"
    )
    shown.epsilon = shown.state.epsilons[3]
    other = audit.explore()
    restore(other, words_of(shown))
    assert words_of(other) == words_of(shown)
    assert (other.group, other.tab, other.epsilon) == ("2", "Pairs", shown.epsilon)
    assert (other.scoring_rule, other.pairing_mode) == ("boosted(0.1)", "mirrored")


def test_a_threshold_of_the_headline_is_left_out(audit):
    shown = audit.explore(group="1", tab="Epsilon")
    assert words_of(shown) == "group=1&rule=baseline&pairs=matched&tab=Epsilon"


def test_names_are_encoded_and_come_back():
    hostile = hostile_audit()
    for name in hostile.groups:
        words = words_of(hostile.explore(group=name))
        assert not set(words) & set("<>\"' #")
        other = hostile.explore()
        restore(other, words)
        assert other.group == name


@pytest.mark.parametrize(
    "words",
    ["", "group=nobody", "tab=None&epsilon=0.5e", "epsilon=nan", "epsilon=-1", "state=1&&=", "%ff"],
)
def test_what_the_audit_does_not_have_is_passed_over(audit, words):
    shown = audit.explore()
    before = words_of(shown)
    restore(shown, words)
    assert words_of(shown) == before


def test_an_address_follows_the_explorer_and_the_other_way(audit):
    address, shown = Address(), audit.explore(group="1")
    address.follow(shown)
    shown.tab = "Epsilon"
    shown.group = "2"
    assert address.words == words_of(shown)
    address.asked = "group=1&tab=Pairs"
    assert (shown.group, shown.tab) == ("1", "Pairs")
    assert address.words == words_of(shown)


def test_an_explorer_that_is_made_later_starts_where_the_address_asked():
    address = Address(asked="group=2&tab=Epsilon")
    begun = Start(mpc.datasets.synthetic(queries=300).to_frame(), on_land=address.follow)
    begun.run()
    assert (begun.explorer.group, begun.explorer.tab) == ("2", "Epsilon")
