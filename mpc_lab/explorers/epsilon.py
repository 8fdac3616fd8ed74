"""One group at every threshold: curve, counts, power, and what they sum up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import numpy as np
import traitlets
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import Note, NumberRow, beside, button, column, controls_row
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import POWER, call_of, gap, level_of, point_sentence
from mpc_lab.inference.verdicts import mde
from mpc_lab.results.base import is_rank_only
from mpc_lab.text import NOTHING, entry, number, percent, quote
from mpc_lab.vocabulary import verdict_modes

# Fades the curve and the numbers of another cell.
_STALE = "mpc-stale"


class EpsilonExplorer(Explorer):
    """The gap of a group against the threshold ε; the slider moves ε, a drag picks a range.

    Attributes
    ----------
    brush : tuple of float
        The two ends of the range that was picked on the curve; empty where there is none.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.EpsilonExplorer(audit, group="1", brush=(0.001, 0.1))
    >>> explorer.selection.sizes["epsilon"] > 1
    True
    """

    title: ClassVar[str] = "Epsilon"

    brush = traitlets.Tuple().tag(redraw=True)

    @traitlets.validate("brush")
    def _check_brush(self, proposal: Any) -> tuple[float, ...]:
        ends = tuple(float(end) for end in proposal["value"])
        if len(ends) not in (0, 2) or not all(np.isfinite(ends)):
            raise traitlets.TraitError(
                f"brush must be two finite thresholds, or empty; got {proposal['value']!r}."
            )
        return tuple(sorted(ends))

    def prepare(self) -> None:
        """Share the brush with the other tabs."""
        self.brush = self.state.brush
        traitlets.link((self.state, "brush"), (self, "brush"))

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the curve, the numbers at ε, what the brush holds, and the tie."""
        self.controls["chart"] = LiveChart(link=self.state.link)
        self.controls["chart"].observe(self._picked, "picked")
        self.controls["tie"] = LiveChart()
        self.controls["sentence"], self.controls["numbers"] = Note(kind="sentence"), NumberRow()
        self.controls["range_note"], self.controls["tie_note"] = Note(), Note()
        self.controls["to_headline"] = button(
            "Go to the headline's ε", "Go to the threshold of the headline"
        )
        self.controls["to_headline"].on_click(self._go_home)
        self._drawn_for: tuple[str, ...] | None = None
        foot = controls_row(self.controls["to_headline"], self.controls["range_note"])
        # The curve is what the slider moves: both are in sight together.
        curve = column(self.controls["chart"], self.controls["numbers"], foot)
        if not self._shows_tie:
            return [self.controls["sentence"], curve]
        tie = column(self.controls["tie"], self.controls["tie_note"])
        return [self.controls["sentence"], beside(curve, tie)]

    @property
    def _shows_tie(self) -> bool:
        """Whether there are rows, and scores that can be tied."""
        return self.audit.ranking is not None and not is_rank_only(self.audit)

    def _draw_tie(self, group: str, rule: str) -> None:
        """Draw both sides of a tie, or say why that cannot be done."""
        from mpc_lab.charts.tie import tie

        said = ""
        try:
            self.controls["tie"].show(tie(self.audit, group, rule))
        except MpcError as error:
            said = f"Both sides of a tie cannot be drawn. {error}"
        self.controls["tie"].layout.display = "none" if said else ""
        self.controls["tie_note"].text = said
        self.controls["tie_note"].layout.display = "" if said else "none"

    def draw(self) -> None:
        """Move the mark to ε; draw the curve again when the cell is another."""
        cell = (self.state.group, self.state.scoring_rule, self.state.pairing_mode)
        curve = None
        if cell != self._drawn_for:
            # On a long log the curve takes seconds; the page shows this while it is made.
            self.controls["sentence"].text = f"Computing the curve of group {quote(cell[0])} …"
            self._fade()
            from mpc_lab.charts.epsilon_curve import epsilon_curve

            curve = epsilon_curve(self.audit, *cell, live=True)
            if self._shows_tie:
                self._draw_tie(*cell[:2])
        at, point = self.state.epsilon, self._point()
        own = self.state.own_epsilon
        # The page draws its own brush; a range that code has set is shaded.
        low, high = self.brush if self.brush and self.brush != self._dragged() else (-1.0, -1.0)
        self.controls["chart"].set(at=float(point["epsilon"]), low=low, high=high)
        self.controls["sentence"].text = point_sentence(
            self.audit, point, self.state.pairing_mode, is_headline=at == own
        )
        self.controls["numbers"].show(self._numbers(point))
        self.controls["to_headline"].disabled = not np.isfinite(own) or at == own
        if curve is not None:
            self.controls["chart"].show(curve)
            self._drawn_for = cell
        self.controls["range_note"].text = self._range_words()
        for name in ("chart", "numbers"):
            self.controls[name].remove_class(_STALE)

    def _fade(self) -> None:
        for name in ("chart", "numbers"):
            self.controls[name].add_class(_STALE)

    def call(self) -> str:
        """Return the call of the curve."""
        cell = {"scoring_rule": self.scoring_rule, "pairing_mode": self.pairing_mode}
        return call_of("mpc.charts.epsilon_curve", self.group, **cell)

    @property
    def selection(self) -> xr.Dataset:
        """The curve inside the brush; without a brush, the point at ε.

        At a threshold that is not of the curve, the headline's own: the headline.
        """
        if self.brush:
            return self.curve_cell.sel(epsilon=slice(*self.brush))
        return self._point()

    def _point(self) -> xr.Dataset:
        curve, at = self.curve_cell, self.state.epsilon
        grid = curve["epsilon"].values
        if at in grid:
            return curve.sel(epsilon=at)
        if at == self.state.own_epsilon:
            return self.headline_cell.set_coords("epsilon")
        # Not a threshold of the audit: the nearest one below has all its pairs inside.
        below = int(np.searchsorted(grid, at, side="right")) - 1
        return curve.isel(epsilon=max(below, 0))

    def _numbers(self, point: xr.Dataset) -> list[tuple[str, str]]:
        level = level_of(self.audit)
        names = ("estimate", "ci_low", "ci_high", "std_error", "dof")
        estimate, low, high, error, dof = (float(point[name]) for name in names)
        sides = len(verdict_modes(self.state.pairing_mode))
        found = float(mde(np.array(error), np.array(dof), level=level, power=POWER, sides=sides))
        detectable = f"±{number(found, 4)}" if np.isfinite(found) else NOTHING
        effective = float(point["n_effective"])
        return [
            ("Threshold ε", f"{float(point['epsilon']):.3g}"),
            (f"Gap ({percent(level)} interval at this ε)", gap(estimate, low, high)),
            ("Pairs", f"{int(point['n_pairs']):,}"),
            ("Queries", f"{int(point['n_queries']):,}"),
            ("Effective clusters", entry(effective, ",.1f")),
            (f"Detectable gap ({percent(POWER)} power)", detectable),
        ]

    def _range_words(self) -> str:
        if not self.brush:
            return (
                "Click a point of the curve to go to its ε. Drag across the curve to pick a range "
                "of ε: Pairs keeps to it, Calibration shades its scores; double-click to drop it."
            )
        held = self.selection
        low, high = self.brush
        where = f"Picked: ε from {low:.3g} to {high:.3g}"
        count = held.sizes["epsilon"]
        if not count:
            return f"{where}, which holds no threshold of the curve."
        gaps, pairs = held["estimate"].values, held["n_pairs"].values
        known = gaps[np.isfinite(gaps)]
        spread = (
            f", gaps from {entry(float(known.min()), 4)} to {entry(float(known.max()), 4)}"
            if len(known)
            else ""
        )
        noun = "threshold" if count == 1 else "thresholds"
        return (
            f"{where}: {count} {noun}, {int(pairs.min()):,} to {int(pairs.max()):,} pairs{spread}. "
            "explorer.selection holds them."
        )

    def _dragged(self) -> tuple[float, ...]:
        return tuple((self.controls["chart"].picked.get("brush") or {}).get("epsilon") or ())

    def _picked(self, _change: Any) -> None:
        self.brush = self._dragged()

    def _go_home(self, _button: Any) -> None:
        self.epsilon = self.state.own_epsilon
