r"""The gap of a period against the mean of all periods before, where a pool cannot give it.

The mean of the periods before is :math:`\bar\theta = \sum_s n_s \theta_s / \sum_s n_s`, n the pairs
of a group. A pair of period s adds :math:`n_s / \sum n` times what it adds to θ_s, each period
about its own mean, and the variance is that of the stacked contributions: clusters that recur in
several periods are added up before they are squared. A pool has one mean for all periods instead,
which sums over queries allow, but not where sides are compared inside cells of places (a cell has
its own means in every period), nor where a query is in several periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.inference.difference import Stacked, divide_by_rest, estimate_differences, square
from mpc_lab.inference.estimates import enough_clusters
from mpc_lab.results.audit import Audit
from mpc_lab.results.base import correction_of, need_rows, settings
from mpc_lab.results.pooling import names_of_owners
from mpc_lab.results.questions.difference import LISTED_AT_ONCE, Compared, ListedRows, SharedCodes
from mpc_lab.results.sums import moments_by_rule
from mpc_lab.results.two_audits import _sums
from mpc_lab.text import listing, plural, quote
from mpc_lab.vocabulary import CR3, ITEM, MODES, VARIANCES, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.inference.difference import ListedEstimate

MEAN_OF_PERIODS = (
    "All periods before are the mean of their gaps, weighted by pairs, each with its own variance."
)
_BY_QUERY = (
    "Clustered by query against all periods before: {cluster} variance needs the rows of all "
    "periods here. Shocks of items that periods share are not allowed for, so the alarm may ring "
    "too soon."
)
# What is kept of each kind of cluster.
_KEPT = {
    "query": ("error", "cr3", "count"),
    "item": ("error", "cr3"),
    "dyad": ("error",),
    "item_query": ("error",),
    "dyad_query": ("error",),
    "inside": ("count",),
    "outside": ("count",),
}
_CR3 = ("query", "item")
_MOST_NAMED = 4


@dataclass(frozen=True)
class Period:
    """A gap, or a mean of gaps, with the sums that a stacked variance needs.

    Attributes
    ----------
    value : float
    pairs : int
    hidden : int
        Queries beyond the rows of the table: where only sums are known, one row holds all queries.
    naive : float
        Σz² over pairs.
    tables : dict of DataFrame
        For each kind of cluster, by its number: ``error`` is Σz, ``cr3`` the same with each part
        divided by 1 less the share of the cluster, ``count`` the share of the pairs.
    part_variance, part_queries, part_items : float64 arrays (part,)
        For every part: the query variance it adds, and its effective queries and items.
    """

    value: float
    pairs: int
    hidden: int
    naive: float
    tables: dict[str, pd.DataFrame]
    part_variance: Floats
    part_queries: Floats
    part_items: Floats

    def times(self, factor: float) -> Period:
        """Return it multiplied by a number."""
        return replace(
            self,
            value=factor * self.value,
            naive=factor**2 * self.naive,
            tables={kind: factor * table for kind, table in self.tables.items()},
            part_variance=factor**2 * self.part_variance,
        )

    def estimable(self, *, corrected: bool) -> bool:
        """Whether it has a variance: with a period that has none, the mean would have none."""
        columns = ["error", "cr3"] if corrected else ["error"]
        known = [self.value, float(self.part_variance.sum())]
        for kind in _CR3:
            if kind in self.tables:
                known.append(float(self.tables[kind][columns].to_numpy().sum()))
        enough = enough_clusters(self.part_queries).all()
        if "item" in self.tables:
            enough = enough and enough_clusters(self.part_items).all()
        return bool(enough and np.isfinite(known).all() and self.part_variance.sum() > 0)


def join(mean: Period, period: Period) -> Period:
    """Return the mean of all periods so far, weighted by pairs."""
    pairs = mean.pairs + period.pairs
    one, other = mean.times(mean.pairs / pairs), period.times(period.pairs / pairs)
    tables = {}
    for kind in one.tables:
        left, right = one.tables[kind].align(other.tables[kind], join="outer", fill_value=0.0)
        tables[kind] = left + right

    def side_by_side(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in (one, other)])

    return Period(
        one.value + other.value,
        pairs,
        one.hidden + other.hidden,
        one.naive + other.naive,
        tables,
        side_by_side("part_variance"),
        side_by_side("part_queries"),
        side_by_side("part_items"),
    )


def stack_periods(new: Period, old: Period) -> Stacked:
    """Stack the gap of a period and the mean of those before."""

    def aligned(kind: str, column: str) -> tuple[Floats, Floats]:
        both = [one.tables[kind][column] for one in (new, old)]
        left, right = both[0].align(both[1], join="outer", fill_value=0.0)
        return left.to_numpy(), right.to_numpy()

    def squares(kind: str, column: str) -> Floats:
        left, right = aligned(kind, column)
        return np.array([square(left - right), square(left + right)])

    kinds = [kind for kind in new.tables if "error" in _KEPT[kind]]
    counts = np.add(*aligned("query", "count"))
    items, shared = np.nan, False
    if "item" in new.tables:
        sides = [np.add(*aligned(side, "count")) for side in ("inside", "outside")]
        items = min(float(side.sum() ** 2 / square(side)) for side in sides)
        shared = len(aligned("item_query", "error")[0]) > len(aligned("item", "error")[0])
    parts = {
        name: np.concatenate([getattr(one, name) for one in (new, old)])
        for name in ("part_variance", "part_queries", "part_items")
    }
    return Stacked(
        new=new.value,
        old=old.value,
        pairs=new.pairs + old.pairs,
        clusters=len(counts) + new.hidden + old.hidden,
        squares={kind: squares(kind, "error") for kind in kinds}
        | {"naive": np.full(2, new.naive + old.naive)},
        cr3={kind: squares(kind, "cr3") for kind in _CR3 if kind in kinds},
        counts=square(counts),
        item_effective=items,
        shared_items=shared,
        shared_pairs=0.0,
        **parts,
    )


# ---- where a period is read from


class PeriodReader(Protocol):
    """Reads what periods add: from rows, from saved queries, or from sums."""

    cluster: str
    notes: list[str]

    def read(self, k: int, group: str) -> Period | None:
        """Return the gap of a group in period k; None without pairs."""
        ...


@dataclass(frozen=True)
class _Cells:
    """The cells that are followed over periods."""

    audits: Sequence[Audit]
    rule: str
    mode: str

    def at(self, k: int, group: str) -> Compared:
        return Compared(self.audits[k], group, self.rule, self.mode)


class _RowReader:
    """Lists the pairs of a period; queries and items have one numbering in all of them."""

    def __init__(self, cells: _Cells, cluster: str) -> None:
        self._cells, self.cluster, self.notes = cells, cluster, list[str]()
        rankings = [need_rows(audit, "trend") for audit in cells.audits]
        self._by_item = VARIANCES[cluster].needs_items
        self._owner = rankings[0].owner
        queries, n_queries = _number([names_of_units(one) for one in rankings])
        items: list[Any] = [None] * len(rankings)
        n_items = 0
        if self._by_item:
            items, n_items = _number([names_of_owners(one) for one in rankings])
        self._sizes = n_queries, n_items
        self._listed = [
            ListedRows(audit, SharedCodes(query, item, rows_shared=False))
            for audit, query, item in zip(cells.audits, queries, items, strict=True)
        ]

    def read(self, k: int, group: str) -> Period | None:
        found = self._listed[k].estimate(self._cells.at(k, group))
        if not self._by_item:
            found = replace(found, inside=None, outside=None)
        return of_listed(found, self._sizes, self._owner)


def of_listed(found: ListedEstimate, sizes: tuple[int, int], owner: str) -> Period | None:
    """Return what a period adds, from its pairs.

    Parameters
    ----------
    found : ListedEstimate
        With queries and items in the numbering of all periods.
    sizes : (int, int)
        How many queries and items there are.
    owner : {"item", "producer"}
        Who the items are.
    """
    if not len(found.query) or not np.isfinite(found.value):
        return None
    error = found.factor * found.error
    sums = {
        kind: _sum_by(keys, error, found.share) for kind, keys in _keys(found, sizes, owner).items()
    }
    tables = {}
    for kind, (number, errors, shares) in sums.items():
        columns = {
            "error": errors.sum(axis=0),
            "cr3": divide_by_rest(errors, shares).sum(axis=0),
            "count": found.factor * shares.sum(axis=0),
        }
        tables[kind] = pd.DataFrame({name: columns[name] for name in _KEPT[kind]}, index=number)
    effective = {kind: _effective(shares) for kind, (_, _, shares) in sums.items()}
    nothing = np.full(len(error), np.nan)
    by_query = sums["query"][1]
    of_pairs = error.sum(axis=0)
    return Period(
        found.value,
        len(found.query),
        0,
        square(of_pairs),
        tables,
        np.einsum("xk,xk->x", by_query, by_query),
        effective["query"],
        np.minimum(effective.get("inside", nothing), effective.get("outside", nothing)),
    )


def _keys(found: ListedEstimate, sizes: tuple[int, int], owner: str) -> dict[str, list[Ints]]:
    """Return the number of each cluster of a pair, the same in all periods; -1 for none."""
    query, i, j = found.query, found.inside, found.outside
    if i is None or j is None:
        return {"query": [query]}
    n_queries, n_items = sizes
    # A pair inside one producer counts once, and is not a dyad.
    alone = (i == j) & (owner != ITEM)
    other = np.where(alone, -1, j)
    dyad = np.where(alone, -1, np.minimum(i, j) * n_items + np.maximum(i, j))

    def within(code: Ints) -> Ints:
        return np.where(code < 0, -1, code * n_queries + query)

    return {
        "query": [query],
        "item": [i, other],
        "dyad": [dyad],
        "item_query": [within(i), within(other)],
        "dyad_query": [within(dyad)],
        "inside": [i],
        "outside": [j],
    }


def _sum_by(keys: Sequence[Ints], error: Floats, share: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the clusters, and what their pairs add up to in each part (part, cluster)."""
    every = np.concatenate(keys)
    pair = np.tile(np.arange(error.shape[1]), len(keys))[every >= 0]
    number, code = np.unique(every[every >= 0], return_inverse=True)

    def add(values: Floats) -> Floats:
        found = [np.bincount(code, of_part[pair], len(number)) for of_part in values]
        return np.array(found)

    return number, add(error), add(share)


def _effective(share: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.einsum("xk,xk->x", share, share))


def names_of_units(ranking: Any) -> NDArray[Any]:
    """Return the ids that clusters are known by: those of units, or else of queries."""
    if ranking.unit_code is None:
        labels = ranking.query_labels(np.arange(ranking.n_queries))
    else:
        labels = ranking.unit_labels(np.arange(ranking.n_units))
    return np.array([str(label) for label in labels], dtype=object)


def _number(every: Sequence[NDArray[Any]]) -> tuple[list[Ints], int]:
    """Return one numbering for lists of names, and how many names there are."""
    codes, names = pd.factorize(np.concatenate(every))
    ends = np.cumsum([len(one) for one in every])[:-1]
    return np.split(codes.astype(np.int64), ends), len(names)


class _QueryReader:
    """Reads what audits kept of each query, by a hash of its id."""

    def __init__(self, cells: _Cells, cluster: str) -> None:
        self._cells, self.cluster, self.notes = cells, "query", _by_query(cluster)

    def read(self, k: int, group: str) -> Period | None:
        cell, audit = self._cells.at(k, group), self._cells.audits[k]
        saved = audit._saved["queries"]
        rules, modes = (
            audit.headline[dim].values.tolist() for dim in ("scoring_rule", "pairing_mode")
        )
        at = rules.index(cell.rule) * len(audit.groups) + audit.groups.index(cell.group)
        at = at * len(modes) + modes.index(cell.mode)
        pairs = int(saved["n_pairs"].values[at])
        if not pairs:
            return None
        here = saved["cell"].values == at
        part, name, share, error = (
            saved[column].values[here] for column in ("part", "query", "share", "error")
        )
        n_parts = len(MODES[cell.mode].sides) if MODES[cell.mode].two_sided else 1
        of_part = part == np.arange(n_parts)[:, None]
        number, code = np.unique(name.astype(np.uint64), return_inverse=True)
        _, errors, shares = _sum_by([code], of_part * error / n_parts, of_part * share)
        table = {
            "error": errors.sum(axis=0),
            "cr3": divide_by_rest(errors, shares).sum(axis=0),
            "count": shares.sum(axis=0) / n_parts,
        }
        variance = np.einsum("xk,xk->x", errors, errors)
        return Period(
            float(saved["value"].values[at]),
            pairs,
            0,
            float(variance.sum()),
            {"query": pd.DataFrame(table, index=number)},
            variance,
            _effective(shares),
            np.full(n_parts, np.nan),
        )


class _SumReader:
    """Reads the sums of an audit: no query of one period is in another."""

    def __init__(self, cells: _Cells, cluster: str) -> None:
        self._cells, self.cluster, self.notes = cells, "query", _by_query(cluster)

    def read(self, k: int, group: str) -> Period | None:
        found = _sums(self._cells.at(k, group))
        if not found.pairs:
            return None
        # The squares of clusters that do not recur add up, so one row holds a whole period.
        columns = {
            "error": found.squares["query"],
            "cr3": found.cr3,
            "count": found.counts,
        }
        table = pd.DataFrame({name: [np.sqrt(value)] for name, value in columns.items()}, index=[k])
        return Period(
            found.value,
            found.pairs,
            found.clusters - 1,
            found.squares["naive"],
            {"query": table},
            found.variance,
            found.queries,
            np.full(len(found.variance), np.nan),
        )


def _by_query(cluster: str) -> list[str]:
    return [] if cluster == "query" else [_BY_QUERY.format(cluster=cluster)]


# ---- which queries are known to be in several periods


@dataclass(frozen=True)
class Ids:
    """What is known about the ids of queries.

    Attributes
    ----------
    shared : int
        Queries that are known to be in more than one period.
    known : bool
        Whether the ids of all periods are known, under one key.
    matches : bool
        Whether contributions of single queries are known with them, so that they can be matched.
    """

    shared: int
    known: bool
    matches: bool


def known_ids(audits: Sequence[Audit]) -> Ids:
    """Return what rows, saved queries and saved ids tell about queries in several periods."""
    by_rows = [names_of_units(need_rows(one, "trend")) for one in audits if has_rows(one)]
    shared = _recurring(by_rows)
    known = matches = len(by_rows) == len(audits)
    for kind, column in (("queries", "query"), ("ids", "id")):
        keyed: dict[str, list[NDArray[Any]]] = {}
        for audit in audits:
            if kind in audit._saved:
                saved = audit._saved[kind]
                keyed.setdefault(str(saved.attrs["key"]), []).append(np.unique(saved[column]))
        for found in keyed.values():
            shared = max(shared, _recurring(found))
            known = known or len(found) == len(audits)
            matches = matches or (kind == "queries" and len(found) == len(audits))
    return Ids(shared, known, matches)


def has_rows(audit: Audit) -> bool:
    """Whether the rows of an audit are there, or can be read again."""
    return audit.ranking is not None or audit._reread is not None


def _recurring(every: Sequence[NDArray[Any]]) -> int:
    if not every:
        return 0
    return int((pd.Series(np.concatenate(every)).value_counts() > 1).sum())


def by_place(audits: Sequence[Audit], mode: str) -> bool:
    """Whether sides are compared inside cells of places, which pools cannot add up."""
    return MODES[mode].two_sided and any(
        moments.cells is not None for audit in audits for moments in moments_by_rule(audit)
    )


def choose_source(
    audits: Sequence[Audit], rule: str, mode: str, groups: Sequence[str], ids: Ids
) -> PeriodReader:
    """Return where to read periods from: the most exact source that all of them have.

    Raises
    ------
    MpcError
        If queries occur in several periods, and the contributions of each query are not known.
    """
    cells, cluster = _Cells(audits, rule, mode), str(settings(audits[-1])["cluster"])
    if all(map(has_rows, audits)) and _can_be_listed(cells, groups):
        return _RowReader(cells, cluster)
    saved = [audit._saved.get("queries") for audit in audits]
    keys = {None if one is None else one.attrs["key"] for one in saved}
    if len(keys) == 1 and None not in keys:
        return _QueryReader(cells, cluster)
    if ids.shared:
        raise MpcError(
            f"audits must be of different queries where not all have their rows; got "
            f"{plural(ids.shared, 'query')} known to be in more than one period. Give audits with "
            "their rows, or save all with queries=True and one key."
        )
    return _SumReader(cells, cluster)


def _can_be_listed(cells: _Cells, groups: Sequence[str]) -> bool:
    """Whether the contributions of all pairs fit into memory, and their keys into 64 bits."""
    every = range(len(cells.audits))
    pairs = np.nansum([cells.at(k, group).value("n_pairs") for k in every for group in groups])
    rankings = [need_rows(audit, "trend") for audit in cells.audits]
    queries = sum(max(one.n_queries, one.n_units) for one in rankings)
    items = sum(one.n_items for one in rankings)
    return bool(pairs <= LISTED_AT_ONCE and max(items, 1) ** 2 * queries < 1 << 62)


def against_all_before(
    source: PeriodReader, audits: Sequence[Audit], groups: Sequence[str], names: Sequence[str]
) -> tuple[list[xr.Dataset], list[str]]:
    """Return the change of each period against all before, and the notes on it.

    A period in which a group has no variance of its own is left out of the mean of that group.

    Parameters
    ----------
    source : PeriodReader
    audits : sequence of Audit
    groups, names : sequence of str
        The groups, and what the periods are called.
    """
    options = settings(audits[-1])
    corrected = correction_of(audits[-1]) == CR3
    how: dict[str, Any] = {"cluster": source.cluster, "level": float(options["level"])}
    how |= {"owner": str(options.get("owner", ITEM)), "corrected": corrected}
    before: dict[str, Period] = {}
    left_out: list[str] = []
    found = []
    for k, name in enumerate(names):
        stacked: list[Stacked | None] = []
        for group in groups:
            period = source.read(k, group)
            usable = period is not None and period.estimable(corrected=corrected)
            if not usable or period is None:
                left_out.append(f"{quote(group)} in {quote(name)}")
                stacked.append(None)
                continue
            old = before.get(group)
            stacked.append(None if old is None else stack_periods(period, old))
            before[group] = period if old is None else join(old, period)
        if k:
            found.append(_infer(stacked, how))
    return found, [MEAN_OF_PERIODS, *source.notes, *_say_left_out(left_out)]


def _infer(stacked: Sequence[Stacked | None], how: dict[str, Any]) -> xr.Dataset:
    """Infer from what was stacked; NaN for groups with nothing to compare."""
    some = [k for k, one in enumerate(stacked) if one is not None]
    columns: dict[str, NDArray[Any]] = {
        name: np.full(len(stacked), np.nan)
        for name in ("difference", "std_error", "ci_low", "ci_high", "p_value")
    }
    if some:
        found = estimate_differences([one for one in stacked if one is not None], **how)
        for name, values in columns.items():
            values[some] = getattr(found, name)
    return xr.Dataset({name: ("group", values) for name, values in columns.items()})


def _say_left_out(left_out: Sequence[str]) -> list[str]:
    if not left_out:
        return []
    named = listing(left_out, _MOST_NAMED)
    return [
        "Too few pairs or clusters for a variance of its own, so neither compared nor in the mean "
        f"of all before: {named}."
    ]
