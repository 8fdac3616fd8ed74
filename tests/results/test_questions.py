"""What a person sees of an audit: its questions, each described in full, and no wires."""

import inspect

import pytest

from mpc_lab.results import Audit
from mpc_lab.results.questions import Questions
from mpc_lab.results.questions.boosts import BoostQuestions
from mpc_lab.results.questions.drivers import DriverQuestions
from mpc_lab.results.questions.examination import PlaceQuestions
from mpc_lab.results.questions.partial import WhyQuestions
from mpc_lab.results.questions.tell import StoryQuestions

NUMBERS = {
    "attrs",
    "curve",
    "grid",
    "groups",
    "headline",
    "looks",
    "moments",
    "objective",
    "preflight",
    "ranking",
    "tree",
}
ANSWERS = {"check", "curve_of", "explore", "model_card", "report", "save", "summary", "to_frame"}
ANSWERS |= {"recipe", "to_json", "to_metrics"}
METHODS = sorted(
    name for name, _ in inspect.getmembers(Audit, inspect.isfunction) if not name.startswith("_")
)


def test_an_audit_shows_its_numbers_and_questions_and_no_wires(audit):
    of = (
        Questions,
        BoostQuestions,
        DriverQuestions,
        PlaceQuestions,
        StoryQuestions,
        WhyQuestions,
    )
    questions = {name for kind in of for name in vars(kind) if not name.startswith("_")}
    shown = {name for name in dir(audit) if not name.startswith("_")}
    assert shown == NUMBERS | ANSWERS | questions


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_takes_and_returns_and_shows_an_example(name):
    method = getattr(Audit, name)
    sections = ["Returns\n-------", "Examples\n--------\n>>> import"]
    if len(inspect.signature(method).parameters) > 1:
        sections.append("Parameters\n----------")
    doc = inspect.getdoc(method)
    assert [section for section in sections if section not in doc] == []


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_described(name):
    method = getattr(Audit, name)
    named = inspect.getdoc(method).partition("Parameters\n----------")[2].partition("\n\n")[0]
    heads = [line.partition(" :")[0] for line in named.splitlines() if not line.startswith(" ")]
    described = {one.strip("* ") for head in heads for one in head.split(",")}
    assert set(inspect.signature(method).parameters) - {"self"} <= described
