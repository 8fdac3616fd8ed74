"""What a boost of a group's scores would do, recomputed as it is moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import traitlets
import xarray as xr

from mpc_lab.charts.boost import draw as boost_chart
from mpc_lab.charts.boost import mark
from mpc_lab.charts.words import signed
from mpc_lab.explorers.boosted import Boosted, needs_two_queries
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.pieces import Facts, Note, button, slider
from mpc_lab.explorers.readings import gap
from mpc_lab.results.wording import number, percent, quoted

_KEPT = 8
_STEPS_A_SIDE = 100


class BoostExplorer(Explorer):
    """The gap, NDCG, calibration and positions of a group under a boost α of its scores.

    Attributes
    ----------
    alpha : float
        What is added to the scores of the group.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.BoostExplorer(audit, group="1")
    >>> explorer.alpha = 0.05
    >>> explorer.selection["alpha"].values.tolist()
    [0.05]
    """

    title: ClassVar[str] = "Boost"
    unused: ClassVar[dict[str, str]] = {
        "scoring_rule": "a boost starts from the scores as logged",
        "pairing_mode": "the gap of a boost is that of matched pairs",
    }

    alpha = traitlets.Float(0.0).tag(redraw=True)

    @traitlets.validate("alpha")
    def _check_alpha(self, proposal: Any) -> float:
        value = float(proposal["value"])
        if not math.isfinite(value):
            raise traitlets.TraitError(f"alpha must be a finite number, but {value!r} came.")
        return value

    def prepare(self) -> None:
        """Start with nothing prepared: the log is sorted when the tab is first shown."""
        self._prepared: dict[tuple[str, float], Boosted] = {}

    def controls(self) -> Sequence[widgets.Widget]:
        """Return the α slider, and the way to 0 and to α*."""
        needs_rows(self.audit, "The Boost tab")
        needs_two_queries(self.audit)
        step = _nice(self._boosted().reach / _STEPS_A_SIDE)
        most = step * _STEPS_A_SIDE
        places = max(0, -math.floor(math.log10(step)))
        self._slider = slider(
            "Boost α", self.alpha, -most, most, step, readout_format=f"+.{places}f"
        )
        self._slider.add_class("mpc-wide-slider")
        self._slider.observe(self._moved, "value")
        self._none = button("No boost", "Go to α = 0")
        self._none.on_click(lambda _: setattr(self, "alpha", 0.0))
        self._star = button("Go to α*", "Go to the boost at which the gap crosses 0")
        self._star.on_click(self._go_to_star)
        return self._slider, self._none, self._star

    def view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the numbers at α, and the curves."""
        self._chart = LiveChart()
        self._words, self._facts, self._about = Note(kind="reading"), Facts(), Note()
        self._drawn_for: tuple[str, float] | None = None
        return self._words, self._facts, self._about, self._chart

    def draw(self) -> None:
        """Measure the boost and mark it; follow the whole range when the group is another."""
        boosted = self._boosted()
        now = boosted.at(self.alpha)
        with self._chart.hold_sync():
            if self._drawn_for != self._place():
                self._about.text = "Following the group along its boosts …"
                self._chart.show(boost_chart(self.audit, boosted.curve, boosted.fair, live=True))
                self._about.text = ""
                self._drawn_for = self._place()
            self._chart.put(now=mark(now))
        self._words.text = self._sentence(now)
        self._facts.show(self._numbers(now))
        self._slider.value = self.alpha
        self._none.disabled = self.alpha == 0
        star = boosted.fair.alpha
        self._star.disabled = math.isnan(star) or self.alpha == star

    @property
    def selection(self) -> xr.Dataset:
        """What was tried for this group and threshold, along ``alpha``."""
        boosted = self._boosted()
        boosted.at(self.alpha)
        return boosted.tried

    def _place(self) -> tuple[str, float]:
        return self.state.group, self.state.epsilon

    def _boosted(self) -> Boosted:
        """Return the group at its threshold, prepared once."""
        place = self._place()
        if place not in self._prepared:
            group, epsilon = place
            same = next((b for (g, _), b in self._prepared.items() if g == group), None)
            made = Boosted(self.audit, group, epsilon, same.ready if same else None)
            if len(self._prepared) >= _KEPT:
                self._prepared.pop(next(iter(self._prepared)))
            self._prepared[place] = made
        return self._prepared[place]

    def _sentence(self, now: xr.Dataset) -> str:
        who, size = quoted(self.state.group), signed(f"{self.alpha:+.4g}")
        estimate, low, high = (_one(now, name) for name in ("estimate", "ci_low", "ci_high"))
        start = (
            f"Without a boost of group {who}"
            if self.alpha == 0
            else f"With {size} added to the scores of group {who}"
        )
        if not math.isfinite(estimate):
            return f"{start} its gap is not estimable."
        reads = "an interval that covers 0" if low <= 0 <= high else "an interval away from 0"
        objective = _objective(now)
        change = _one(now, f"{objective}_change")
        cost = f"; {objective.upper()} changes by {signed(number(change, 5))}" if self.alpha else ""
        return f"{start} its gap is {signed(number(estimate, 4))}, with {reads}{cost}."

    def _numbers(self, now: xr.Dataset) -> list[tuple[str, str]]:
        level = percent(float(now.attrs["level"]))
        objective = _objective(now)
        return [
            (f"Gap ({level} interval)", _interval(now, "estimate", "ci_low", "ci_high")),
            (objective.upper(), number(_one(now, objective), 4)),
            (
                f"Change of {objective.upper()}",
                _interval(now, *(f"{objective}_change{end}" for end in ("", "_low", "_high"))),
            ),
            (
                "Calibration gap",
                _interval(now, *(f"calibration_gap{end}" for end in ("", "_low", "_high"))),
            ),
            ("Places changed per list", f"{_one(now, 'places_changed'):,.2f}"),
            ("Lists changed", f"{_one(now, 'share_lists_changed'):.1%}".replace("%", " %")),
            ("Pairs", f"{int(_one(now, 'n_pairs')):,}"),
        ]

    def _moved(self, change: Any) -> None:
        # A page rounds the slider to its steps; α* between two steps is not moved by that.
        if abs(change["new"] - self.alpha) > 0.501 * self._slider.step or change["new"] == 0:
            self.alpha = float(change["new"])

    def _go_to_star(self, _button: Any) -> None:
        self.alpha = self._boosted().fair.alpha


def _one(now: xr.Dataset, name: str) -> float:
    return float(now[name].values[0])


def _objective(now: xr.Dataset) -> str:
    """Return the objective that can be had: DCG where no list has an ideal."""
    return "ndcg" if math.isfinite(_one(now, "ndcg")) else "dcg"


def _interval(now: xr.Dataset, *names: str) -> str:
    estimate, low, high = (_one(now, name) for name in names)
    return gap(estimate, low, high)


def _nice(step: float) -> float:
    """Return the round number at or above a step: 1, 2 or 5 times a power of 10."""
    if not (math.isfinite(step) and step > 0):
        return 0.01
    power = 10.0 ** math.floor(math.log10(step))
    factor = next(k for k in (1, 2, 5, 10) if k * power >= step * 0.999)
    return float(f"{factor * power:.12g}")
