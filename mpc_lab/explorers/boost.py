"""What a boost of a group's scores would do, recomputed as it is moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import numpy as np
import traitlets
import xarray as xr

from mpc_lab.comparators.base import Case
from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import Note, NumberRow, button, slider
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.moving import (
    MovingList,
    list_rows,
    list_title,
    list_weights,
    most_moved,
)
from mpc_lab.explorers.state import call_of, gap, level_of
from mpc_lab.inference.clustered import query_clusters
from mpc_lab.objective.boosts import Boosts
from mpc_lab.results.base import need_rows, settings
from mpc_lab.results.questions.boosts import FairBoost, boost_curve, fair_boost, refuse_boost
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import entry, name, number, percent, quote, with_ends
from mpc_lab.vocabulary import VERDICTS, Floats

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_KEPT = 8
_STEPS_A_SIDE = 100
_STEPS_OF_CURVE, _FEWEST_STEPS = 20, 6  # on each side
_ROWS_FOR_ALL_STEPS = 300_000


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
            raise traitlets.TraitError(f"alpha must be a finite number; got {value!r}.")
        return value

    def prepare(self) -> None:
        """Start with nothing prepared: the log is sorted when the tab is first shown."""
        self._prepared: dict[tuple[str, float], BoostedGroup] = {}

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the α slider, and the way to 0 and to α*."""
        needs_rows(self.audit, "The Boost tab")
        needs_two_queries(self.audit)
        step = _nice(self._boosted().reach / _STEPS_A_SIDE)
        most = step * _STEPS_A_SIDE
        places = max(0, -math.floor(math.log10(step)))
        self.controls["alpha"] = slider(
            "Boost α", self.alpha, -most, most, step, readout_format=f"+.{places}f"
        )
        self.controls["alpha"].add_class("mpc-wide-slider")
        self.controls["alpha"].observe(self._moved, "value")
        self.controls["no_boost"] = button("No boost", "Go to α = 0")
        self.controls["no_boost"].on_click(lambda _: setattr(self, "alpha", 0.0))
        self.controls["to_star"] = button("Go to α*", "Go to the boost at which the fit is 0")
        self.controls["to_star"].on_click(self._go_to_star)
        return self.controls["alpha"], self.controls["no_boost"], self.controls["to_star"]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, a list that moves, the curves beside it, and the numbers at α."""
        self.controls["chart"], self.controls["list"] = LiveChart(), MovingList()
        # In the page: the list is sorted again before the kernel hears of the slider.
        self._link = widgets.jslink(
            (self.controls["alpha"], "value"), (self.controls["list"], "alpha")
        )
        self.controls["sentence"], self.controls["numbers"], self.controls["note"] = (
            Note(kind="sentence"),
            NumberRow(),
            Note(),
        )
        self._drawn_for: tuple[str, float] | None = None
        sides = widgets.Box([self.controls["list"], self.controls["chart"]])
        sides.add_class("mpc-boost-sides")
        notes = (self.controls[name] for name in ("numbers", "note"))
        return (self.controls["sentence"], sides, *notes)

    def draw(self) -> None:
        """Measure the boost and mark it; follow the whole range when the group is another."""
        from mpc_lab.charts.boost import draw as boost_chart
        from mpc_lab.charts.boost import mark

        boosted = self._boosted()
        now = boosted.at(self.alpha)
        with self.controls["chart"].hold_sync():
            if self._drawn_for != self._place():
                self.controls["note"].text = "Following the group along its boosts …"
                self.controls["chart"].show(
                    boost_chart(self.audit, boosted.curve, boosted.fair, live=True)
                )
                self.controls["note"].text = ""
                self._fill_list(boosted)
                self._drawn_for = self._place()
            self.controls["chart"].put(now=mark(now))
        objective = _objective(now)
        exact = (self.alpha, _one(now, "estimate"), _one(now, objective))
        with self.controls["list"].hold_sync():
            self.controls["list"].exact = [_known(value) for value in exact]
            self.controls["list"].alpha = self.alpha
        self.controls["sentence"].text = self._sentence(now)
        self.controls["numbers"].show(self._numbers(now))
        self.controls["alpha"].value = self.alpha
        self.controls["no_boost"].disabled = self.alpha == 0
        star = boosted.fair.alpha
        self.controls["to_star"].disabled = math.isnan(star) or self.alpha == star

    def _fill_list(self, boosted: BoostedGroup) -> None:
        """Send the list that the boost moves most, and the curve that its numbers follow."""
        shown, ready, curve = self.controls["list"], boosted.ready, boosted.curve
        code = boosted.most_moved
        rows = list_rows(ready, code, self.state.label)
        objective = _objective(curve)
        cell = self.state.cell
        with shown.hold_sync():
            shown.rows, shown.weights = rows, list_weights(len(rows))
            shown.title = list_title(ready.ranking, code, len(rows))
            shown.group, shown.outcome = name(cell.group), outcome_word(settings(self.audit))
            shown.mark = VERDICTS[cell.verdict].mark
            shown.kind, shown.objective = f"mpc-{cell.verdict.split()[0]}", objective.upper()
            shown.ascending = bool(ready.ranking.columns.ascending)
            shown.curve = {
                key: [_known(value) for value in curve[own].values.tolist()]
                for key, own in (("alpha", "alpha"), ("gap", "estimate"), ("objective", objective))
            }

    def call(self) -> str:
        """Return the call of the curves."""
        return call_of("mpc.charts.boost", self.group, epsilon=self.epsilon)

    @property
    def selection(self) -> xr.Dataset:
        """What was tried for this group and threshold, along ``alpha``."""
        boosted = self._boosted()
        boosted.at(self.alpha)
        return boosted.tried

    def _place(self) -> tuple[str, float]:
        return self.state.group, self.state.epsilon

    def _boosted(self) -> BoostedGroup:
        """Return the group at its threshold, prepared once."""
        place = self._place()
        if place not in self._prepared:
            group, epsilon = place
            same = next((b for (g, _), b in self._prepared.items() if g == group), None)
            made = BoostedGroup(self.audit, group, epsilon, same.ready if same else None)
            if len(self._prepared) >= _KEPT:
                self._prepared.pop(next(iter(self._prepared)))
            self._prepared[place] = made
        return self._prepared[place]

    def _sentence(self, now: xr.Dataset) -> str:
        who, size = quote(self.state.group), entry(self.alpha, "+.4g")
        estimate, low, high = (_one(now, name) for name in ("estimate", "ci_low", "ci_high"))
        start = (
            f"Without a boost of group {who}"
            if self.alpha == 0
            else f"With {size} added to the scores of group {who}"
        )
        if not math.isfinite(estimate):
            return f"{start} its gap is not estimable."
        reads = "an interval that covers 0" if low <= 0 <= high else "an interval that excludes 0"
        objective = _objective(now)
        change = _one(now, f"{objective}_change")
        cost = f"; {objective.upper()} changes by {entry(change, 5)}" if self.alpha else ""
        said = with_ends(estimate, low, high)[0]
        return f"{start} its gap is {said}, with {reads}{cost}."

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
        if (
            abs(change["new"] - self.alpha) > 0.501 * self.controls["alpha"].step
            or change["new"] == 0
        ):
            self.alpha = float(change["new"])

    def _go_to_star(self, _button: Any) -> None:
        self.alpha = self._boosted().fair.alpha


def _known(value: float) -> float | None:
    """Return a number that JSON has a word for."""
    return value if math.isfinite(value) else None


def _one(now: xr.Dataset, name: str) -> float:
    return float(now[name].values[0])


def _objective(now: xr.Dataset) -> str:
    """Return the objective that exists: DCG where no list has an ideal."""
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


# ---- one group under boosts, prepared once and asked many times


def needs_two_queries(audit: Audit) -> None:
    """Refuse, in words for a panel, a log that cannot be halved."""
    refuse_boost(audit, "boost_curve")
    ranking = need_rows(audit, "boost_curve")
    if query_clusters(ranking)[1] < 2:
        one = "query" if ranking.n_queries < 2 else "unit"
        raise MpcError(
            "The Boost tab must have at least two queries or units, some to choose a boost on "
            f"and the rest to try it on; got one {one}."
        )


class BoostedGroup:
    """A group of an audit at one threshold, ready to be boosted by any α.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group : str
    epsilon : float
    ready : Boosts, optional
        The group prepared before, at whichever threshold.
    """

    def __init__(
        self, audit: Audit, group: str, epsilon: float, ready: Boosts | None = None
    ) -> None:
        self.audit, self.group, self.epsilon = audit, group, epsilon
        refuse_boost(audit, "boost_curve")
        self.ranking = need_rows(audit, "boost_curve")
        self.ready = Boosts(self.ranking, group) if ready is None else ready
        self._tried: dict[float, xr.Dataset] = {}

    @property
    def reach(self) -> float:
        """The largest boost of the curve: the standard deviation of all scores."""
        return self.ranking.score_std

    @cached_property
    def curve(self) -> xr.Dataset:
        """Gap and objective along the range; fewer steps on a long log."""
        share = _ROWS_FOR_ALL_STEPS / max(self.ranking.n_rows, 1)
        half = int(np.clip(_STEPS_OF_CURVE * share, _FEWEST_STEPS, _STEPS_OF_CURVE))
        alphas = self.reach * np.arange(-half, half + 1) / half
        return boost_curve(self.audit, self.group, alphas, self.epsilon, self.ready)

    @cached_property
    def fair(self) -> FairBoost:
        """The boost at which the fitted difference is 0."""
        return fair_boost(self.audit, self.group, self.epsilon, self.ready)

    @cached_property
    def most_moved(self) -> int:
        """The code of the query that shows the most: at α*, or half way where there is none."""
        star = self.fair.alpha
        is_far = math.isfinite(star) and abs(star) > self.reach / _STEPS_A_SIDE
        return most_moved(self.ready, star if is_far else self.reach / 2)

    def at(self, alpha: float) -> xr.Dataset:
        """Return gap, objective, calibration and what moves, at one boost."""
        if alpha not in self._tried:
            self._tried[alpha] = self._measured(alpha)
        return self._tried[alpha]

    @property
    def tried(self) -> xr.Dataset:
        """Every boost that was asked for, along ``alpha`` in ascending order."""
        return xr.concat([self._tried[alpha] for alpha in sorted(self._tried)], "alpha")

    def _measured(self, alpha: float) -> xr.Dataset:
        found = boost_curve(self.audit, self.group, [alpha], self.epsilon, self.ready)
        case = Case(
            self.ranking, self.group, scores=self._scores(alpha), level=level_of(self.audit)
        )
        (found_gap,) = calibration_gap(case)
        _, moved = self.ready.objective(alpha)
        more = {
            "calibration_gap": found_gap.estimate,
            "calibration_gap_low": found_gap.ci_low,
            "calibration_gap_high": found_gap.ci_high,
            "places_changed": float(moved.mean()),
            "share_lists_changed": float((moved > 0).mean()),
        }
        return found.assign({name: ("alpha", [value]) for name, value in more.items()})

    def _scores(self, alpha: float) -> Floats:
        member = self.ranking.member(self.group)
        return np.asarray(self.ranking.score + np.where(member, alpha, 0.0))
