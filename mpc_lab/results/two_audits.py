"""The difference of two audits: from their rows, their sums, or their saved queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.inference.difference import Stacked, squares_of, stack_tables
from mpc_lab.inference.estimates import effective_clusters, query_variances
from mpc_lab.pairing.entries import OF_BOTH, OF_GROUP, OF_OTHER
from mpc_lab.pairing.modes import rows_of
from mpc_lab.pairing.moments import ABOVE, BELOW
from mpc_lab.results.assemble import headline_moments
from mpc_lab.results.audit import Audit
from mpc_lab.results.base import as_audited, correction_of, known_scores, need_rows, settings
from mpc_lab.results.difference import Difference
from mpc_lab.results.pooling import hash_queries, item_tables, rows_of_cell
from mpc_lab.results.questions.difference import (
    Compared,
    ListedRows,
    SharedCodes,
    label,
    of_two_audits,
)
from mpc_lab.results.recipe import fingerprint, fingerprints
from mpc_lab.results.sums import moments_by_rule
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import listing, quote
from mpc_lab.vocabulary import CR3, ITEM, MODES, VARIANCES, Floats

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

# What two gaps must have in common to be subtracted.
_ALIKE = {
    "cluster": "query",
    "level": 0.95,
    "adjust": "holm",
    "contrast": "difference",
    "estimand": "pairs",
    "closeness": "score",
    "against": None,
    "outcome_cap": None,
    "owner": ITEM,
}
_DISTINCT = (
    "It assumes that no query is in both logs: save both with ids=True and one key to prove it."
)
_NO_ITEMS = (
    "Clustered by query: {cluster} variance needs both audits saved with items=True, and pairs "
    "that are not compared inside cells of places."
)
_PLAIN_SIDES = (
    "Symmetric pairs of a pool have the plain correction, because it keeps no more of them."
)
_BY_QUERY = "Clustered by query: sums of single queries are known, those of items are not."


def difference(new: Audit, old: Audit, ranking: Any = None) -> Difference:
    r"""Return the gap of each group in one audit less that in another.

    :math:`\theta_{new} - \theta_{old}` at the threshold of each headline, with the variance of the
    stacked contributions, so that queries and items that both have are allowed for. Where both
    audits have their rows these are used, and queries are matched by their ids. Saved audits are
    subtracted from their sums, which is exact where no query is in both: union variance needs
    ``save(..., items=True)``, the proof that queries differ ``save(..., ids=True, key=…)``. Audits
    of the same queries need rows, or ``save(..., queries=True, key=…)`` and have query variance.

    Parameters
    ----------
    new, old : Audit
        Two audits with the same groups and options. The first scoring rule of each is compared.
    ranking : Ranking or (Ranking, Ranking), optional
        The rows of both audits, or of the new and of the old one, where they were loaded.

    Returns
    -------
    Difference

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> days = [mpc.audit(mpc.datasets.synthetic(2000, seed=k), progress=False) for k in (1, 2)]
    >>> mpc.difference(days[1], days[0]).data["verdict"].values.ravel().tolist()
    ['inconclusive', 'inconclusive']
    """
    for audit in (new, old):
        if not isinstance(audit, Audit):
            raise MpcError(
                f"new and old must be audits; got {type(audit).__name__}. Give "
                "mpc.difference(new, old)."
            )
    if ranking is not None:
        new, old = (
            _with_rows(audit, rows)
            for audit, rows in zip((new, old), _two_rankings(ranking), strict=True)
        )
    _check_alike(new, old)
    new, old = _share_rows(new, old)
    groups = [group for group in new.groups if group in old.groups]
    modes = [mode for mode in _labels(new, "pairing_mode") if mode in _labels(old, "pairing_mode")]
    if not groups or not modes:
        what = "group" if not groups else "pairing mode"
        raise MpcError(
            f"new and old must have a {what} in common; got none. Audit both logs with the same "
            f"{what}s."
        )
    made = _subtract(new, old, groups, modes)
    said = [
        str(made.data.attrs["notes"]),
        say_left_out("Not compared, for only one audit has", new, old),
    ]
    made.data.attrs["notes"] = "\n".join(filter(None, said))
    return made


def say_left_out(start: str, *audits: Audit) -> str:
    """Name the groups that not all audits have; nothing where there are none."""
    every = {group for audit in audits for group in audit.groups}
    left = sorted(g for g in every if not all(g in audit.groups for audit in audits))
    if not left:
        return ""
    them = "it" if len(left) == 1 else "them"
    return f"{start} {them}: {listing([quote(group) for group in left])}."


def _subtract(new: Audit, old: Audit, groups: Sequence[str], modes: Sequence[str]) -> Difference:
    """Subtract using what both audits have: rows, sums of each query, or total sums."""
    rules = (_labels(new, "scoring_rule")[0], _labels(old, "scoring_rule")[0])
    if new is old or (_has_rows(new) and _has_rows(old)):
        if new is old and not _has_rows(new):
            return _with_itself(new, groups, modes, rules)
        return of_two_audits(new, old, groups, modes, rules)
    if {"queries"} <= set(new._saved) & set(old._saved):
        return _from_queries(new, old, groups, modes, rules)
    return _from_sums(new, old, groups, modes, rules)


def _labels(audit: Audit, dim: str) -> list[str]:
    return [str(name) for name in audit.headline[dim].values]


def _has_rows(audit: Audit) -> bool:
    return audit.ranking is not None or audit._reread is not None


def _two_rankings(given: Any) -> tuple[Ranking, Ranking]:
    two = tuple(given) if isinstance(given, list | tuple) else (given, given)
    if len(two) != 2 or not all(hasattr(one, "fingerprint") for one in two):
        kinds = ", ".join(type(one).__name__ for one in two)
        raise MpcError(
            f"ranking must be an mpc.Ranking, or two of them; got {kinds}. Give "
            "ranking=(new_ranking, old_ranking)."
        )
    return two[0], two[1]


def _with_rows(audit: Audit, ranking: Ranking) -> Audit:
    """Return an audit with its rows, after checking that they are its own."""
    if audit.ranking is not None:
        return audit
    if audit.attrs.get("fingerprint", ranking.fingerprint()) != ranking.fingerprint():
        raise MpcError(
            "ranking must be the rows that the audits were made from; got others. Give "
            "ranking=(new_ranking, old_ranking) where each audit has its own."
        )
    rows = as_audited(ranking, audit.attrs)
    return Audit(
        audit.headline,
        audit._curve,
        audit._moments,
        audit.attrs,
        ranking=rows,
        scores=partial(known_scores, rows),
        saved=audit._saved,
    )


def identify_log(audit: Audit) -> str | None:
    """Return a key that identifies the log of an audit; None if there is no such key.

    The fingerprint of its rows; of files that are walked their checksums, with what is read of
    them.
    """
    known = fingerprint(audit)
    if known is not None:
        return known
    try:
        files = json.loads(str(audit.attrs.get("source", "{}"))).get("files", [])
        stamps = [one.get("sha256") for one in files]
    except (ValueError, AttributeError):
        return None
    if not stamps or not all(stamps):
        return None
    return json.dumps([stamps, str(audit.attrs.get("columns")), audit.groups])


def identify_logs(audit: Audit) -> set[str]:
    """Return the keys that identify the logs of an audit; a pool is made of several."""
    own = identify_log(audit)
    return {one for one in (own, *fingerprints(audit)) if one}


def _share_rows(new: Audit, old: Audit) -> tuple[Audit, Audit]:
    """Give an audit the rows of the other one where both are of one log.

    From sums alone, its queries would count as those of two logs. Two audits with the same numbers,
    such as an audit and its saved file, are the same.
    """
    if new is old or (_has_rows(new) and _has_rows(old)):
        return new, old
    marks = [identify_log(audit) for audit in (new, old)]
    if marks[0] is None or marks[0] != marks[1]:
        return new, old
    one = new if _has_rows(new) else old
    options = [audit.attrs.get("options") for audit in (new, old)]
    if options[0] == options[1] and new.headline.identical(old.headline):
        return one, one
    if not _has_rows(one):
        return new, old
    rows = need_rows(one, "difference")
    return _with_rows(new, rows), _with_rows(old, rows)


def _check_alike(new: Audit, old: Audit) -> None:
    """Refuse gaps that do not mean the same."""
    for name, default in _ALIKE.items():
        values = [settings(audit).get(name, default) for audit in (new, old)]
        if values[0] != values[1]:
            raise MpcError(
                f"new and old must have one {name}; got {values[0]!r} and {values[1]!r}. Run both "
                "audits alike."
            )
    outcomes = [outcome_word(settings(audit)) for audit in (new, old)]
    if outcomes[0] != outcomes[1]:
        raise MpcError(
            f"new and old must have one outcome; got {outcomes[0]!r} and {outcomes[1]!r}. Where "
            "both mean the same, give both audits one outcome_name."
        )
    if correction_of(new) != correction_of(old):
        raise MpcError("new and old must have one correction; got two. Run both audits alike.")


def _cells(
    new: Audit, old: Audit, groups: Sequence[str], modes: Sequence[str], rules: tuple[str, str]
) -> list[list[tuple[Compared, Compared]]]:
    return [
        [
            (Compared(new, group, rules[0], mode), Compared(old, group, rules[1], mode))
            for group in groups
        ]
        for mode in modes
    ]


# ---- queries that differ: sums of each audit


@dataclass(frozen=True)
class Sums:
    """What one estimate adds to the sums of a difference, if the other has different queries.

    Attributes
    ----------
    value : float
    pairs, clusters : int
    squares, cr3 : dict of float
        As in `Stacked`, for this estimate alone.
    counts : float
        Σc² over queries.
    variance, queries : float64 arrays (part,)
        The query variance that each part adds, and its effective queries.
    """

    value: float
    pairs: int
    clusters: int
    squares: dict[str, float]
    cr3: float
    counts: float
    variance: Floats
    queries: Floats


def _sums(cell: Compared) -> Sums:
    """Read the sums of a cell at the threshold of its headline."""
    audit = cell.audit
    rule = _labels(audit, "scoring_rule").index(cell.rule)  # type: ignore[arg-type]
    moments = headline_moments(audit)[rule]
    row, group = moments.mode_names.index(cell.mode), audit.groups.index(cell.group)
    at = (row, group, 0)
    pairs = int(moments.pairs[at])
    count = float(pairs) if pairs else np.nan
    delta = moments.by["naive"].cu[at] / count
    squares = {
        name: float(sums[at].at(delta)) / count**2
        for name, sums in moments.by.items()
        if name in ("naive", "query", "item_query", "dyad_query")
    }
    counts = float(moments.by["query"].cc[at]) / count**2
    variance = np.array([squares["query"]])
    with np.errstate(divide="ignore"):
        queries = np.array([1.0 / counts])
    if MODES[cell.mode].two_sided and moments.sides is not None:
        sides = moments.sides
        variance = query_variances(sides)[:, group, 0]
        queries = effective_clusters(sides.weight, sides.by["query"][[BELOW, ABOVE], 0])[
            :, group, 0
        ]
    cr3 = float(moments.cr3["query"][at]) / count**2 if "query" in moments.cr3 else np.nan
    value = float(moments.center[group] + delta)
    clusters = int(moments.clusters[at])
    if moments.query_sides and MODES[cell.mode].two_sided and clusters > 1:
        # Times (Q − 1)/Q, as CR3 has it, this is the plain variance, all that a pool knows here.
        cr3 = squares["query"] * (clusters / (clusters - 1)) ** 2
    return Sums(value, pairs, clusters, squares, cr3, counts, variance, queries)


def _from_sums(
    new: Audit, old: Audit, groups: Sequence[str], modes: Sequence[str], rules: tuple[str, str]
) -> Difference:
    """Subtract audits whose queries differ."""
    known = _queries_differ(new, old)
    notes = [] if known else [_DISTINCT]
    cluster = str(settings(new)["cluster"])
    tables = None
    if VARIANCES[cluster].needs_items:
        tables = _tables(new, old, modes)
        if tables is None:
            notes.append(_NO_ITEMS.format(cluster=cluster))
            cluster = "query"
    cells = _cells(new, old, groups, modes, rules)
    stacked = [[_add(*both, tables) for both in of_mode] for of_mode in cells]
    pooled = any(part.query_sides for audit in (new, old) for part in headline_moments(audit))
    if pooled and correction_of(new) == CR3:
        notes.append(_PLAIN_SIDES)
    attrs = {"from": "sums", "assumes": "" if known else "distinct queries"}
    named = ("the new audit", "the old audit")
    return label(stacked, cells, groups, modes, named, attrs, notes, cluster=cluster)


def _queries_differ(new: Audit, old: Audit) -> bool:
    """Return whether it is known that no query is in both; refuse if one is."""
    if identify_logs(new) & identify_logs(old):
        raise MpcError(_same_queries("the same rows"))
    ids = [audit._saved.get("ids") for audit in (new, old)]
    if ids[0] is None or ids[1] is None or ids[0].attrs["key"] != ids[1].attrs["key"]:
        return False
    both = np.intersect1d(ids[0]["id"].values, ids[1]["id"].values)
    if len(both):
        raise MpcError(_same_queries(f"{len(both):,} queries in both"))
    return True


def _same_queries(what: str) -> str:
    return (
        f"new and old must have different queries where only their sums are known; got {what}. "
        "Give mpc.difference(new, old, ranking=ranking), or save both with queries=True and one "
        "key."
    )


def _with_itself(
    audit: Audit, groups: Sequence[str], modes: Sequence[str], rules: tuple[str, str]
) -> Difference:
    """Return the difference of an audit from itself: nothing."""
    cells = _cells(audit, audit, groups, modes, rules)
    stacked: list[list[Any]] = []
    for of_mode in cells:
        stacked.append([])
        for cell, _ in of_mode:
            one = _sums(cell)
            again = np.array([0.0, 4.0])
            stacked[-1].append(
                Stacked(
                    one.value,
                    one.value,
                    2 * one.pairs,
                    one.clusters,
                    {name: again * one.squares[name] for name in ("naive", "query")},
                    {"query": again * one.cr3},
                    4 * one.counts,
                    np.nan,
                    np.concatenate([one.variance] * 2),
                    np.concatenate([one.queries] * 2),
                    np.full(2 * len(one.variance), np.nan),
                    shared_items=False,
                    shared_pairs=float(one.pairs),
                )
            )
    named = ("the new audit", "the old audit")
    return label(stacked, cells, groups, modes, named, {"from": "sums"}, [], cluster="query")


def _tables(
    new: Audit, old: Audit, modes: Sequence[str]
) -> dict[int, dict[str, xr.Dataset]] | None:
    """Return the tables of items and dyads of both audits, where both have them."""
    found = {}
    for audit in (new, old):
        by_place = any(
            MODES[mode].two_sided and moments.cells is not None
            for mode in modes
            for moments in moments_by_rule(audit)
        )
        if by_place:
            return None
        if {"items", "dyads"} <= set(audit._saved):
            found[id(audit)] = {name: audit._saved[name] for name in ("items", "dyads")}
        elif audit.ranking is not None and audit.ranking.item_code is not None:
            found[id(audit)] = item_tables(audit)
        else:
            return None
    return found


def _add(new: Compared, old: Compared, tables: dict[int, dict[str, xr.Dataset]] | None) -> Stacked:
    """Stack two estimates with different queries."""
    both = [_sums(cell) for cell in (new, old)]
    names = set(both[0].squares) & set(both[1].squares)
    twice = np.ones(2)
    squares = {name: twice * sum(one.squares[name] for one in both) for name in names}
    cr3 = {"query": twice * sum(one.cr3 for one in both)}
    parts = np.concatenate([one.variance for one in both])
    items, few, shared = np.nan, np.full(len(parts), np.nan), False
    if tables is None:
        squares = {name: squares[name] for name in ("naive", "query")}
    else:
        found = _stack_items([_item_parts(cell, tables[id(cell.audit)]) for cell in (new, old)])
        squares |= {"item": found.squares, "dyad": found.dyads}
        cr3["item"] = found.cr3
        items, few, shared = found.effective, found.part_effective, found.shared
    some = all(one.pairs for one in both)
    return Stacked(
        new=both[0].value,
        old=both[1].value,
        pairs=sum(one.pairs for one in both) if some else 0,
        clusters=sum(one.clusters for one in both),
        squares=squares,
        cr3=cr3,
        counts=sum(one.counts for one in both),
        item_effective=items,
        part_variance=parts,
        part_queries=np.concatenate([one.queries for one in both]),
        part_items=few,
        shared_items=shared,
        shared_pairs=0.0,
    )


@dataclass(frozen=True)
class _ItemParts:
    """For each part of an estimate, the keys of items (or dyads), their shares and errors."""

    factor: float
    items: list[tuple[Any, Floats, Floats]]
    inside: list[tuple[Any, Floats]]
    outside: list[tuple[Any, Floats]]
    dyads: list[tuple[Any, Floats]]
    recur: bool


def _item_parts(cell: Compared, tables: dict[str, xr.Dataset]) -> _ItemParts:
    audit = cell.audit
    rule, group = (
        _labels(audit, "scoring_rule").index(cell.rule),  # type: ignore[arg-type]
        audit.groups.index(cell.group),
    )
    moments = moments_by_rule(audit)[rule]
    rows = rows_of(moments.modes, apart=moments.by_query)
    mode = moments.mode_names.index(cell.mode)
    epsilon = cell.value("epsilon")
    edges, own = moments.edges[group], headline_moments(audit)[rule]
    # A part adds up rows of sums: a tie is half on each of two sides.
    parts: list[list[tuple[int, float]]] = [[(rows.of_mode[mode], 1.0)]]
    weights = [float(own.total_weight[mode, group, 0])]
    deltas = [float(own.by["naive"].cu[mode, group, 0]) / max(int(own.pairs[mode, group, 0]), 1)]
    if MODES[cell.mode].two_sided and own.sides is not None:
        below, above, tied = rows.twin
        parts = [[(side, 1.0), (tied, -0.5)] for side in (below, above)]
        weights = own.sides.weight[:, group, 0].tolist()
        deltas = own.sides.means[:, group, 0].tolist()
    found: dict[str, list[Any]] = {"items": [], "inside": [], "outside": [], "dyads": []}
    for of_part, weight, delta in zip(parts, weights, deltas, strict=True):
        for kind in ("items", "dyads"):
            names = tables[kind]["name"].values
            key, c, u, seen = [], [], [], []
            for row, times in of_part:
                table = rows_of_cell(tables[kind], rule, row, group)
                kept = edges[table["bin"]] <= epsilon
                one, other = names[table["one"][kept]], names[table["other"][kept]]
                key.append(np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1))
                c.append(times * table["pairs"][kept].astype(np.float64))
                u.append(times * table["sums"][kept])
                seen.append(table["outside"][kept])
            keys, count = np.concatenate(key), np.concatenate(c)
            error = (np.concatenate(u) - delta * count) / weight
            share, side = count / weight, np.concatenate(seen)
            if kind == "dyads":
                found["dyads"].append((keys, error))
                continue
            found["items"].append((keys, share, error))
            for name, code in (("inside", OF_GROUP), ("outside", OF_OTHER)):
                here = (side == code) | (side == OF_BOTH)
                found[name].append((keys[here], share[here]))
    recur = False
    if "item" in own.by and "item_query" in own.by:
        at = (mode, group, 0)
        recur = bool(own.by["item"].cc[at] * (1 - 1e-12) > own.by["item_query"].cc[at])
    return _ItemParts(1.0 / len(parts), recur=recur, **found)


@dataclass(frozen=True)
class _StackedItems:
    squares: Floats
    dyads: Floats
    cr3: Floats
    effective: float
    part_effective: Floats
    shared: bool


def _stack_items(both: Sequence[_ItemParts]) -> _StackedItems:
    """Stack the items and dyads of two estimates."""
    factors = np.concatenate([np.full(len(one.items), one.factor) for one in both])
    sign = np.repeat([1.0, 0.0], [len(one.items) for one in both])
    items = [part for one in both for part in one.items]
    share = _by_key([(keys, values) for keys, values, _ in items])
    error = factors[:, None] * _by_key([(keys, values) for keys, _, values in items])
    squares, cr3 = stack_tables(sign, error, share)
    dyads = factors[:, None] * _by_key([part for one in both for part in one.dyads])
    effective, of_parts = [], []
    for name in ("inside", "outside"):
        table = _by_key([part for one in both for part in getattr(one, name)])
        whole = factors @ table
        with np.errstate(divide="ignore"):
            effective.append(float(whole.sum() ** 2 / (whole @ whole)))
            of_parts.append(1.0 / np.einsum("xk,xk->x", table, table))
    new, old = share[sign > 0].any(axis=0), share[sign == 0].any(axis=0)
    shared = bool((new & old).any()) or any(one.recur for one in both)
    return _StackedItems(
        squares,
        squares_of(sign, dyads),
        cr3,
        min(effective),
        np.min(of_parts, axis=0),
        shared,
    )


def _by_key(parts: Sequence[tuple[Any, Floats]]) -> Floats:
    """Return sums (part, key) from keys of two numbers and values of each part."""
    keys = np.concatenate([keys for keys, _ in parts])
    if not len(keys):
        return np.zeros((len(parts), 0))
    _, code = np.unique(keys, axis=0, return_inverse=True)
    code = code.ravel()
    found, start = np.zeros((len(parts), int(code.max()) + 1)), 0
    for part, (own, values) in enumerate(parts):
        found[part] = np.bincount(code[start : start + len(own)], values, minlength=found.shape[1])
        start += len(own)
    return found


# ---- audits of the same queries: the sums of each query


def query_sums(audit: Audit, key: str | None) -> xr.Dataset:
    """Return the sums of every query in each cell of the headline, under a keyed hash of its id.

    A row for each rule, mode, group, part and query with a pair: its share of the part and its sum
    of share times the difference less the mean of the part.
    """
    rows = ListedRows(audit, SharedCodes())
    ids, mark = hash_queries(rows.ranking, key, "queries=True")
    columns: dict[str, list[Any]] = {
        name: [] for name in ("cell", "part", "query", "share", "error")
    }
    values: list[Any] = []
    numbers: list[Any] = []
    modes, rules = _labels(audit, "pairing_mode"), _labels(audit, "scoring_rule")
    for rule in rules:
        for group in audit.groups:
            for mode in modes:
                found = rows.estimate(Compared(audit, group, rule, mode))
                for part, (share, error) in enumerate(zip(found.share, found.error, strict=True)):
                    size = len(ids)
                    of_query = np.bincount(found.query, share, minlength=size)
                    here = np.flatnonzero(of_query)
                    columns["cell"].append(np.full(len(here), len(values), dtype=np.int64))
                    columns["part"].append(np.full(len(here), part, dtype=np.int64))
                    columns["query"].append(ids[here])
                    columns["share"].append(of_query[here])
                    columns["error"].append(np.bincount(found.query, error, minlength=size)[here])
                values.append(found.value)
                numbers.append(len(found.query))
    data: dict[str, Any] = {name: ("row", np.concatenate(c)) for name, c in columns.items()}
    data |= {"value": ("headline_cell", values), "n_pairs": ("headline_cell", numbers)}
    return xr.Dataset(data, attrs={"key": mark})


def _from_queries(
    new: Audit, old: Audit, groups: Sequence[str], modes: Sequence[str], rules: tuple[str, str]
) -> Difference:
    """Subtract audits using what they saved of each query."""
    saved = [audit._saved["queries"] for audit in (new, old)]
    if saved[0].attrs["key"] != saved[1].attrs["key"]:
        raise MpcError(
            "new and old must be saved with queries=True and one key; got two keys. Save them "
            "again."
        )
    cells = _cells(new, old, groups, modes, rules)
    return of_saved_queries(cells, groups, modes, ("the new audit", "the old audit"))


def of_saved_queries(
    cells: list[list[tuple[Compared, Compared]]],
    groups: Sequence[str],
    modes: Sequence[str],
    named: tuple[str, str],
) -> Difference:
    """Subtract cells of audits that saved the sums of every query."""
    stacked = [[_stack_queries(both) for both in of_mode] for of_mode in cells]
    attrs = {"from": "queries"}
    return label(stacked, cells, groups, modes, named, attrs, [_BY_QUERY], cluster="query")


def _stack_queries(both: tuple[Compared, Compared]) -> Stacked:
    saved = [cell.audit._saved["queries"] for cell in both]
    parts: list[tuple[Any, Floats, Floats]] = []
    values, pairs, sign, factors = [], [], [], []
    for k, (cell, table) in enumerate(zip(both, saved, strict=True)):
        audit = cell.audit
        modes, rules = _labels(audit, "pairing_mode"), _labels(audit, "scoring_rule")  # type: ignore[arg-type]
        at = (rules.index(cell.rule) * len(audit.groups) + audit.groups.index(cell.group)) * len(
            modes
        ) + modes.index(cell.mode)
        here = table["cell"].values == at
        n_parts = len(MODES[cell.mode].sides) if MODES[cell.mode].two_sided else 1
        for part in range(n_parts):
            rows = here & (table["part"].values == part)
            columns = (table[name].values[rows] for name in ("query", "share", "error"))
            parts.append(tuple(columns))
            sign.append(1.0 - k)
            factors.append(1.0 / n_parts)
        values.append(float(table["value"].values[at]))
        pairs.append(int(table["n_pairs"].values[at]))
    key = np.concatenate([query for query, _, _ in parts])
    _, code = np.unique(key, return_inverse=True)
    size = int(code.max(initial=-1)) + 1
    share, error = np.zeros((2, len(parts), size))
    start = 0
    for part, (query, c, u) in enumerate(parts):
        mine = code[start : start + len(query)]
        share[part], error[part] = np.bincount(mine, c, size), np.bincount(mine, u, size)
        start += len(query)
    error *= np.array(factors)[:, None]
    signs = np.array(sign)
    squares, cr3 = stack_tables(signs, error, share)
    whole = np.array(factors) @ share
    with np.errstate(divide="ignore"):
        few = 1.0 / np.einsum("xk,xk->x", share, share)
    return Stacked(
        values[0],
        values[1],
        sum(pairs) if all(pairs) else 0,
        size,
        {"naive": squares, "query": squares},
        {"query": cr3},
        float(whole @ whole),
        np.nan,
        np.einsum("xk,xk->x", error, error),
        few,
        np.full(len(parts), np.nan),
        shared_items=False,
    )
