"""The controls that all tabs share: group, rule, mode and threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from mpc_lab.charts.words import labels
from mpc_lab.explorers.pieces import Note, controls_row, dropdown, step_slider
from mpc_lab.explorers.state import AuditState
from mpc_lab.results.wording import listing

_NAMES = {
    "group": "Group",
    "scoring_rule": "Scoring rule",
    "pairing_mode": "Pairs",
    "epsilon": "Threshold ε",
}
_PLURAL = {"group": "group", "scoring_rule": "scoring rule", "pairing_mode": "kind of pairs"}


class SharedControls:
    """Dropdowns and the ε slider, tied to a state in both directions.

    Parameters
    ----------
    state : AuditState
    unused : mapping of str, optional
        Names of shared traits that do not apply, each with the reason.
    """

    def __init__(self, state: AuditState, unused: Mapping[str, str] | None = None) -> None:
        self.state = state
        self.note = Note()
        self._taking = False
        self.boxes: dict[str, Any] = {}
        for name in ("group", "scoring_rule", "pairing_mode"):
            known = getattr(state, f"{name}s")
            options = list(zip(labels(known), known, strict=True))
            self.boxes[name] = dropdown(_NAMES[name], options, getattr(state, name))
            self.boxes[name].observe(self._chosen(name), "value")
        self.boxes["epsilon"] = step_slider(_NAMES["epsilon"], self._steps(), state.epsilon)
        self.boxes["epsilon"].observe(self._chosen("epsilon"), "value")
        self.widget: widgets.Widget = controls_row(*self.boxes.values(), self.note)
        self.apply(unused or {})
        state.observe(self._settled, "revision")

    def apply(self, unused: Mapping[str, str]) -> None:
        """Disable what does not apply, and say why."""
        reasons: dict[str, list[str]] = {}
        for name, box in self.boxes.items():
            single = name in _PLURAL and len(getattr(self.state, f"{name}s")) == 1
            box.disabled = name in unused or single
            if box.disabled:
                why = unused.get(name) or f"the audit has one {_PLURAL[name]}"
                reasons.setdefault(why, []).append(_NAMES[name])
        said = "; ".join(f"{listing(names)}: {why}" for why, names in reasons.items())
        self.note.text = f"{said}." if said else ""

    def _steps(self) -> list[tuple[str, float]]:
        own = self.state.own_epsilon
        steps = sorted({*self.state.epsilons, self.state.epsilon})
        return [(f"{value:.3g}{' (headline)' if value == own else ''}", value) for value in steps]

    def _chosen(self, name: str) -> Any:
        def choose(change: Any) -> None:
            if not self._taking:
                setattr(self.state, name, change["new"])

        return choose

    def _settled(self, _change: Any) -> None:
        # New options choose the first of them for a moment; the state is not to hear of it.
        self._taking = True
        try:
            for name in _PLURAL:
                self.boxes[name].value = getattr(self.state, name)
            slider, steps = self.boxes["epsilon"], self._steps()
            if list(slider.options) != steps:
                slider.options = steps
            slider.value = self.state.epsilon
        finally:
            self._taking = False
