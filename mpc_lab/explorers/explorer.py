"""The base of every tab: its traits and controls, when it draws, and what is shown if that fails.

Below it the controls that all tabs share, and the form of an audit that stays where no kernel is.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import traitlets

from mpc_lab.errors import MpcError, check_flag, near_match
from mpc_lab.explorers.controls import (
    Beacon,
    ErrorBox,
    Note,
    column,
    controls_row,
    dropdown,
)
from mpc_lab.explorers.page import Rail, TakeAlong
from mpc_lab.explorers.state import SHARED, AuditState, CellTraits
from mpc_lab.html import can_draw, escape
from mpc_lab.results.base import settings
from mpc_lab.results.view import html_view
from mpc_lab.results.wording import declared
from mpc_lab.text import labels, listing
from mpc_lab.text import name as shown_name
from mpc_lab.vocabulary import VERDICTS

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.results import Audit

_NO_KERNEL = "The live explorer shows here while its kernel runs."


class Explorer(CellTraits):
    """A view of an audit in a notebook, with its state as traits.

    ``group``, ``scoring_rule``, ``pairing_mode`` and ``epsilon`` are those of `state`, in both
    directions. A change of a trait that a tab tags ``redraw=True`` draws it again.

    Parameters
    ----------
    audit : Audit
    state : AuditState, optional
        Shared with other tabs; by default its own.
    old : Audit, optional
        Another audit to compare this one with, such as that of last week.
    label : str, optional
        The column of the log that says what an item is called, such as its title; for pairs.
    live : bool
        Whether ε can be moved in the picture that an exported notebook keeps, too. The notebook
        then holds the chart library, some 1 MB for each output.
    **start
        Any trait of the explorer.

    Attributes
    ----------
    state : AuditState
    visible : bool
        A hidden explorer does not draw; it does when it is shown again.
    error : str
        What went wrong in the last drawing; empty when nothing did.
    drawn : int
        How often it was drawn.
    controls : dict
        The widgets by their names, once ``widget`` was made: what a person can set, and ``error``,
        ``sentence``, ``numbers`` or ``chart`` where a tab has them.
    """

    title: ClassVar[str] = ""
    # Which of the shared controls do not apply, and why; shown beside them.
    unused: ClassVar[Mapping[str, str]] = {}
    # Whether another audit beside this one is enough for the tab to be there.
    takes_old: ClassVar[bool] = False

    @classmethod
    def is_for(cls, audit: Audit) -> bool:
        """Whether an audit has what the tab is about; otherwise the tab is not there."""
        return True

    visible = traitlets.Bool(True)
    error = traitlets.Unicode(read_only=True)
    drawn = traitlets.Int(0, read_only=True)

    def __init__(
        self,
        audit: Audit,
        *,
        state: AuditState | None = None,
        old: Audit | None = None,
        label: Hashable = None,
        live: bool = False,
        **start: Any,
    ) -> None:
        super().__init__()
        self._exports_live = check_flag("live", live)
        self.set_trait("audit", audit)
        names = [*SHARED, "visible", *self._own_traits()]
        for name in start:
            if name not in names:
                raise traitlets.TraitError(
                    f"{type(self).__name__} has no option {name!r}.{near_match(name, names)}"
                )
        shared = {name: start.pop(name) for name in SHARED if name in start}
        self.alone = state is None
        self.state = AuditState(audit, old, label, **shared) if state is None else state
        # What the audit answered to one tab, it answers to all.
        self.__dict__["_known"] = self.state.__dict__.setdefault("_known", {})
        self._drawn_at: tuple[Any, ...] | None = None
        self._stale, self._made = True, False
        self.controls: dict[str, Any] = {}
        self._take()
        self.observe(self._give, SHARED)
        self.state.observe(self._settled, "revision")
        for name, value in shared.items():
            setattr(self.state, name, value)
        for name in self._own_traits():
            self.observe(self._own_changed, name)
        self.prepare()
        for name, value in start.items():
            setattr(self, name, value)

    def prepare(self) -> None:
        """Set what the traits of a tab start from; the shared state is known by now."""

    def shared_controls(self) -> Sequence[widgets.Widget]:
        """Return the controls of the shared traits, for a tab shown on its own."""
        return (self._share(self.unused),)

    def _share(self, unused: Mapping[str, str]) -> widgets.Widget:
        self._shared = SharedControls(self.state, unused)
        notes = {"shared_note": self._shared.note, "standing": self._shared.standing}
        self.controls |= {**self._shared.boxes, **notes}
        return self._shared.widget

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the controls of this tab alone; called once."""
        return ()

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return what is shown below the controls; called once, before the first drawing."""
        return ()

    def draw(self) -> None:
        """Bring the view up to date with the state."""

    def call(self) -> str:
        """Return the expression of ``audit`` that makes what is shown; by default the audit."""
        return "audit"

    @property
    def selection(self) -> Any:
        """What was picked; each tab says what that is."""
        raise NotImplementedError

    @cached_property
    def widget(self) -> widgets.Widget:
        """The widgets, made when first asked for."""
        self.controls["error"] = ErrorBox()
        self._content = column()
        parts = [Beacon(), *self.shared_controls(), take_row(self.state)] if self.alone else []
        made = column(*parts, self.controls["error"], self._content)
        made.add_class("mpc-explorer")
        self.observe(self._shown, "visible")
        if self.visible:
            self._guard()
        return made

    def redraw(self) -> None:
        """Draw now; what goes wrong is shown in the panel and in ``error``."""
        is_first = "widget" not in self.__dict__
        _ = self.widget
        if not (is_first and self.visible):
            self._guard()

    def _guard(self) -> None:
        self._stale = False
        self._drawn_at = self._key()
        try:
            self._build()
            self.draw()
        except Exception as error:  # shown to the person, whatever it is
            self.set_trait("error", str(error) or type(error).__name__)
            self.controls["error"].show(error)
        else:
            self.set_trait("error", "")
            self.controls["error"].clear()
            self.state.shown = self.call()
        self.set_trait("drawn", self.drawn + 1)

    def show_error(self, error: Exception) -> None:
        """Show what went wrong outside a drawing, such as behind a button."""
        self.set_trait("error", str(error) or type(error).__name__)
        self.controls["error"].show(error)

    def _build(self) -> None:
        if self._made:
            return
        controls = list(self.make_controls())
        row = [controls_row(*controls)] if controls else []
        self._content.children = (*row, *self.make_view())
        self._made = True

    def _own_traits(self) -> list[str]:
        return list(self.traits(redraw=True))

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self.state, name) for name in SHARED if name not in self.unused)

    def _give(self, change: Any) -> None:
        setattr(self.state, change["name"], change["new"])

    def _take(self) -> None:
        for name in SHARED:
            setattr(self, name, getattr(self.state, name))

    def _settled(self, _change: Any) -> None:
        self._take()
        if self._key() != self._drawn_at:
            self._needs_drawing()

    def _own_changed(self, _change: Any) -> None:
        self._needs_drawing()

    def _needs_drawing(self) -> None:
        self._stale = True
        if self.visible and "widget" in self.__dict__:
            self.redraw()

    def _shown(self, _change: Any) -> None:
        if self.visible and self._stale:
            self.redraw()

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        # The words are there at once; the pictures, for a page without a kernel, come last.
        display(HTML(words_html(self.audit)))  # type: ignore[no-untyped-call]
        # Where no kernel is, a notebook shows the text in place of the widget.
        live = {**self.widget._repr_mimebundle_(), "text/plain": _NO_KERNEL}
        display(live, raw=True)  # type: ignore[no-untyped-call]
        display(HTML(pictures_html(self.audit, self._exports_live)))  # type: ignore[no-untyped-call]


def needs_rows(audit: Audit, what: str) -> None:
    """Refuse, in words for a panel, what an audit without rows cannot show."""
    if audit.ranking is None:
        raise MpcError(
            f"{what} must have the rows of the log; got an audit that holds aggregates only. Load "
            'it with mpc.load("a.nc", ranking=ranking) and explore it again.'
        )


# ---- the controls that all tabs share

_NAMES = {
    "group": "Group",
    "scoring_rule": "Scoring rule",
    "pairing_mode": "Pairs",
    "epsilon": "Threshold ε",
}
_CHOICES = ("group", "scoring_rule", "pairing_mode")


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
        self.note, self.standing = Note(), Note(self._standing())
        for words in (self.note, self.standing):
            words.add_class("mpc-own-row")
        self._taking = False
        self.boxes: dict[str, Any] = {}
        for name in _CHOICES:
            known = getattr(state, f"{name}s")
            options = list(zip(labels(known), known, strict=True))
            self.boxes[name] = dropdown(_NAMES[name], options, getattr(state, name))
            self.boxes[name].observe(self._chosen(name), "value")
        self.boxes["epsilon"] = Rail(
            description=_NAMES["epsilon"], link=state.link, home_words="ε of the headline"
        )
        self._set_rail()
        self.boxes["epsilon"].observe(self._chosen("epsilon"), "value")
        state.observe(self.say_pairs, "shown")
        self.widget: widgets.Widget = controls_row(*self.boxes.values(), self.standing, self.note)
        self.apply(unused or {})
        state.observe(self._settled, "revision")

    def apply(self, unused: Mapping[str, str]) -> None:
        """Disable what does not apply, and say why."""
        reasons: dict[str, list[str]] = {}
        for name, box in self.boxes.items():
            single = name in _CHOICES and len(getattr(self.state, f"{name}s")) == 1
            box.disabled = name in unused
            # A choice of one is no choice.
            box.layout.display = "none" if single else ""
            if box.disabled and not single:
                reasons.setdefault(unused[name], []).append(_NAMES[name])
        said = "; ".join(f"{listing(names)}: {why}" for why, names in reasons.items())
        self.note.text = f"{said}." if said else ""

    def _standing(self) -> str:
        """Mark what is shown as exploratory, where something else was declared before the run."""
        state = self.state
        primary = declared(settings(state.audit))
        shown = (state.scoring_rule, state.pairing_mode)
        if primary is None or (shown == primary.cell and state.epsilon == state.own_epsilon):
            return ""
        return "Exploratory: not what was declared before the run."

    def _set_rail(self) -> None:
        state = self.state
        steps = sorted({*state.epsilons, state.epsilon})
        home = state.own_epsilon if state.own_epsilon in steps else None
        texts = [state.step_words(step) for step in steps]
        self.boxes["epsilon"].show(steps, texts, state.epsilon, home)

    def say_pairs(self, _change: Any = None) -> None:
        """Let the rail speak the pairs of its steps, once the curve is made."""
        self._taking = True
        try:
            self._set_rail()
        finally:
            self._taking = False

    def _chosen(self, name: str) -> Any:
        def choose(change: Any) -> None:
            if not self._taking:
                setattr(self.state, name, change["new"])

        return choose

    def _settled(self, _change: Any) -> None:
        # New options choose the first of them for a moment; the state is not to hear of it.
        self._taking = True
        try:
            for name in _CHOICES:
                self.boxes[name].value = getattr(self.state, name)
            self._set_rail()
            self.standing.text = self._standing()
        finally:
            self._taking = False


# ---- what is selected, and what can be taken along


def take_row(state: AuditState) -> widgets.Widget:
    """Return a row with what is selected, and the buttons for its code and its picture."""
    crumbs, take = Note(kind="crumbs"), TakeAlong()

    def show(_change: Any = None) -> None:
        cell, own = state.cell, state.epsilon == state.own_epsilon
        at = f"ε {state.epsilon:.3g}{' (headline)' if own else ', not the ε of the verdict'}"
        who = f"{VERDICTS[cell.verdict].mark} {shown_name(cell.group)}"
        path = [who, f"{state.pairing_mode} pairs", f"scores of rule {state.scoring_rule}", at]
        if state.scoring_rule == "baseline":
            del path[2]
        crumbs.text = " › ".join(path)
        take.code = f"{state.origin}\n\n{state.shown}"
        take.name = "mpc_lab"

    state.observe(show, ("revision", "shown"))
    show()
    row = controls_row(crumbs, take)
    row.add_class("mpc-take-row")
    return row


# ---- what stays where no kernel is

# The drawings are images with their SVG inside. A notebook that is not trusted shows them, for
# there an SVG of the page itself is taken out; no name in one drawing can meet a name in the other;
# and nothing in them can run.


# An image does not know the page behind it: on a dark one its lightness is turned, not its hues.
_ON_DARK = (
    '[data-jp-theme-light="false"] .mpc-static img '
    "{ filter: invert(1) hue-rotate(180deg) brightness(1.25); }"
)
# In a narrow page a picture is moved sideways before its words get too small to read.
_LEAST_WIDE = "min-width: 760px"
_WIDE_ENOUGH = f".mpc-static figure.chart .live svg {{ {_LEAST_WIDE}; }}"
# Sent once for all outputs of a page, after the last of them.
_BEGIN = """
if (!document.getElementById("jupyter-config-data") && !globalThis.mpcBegun) {
  globalThis.mpcBegun = true;
  const begin = () => {
    const made = document.createElement("script");
    made.type = "module";
    made.textContent = document.querySelector("script.mpc-library").textContent;
    document.body.append(made);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}
"""


def words_html(audit: Audit) -> str:
    """Return the part of the static form that is there at once: the words and the table."""
    return _static(html_view(audit))


def pictures_html(audit: Audit, live: bool = False) -> str:
    """Return the part of the static form that has to be drawn; empty where nothing is here to.

    Parameters
    ----------
    audit : Audit
    live : bool
        Whether its ε can be moved in a page that runs scripts and has no kernel.
    """
    if not can_draw():
        return _static("")
    # Altair takes seconds to load, and the words need not wait for it.
    from mpc_lab.charts.overview import overview

    picture = _image(overview(audit))
    if not live:
        return _static(picture)
    from mpc_lab.charts import alive

    rail = alive.rail_of(audit, secrets.token_hex(4))
    figure = alive.figure(overview(audit, live=True), picture, rail)
    style = f"<style>{alive.style()}{alive.colours()}{_WIDE_ENOUGH}</style>"
    # The library is text until the page is known to have no front end that draws the explorer.
    library = f'<script type="text/plain" class="mpc-library">{alive.script()}</script>'
    return _static(f"{style}{figure}{library}<script>{_BEGIN}</script>")


def _static(inside: str) -> str:
    return f'<div class="mpc-static">{inside}</div>'


def _image(chart: AnyChart) -> str:
    from mpc_lab.charts.theme import svg

    said = escape(chart.description)
    inside = base64.b64encode(svg(chart).encode()).decode()
    style = f"display: block; max-width: 100%; {_LEAST_WIDE}; height: auto; margin: 0 0 1em;"
    image = f'<img alt="{said}" style="{style}" src="data:image/svg+xml;base64,{inside}">'
    return f'<style>{_ON_DARK}</style><div style="overflow-x: auto">{image}</div>'
