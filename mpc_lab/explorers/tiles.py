"""The matrix of groups and measures: a tile each, ordered so that agreement makes blocks."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mpc_lab.html import NO_MATH, escape
from mpc_lab.text import middle_cut, quote
from mpc_lab.vocabulary import Floats, Ints

OWN = "mpc"
SIGNS = {"undervalued": "▲", "overvalued": "▼", "flagged": "◆", "not flagged": "●"}
CANNOT_TELL = "cannot tell"
_UNKNOWN = "–"
_CODES = {"undervalued": 1.0, "overvalued": -1.0, "flagged": 0.5}
# Characters of a name that its button has room for, and rows that are in sight together.
_NAME_AT_MOST, _IN_SIGHT = 24, 19
_LEGEND = (
    "▲ undervalued",
    "▼ overvalued",
    "◆ flagged without a direction",
    "● not flagged",
    "– cannot tell",
)


def says(one: xr.Dataset) -> str:
    """Return in a word what one measure says of one group."""
    null, low = float(one["null"]), float(one["ci_low_adjusted"])
    is_known = np.isfinite(float(one["p_adjusted"])) or np.isfinite([null, low]).all()
    if not is_known:
        return CANNOT_TELL
    if not bool(one["flagged"]):
        return "not flagged"
    return str(one["says"].item()) or "flagged"


def sign_of(word: str) -> str:
    """Return the mark of what a measure says."""
    return SIGNS.get(word, _UNKNOWN)


def measure_name(measure: str) -> str:
    """Return the name of a measure as a person reads it."""
    return "MPC" if measure == OWN else measure.replace("_", " ")


class Matrix:
    """What every measure says of every group.

    Groups with the same flags stay together, undervalued ones first; so do measures that say
    the same, behind MPC, which is first.

    Parameters
    ----------
    found : xarray.Dataset
        As :meth:`mpc_lab.Audit.compare` gives it.

    Attributes
    ----------
    groups, measures : list of str
        In the order of rows and columns.
    """

    def __init__(self, found: xr.Dataset) -> None:
        groups, measures = found["group"].values.tolist(), found["measure"].values.tolist()
        self._words = {
            (group, measure): says(found.sel(group=group, measure=measure))
            for group in groups
            for measure in measures
        }
        codes = np.array([[_CODES.get(self._words[g, m], 0.0) for m in measures] for g in groups])
        rows, columns = row_order(codes), column_order(codes, measures.index(OWN))
        self.groups = [groups[k] for k in rows]
        self.measures = [measures[k] for k in columns]
        self._names = dict(zip(self.groups, middle_cut(self.groups, _NAME_AT_MOST), strict=True))

    def word(self, group: str, measure: str) -> str:
        """Return what a measure says of a group."""
        return self._words[group, measure]

    def press(self, group: str, measure: str = "") -> str:
        """Return the name of a tile's button, or of a row's; names from data stay out of it."""
        place = f"{self.groups.index(group)}"
        return f"{place}.{self.measures.index(measure)}" if measure else place

    def pressed(self, name: str) -> tuple[str, ...]:
        """Return the group and measure of a button, or the group of a row's button."""
        row, _, column = name.partition(".")
        group = self.groups[int(row)]
        return (group, self.measures[int(column)]) if column else (group,)

    def html(self, chosen: str, opened: tuple[str, ...] = ()) -> str:
        """Return the matrix as a grid of buttons, one of which is reached by Tab.

        Parameters
        ----------
        chosen : str
            The group that all tabs look at.
        opened : tuple of str
            The group and measure of the tile whose sentence is shown; empty for none.
        """
        entry = opened or (self.groups[0], self.measures[0])
        heads = "".join(
            f'<th scope="col"><span>{escape(measure_name(one))}</span></th>'
            for one in self.measures
        )
        body = "".join(self._row(group, chosen, opened, entry) for group in self.groups)
        table = (
            '<table class="mpc-tiles" role="grid" data-grid="true" '
            'aria-label="What every measure says of every group">'
            f'<thead><tr><th scope="col">group</th>{heads}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
        # A mark stays on the line of its word.
        words = " &emsp; ".join(f'<span class="mpc-whole">{one}</span>' for one in _LEGEND)
        more = f"<br>Scroll to all {len(self.groups)} groups." * (len(self.groups) > _IN_SIGHT)
        legend = f'<p class="mpc-note">{words}{more}</p>'
        return f'<div class="{NO_MATH}"><div class="mpc-tiles-box">{table}</div>{legend}</div>'

    def _row(self, group: str, chosen: str, opened: tuple[str, ...], entry: tuple[str, ...]) -> str:
        here = ' aria-current="true"' if group == chosen else ""
        name = escape(self._names[group])
        head = (
            f'<button type="button" class="mpc-tile-group" tabindex="-1"{here} '
            f'data-press="{self.press(group)}" title="{name}: choose it for all tabs">'
            f"<bdi>{name}</bdi></button>"
        )
        tiles = "".join(
            self._tile(group, one, (group, one) == opened, (group, one) == entry)
            for one in self.measures
        )
        return f'<tr><th scope="row">{head}</th>{tiles}</tr>'

    def _tile(self, group: str, measure: str, is_open: bool, is_entry: bool) -> str:
        word = self.word(group, measure)
        said = escape(f"{measure_name(measure)} of group {quote(group)}: {word}")
        return (
            f'<td><button type="button" class="mpc-tile mpc-{word.replace(" ", "-")}" '
            f'tabindex="{0 if is_entry else -1}" aria-pressed="{str(is_open).lower()}" '
            f'data-press="{self.press(group, measure)}" aria-label="{said}" title="{said}">'
            f"{sign_of(word)}</button></td>"
        )


def row_order(codes: Floats) -> Ints:
    """Return the order of groups: those with the same flags together, undervalued ones first."""
    order = _alike(codes)
    weight = np.linspace(-1.0, 1.0, len(order))
    turned = order[::-1] if weight @ codes[order].sum(axis=1) > 0 else order
    return np.asarray(turned, dtype=np.int64)


def column_order(codes: Floats, own: int) -> Ints:
    """Return the order of measures: MPC first, then those that say the same together."""
    others = np.array([k for k in range(codes.shape[1]) if k != own], dtype=np.int64)
    if not len(others):
        return np.array([own], dtype=np.int64)
    order = others[_alike(codes[:, others].T)]
    agrees = (codes[:, order] == codes[:, [own]]).mean(axis=0)
    turned = order[::-1] if np.linspace(-1.0, 1.0, len(order)) @ agrees > 0 else order
    return np.concatenate([[own], turned]).astype(np.int64)


def _alike(rows: Floats) -> Ints:
    """Return an order in which like rows are neighbours."""
    # With SciPy's clustering, which takes a moment to load.
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(rows) < 3:
        return np.arange(len(rows), dtype=np.int64)
    tree = linkage(rows, "average", "cityblock", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)
