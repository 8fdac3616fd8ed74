"""The base of every tab: its traits, when it draws, and what it shows when drawing fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import traitlets

from mpc_lab.errors import MpcError, near_match
from mpc_lab.explorers.pieces import Beacon, ErrorBox, column, controls_row
from mpc_lab.explorers.state import SHARED, AuditState, CellTraits

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_NO_KERNEL = "The live explorer shows here while its kernel runs."


class Explorer(CellTraits):
    """A view of an audit in a notebook, with its state as traits.

    ``group``, ``scoring_rule``, ``pairing_mode`` and ``epsilon`` are those of `state`, in both
    directions. A trait of a tab that is tagged ``redraw=True`` draws anew when it changes.

    Parameters
    ----------
    audit : Audit
    state : AuditState, optional
        Shared with other tabs; by default its own.
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
    """

    title: ClassVar[str] = ""
    # Which of the shared controls do not apply, and why; shown beside them.
    unused: ClassVar[Mapping[str, str]] = {}

    visible = traitlets.Bool(True)
    error = traitlets.Unicode(read_only=True)
    drawn = traitlets.Int(0, read_only=True)

    def __init__(self, audit: Audit, *, state: AuditState | None = None, **start: Any) -> None:
        super().__init__()
        self.set_trait("audit", audit)
        names = [*SHARED, "visible", *self._own_traits()]
        for name in start:
            if name not in names:
                raise traitlets.TraitError(
                    f"{type(self).__name__} has no option {name!r}.{near_match(name, names)}"
                )
        shared = {name: start.pop(name) for name in SHARED if name in start}
        self.alone = state is None
        self.state = AuditState(audit, **shared) if state is None else state
        self._drawn_at: tuple[Any, ...] | None = None
        self._stale, self._made = True, False
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
        """Return the controls of the shared traits, for a tab that stands alone."""
        from mpc_lab.explorers.shared import SharedControls

        return (SharedControls(self.state, self.unused).widget,)

    def controls(self) -> Sequence[widgets.Widget]:
        """Return the controls of this tab alone; called once."""
        return ()

    def view(self) -> Sequence[widgets.Widget]:
        """Return what stands below the controls; called once, before the first drawing."""
        return ()

    def draw(self) -> None:
        """Bring the view up to date with the state."""

    @property
    def selection(self) -> Any:
        """What was picked; each tab says as what."""
        raise NotImplementedError

    @cached_property
    def widget(self) -> widgets.Widget:
        """The widgets, made when first asked for."""
        self._box = ErrorBox()
        self._content = column()
        parts = [Beacon(), *self.shared_controls()] if self.alone else []
        made = column(*parts, self._box, self._content)
        made.add_class("mpc-explorer")
        self.observe(self._shown, "visible")
        if self.visible:
            self._guarded()
        return made

    def redraw(self) -> None:
        """Draw now; what goes wrong is shown in the panel and in ``error``."""
        is_first = "widget" not in self.__dict__
        _ = self.widget
        if not (is_first and self.visible):
            self._guarded()

    def _guarded(self) -> None:
        self._stale = False
        self._drawn_at = self._key()
        try:
            self._build()
            self.draw()
        except Exception as error:  # shown to the person, whatever it is
            self.set_trait("error", str(error) or type(error).__name__)
            self._box.show(error)
        else:
            self.set_trait("error", "")
            self._box.clear()
        self.set_trait("drawn", self.drawn + 1)

    def show_error(self, error: Exception) -> None:
        """Show what went wrong outside a drawing, such as behind a button."""
        self.set_trait("error", str(error) or type(error).__name__)
        self._box.show(error)

    def _build(self) -> None:
        if self._made:
            return
        controls = list(self.controls())
        row = [controls_row(*controls)] if controls else []
        self._content.children = (*row, *self.view())
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

        from mpc_lab.explorers.static import pictures_html, words_html

        # The words are there at once; the pictures, for a page without a kernel, come last.
        display(HTML(words_html(self.audit)))  # type: ignore[no-untyped-call]
        # Where no kernel is, a notebook shows the text in place of the widget.
        live = {**self.widget._repr_mimebundle_(), "text/plain": _NO_KERNEL}
        display(live, raw=True)  # type: ignore[no-untyped-call]
        display(HTML(pictures_html(self.audit)))  # type: ignore[no-untyped-call]


def needs_rows(audit: Audit, what: str) -> None:
    """Refuse, in words for a panel, what an audit without rows cannot show."""
    if audit.ranking is None:
        raise MpcError(
            f"{what} needs the rows of the log, and this audit holds aggregates only: load it "
            'with mpc.load("a.nc", ranking=ranking) and explore it again.'
        )
