"""The panel of an audit: the finding, the controls that all tabs share, and the list of tabs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import traitlets

from mpc_lab.errors import MpcError, near_match
from mpc_lab.explorers.boost import BoostExplorer
from mpc_lab.explorers.calibration import CalibrationExplorer
from mpc_lab.explorers.checks import ChecksExplorer
from mpc_lab.explorers.compare import CompareExplorer
from mpc_lab.explorers.controls import Note
from mpc_lab.explorers.epsilon import EpsilonExplorer
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.groups import GroupsExplorer
from mpc_lab.explorers.pairs import PairsExplorer
from mpc_lab.explorers.place import PlaceExplorer
from mpc_lab.explorers.rivals import RivalsExplorer
from mpc_lab.explorers.story import StoryExplorer
from mpc_lab.explorers.why import WhyExplorer
from mpc_lab.html import NO_MATH, paragraphs
from mpc_lab.results.summary import finding_title, reading, slices
from mpc_lab.results.view import preflight_view
from mpc_lab.text import minus

if TYPE_CHECKING:
    from mpc_lab.results import Audit

# In their order. A further tab is one file, and one line here; tabs load the chart library when
# they draw, for the finding in words does not wait for it.
TABS: tuple[type[Explorer], ...] = (
    GroupsExplorer,
    StoryExplorer,
    EpsilonExplorer,
    PlaceExplorer,
    WhyExplorer,
    BoostExplorer,
    PairsExplorer,
    CompareExplorer,
    CalibrationExplorer,
    RivalsExplorer,
    ChecksExplorer,
)


class AuditExplorer(Explorer):
    """One panel with all tabs; group, rule, mode and ε are shared by them.

    Parameters
    ----------
    audit : Audit
    old : Audit, optional
        Another audit to compare this one with; see the tab *Compare*.
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

    def __init__(self, audit: Audit, old: Audit | None = None, **start: Any) -> None:
        if old is not None and not hasattr(old, "headline"):
            raise MpcError(
                f"old must be an audit; got {type(old).__name__}. Give "
                'audit.explore(old=mpc.load("a.nc")).'
            )
        super().__init__(audit, old=old, **start)

    def prepare(self) -> None:
        """Start with the first tab."""
        self.tab = TABS[0].title

    @cached_property
    def tabs(self) -> dict[str, Explorer]:
        """The tabs by their names, all hidden; each makes its content when it is first shown."""
        return {
            kind.title: kind(self.audit, state=self.state, visible=False)
            for kind in TABS
            if self._has(kind)
        }

    def _has(self, kind: type[Explorer]) -> bool:
        """Whether a tab is there."""
        return kind.is_for(self.audit) or (kind.takes_old and self.state.old is not None)

    @traitlets.validate("tab")
    def _check_tab(self, proposal: Any) -> str:
        name = str(proposal["value"])
        known = [kind.title for kind in TABS if self._has(kind)]
        if name not in known:
            raise traitlets.TraitError(f"There is no tab {name!r}.{near_match(name, known)}")
        return name

    def shared_controls(self) -> Sequence[widgets.Widget]:
        """Return the finding and the controls that all tabs share."""
        found = reading(self.audit)
        words = [*map(minus, found.findings), *map(minus, found.cautions)]
        title = Note(finding_title(slices(self.audit)[0]), kind="finding")
        folded = f'<div class="mpc-note {NO_MATH}">{paragraphs(words)}</div>'
        strip = preflight_view(self.audit)
        about = widgets.HTML(f"{strip}<details><summary>In words</summary>{folded}</details>")
        about.add_class("mpc-about")
        return title, about, self._share({})

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the tabs."""
        # What a person sees while the kernel is busy, or a tab is made from a long log.
        pages = [widgets.VBox([Note("Preparing this tab …")]) for _ in self.tabs]
        self.controls["tabs"] = widgets.Tab(children=pages, titles=tuple(self.tabs))
        self.controls["tabs"].add_class("mpc-tabs")
        self.controls["tabs"].observe(self._turned, "selected_index")
        return (self.controls["tabs"],)

    def draw(self) -> None:
        """Show the chosen tab, and hide the others."""
        shown = self.tabs[self.tab]
        self._shared.apply(shown.unused)
        place = list(self.tabs).index(self.tab)
        for one in self.tabs.values():
            one.visible = one is shown
        page = self.controls["tabs"].children[place]
        if page.children != (shown.widget,):
            page.children = (shown.widget,)
        self.controls["tabs"].selected_index = place

    def call(self) -> str:
        """Return the call of the tab that is shown."""
        return self.tabs[self.tab].call()

    @property
    def selection(self) -> Any:
        """What was picked in the tab that is shown."""
        return self.tabs[self.tab].selection

    def _turned(self, change: Any) -> None:
        if change["new"] is not None:
            self.tab = list(self.tabs)[change["new"]]
