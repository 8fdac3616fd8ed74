"""The explorer of an audit: the finding, the controls that all tabs share, and the tabs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import traitlets

from mpc_lab.errors import near_match
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.pieces import Note
from mpc_lab.results.summary import reading

if TYPE_CHECKING:
    from mpc_lab.results import Audit

# Known before the tabs are loaded: a tab may be asked for by name while nothing is drawn yet.
NAMES = ("Groups", "Epsilon", "Boost", "Pairs", "Calibration", "Rivals", "Checks")
_SENTENCES = 3


class AuditExplorer(Explorer):
    """One panel with all tabs; group, rule, mode and ε are shared by them.

    Parameters
    ----------
    audit : Audit
    **start
        ``group``, ``scoring_rule``, ``pairing_mode``, ``epsilon``, or ``tab``, the name of the tab
        to start with.

    Attributes
    ----------
    tab : str
        The name of the one that is shown.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = audit.explore(group="2", tab="Epsilon")
    >>> explorer.tabs["Boost"].group
    '2'
    """

    title: ClassVar[str] = "Audit"

    tab = traitlets.Unicode().tag(redraw=True)

    def __init__(self, audit: Audit, **start: Any) -> None:
        super().__init__(audit, **start)

    def prepare(self) -> None:
        """Start with the first tab."""
        self.tab = NAMES[0]

    @cached_property
    def tabs(self) -> dict[str, Explorer]:
        """The tabs by their names, all hidden; each makes its content when it is first shown."""
        # With the tabs comes the chart library, for which the finding in words does not wait.
        from mpc_lab.explorers.tabs import TABS

        return {kind.title: kind(self.audit, state=self.state, visible=False) for kind in TABS}

    @traitlets.validate("tab")
    def _check_tab(self, proposal: Any) -> str:
        name = str(proposal["value"])
        if name not in NAMES:
            raise traitlets.TraitError(f"There is no tab {name!r}.{near_match(name, NAMES)}")
        return name

    def shared_controls(self) -> Sequence[widgets.Widget]:
        """Return the finding and the controls that all tabs share."""
        from mpc_lab.explorers.readings import signed_numbers
        from mpc_lab.explorers.shared import SharedControls

        self._shared = SharedControls(self.state)
        found = reading(self.audit).findings
        words = found[:_SENTENCES]
        if len(found) > _SENTENCES:
            words.append("More findings are in the first tab.")
        finding = Note("\n".join(map(signed_numbers, words)), kind="finding")
        return finding, self._shared.widget

    def view(self) -> Sequence[widgets.Widget]:
        """Return the tabs."""
        # What a person sees while the kernel is busy, or a tab is made from a long log.
        pages = [widgets.VBox([Note("Preparing this tab …")]) for _ in self.tabs]
        self._pages = widgets.Tab(children=pages, titles=tuple(self.tabs))
        self._pages.add_class("mpc-tabs")
        self._pages.observe(self._turned, "selected_index")
        return (self._pages,)

    def draw(self) -> None:
        """Show the chosen tab, and hide the others."""
        shown = self.tabs[self.tab]
        self._shared.apply(shown.unused)
        place = list(self.tabs).index(self.tab)
        for one in self.tabs.values():
            one.visible = one is shown
        page = self._pages.children[place]
        if page.children != (shown.widget,):
            page.children = (shown.widget,)
        self._pages.selected_index = place

    @property
    def selection(self) -> Any:
        """What was picked in the tab that is shown."""
        return self.tabs[self.tab].selection

    def _turned(self, change: Any) -> None:
        if change["new"] is not None:
            self.tab = list(self.tabs)[change["new"]]
