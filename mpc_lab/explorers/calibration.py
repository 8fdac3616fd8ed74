"""Mean outcome against score, inside and outside the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import numpy as np
import traitlets
import xarray as xr

from mpc_lab.explorers.controls import Note, checkbox, whole_slider
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.pairs import PairBook
from mpc_lab.explorers.state import call_of
from mpc_lab.results.schema import text
from mpc_lab.text import entry, plural
from mpc_lab.vocabulary import Floats

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
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

    A range of thresholds that was picked on the curve shades the scores at which its pairs are.
    The curves stay those of all items: nearly every item is in some close pair, and outcomes of
    items picked for their neighbours would be another question.

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
    brush : tuple of float
        The two ends of the range of thresholds that was picked on the curve; empty for none.

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
    brush = traitlets.Tuple().tag(redraw=True)

    def prepare(self) -> None:
        """Follow the range that was picked on the curve."""
        traitlets.link((self.state, "brush"), (self, "brush"))

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
        self.controls["chart"], self.controls["picked"] = LiveChart(), Note()
        return [self.controls["picked"], self.controls["chart"], Note(_MEANING)]

    def draw(self) -> None:
        """Draw the curves of the group, with the scores of the pairs that were picked."""
        from mpc_lab.charts.calibration import calibration

        cell = (self.group, self.scoring_rule)
        chart: AnyChart = calibration(self.audit, *cell, self.by_segment, bins=self.bins)
        scores = self.picked_scores()
        self.controls["picked"].text = self._picked_words(scores)
        if len(scores) and not self.by_segment:
            chart = shaded(chart, *_middle(scores))
        self.controls["chart"].show(chart)

    def picked_scores(self) -> Floats:
        """Return the scores of the items in the pairs that were picked, each item once."""
        if not self.brush:
            return np.empty(0)
        low, high = self.brush
        cell = (self.group, self.scoring_rule, self.state.pairing_mode)
        book = PairBook(self.audit, *cell, high)
        return book.scores(book.find(low, high))

    def _picked_words(self, scores: Floats) -> str:
        if not self.brush:
            return ""
        low, high = self.brush
        pairs = f"{self.state.pairing_mode} pairs whose scores differ by {low:.3g} to {high:.3g}"
        if not len(scores):
            return f"No {pairs}, the range that was picked on the curve over ε."
        ends = " to ".join(entry(end, ".4g") for end in _middle(scores))
        return (
            f"{'Picked' if self.by_segment else 'Shaded'}: the scores {ends}, of 90 % of the "
            f"{plural(len(scores), 'item')} in {pairs}, the range that was picked on the curve "
            "over ε. The curves are those of all items."
        )


def _middle(scores: Floats) -> tuple[float, float]:
    """Return between which scores 90 % are."""
    low, high = np.quantile(scores, [0.05, 0.95]).tolist()
    return low, high


def shaded(chart: AnyChart, low: float, high: float) -> AnyChart:
    """Return a chart of panels over the score with a range of scores shaded in each."""
    import altair as alt
    import pandas as pd

    from mpc_lab.charts.theme import ACCENT

    made = chart.copy(deep=True)
    for panel in made.vconcat if isinstance(made, alt.VConcatChart) else [made]:
        area = alt.Chart(pd.DataFrame({"one": [1]})).mark_rect(
            color=ACCENT, opacity=0.16, clip=True
        )
        panel.layer.insert(0, area.encode(x=alt.datum(low), x2=alt.datum(high)))
    return made
