"""MPC beside the rival measures, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import traitlets
import xarray as xr

from mpc_lab.errors import near_match
from mpc_lab.explorers.controls import Note, beside, column, plain_table, whole_slider
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.page import ActiveHtml
from mpc_lab.explorers.state import call_of
from mpc_lab.explorers.tiles import Matrix, measure_name, says, sign_of
from mpc_lab.text import NOTHING, number, p_value, quote, with_interval

_WHAT = "The comparison with rival measures"
_LOGGED = "rivals are measured on the logged scores, beside the headline"
_SCORES = {"neighbours": "neighbours in the list"}
_KEPT = "\u00a0"  # no line break here
_HINT = "Choose a tile, with ← ↑ ↓ → and Enter or by a click, to read what its measure says."


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
    tile : tuple of str
        The group and the measure of the tile whose sentence is shown; empty for none.

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

    tile = traitlets.Tuple()

    @traitlets.validate("tile")
    def _check_tile(self, proposal: Any) -> tuple[str, ...]:
        tile = tuple(map(str, proposal["value"]))
        if not tile:
            return tile
        if len(tile) != 2:
            raise traitlets.TraitError(f"tile must be a group and a measure; got {tile!r}.")
        for name, known in zip(tile, (self.groups, self._measures()), strict=True):
            if name not in known:
                raise traitlets.TraitError(
                    f"tile must be a group and a measure; got {name!r}.{near_match(name, known)}"
                )
        return tile

    def prepare(self) -> None:
        """Start with nothing compared, and no tile open."""
        self._found: dict[int, xr.Dataset] = {}
        self._matrices: dict[int, Matrix] = {}
        self.observe(self._show_tiles, "tile")
        self.observe(self._drop_tile, "k")

    def call(self) -> str:
        """Return the call of the chart."""
        return call_of("mpc.charts.rivals", self.group, k=self.k)

    @property
    def selection(self) -> xr.Dataset:
        """All measures of the group, as `Audit.compare` gives them."""
        return self.compared.sel(group=self.group)

    @property
    def compared(self) -> xr.Dataset:
        """All measures of all groups: each is adjusted over all, so none can be done alone."""
        needs_rows(self.audit, _WHAT)
        if self.k not in self._found:
            self._found[self.k] = self.audit.compare(None, self.k)
        return self._found[self.k]

    @property
    def matrix(self) -> Matrix:
        """What every measure says of every group, in the order of the tiles."""
        if self.k not in self._matrices:
            self._matrices[self.k] = Matrix(self.compared)
        return self._matrices[self.k]

    def _measures(self) -> list[str]:
        return [str(one) for one in self.compared["measure"].values.tolist()]

    # What a person sees -------------------------------------------------------------------------

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the choice of k."""
        needs_rows(self.audit, _WHAT)
        self.controls["k"] = whole_slider("Top places of Skew@k", self.k, 1, 100)
        traitlets.link((self, "k"), (self.controls["k"], "value"))
        return [self.controls["k"]]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence of the group, the tiles of all, and the group's chart and numbers."""
        self.controls["sentence"] = Note(kind="sentence")
        self.controls["tiles"] = ActiveHtml(self._pressed, spoken="What every measure says")
        self.controls["tile"] = Note(_HINT, kind="sentence")
        self.controls["chart"] = LiveChart()
        self.controls["measures"] = widgets.HTML()
        tiles = column(self.controls["tiles"], self.controls["tile"])
        tiles.add_class("mpc-as-wide")
        return [
            self.controls["sentence"],
            beside(tiles, self.controls["chart"]),
            self.controls["measures"],
        ]

    def draw(self) -> None:
        """Draw the tiles of all groups, and the measures of the chosen one."""
        from mpc_lab.charts.rivals import rivals

        self.controls["sentence"].text = str(self.selection["explanation"].item())
        self._show_tiles()
        self.controls["chart"].show(rivals(self.audit, self.group, self.k, found=self.compared))
        self.controls["measures"].value = measures_html(self.selection)

    def _show_tiles(self, _change: Any = None) -> None:
        if "tiles" not in self.controls:
            return
        self.controls["tiles"].value = self.matrix.html(self.group, self.tile)
        self.controls["tile"].text = tile_words(self.compared, *self.tile) if self.tile else _HINT

    def _drop_tile(self, _change: Any) -> None:
        # Another k is another measure.
        if self.tile and self.tile[1] not in self._measures():
            self.tile = ()

    def _pressed(self, name: str) -> None:
        pressed = self.matrix.pressed(name)
        if len(pressed) == 1:
            self.group = pressed[0]
        else:
            self.tile = () if pressed == self.tile else pressed


def tile_words(found: xr.Dataset, group: str, measure: str) -> str:
    """Return what one measure says of one group, by which number, and what it compares."""
    one = found.sel(group=group, measure=measure)
    who, word = quote(group), says(one)
    calls = {
        "flagged": f"flags group {who} without a direction",
        "not flagged": f"does not flag group {who}",
        "cannot tell": f"cannot tell for group {who}",
    }.get(word, f"calls group {who} {word}")
    p = float(one["p_adjusted"])
    tested = f", adjusted p-value {p_value(p)}" if math.isfinite(p) else ""
    return (
        f"{sign_of(word)} {measure_name(measure)} {calls}: {_numbers(one)}{tested}. "
        f"It compares {_compares(one)}."
    )


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


def said(one: xr.Dataset) -> str:
    """Return with its mark what one measure says of one group."""
    word = says(one)
    return f"{sign_of(word)} {word}"
