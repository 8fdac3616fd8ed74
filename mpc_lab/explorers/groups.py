"""All groups at once: the forest, where a click chooses the group of all tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import xarray as xr

from mpc_lab.explorers.controls import Note, NumberRow
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import cell_numbers, cell_sentence
from mpc_lab.results.base import settings
from mpc_lab.results.summary import place_sentence
from mpc_lab.text import minus

_DRAWN_AT_MOST = 150


class GroupsExplorer(Explorer):
    """The gap of every group with its interval and verdict; a click on a row chooses the group.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.GroupsExplorer(audit, group="2")
    >>> explorer.selection["n_pairs"].item() > 0
    True
    """

    title: ClassVar[str] = "Groups"
    unused: ClassVar[dict[str, str]] = {"epsilon": "each group stands at its own threshold here"}

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence and numbers of the chosen group, and the forest."""
        self.controls["chart"] = LiveChart(titled=False)
        self.controls["chart"].observe(self._picked, "picked")
        self.controls["sentence"], self.controls["numbers"] = Note(kind="sentence"), NumberRow()
        self.controls["place"] = Note()
        hint = Note("Click a row, or use the list above, to choose a group for all tabs.")
        self._drawn_for: tuple[str, str] | None = None
        shown = (self.controls[name] for name in ("sentence", "numbers", "place", "chart"))
        return *shown, hint

    def draw(self) -> None:
        """Draw the forest of the rule and mode, and mark the group."""
        cell = self.state.cell
        self.controls["sentence"].text = cell_sentence(self.audit, cell, self.state.pairing_mode)
        self.controls["numbers"].show(cell_numbers(self.audit, cell, self.state.pairing_mode))
        wanted = (self.state.scoring_rule, self.state.pairing_mode)
        options = settings(self.audit)
        said = place_sentence(self.audit, *wanted, self.state.group, options)
        self.controls["place"].text = minus(said)
        if wanted != self._drawn_for:
            from mpc_lab.charts.forest import forest

            rule, mode = wanted
            self.controls["chart"].show(
                forest(self.audit, mode, _DRAWN_AT_MOST, scoring_rule=rule, live=True)
            )
            self._drawn_for = wanted
        self.controls["chart"].set(chosen=self._order().index(self.state.group))

    @property
    def selection(self) -> xr.Dataset:
        """The headline of the chosen group under the chosen rule and mode."""
        return self.headline_cell.copy()

    def _order(self) -> list[str]:
        return [cell.group for cell in self.state.part.cells]

    def _picked(self, change: Any) -> None:
        places = (change["new"].get("pick") or {}).get("place") or [None]
        # A click beside the rows has no place.
        if places[0] is not None:
            self.group = self._order()[int(places[0])]
