"""MPC beside the rival measures, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import numpy as np
import traitlets
import xarray as xr

from mpc_lab.explorers.controls import (
    Note,
    ProgressRow,
    button,
    controls_row,
    plain_table,
    whole_slider,
)
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import call_of
from mpc_lab.text import NOTHING, number, p_value, with_interval

_WHAT = "The comparison with rival measures"
_LOGGED = "rivals are measured on the logged scores, beside the headline"
_SIGNS = {"undervalued": "▲", "overvalued": "▼", "": "◆"}
_SCORES = {"neighbours": "neighbours in the list"}
_KEPT = "\u00a0"  # no line break here
_COLUMNS = {
    "▲ undervalued": "call it undervalued",
    "▼ overvalued": "call it overvalued",
    "◆ flagged": "flag it without a direction",
    "· not flagged": "do not flag it",
}


class RivalsExplorer(Explorer):
    """What other measures of a group say on the same log.

    Parameters
    ----------
    audit : Audit
        With its rows.
    state : AuditState, optional
    **start
        Any trait.

    Attributes
    ----------
    k : int
        Places at the top, for Skew@k; 1 to 100.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.RivalsExplorer(audit, group="1")
    >>> explorer.selection.measure.values[:2].tolist()
    ['mpc', 'calibration_gap']
    """

    title: ClassVar[str] = "Rivals"
    unused: ClassVar[Mapping[str, str]] = {
        "scoring_rule": _LOGGED,
        "pairing_mode": _LOGGED,
        "epsilon": _LOGGED,
    }

    k = traitlets.Int(10, min=1, max=100).tag(redraw=True)

    def prepare(self) -> None:
        """Start with nothing compared."""
        self._found: dict[tuple[str, int], xr.Dataset] = {}

    def call(self) -> str:
        """Return the call of the chart."""
        return call_of("mpc.charts.rivals", self.group, k=self.k)

    @property
    def selection(self) -> xr.Dataset:
        """All measures of the group, as `Audit.compare` gives them."""
        return self._compared(self.group).sel(group=self.group)

    def compare_all(self, report: Any = None) -> xr.Dataset:
        """Compare every group.

        Parameters
        ----------
        report : callable, optional
            Called with how many groups are done, before each and at the end.

        Returns
        -------
        xarray.Dataset
            As :meth:`mpc_lab.Audit.compare` gives it.
        """
        parts = []
        for place, group in enumerate(self.groups):
            if report is not None:
                report(place)
            parts.append(self._compared(group))
        if report is not None:
            report(len(parts))
        return xr.concat(parts, dim="group", data_vars="minimal")

    def _compared(self, group: str) -> xr.Dataset:
        needs_rows(self.audit, _WHAT)
        key = (group, self.k)
        if key not in self._found:
            self._found[key] = self.audit.compare([group], self.k)
        return self._found[key]

    # What a person sees -------------------------------------------------------------------------

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the choice of k."""
        needs_rows(self.audit, _WHAT)
        self.controls["k"] = whole_slider("Top places of Skew@k", self.k, 1, 100)
        traitlets.link((self, "k"), (self.controls["k"], "value"))
        return [self.controls["k"]]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the chart, the numbers, and the table of all groups."""
        self.controls["sentence"] = Note(kind="sentence")
        self.controls["chart"] = LiveChart()
        self.controls["measures"] = widgets.HTML()
        self.controls["compare_all"] = button(
            "Compare all groups", "Set all measures of every group side by side"
        )
        self.controls["compare_all"].on_click(self._clicked)
        self.controls["progress"] = ProgressRow()
        self.controls["all_groups"] = widgets.HTML()
        row = controls_row(self.controls["compare_all"], self.controls["progress"])
        return [
            self.controls["sentence"],
            self.controls["chart"],
            self.controls["measures"],
            row,
            self.controls["all_groups"],
        ]

    def draw(self) -> None:
        """Draw the measures of the group."""
        from mpc_lab.charts.rivals import rivals

        found = self._compared(self.group)
        self.controls["sentence"].text = str(self.selection["explanation"].item())
        self.controls["chart"].show(rivals(self.audit, self.group, self.k, found=found))
        self.controls["measures"].value = measures_html(self.selection)
        if all((group, self.k) in self._found for group in self.groups):
            self.controls["all_groups"].value = says_html(self.compare_all())
        else:
            self.controls["all_groups"].value = ""

    def _clicked(self, _button: Any) -> None:
        """Compare every group, and show what went wrong if it did."""
        count = len(self.groups)
        self.controls["compare_all"].disabled = True
        try:
            found = self.compare_all(
                lambda done: self.controls["progress"].show(
                    f"{done:,} of {count:,} groups", done, count
                )
            )
            self.controls["all_groups"].value = says_html(found)
        except Exception as error:  # shown to the person, whatever it is
            self.show_error(error)
        finally:
            self.controls["compare_all"].disabled = False
            self.controls["progress"].clear()


def measures_html(found: xr.Dataset) -> str:
    """Return the measures of one group in a table: what each says and what it compares."""
    rows = []
    for measure in found["measure"].values.tolist():
        one = found.sel(measure=measure)
        rows.append(
            [
                measure_name(measure),
                said(one).replace(" ", _KEPT),
                _numbers(one),
                p_value(float(one["p_adjusted"])).replace(" ", _KEPT),
                _compares(one),
            ]
        )
    header = ["measure", "says", "estimate", "adjusted p\u2011value", "compares"]
    return plain_table(header, rows, caption="The measures in their own units")


def _numbers(one: xr.Dataset) -> str:
    estimate, low, high, null = (
        float(one[name]) for name in ("estimate", "ci_low_adjusted", "ci_high_adjusted", "null")
    )
    words = with_interval(estimate, low, high) if math.isfinite(estimate) else NOTHING
    if math.isfinite(null) and null:
        words += f", neutral {number(null, 2).rstrip('0').rstrip('.')}"
    why = str(one["reason"].item())
    return f"{words}; {why}" if why else words


def _compares(one: xr.Dataset) -> str:
    kind = str(one["compares_scores"].item())
    scores = _SCORES.get(kind, f"{kind} scores")
    looks_at = str(one["compares_looks_at"].item())
    looks_at = "outcomes and exposure" if looks_at == "both" else looks_at
    return f"{scores}, {one['compares_queries'].item()} queries, {looks_at}"


def says_html(found: xr.Dataset) -> str:
    """Return for every group which measures call it what."""
    measures = found["measure"].values.tolist()
    rows = []
    for group in found["group"].values.tolist():
        says = {measure: said(found.sel(group=group, measure=measure)) for measure in measures}
        rows.append(
            [
                str(group),
                *(
                    ", ".join(measure_name(m) for m, words in says.items() if words == wanted)
                    for wanted in _COLUMNS
                ),
            ]
        )
    shown = [k for k in range(5) if k == 0 or any(row[k] for row in rows)]
    header = ["group", *_COLUMNS.values()]
    return plain_table(
        [header[k] for k in shown],
        [[row[k] or "–" for k in shown] for row in rows],
        caption="What the measures say of every group",
        long=True,
    )


def said(one: xr.Dataset) -> str:
    """Return in words what one measure says of one group."""
    if not _known(one):
        return "– cannot tell"
    if not bool(one["flagged"]):
        return "· not flagged"
    says = str(one["says"].item())
    return f"{_SIGNS[says]} {says or 'flagged'}"


def measure_name(measure: str) -> str:
    """Return the name of a measure as a person reads it."""
    return "MPC" if measure == "mpc" else measure.replace("_", " ")


def _known(one: xr.Dataset) -> bool:
    null, low = float(one["null"]), float(one["ci_low_adjusted"])
    return bool(np.isfinite(float(one["p_adjusted"]))) or bool(np.isfinite([null, low]).all())
