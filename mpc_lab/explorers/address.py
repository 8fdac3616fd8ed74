"""What an explorer shows, in the address of its page: it can be kept, sent and opened again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

import anywidget
import traitlets

if TYPE_CHECKING:
    from mpc_lab.explorers.tabs import AuditExplorer

# The name of each in the address, in the order in which they are set: the threshold that belongs to
# a cell comes after it.
_LABELS = {"rule": "scoring_rule", "pairs": "pairing_mode", "group": "group"}
_DIGITS, _NEAR = ".6g", 1e-4


class Address(anywidget.AnyWidget):
    """The fragment of the address of the app's page, and the page's title.

    Attributes
    ----------
    title : str
    words : str
        What is shown, as it is in the address.
    asked : str
        What the address asked for when the page opened, or when somebody changed it.
    """

    _esm = Path(__file__).parent / "address.js"

    title = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    asked = traitlets.Unicode().tag(sync=True)

    def follow(self, explorer: AuditExplorer) -> None:
        """Set an explorer to what the address asks for, and keep the two in step from then on."""
        self._explorer = explorer
        self._settle()
        explorer.state.observe(self._show, "revision")
        explorer.observe(self._show, "tab")

    @traitlets.observe("asked")
    def _settle(self, _change: Any = None) -> None:
        if hasattr(self, "_explorer"):
            restore(self._explorer, self.asked)
            self._show()

    def _show(self, _change: Any = None) -> None:
        self.words = words_of(self._explorer)


def words_of(explorer: AuditExplorer) -> str:
    """Return what an explorer shows, as the fragment of an address.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> words_of(audit.explore(group="2", tab="Pairs"))
    'group=2&tab=Pairs'
    """
    state = explorer.state
    shown = {"group": state.group}
    if len(state.scoring_rules) > 1:
        shown["rule"] = state.scoring_rule
    if len(state.pairing_modes) > 1:
        shown["pairs"] = state.pairing_mode
    shown["tab"] = explorer.tab
    if state.epsilon != state.own_epsilon:
        shown["epsilon"] = format(state.epsilon, _DIGITS)
    return urlencode(shown, quote_via=quote)


def restore(explorer: AuditExplorer, words: str) -> None:
    """Set an explorer to what a fragment says; skip what the audit does not have."""
    asked = dict(parse_qsl(words))
    state = explorer.state
    for name, trait in _LABELS.items():
        if asked.get(name) in getattr(state, f"{trait}s"):
            setattr(state, trait, asked[name])
    step = _nearest(asked.get("epsilon", ""), state.epsilons)
    if step is not None:
        state.epsilon = step
    if asked.get("tab") in explorer.tabs:
        explorer.tab = asked["tab"]


def _nearest(text: str, steps: Iterable[float]) -> float | None:
    """Return the step that a text rounds; None where it is no such number."""
    try:
        asked = float(text)
    except ValueError:
        return None
    return next((step for step in steps if math.isclose(step, asked, rel_tol=_NEAR)), None)
