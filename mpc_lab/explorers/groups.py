"""All groups at once: every gap beside every curve; a click on a row chooses the group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import traitlets
import xarray as xr

from mpc_lab.errors import near_match
from mpc_lab.explorers.controls import Note, NumberRow
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.page import ActiveHtml
from mpc_lab.explorers.state import call_of, cell_numbers, cell_sentence, point_sentence
from mpc_lab.html import NO_MATH
from mpc_lab.results.base import settings
from mpc_lab.results.summary import Cell, Slice, place_sentence
from mpc_lab.text import minus
from mpc_lab.vocabulary import NOT_ESTIMABLE, VERDICTS

_DRAWN_AT_MOST = 60
_HINT = (
    "Click a row to choose its group for all tabs. Move ε, or drag along a curve, to see every gap "
    "at another ε. This changes no verdict: each is about its own ε."
)


class GroupsExplorer(Explorer):
    """Every gap with its verdict beside every curve over ε; a click on a row chooses the group.

    Attributes
    ----------
    verdicts : tuple of str
        Only groups with one of these verdicts are drawn; all where it is empty.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.GroupsExplorer(audit, group="2")
    >>> explorer.selection["n_pairs"].item() > 0
    True
    """

    title: ClassVar[str] = "Groups"

    verdicts = traitlets.Tuple().tag(redraw=True)

    @traitlets.validate("verdicts")
    def _check_verdicts(self, proposal: Any) -> tuple[str, ...]:
        for name in proposal["value"]:
            if name not in VERDICTS:
                raise traitlets.TraitError(
                    f"verdicts must be verdicts; got {name!r}.{near_match(name, VERDICTS)}"
                )
        return tuple(proposal["value"])

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the chips, the overview, and the numbers of the chosen group."""
        chart = LiveChart(titled=False, link=self.state.link, rests=True)
        chart.observe(self._picked, "picked")
        self.controls["chart"] = chart
        self.controls["chips"] = ActiveHtml(self._pressed, spoken="Show groups by verdict")
        self.controls["sentence"], self.controls["numbers"] = Note(kind="sentence"), NumberRow()
        self.controls["place"], self.controls["hint"] = Note(), Note(_HINT)
        self._drawn_for: tuple[Any, ...] = ()
        names = ("sentence", "chips", "chart", "hint", "numbers", "place")
        return [self.controls[name] for name in names]

    def draw(self) -> None:
        """Draw the overview of the rule and mode, mark the group, and look at ε."""
        self._say()
        part = self.state.part
        wanted = (part.rule, part.mode, self.verdicts)
        if wanted != self._drawn_for:
            self.controls["chips"].value = chips_html(part, self.verdicts)
            self._draw_overview(part)
            self._drawn_for = wanted
        order = self._order()
        is_there = self.state.group in order
        chosen = order.index(self.state.group) if is_there else -1
        self.controls["chart"].set(chosen=chosen, at=self._at())

    def _say(self) -> None:
        state, options = self.state, settings(self.audit)
        cell, mode = state.cell, state.pairing_mode
        if self._at() < 0:
            self.controls["sentence"].text = cell_sentence(self.audit, cell, mode)
        else:
            point = state.curve_cell.sel(epsilon=self._at())
            said = point_sentence(self.audit, point, mode, is_headline=False)
            self.controls[
                "sentence"
            ].text = f"{said} This changes no verdict, which is about its own ε."
        self.controls["numbers"].show(cell_numbers(self.audit, cell, mode))
        said = place_sentence(self.audit, state.scoring_rule, mode, state.group, options)
        self.controls["place"].text = minus(said)

    def _draw_overview(self, part: Slice) -> None:
        from mpc_lab.charts.forest import forest
        from mpc_lab.charts.overview import overview

        chart = self.controls["chart"]
        if "curve" not in vars(self.audit) and not chart.spec:
            # Gaps are there at once; the curves of all groups may take a while.
            chart.show(forest(self.audit, part.mode, _DRAWN_AT_MOST, scoring_rule=part.rule))
        options: dict[str, Any] = {"scoring_rule": part.rule, "verdicts": self.verdicts}
        wide, narrow = (
            overview(self.audit, part.mode, _DRAWN_AT_MOST, live=True, narrow=is_narrow, **options)
            for is_narrow in (False, True)
        )
        with chart.hold_sync():
            chart.show(wide, narrow)
            # The chips say it already.
            chart.subtitle = chart.subtitle[1:]
            chart.narrow_subtitle = chart.narrow_subtitle[1:]

    def _at(self) -> float:
        """Return the threshold that is looked at; -1 while it is that of the verdict."""
        state = self.state
        if state.epsilon == state.own_epsilon or not math.isfinite(state.epsilon):
            return -1.0
        grid = [at for at in self.audit.grid.tolist() if at <= state.epsilon]
        return float(grid[-1] if grid else self.audit.grid[0])

    def call(self) -> str:
        """Return the call of the overview."""
        more: dict[str, Any] = {
            "scoring_rule": self.scoring_rule,
            "pairing_mode": self.pairing_mode,
        }
        if self.verdicts:
            more["verdicts"] = self.verdicts
        return call_of("mpc.charts.overview", **more)

    @property
    def selection(self) -> xr.Dataset:
        """The headline of the chosen group under the chosen rule and mode."""
        return self.headline_cell.copy()

    def _order(self) -> list[str]:
        from mpc_lab.charts.overview import by_gap

        cells = self.state.part.cells
        wanted = [cell for cell in cells if not self.verdicts or cell.verdict in self.verdicts]
        return [cell.group for cell in by_gap(wanted[:_DRAWN_AT_MOST])]

    def _pressed(self, verdict: str) -> None:
        if verdict in VERDICTS:
            self.verdicts = tuple(
                name for name in VERDICTS if (name in self.verdicts) != (name == verdict)
            )

    def _picked(self, change: Any) -> None:
        places = (change["new"].get("pick") or {}).get("place") or [None]
        # A click beside the rows has no place.
        if places[0] is not None:
            self.group = self._order()[int(places[0])]


def chips_html(part: Slice, chosen: Sequence[str]) -> str:
    """Return a button for each verdict that occurs: its mark, how many groups, its name."""
    chips = []
    for name, verdict in VERDICTS.items():
        found: list[Cell] = part.having(name)
        if not found:
            continue
        mark = "✚" if name == NOT_ESTIMABLE else verdict.mark
        pressed = "true" if name in chosen else "false"
        chips.append(
            f'<button type="button" class="mpc-chip mpc-{name.split()[0]}" data-press="{name}" '
            f'aria-pressed="{pressed}" title="Show only these groups">{mark} {len(found):,} '
            f"{name}</button>"
        )
    return f'<div class="mpc-chips {NO_MATH}">{"".join(chips)}</div>'
