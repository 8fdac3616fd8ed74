"""The actual pairs of a cell: one as a duel in its ranked list, all as a strip and a table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import numpy as np
import pandas as pd
import traitlets

from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import (
    Note,
    button,
    column,
    controls_row,
    plain_frame,
    plain_table,
    range_slider,
    real_minus,
    shown_cell,
    table,
    text_field,
)
from mpc_lab.explorers.duel import duel_html, strip_html
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.moving import item_names
from mpc_lab.explorers.page import ActiveHtml
from mpc_lab.explorers.state import call_of
from mpc_lab.pairing.pairs import count_side, pair_rows, ranks, reach_of
from mpc_lab.results.base import settings
from mpc_lab.results.questions.drivers import heaviest, heaviest_in_words
from mpc_lab.results.questions.pairs import open_cell
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import plural, quote
from mpc_lab.vocabulary import MODES, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.results import Audit

MOST_SHOWN = 1_000
MOST_SEARCHED = 1_000_000
_AROUND = 8
GROUP_ITEM, OTHER_ITEM = "item of the group", "other item"
_HEADERS = {
    "query": "query",
    "item": "item",
    "other_item": "other item",
    "distance": "score distance",
    "difference": "difference",
    "outcome": "outcome",
    "other_outcome": "other outcome",
    "position": "place",
    "other_position": "other place",
}
# A person reads what an item is called in place of its id; `selection` holds both.
_NAMED = {"item": "label", "other_item": "other_label"}
# Passed again with every change, because a table forgets the options it was made with.
_OPTIONS: dict[str, Any] = {
    "allow_html": False,
    "classes": "display compact",
    "layout": {"topStart": None, "topEnd": None, "bottomStart": "info", "bottomEnd": "paging"},
    "language": {"info": "Rows _START_ to _END_ of _TOTAL_", "infoEmpty": "No rows"},
    "maxBytes": 0,
    "order": [],
    "pageLength": 10,
    "select": "single",
    "showIndex": False,
    "style": "table-layout:auto;width:auto;margin:0",
}
_STEPS = 200


class PairsExplorer(Explorer):
    """The pairs behind a gap: sort them, filter them, and see one in its ranked list.

    Parameters
    ----------
    audit : Audit
        With its rows.
    state : AuditState, optional
    **start
        Any trait.

    Attributes
    ----------
    distance_low, distance_high : float
        Only pairs whose scores differ by so much.
    query_text : str
        Only pairs of queries that contain this text.
    pair : int
        The chosen pair, by its row in `shown`; -1 for none.
    book : PairBook
        All pairs of the cell up to the threshold.
    shown : pandas.DataFrame
        The pairs in the table, the closest first, at most 1,000.
    found : int
        How many pairs pass the filters.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.PairsExplorer(audit, group="1", epsilon=0.05)
    >>> explorer.pair = 0
    >>> explorer.selection.columns[:3].tolist()
    ['query', 'item', 'other_item']
    """

    title: ClassVar[str] = "Pairs"

    distance_low = traitlets.Float(0.0).tag(redraw=True)
    distance_high = traitlets.Float(math.inf).tag(redraw=True)
    query_text = traitlets.Unicode().tag(redraw=True)
    pair = traitlets.Int(-1)

    def prepare(self) -> None:
        """Start with no pair listed and none chosen."""
        self._listed: tuple[Any, ...] = ()
        self._filtered: tuple[Any, ...] = ()
        self._book: PairBook | None = None
        self._in_table = pd.DataFrame()
        self._numbers = np.empty(0, dtype=np.int64)
        self._found = 0
        self._following = False
        self._heaviest: dict[tuple[str, ...], str] = {}
        self.observe(self._show_list, "pair")
        self.state.observe(self._follow_brush, "brush")
        self._follow_brush()

    @traitlets.validate("pair")
    def _check_pair(self, proposal: Any) -> int:
        value = int(proposal["value"])
        if value != -1 and not 0 <= value < len(self.shown):
            raise traitlets.TraitError(
                f"pair must be one of the {len(self.shown):,} rows shown, or -1 for no row; got "
                f"{value}."
            )
        return value

    @property
    def book(self) -> PairBook:
        """All pairs of the cell up to the threshold."""
        needs_rows(self.audit, "The table of pairs")
        if self._book is None or self._listed != self._cell():
            self._book = PairBook(self.audit, *self._cell(), label=self.state.label)
            self._listed = self._cell()
        return self._book

    @property
    def shown(self) -> pd.DataFrame:
        """The pairs in the table."""
        self._filter()
        return self._in_table

    @property
    def found(self) -> int:
        """How many pairs pass the filters."""
        self._filter()
        return self._found

    def call(self) -> str:
        """Return the call that lists the pairs."""
        return call_of("audit.pairs", *self._cell())

    @property
    def selection(self) -> pd.DataFrame:
        """The chosen pair as a frame of one row, as `Audit.pairs` gives it; empty for none."""
        shown = self.shown
        return shown.iloc[[self.pair]] if self.pair >= 0 else shown.iloc[:0]

    @property
    def ranked_list(self) -> pd.DataFrame | None:
        """The whole ranked list of the chosen pair, with the two items marked; None for none."""
        if self.pair < 0:
            return None
        return self.book.ranked_list(int(self._numbers[self.pair]))

    def _follow_brush(self, _change: Any = None) -> None:
        """Keep to the range of thresholds that was picked on the curve."""
        if self.state.brush:
            self.distance_low, self.distance_high = self.state.brush
        else:
            self.distance_low, self.distance_high = 0.0, math.inf

    def _cell(self) -> tuple[str, str, str, float]:
        return self.group, self.scoring_rule, self.pairing_mode, self.epsilon

    def _filter(self) -> None:
        wanted = (*self._cell(), self.distance_low, self.distance_high, self.query_text)
        if self._filtered == wanted:
            return
        numbers = self.book.find(self.distance_low, self.distance_high, self.query_text)
        self._found, self._numbers = len(numbers), numbers[:MOST_SHOWN]
        self._in_table = self.book.frame(self._numbers)
        self._filtered = wanted
        # What was chosen is another pair now.
        self.pair = -1

    # What a person sees -------------------------------------------------------------------------

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the filters."""
        needs_rows(self.audit, "The table of pairs")
        self.controls["distance"] = range_slider("Score distance")
        self.controls["distance"].observe(self._range_moved, "value")
        self.controls["query_text"] = text_field(
            "Query contains", placeholder="text, then Enter", continuous_update=False
        )
        traitlets.link((self, "query_text"), (self.controls["query_text"], "value"))
        self.controls["note"] = Note()
        return [self.controls["distance"], self.controls["query_text"], self.controls["note"]]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the table and the place of the ranked list."""
        self.controls["count"], self.controls["heaviest"] = Note(), Note()
        self.controls["table"] = table(_for_table(self.shown), **_OPTIONS)
        self.controls["table"].observe(self._row_chosen, "selected_rows")
        self.controls["strip"] = widgets.HTML()
        self.controls["duel"] = ActiveHtml(
            self._pressed, by_keys=True, spoken="Pair; the arrow keys walk through the pairs"
        )
        self.controls["previous"] = button(
            "← Previous", "Choose the pair above in order of score distance"
        )
        self.controls["next"] = button("Next →", "Choose the pair below in order of score distance")
        self.controls["previous"].on_click(lambda _: self._step(-1))
        self.controls["next"].on_click(lambda _: self._step(1))
        self.controls["ranked_list"] = widgets.HTML()
        self.controls["hint"] = Note()
        steps = controls_row(
            self.controls["previous"], self.controls["next"], self.controls["hint"]
        )
        left = column(self.controls["strip"], self.controls["duel"], steps)
        sides = widgets.Box([left, self.controls["ranked_list"]])
        sides.add_class("mpc-sides")
        return [sides, *(self.controls[name] for name in ("count", "table", "heaviest"))]

    def draw(self) -> None:
        """Fill the table with the pairs that pass the filters."""
        self._set_range()
        shown = self.shown
        self.controls["count"].text = count_words(self.found, len(shown), self.book)
        self.controls["heaviest"].text = self._name_heaviest()
        rows = _for_table(shown)
        self.controls["table"].update(
            rows, selected_rows=self._chosen(), columnDefs=real_minus(rows), **_OPTIONS
        )
        self._show_list()

    def _pressed(self, name: str) -> None:
        self._step({"previous": -1, "next": 1}.get(name, 0))

    def _name_heaviest(self) -> str:
        """Name the query, and the item, without which the gap of the headline would change most."""
        cell = self._cell()[:3]
        if cell not in self._heaviest:
            try:
                found = heaviest(self.audit, *cell)
                words = "\n".join(heaviest_in_words(one, show_ids=True) for one in found)
            except MpcError as error:
                words = f"Heaviest query and item: {error}"
            self._heaviest[cell] = words
        return self._heaviest[cell]

    def _set_range(self) -> None:
        """Let the slider reach from 0 to the threshold, and keep what was chosen on it."""
        top = float(self.epsilon)
        largest = float(self.book.distance[-1]) if self.book.searched else 0.0
        apply = top > 0 and largest > 0
        self.controls["distance"].disabled = not apply
        # A slider with nowhere to go would show numbers that mean nothing.
        self.controls["distance"].layout.display = "" if apply else "none"
        self.controls["query_text"].disabled = not self.book.searched
        if not self.book.searched:
            self.controls["note"].text = "There are no pairs to filter."
        else:
            self.controls["note"].text = "" if apply else "Score distance: every pair is a tie."
        if not apply:
            return
        self._following = True
        try:
            low, high = min(self.distance_low, top), min(self.distance_high, top)
            self.controls["distance"].min, self.controls["distance"].max = (
                min(self.controls["distance"].min, 0.0),
                max(top, 0.0),
            )
            self.controls["distance"].min, self.controls["distance"].step = 0.0, top / _STEPS
            self.controls["distance"].value = (low, max(low, high))
        finally:
            self._following = False

    def _range_moved(self, change: Any) -> None:
        if self._following:
            return
        low, high = change["new"]
        # At its end the slider bounds nothing, so that a larger threshold shows all again.
        self.distance_high = math.inf if high >= self.controls["distance"].max else high
        self.distance_low = low

    def _row_chosen(self, change: Any) -> None:
        rows = change["new"]
        self.pair = int(rows[0]) if rows and rows[0] < len(self.shown) else -1

    def _step(self, by: int) -> None:
        count = len(self.shown)
        if count:
            self.pair = min(max(max(self.pair, 0) + by, 0), count - 1)

    def _show_list(self, _change: Any = None) -> None:
        if not self._made_view():
            return
        if list(self.controls["table"].selected_rows) != self._chosen():
            self.controls["table"].selected_rows = self._chosen()
        count = len(self.shown)
        self.controls["previous"].disabled = self.pair <= 0
        self.controls["next"].disabled = count == 0 or self.pair >= count - 1
        if not count:
            for name in ("strip", "duel", "ranked_list"):
                self.controls[name].value = ""
            self.controls["hint"].text = ""
            return
        # Until one is chosen, the closest pair is shown.
        place = max(self.pair, 0)
        number, pair = int(self._numbers[place]), self.shown.iloc[[place]]
        book, one = self.book, pair.iloc[0]
        self.controls["strip"].value = strip_html(
            book.differences, f"mpc-{self.state.cell.verdict.split()[0]}", float(one["difference"])
        )
        outcome = outcome_word(settings(self.audit))
        self.controls["duel"].value = duel_html(one, self.group, book.names(number), outcome)
        self.controls["hint"].text = f"Pair {place + 1:,} of {count:,}, the closest first."
        self.controls["ranked_list"].value = list_html(book.ranked_list(number), pair, self.group)

    def _chosen(self) -> list[int]:
        return [] if self.pair < 0 else [self.pair]

    def _made_view(self) -> bool:
        return "ranked_list" in self.controls


def count_words(found: int, shown: int, book: PairBook) -> str:
    """Say how many pairs there are, how many pass the filters, and how many are in the table."""
    if not book.total:
        return "There is no pair with so small a score distance: choose a larger threshold ε."
    total = plural(book.total, "pair")
    if not found:
        return f"None of {total} passes the filters."
    filtered = found < book.searched
    if shown < found:
        passing = " that pass the filters" if filtered else ""
        words = f"Showing {shown:,} of {found:,} pairs{passing}, those with the closest scores"
    else:
        words = f"Showing {shown:,}" if filtered else f"Showing all {plural(shown, 'pair')}"
    if filtered:
        words += f" of {total}" if shown == found else f"; there are {total} in all"
    if book.searched < book.total:
        words += f"; only the closest {book.searched:,} of {total} can be looked through"
    return f"{words}."


def list_html(ranked: pd.DataFrame, pair: pd.DataFrame, group: str) -> str:
    """Return the part of a ranked list around a pair, its two items marked, as HTML."""
    names = {"position": "place", "item": "item", "score": "score", "outcome": "outcome"}
    columns = [column for column in names if column in ranked]
    header = [*(names[column] for column in columns), "in group"]
    query = pair["query"].iloc[0]
    words = ", ".join(map(shown_cell, query)) if isinstance(query, tuple) else shown_cell(query)
    caption = f"Ranked list of query '{words}', {plural(len(ranked), 'item')}"
    parts = around_pair(ranked)
    if sum(len(part) for part in parts) < len(ranked):
        caption += f"; places {_places(parts)}"
    # Here and not beside the row, where a long name leaves the list no room.
    caption += f", around a pair of group {quote(group)}"
    rows: list[list[Any]] = []
    marks: list[str] = []
    for part in parts:
        if rows:
            rows.append(["…", *[""] * (len(header) - 1)])
            marks.append("")
        rows += [list(row) for row in part[[*columns, "in_group"]].itertuples(index=False)]
        marks += part["pair"].tolist()
    signs = {GROUP_ITEM: f"◀ {GROUP_ITEM}", OTHER_ITEM: f"◀ {OTHER_ITEM}", "": ""}
    kinds = {GROUP_ITEM: "mpc-group-item", OTHER_ITEM: "mpc-other-item", "": ""}
    return plain_table(
        header,
        rows,
        caption=caption,
        kinds=[kinds[mark] for mark in marks],
        marked=[signs[mark] for mark in marks],
    )


def _places(parts: list[pd.DataFrame]) -> str:
    ends = [(part["position"].iloc[0], part["position"].iloc[-1]) for part in parts]
    return " and ".join(f"{low:,} to {high:,}" for low, high in ends)


def _for_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return pairs as the table shows them: short numbers, headers in words."""
    made = pd.DataFrame()
    for own, header in _HEADERS.items():
        if own not in pairs:
            continue
        values = pairs[_NAMED[own] if _NAMED.get(own) in pairs else own]
        if own == "query":
            values = values.map(lambda q: ", ".join(map(str, q)) if isinstance(q, tuple) else q)
        if values.dtype.kind == "f":
            whole = bool((values == values.round()).all())
            values = values.astype(int) if whole else values.map(lambda x: float(f"{x:.4g}"))
        made[header] = values
    return plain_frame(made)


# ---- the pairs of one cell, and the ranked lists they are in; no widget below


class PairBook:
    """The pairs of one cell up to a threshold, the closest first.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule, pairing_mode : str
        The cell.
    epsilon : float
        The largest distance between the scores of a pair.
    label : str, optional
        The column of the log that says what an item is called, such as its title; by default the
        labels that the audit knows.

    Attributes
    ----------
    total : int
        Pairs up to the threshold.
    searched : int
        How many of them, the closest, can be looked through; all but for very long lists.
    distance : float64 array
        The distances of the searched pairs, ascending.
    """

    def __init__(
        self,
        audit: Audit,
        group: str,
        scoring_rule: str,
        pairing_mode: str,
        epsilon: float,
        *,
        label: Hashable = None,
    ) -> None:
        cell = open_cell(audit, "pairs", group, scoring_rule, pairing_mode)
        self._cell, self.group, self._label = cell, group, label
        reach, side = epsilon, MODES[pairing_mode].side
        self.total = count_side(cell.log, cell.member, side, epsilon)
        if self.total > MOST_SEARCHED:
            reach = min(epsilon, reach_of(cell.log, cell.member, side, MOST_SEARCHED))
        i, j = pair_rows(cell.log, cell.member, side, reach)
        distance = cell.log.distance(i, j)
        order = np.lexsort((cell.log.row[j], cell.log.row[i], distance))
        self._i, self._j, self.distance = i[order], j[order], distance[order]
        self.searched = len(order)

    @cached_property
    def _places(self) -> Ints:
        """Where each row of the ranking is in the whole log."""
        return self._cell.by_row(np.arange(len(self._cell.whole.row)))

    @property
    def _ranks(self) -> Ints:
        return self._cell.rank

    def find(self, low: float = 0.0, high: float = np.inf, query_text: str = "") -> Ints:
        """Return the numbers of the pairs at a distance in [low, high] whose query has that text.

        The text is looked for anywhere in the query, upper and lower case alike.
        """
        first = int(np.searchsorted(self.distance, low, side="left"))
        last = int(np.searchsorted(self.distance, high, side="right"))
        found = np.arange(first, last, dtype=np.int64)
        wanted = query_text.strip().casefold()
        if not wanted or not len(found):
            return found
        ranking = self._cell.ranking
        query = ranking.query_code[self._cell.log.row[self._i[found]]]
        codes, place = np.unique(query, return_inverse=True)
        labels = ranking.query_labels(codes)
        fits = np.array([wanted in _label(label).casefold() for label in labels], dtype=np.bool_)
        return found[fits[place]]

    def frame(self, which: Ints) -> pd.DataFrame:
        """Return pairs as :meth:`mpc_lab.Audit.pairs` does."""
        log, ranking = self._cell.log, self._cell.ranking
        i, j = self._i[which], self._j[which]
        row_i, row_j = log.row[i], log.row[j]
        columns: dict[str, Any] = {"query": ranking.query_labels(ranking.query_code[row_i])}
        if ranking.item_code is not None:
            columns["item"] = ranking.item_labels(ranking.item_code[row_i])
            columns["other_item"] = ranking.item_labels(ranking.item_code[row_j])
        if self._has_names:
            columns["label"], columns["other_label"] = self._call(row_i), self._call(row_j)
        score = self._cell.shown_score
        columns |= {
            "score": score[row_i],
            "other_score": score[row_j],
            "distance": self.distance[which],
        }
        columns |= {"position": self._ranks[i], "other_position": self._ranks[j]}
        given = ranking.outcome_given
        columns |= {"outcome": given[row_i], "other_outcome": given[row_j]}
        return pd.DataFrame({**columns, "difference": log.contrast(i, j)})

    def scores(self, which: Ints) -> Floats:
        """Return the scores of the items in pairs, each item of a query once."""
        rows = self._cell.log.row[np.unique(np.concatenate([self._i[which], self._j[which]]))]
        return np.asarray(self._cell.shown_score[rows], dtype=np.float64)

    @cached_property
    def differences(self) -> Floats:
        """For each searched pair, the outcome of the group's item less that of the other."""
        return np.asarray(self._cell.log.contrast(self._i, self._j), dtype=np.float64)

    def names(self, pair: int) -> tuple[str, str]:
        """Return what the two items of a pair are called."""
        rows = np.array([self._cell.log.row[side[pair]] for side in (self._i, self._j)])
        one, other = (shown_cell(value) for value in self._call(rows))
        return one, other

    @property
    def _has_names(self) -> bool:
        """Whether items are called something else than their ids."""
        ranking = self._cell.ranking
        named = self._label is not None or ranking.item_label is not None
        return ranking.item_code is not None and named

    def _call(self, rows: Ints) -> list[Any]:
        names = item_names(self._cell.ranking, rows, self._label)
        return ["item of the group", "the other item"] if names is None else names

    def ranked_list(self, pair: int) -> pd.DataFrame:
        """Return the whole ranked list that a pair is in, the top first.

        Returns
        -------
        pandas.DataFrame
            ``position``, ``item`` (if items are known), ``score``, ``outcome``, ``in_group``, and
            ``pair``: which of the two items of the pair the row is, or "".
        """
        whole, ranking = self._cell.whole, self._cell.ranking
        row_i, row_j = (int(self._cell.log.row[side[pair]]) for side in (self._i, self._j))
        at = int(np.searchsorted(whole.starts, self._places[row_i], side="right")) - 1
        rows = np.arange(whole.starts[at], whole.starts[at + 1])
        place = ranks(whole, ranking, logged=self._cell.logged)[rows]
        order = np.argsort(place, kind="stable")
        rows, place = rows[order], place[order]
        columns: dict[str, Any] = {"position": place}
        if ranking.item_code is not None:
            columns["item"] = self._call(whole.row[rows])
        given = ranking.outcome_given[whole.row[rows]]
        columns |= {"score": self._cell.shown_score[whole.row[rows]], "outcome": given}
        columns["in_group"] = whole.masks[0][rows] != 0
        marked = whole.row[rows]
        marks = np.where(marked == row_i, GROUP_ITEM, np.where(marked == row_j, OTHER_ITEM, ""))
        return pd.DataFrame({**columns, "pair": marks})


def around_pair(ranked: pd.DataFrame, around: int = _AROUND) -> list[pd.DataFrame]:
    """Return the parts of a ranked list that are worth showing: some places around both items.

    One part, or two where the items are far apart.
    """
    marked = np.flatnonzero(ranked["pair"].to_numpy() != "")
    wanted = np.zeros(len(ranked), dtype=np.bool_)
    for place in marked:
        wanted[max(0, place - around) : place + around + 1] = True
    shown = np.flatnonzero(wanted)
    cuts = np.flatnonzero(np.diff(shown) > 1) + 1
    return [ranked.iloc[part] for part in np.split(shown, cuts) if len(part)]


def _label(label: object) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
