"""One real ranked list under a boost: which query shows most, and its rows for the page."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from mpc_lab.explorers.controls import shown_cell
from mpc_lab.objective.boosts import Boosts
from mpc_lab.objective.ndcg import dcg_weights, query_codes
from mpc_lab.ranking import Ranking
from mpc_lab.text import plural, quote
from mpc_lab.vocabulary import Flags, Floats, Ints

SHOWN = 12
_LONGEST = 200
_TRIED = 300


class MovingList(anywidget.AnyWidget):
    """A ranked list that the page sorts again as a boost is moved; it asks the kernel nothing.

    Attributes
    ----------
    alpha : float
        What is added to the scores of the group.
    rows : list of dict
        The whole list, tied rows in the order in which they are listed: ``name``, ``score``,
        ``outcome``, ``inside``.
    curve : dict
        ``alpha``, ``gap`` and ``objective`` over all queries, between which the page interpolates.
    exact : list of float
        The three at the boost that was measured last.
    """

    _esm = Path(__file__).parent / "moving_list.js"

    alpha = traitlets.Float().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    group = traitlets.Unicode().tag(sync=True)
    mark = traitlets.Unicode().tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    outcome = traitlets.Unicode().tag(sync=True)
    objective = traitlets.Unicode("NDCG").tag(sync=True)
    rows: Any = traitlets.List().tag(sync=True)
    weights: Any = traitlets.List().tag(sync=True)
    curve = traitlets.Dict().tag(sync=True)
    exact: Any = traitlets.List().tag(sync=True)
    most = traitlets.Int(SHOWN).tag(sync=True)
    ascending = traitlets.Bool(False).tag(sync=True)


def most_moved(ready: Boosts, alpha: float) -> int:
    """Return the query, by its code, whose first places a boost moves the most.

    Only queries of at most 200 rows with items of both sides are tried, if there are any: those
    with the most rows in new places, or, where the boost moves nothing, the longest ones.
    """
    sizes = ready.baseline.size
    moved = ready.objective(alpha)[1]
    fits = (sizes <= _LONGEST) & _both_sides(ready)
    if not fits.any():
        fits = _both_sides(ready)
    key = np.where(fits, moved * (sizes.max() + 1.0) + sizes, -1.0)
    tried = np.argsort(-key, kind="stable")[:_TRIED]
    tried = tried[key[tried] >= 0]
    if not len(tried):
        return int(np.argmax(sizes))
    seen = [_moves(*_scores(ready, int(code)), alpha) for code in tried]
    return int(tried[int(np.argmax(seen))])


def list_rows(ready: Boosts, code: int, label: Hashable) -> list[dict[str, Any]]:
    """Return the rows of a query, as `MovingList.rows` says."""
    ranking, row = ready.ranking, _rows(ready, code)
    inside, given = ranking.member(ready.group)[row], ranking.outcome_given[row]
    names = item_names(ranking, row, label) or [f"item {k + 1}" for k in range(len(row))]
    return [
        {"name": shown_cell(name), "score": score, "outcome": outcome, "inside": is_inside}
        for name, score, outcome, is_inside in zip(
            names, ranking.score[row].tolist(), given.tolist(), inside.tolist(), strict=True
        )
    ]


def list_title(ranking: Ranking, code: int, rows: int) -> str:
    """Return which list is shown, and how much of it."""
    (query,) = ranking.query_labels(np.array([code]))
    words = ", ".join(map(str, query)) if isinstance(query, tuple) else str(query)
    part = f"first {SHOWN} of {plural(rows, 'item')}" if rows > SHOWN else plural(rows, "item")
    return f"Ranking of query {quote(words)}, {part}"


def list_weights(rows: int) -> list[float]:
    """Return what each place of a list weighs in its DCG."""
    return [float(weight) for weight in dcg_weights(rows)]


def item_names(ranking: Ranking, rows: Ints, label: Hashable) -> list[Any] | None:
    """Return what the items of rows are called; None where items are not known.

    Parameters
    ----------
    ranking : Ranking
    rows : int64 array
    label : str or None
        The column with their titles; by default the labels that the ranking was given, then ids.
    """
    if label is not None:
        return list(np.asarray(ranking.column(label))[rows])
    if ranking.item_code is not None:
        return list(ranking.item_names(ranking.item_code[rows]))
    return None


def _both_sides(ready: Boosts) -> Flags:
    codes = query_codes(ready.ranking, ready.log)
    both = (np.diff(ready.runs.inside.starts) > 0) & (np.diff(ready.runs.outside.starts) > 0)
    found = np.zeros(ready.ranking.n_queries, dtype=np.bool_)
    found[codes] = both
    return found


def _rows(ready: Boosts, code: int) -> Ints:
    """Return the rows of a query, in the order in which tied ones are listed."""
    log, ranking = ready.log, ready.ranking
    at = int(np.flatnonzero(query_codes(ranking, log) == code)[0])
    row = log.row[log.starts[at] : log.starts[at + 1]]
    turn = row if ranking.position is None else ranking.position[row]
    return np.asarray(row[np.argsort(turn, kind="stable")], dtype=np.int64)


def _scores(ready: Boosts, code: int) -> tuple[Floats, Flags]:
    row = _rows(ready, code)
    return ready.ranking.score[row], ready.ranking.member(ready.group)[row]


def _moves(score: Floats, inside: Flags, alpha: float) -> int:
    """Return how many places rows move that are among the first before or after a boost."""
    before, after = (_places(score + np.where(inside, by, 0.0)) for by in (0.0, alpha))
    seen = (before < SHOWN) | (after < SHOWN)
    return int(np.abs(before - after)[seen].sum())


def _places(score: Floats) -> Ints:
    place = np.empty(len(score), dtype=np.int64)
    place[np.argsort(-score, kind="stable")] = np.arange(len(score))
    return place
