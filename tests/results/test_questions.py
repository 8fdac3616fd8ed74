"""What a person sees of an audit: its numbers and its questions, and no wires."""

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


def test_an_audit_shows_its_numbers_and_questions_and_no_internals(audit):
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
