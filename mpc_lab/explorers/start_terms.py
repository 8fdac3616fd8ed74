"""The options of a run that few need, folded: on what terms items are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import Note, controls_row, dropdown, text_field
from mpc_lab.pairing.terms import (
    CLOSENESS,
    CONTRASTS,
    DIFFERENCE,
    ESTIMANDS,
    PAIRS,
    PERCENTILE,
    QUERIES,
    QUERY_SD,
    ROOT,
    SCORE,
    SIGN,
    threshold_in_words,
)
from mpc_lab.text import quote

if TYPE_CHECKING:
    from mpc_lab.explorers.start_state import StartState

_CLOSENESS = {
    SCORE: "scores as they are",
    QUERY_SD: "in standard deviations of the query",
    PERCENTILE: "by place, as a share of the list",
}
_ESTIMANDS = {
    PAIRS: "every pair equally",
    QUERIES: "every query equally",
    ROOT: "each query by the root of its pairs",
}
_CONTRASTS = {DIFFERENCE: "the difference of outcomes", SIGN: "which outcome is higher"}


_OLDER = ("closeness", "contrast", "estimand", "outcome_cap", "against")


def threshold_field(
    state: StartState, box: dict[str, Any], guard: Callable[[Callable[[], None]], None]
) -> widgets.Widget:
    """Return the field for ε, which takes what the command line takes; see `terms_fold`."""
    box["threshold"] = text_field("ε", placeholder="quantile:0.01", continuous_update=False)

    def read(text: str) -> Any:
        return threshold_in_words(text) if text else None

    box["threshold"].observe(_taken(state, "threshold", read, guard), "value")
    return _cell(box["threshold"], "largest distance of scores: a number, enough, smallest:1000")


def terms_fold(
    state: StartState, box: dict[str, Any], guard: Callable[[Callable[[], None]], None]
) -> widgets.Widget:
    """Return the folded fields; each sets its trait of the state.

    Parameters
    ----------
    state : StartState
    box : dict
        Gets the fields by the names of their traits.
    guard : callable
        Does something, and shows what goes wrong.
    """
    box["closeness"] = dropdown("Closeness", _pairs(_CLOSENESS, CLOSENESS), state.closeness)
    box["contrast"] = dropdown("A pair counts", _pairs(_CONTRASTS, CONTRASTS), state.contrast)
    box["estimand"] = dropdown("The mean counts", _pairs(_ESTIMANDS, ESTIMANDS), state.estimand)
    box["outcome_cap"] = text_field("Outcome cap", placeholder="none", continuous_update=False)
    box["against"] = text_field("Against", placeholder="all others", continuous_update=False)
    box["ascending"] = dropdown(
        "Best score", [("the largest", False), ("the smallest", True)], False
    )
    box["outcome_name"] = text_field(
        "Outcome name", placeholder="its column", continuous_update=False
    )
    read = {
        "outcome_cap": _read_cap,
        "against": lambda text: text or None,
        "outcome_name": lambda text: text or None,
    }
    for name in ("ascending", "outcome_name", *_OLDER):
        box[name].observe(_taken(state, name, read.get(name), guard), "value")
    cells = (
        _cell(box["ascending"], "the smallest, where the score is a distance or a rank"),
        _cell(box["outcome_name"], "the word for it in sentences, such as clicks; optional"),
        _cell(box["closeness"], "how the distance of two scores is measured"),
        _cell(box["contrast"], "the second suits outcomes with long tails"),
        _cell(box["estimand"], "what the gap is a mean over"),
        _cell(box["outcome_cap"], "outcomes above this are set to it; optional"),
        _cell(box["against"], "compare with members of this group only; optional"),
    )
    row = controls_row(*cells)
    row.layout.align_items = "flex-start"
    box["more"] = widgets.Accordion([row], titles=("More",), selected_index=None)
    return box["more"]


def _pairs(words: dict[str, str], values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(words[value], value) for value in values]


def _read_cap(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise MpcError(
            f"The outcome cap must be a number such as 100; got {quote(text)}. Give a number, or "
            "leave it empty."
        ) from None


def _taken(
    state: StartState,
    name: str,
    read: Callable[[str], Any] | None,
    guard: Callable[[Callable[[], None]], None],
) -> Callable[[Any], None]:
    def choose(change: Any) -> None:
        def take() -> None:
            value = change["new"]
            setattr(state, name, value if read is None else read(value.strip()))

        guard(take)

    return choose


def _cell(control: Any, meaning: str) -> widgets.Widget:
    made = widgets.VBox([control, Note(meaning)])
    made.add_class("mpc-cell")
    return made
