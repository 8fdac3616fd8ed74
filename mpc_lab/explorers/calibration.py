"""Mean outcome against score, inside and outside the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import traitlets
import xarray as xr

from mpc_lab.explorers.controls import Note, checkbox, whole_slider
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import call_of
from mpc_lab.results.schema import text

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_WHAT = "Calibration"
_MEANING = (
    "Calibration compares items at the same score over all queries; a matched pair compares two "
    "items of one query. A group can be calibrated and still be undervalued: look at it by "
    "segment of queries, where there are segments."
)
_ALL_ITEMS = "calibration compares all items, not pairs"


class CalibrationExplorer(Explorer):
    """Whether outcomes of a group differ from those of other items at the same score.

    Parameters
    ----------
    audit : Audit
        With its rows.
    state : AuditState, optional
    **start
        Any trait.

    Attributes
    ----------
    by_segment : bool
        A panel for each segment of queries; needs segments.
    bins : int
        Bins of equal numbers of rows, 2 to 100.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.CalibrationExplorer(audit, group="1", bins=10)
    >>> dict(explorer.selection.sizes)["bin"]
    10
    """

    title: ClassVar[str] = "Calibration"
    unused: ClassVar[Mapping[str, str]] = {"pairing_mode": _ALL_ITEMS, "epsilon": _ALL_ITEMS}

    by_segment = traitlets.Bool(False).tag(redraw=True)
    bins = traitlets.Int(20, min=2, max=100).tag(redraw=True)

    @traitlets.validate("by_segment")
    def _check_by_segment(self, proposal: Any) -> bool:
        if proposal["value"] and not self._segments():
            raise traitlets.TraitError(
                "by_segment must have segments of queries; got an audit without them. Give "
                "segment= to the ranking."
            )
        return bool(proposal["value"])

    def _segments(self) -> tuple[str, ...]:
        return () if self.audit.ranking is None else self.audit.ranking.segments

    def call(self) -> str:
        """Return the call of the chart."""
        more = {"by_segment": True} if self.by_segment else {}
        rule = {"scoring_rule": self.scoring_rule}
        return call_of("mpc.charts.calibration", self.group, **rule, **more, bins=self.bins)

    @property
    def selection(self) -> xr.Dataset:
        """The curves that are drawn, as `Audit.calibration` gives them; with a dim ``segment``."""
        needs_rows(self.audit, _WHAT)
        audit: Audit = self.audit
        if not self.by_segment:
            return audit.calibration(self.group, self.scoring_rule, None, self.bins)
        parts = [
            audit.calibration(self.group, self.scoring_rule, segment, self.bins)
            for segment in self._segments()
        ]
        names = xr.DataArray(text(self._segments()), dims="segment", name="segment")
        return xr.concat(parts, dim=names, join="outer", combine_attrs="drop_conflicts")

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the choice of segments and bins."""
        needs_rows(self.audit, _WHAT)
        self.controls["by_segment"] = checkbox("By segment of queries", self.by_segment)
        self.controls["bins"] = whole_slider("Bins", self.bins, 2, 100)
        traitlets.link((self, "by_segment"), (self.controls["by_segment"], "value"))
        traitlets.link((self, "bins"), (self.controls["bins"], "value"))
        why = Note()
        if not self._segments():
            self.controls["by_segment"].disabled = True
            why.text = "By segment: the ranking has no segments; give segment= to it."
        return [self.controls["by_segment"], self.controls["bins"], why]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the chart and what it can and cannot show."""
        self.controls["chart"] = LiveChart()
        return [self.controls["chart"], Note(_MEANING)]

    def draw(self) -> None:
        """Draw the curves of the group."""
        from mpc_lab.charts.calibration import calibration

        self.controls["chart"].show(
            calibration(self.audit, self.group, self.scoring_rule, self.by_segment, bins=self.bins)
        )
