"""What is saved beside an audit for pooling, and how the sums of a pool are added.

Item tables hold the sums of every item and of every two items that met; ids hold a keyed hash of
every query. Both are off by default, because they reveal something about single items and queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.clusters import ItemSums
from mpc_lab.pairing.items import MOST_KEPT, Rows, join_rows, rows_of_group, square_rows
from mpc_lab.pairing.leverage import whole_of
from mpc_lab.pairing.measure import put_item_sums
from mpc_lab.pairing.modes import rows_of
from mpc_lab.pairing.moments import Moments, PairWeights, Quadratic, Sides, Together
from mpc_lab.pairing.pairs import CAPPED_SUMS
from mpc_lab.pairing.places import N_CELLS, N_PARTS, combine_cells
from mpc_lab.pairing.series import N_POWERS, N_SIDE_POWERS, Series, SideSeries
from mpc_lab.results.assemble import Cross
from mpc_lab.results.base import need_rows, settings
from mpc_lab.results.sums import moments_by_rule
from mpc_lab.vocabulary import ITEM, MODES, Floats, Mode

if TYPE_CHECKING:
    from mpc_lab.pairing.log import Log
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

_KEY_MARK = b"mpc_lab key"
_NO_KEY = b"mpc_lab items"
_OF_PRODUCERS = b"mpc_lab producers"


def item_tables(audit: Audit) -> dict[str, xr.Dataset]:
    """Return the tables ``items`` and ``dyads``: a row for each cell, cluster, side and bin.

    A cell is one row of sums: a mode of two sides is made of several rows and has none of its own.
    Clusters are numbered; ``name`` holds a hash of each item's label, the same in every log. Where
    the audit is clustered by producers, the items are these.
    """
    ranking = need_rows(audit, "save(items=True)")
    if ranking.item_code is None:
        raise MpcError(
            "items=True must go with a ranking that has items; got one without. Name its item "
            "column."
        )
    most = most_pairs(audit)
    if most > MOST_KEPT:
        raise MpcError(
            f"items=True must save the sums of at most {MOST_KEPT:,} pairs of items of a group; "
            f"got {most:,} up to the largest epsilon. Save without items, or audit with a shorter "
            "epsilon=[…]."
        )
    names = names_of_owners(ranking)
    rows: dict[str, list[dict[str, NDArray[Any]]]] = {"items": [], "dyads": []}
    for rule, moments in enumerate(moments_by_rule(audit)):
        for group, (log, bit) in enumerate(_logs(audit, rule)):
            for mode, tables in enumerate(rows_of_group(log, bit, moments, group)):
                for kind, table in zip(rows, tables, strict=True):
                    weighted = moments.weights is not None
                    rows[kind].append(_columns(table, rule, mode, group, weighted))
    return {kind: _stack_rows(parts, names) for kind, parts in rows.items()}


def names_of_owners(ranking: Ranking) -> NDArray[np.uint64]:
    """Return hashes that identify every item, or producer, in any log."""
    items = _hashes(ranking.item_labels(np.arange(ranking.n_items)), _NO_KEY)
    if ranking.owner == ITEM or ranking.producer_code is None or ranking.item_code is None:
        return items
    labels = ranking.producer_labels(np.arange(ranking.n_producers))
    item_of = np.empty(ranking.n_producers, dtype=np.int64)
    item_of[ranking.producer_code] = ranking.item_code
    # An item without a producer is its own.
    unknown = np.array([label is None for label in labels], dtype=np.bool_)
    return np.where(unknown, items[item_of], _hashes(labels, _OF_PRODUCERS))


def most_pairs(audit: Audit) -> int:
    """Return the pairs of the cell that has the most, up to the largest threshold."""
    return max(int(moments.pairs.max(initial=0)) for moments in moments_by_rule(audit))


def _logs(audit: Audit, rule: int) -> Iterator[tuple[Log, int]]:
    """Yield, for each group, a log under a rule and the group's place in its masks."""
    from mpc_lab.pairing.log import compare_group, select_groups, sort_rows
    from mpc_lab.pairing.terms import terms_of

    ranking = need_rows(audit, "save(items=True)")
    terms = terms_of(settings(audit))
    label = str(audit.headline["scoring_rule"].values[rule])
    shared: Log | None = None
    for k, group in enumerate(audit.groups):
        scores = None if audit._scores is None else audit._scores(label, group)
        if scores is not None or not terms.are_default:
            yield compare_group(ranking, group, scores, terms)[0], 0
            continue
        if shared is None:
            chosen = np.array([ranking.group_index(name) for name in audit.groups])
            shared = sort_rows(ranking, masks=select_groups(ranking.masks, chosen))
        yield shared, k


def _columns(
    table: Rows, rule: int, mode: int, group: int, weighted: bool
) -> dict[str, NDArray[Any]]:
    """Return the rows of one cell in the smallest types: there may be many millions."""
    n = len(table.one)
    return {
        "rule": np.full(n, rule, dtype=np.uint8),
        "mode": np.full(n, mode, dtype=np.uint8),
        "group": np.full(n, group, dtype=np.uint32),
        "one": table.one.astype(np.uint32),
        "other": table.other.astype(np.uint32),
        "outside": table.outside,
        "bin": table.bin.astype(np.uint8),
        # Sums of weights are not whole numbers.
        "pairs": table.pairs.astype(np.float64 if weighted else np.uint32),
        "sums": table.sums,
    }


def _stack_rows(parts: list[dict[str, NDArray[Any]]], names: NDArray[np.uint64]) -> xr.Dataset:
    rows = {name: ("row", np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return xr.Dataset({**rows, "name": ("item", names)})


def query_ids(audit: Audit, key: str | None) -> xr.Dataset:
    """Return a keyed hash of every query (of every unit, where there are any)."""
    ids, mark = hash_queries(need_rows(audit, "save(ids=True)"), key, "ids=True")
    return xr.Dataset({"id": ("query", np.sort(ids))}, attrs={"key": mark})


def hash_queries(ranking: Ranking, key: str | None, option: str) -> tuple[NDArray[np.uint64], str]:
    """Return a keyed hash of every query, or unit, by its code, and a mark of the key."""
    if not isinstance(key, str) or not key:
        raise MpcError(
            f"{option} must have a secret for the hashes of ids that it saves; got none. Give "
            'key="…", the same for all audits that are to be pooled.'
        )
    if ranking.unit_code is None:
        labels = ranking.query_labels(np.arange(ranking.n_queries))
    else:
        labels = ranking.unit_labels(np.arange(ranking.n_units))
    secret = hashlib.blake2b(key.encode("utf-8", "surrogatepass")).digest()
    mark = hashlib.blake2b(_KEY_MARK, key=secret, digest_size=16).hexdigest()
    return _hashes(labels, secret), mark


def _hashes(labels: NDArray[Any], secret: bytes) -> NDArray[np.uint64]:
    named = (str(label).encode("utf-8", "surrogatepass") for label in labels)
    digests = (hashlib.blake2b(name, key=secret, digest_size=8).digest() for name in named)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def cross_sums(audit: Audit) -> xr.Dataset | None:
    """Return how the thresholds of each cell move together over queries, for a pooled band."""
    if audit._cross is None:
        return None
    found = []
    for rule in range(audit.headline.sizes["scoring_rule"]):
        parts = audit._cross(rule)
        order = np.argsort(np.concatenate([groups for groups, _ in parts]), kind="stable")
        found.append(
            {
                square: np.concatenate([getattr(sums, square) for _, sums in parts], axis=1)[
                    :, order
                ]
                for square in ("cc", "cu", "uu")
            }
        )
        if all(sums.sides is not None for _, sums in parts):
            sides = np.concatenate([sums.sides for _, sums in parts], axis=2)
            found[-1]["sides"] = sides[:, :, order]
    dims = ("scoring_rule", "pairing_mode", "group", "bin", "other_bin")
    of_sides = ("scoring_rule", "sides", "product", *dims[2:])
    return xr.Dataset(
        {
            square: (
                of_sides if square == "sides" else dims,
                np.stack([one[square] for one in found]),
            )
            for square in found[0]
        }
    )


@dataclass(frozen=True)
class Share:
    """One audit of a pool, with the indices of the pool's groups, rules and modes in it.

    Its moments hold the modes of the pool only.
    """

    audit: Audit
    moments: list[Moments]
    groups: list[int | None]
    rules: list[int]
    modes: list[int]

    @property
    def kept_modes(self) -> tuple[Mode, ...]:
        """All modes that the audit was summed over, in its order."""
        return tuple(MODES[name] for name in sums_of(self.audit)["pairing_mode"].values.tolist())


def sums_of(audit: Audit) -> xr.Dataset:
    """Return the labelled sums of an audit."""
    if audit.moments is None:
        raise MpcError(
            "An audit must hold its sums to be pooled; got one without. Run mpc.audit again."
        )
    return audit.moments


def sum_rule(shares: list[Share], rule: int, edges: Floats) -> Moments:
    """Add the sums of all audits under one rule at the shared thresholds."""
    names = ("naive", "query", *_additive(shares))
    modes = shares[0].moments[0].modes
    n_groups = len(shares[0].groups)
    shape = (len(modes), n_groups, len(edges))
    counts = {name: np.zeros(shape, dtype=np.int64) for name in ("pairs", "queries", "clusters")}
    center = np.array([_center(shares, rule, group) for group in range(n_groups)])
    by = {name: Quadratic(*(np.zeros(shape) for _ in range(3))) for name in names}
    sides, cells = _no_sides(shares, names, shape), None
    every = [moments for share in shares for moments in share.moments]
    weighted = any(moments.weights is not None for moments in every)
    weight, total_of = np.zeros(shape), np.zeros(shape)
    series = _no_series(shares, shape)
    if all(moments.cells is not None for moments in every):
        cells = np.zeros((3 if weighted else 2, N_PARTS, *shape[1:]))
    for share in shares:
        moments = share.moments[share.rules[rule]]
        whole, moments = moments, moments.without_weights()
        sums = moments.by["naive"].cu if whole.weights is None else whole.weights.total
        for group, own in enumerate(share.groups):
            if own is None:
                continue
            index = np.searchsorted(moments.edges[own], edges)
            shift = float(moments.center[own] - center[group])
            for name, total in counts.items():
                total[:, group] += getattr(moments, name)[:, own, index]
            here = whole.total_weight[:, own, index]
            weight[:, group] += here
            total_of[:, group] += sums[:, own, index] + shift * here
            for name in names:
                moved = recentre(moments.by[name][:, own, index], shift)
                by[name].cc[:, group] += moved.cc
                by[name].cu[:, group] += moved.cu
                by[name].uu[:, group] += moved.uu
            if sides is not None and moments.sides is not None:
                _add_sides(sides, group, moments.sides, own, index, shift)
            if series is not None and moments.series is not None:
                _add_series(series, group, moments.series, own, index, shift)
            if cells is not None and moments.cells is not None:
                of_cell = moments.cells[:, :, own, index]
                number = [of_cell[-1] if len(of_cell) > 2 else of_cell[0]] if weighted else []
                moved_cells = [of_cell[0], of_cell[1] + shift * of_cell[0], *number]
                cells[:, :, group] += np.stack(moved_cells)
    found = Moments(
        modes=modes,
        edges=np.tile(edges, (n_groups, 1)),
        center=center,
        pairs=counts["pairs"],
        queries=counts["queries"],
        clusters=counts["clusters"],
        items=np.zeros(shape, dtype=np.int64),
        by=by,
    )
    if weighted:
        by_query = any(moments.by_query for moments in every)
        found = found.with_weights(PairWeights(weight, total_of, by["naive"], by_query))
    if cells is None:
        return _weigh(found.with_sides(sides), series)
    by_side = cells.reshape(len(cells), 2, N_CELLS, *shape[1:])
    joined = combine_cells(by_side[0], by_side[1], number=by_side[2] if weighted else None)
    return _weigh(replace(found, cells=cells).with_estimates(joined.estimate), series)


def _weigh(moments: Moments, series: Series | None) -> Moments:
    """Return pooled sums with what single queries weigh, if all audits have stored it."""
    if series is None:
        return moments
    pairs, query = moments.pairs.astype(np.float64), moments.by["query"]
    delta = moments.by["naive"].cu / np.where(pairs > 0, pairs, np.nan)
    weight, scale = moments.total_weight, moments.scale
    series = series.lighten(weight)
    corrected = scale**2 * series.correct(query.times(1 / scale), weight, delta)
    row, sides = moments.two_sided, moments.sides
    if row is not None:
        corrected[row] = np.nan
        if series.sides is not None and sides is not None:
            light = series.sides.lighten(sides.weight)
            squares = query[row].at(delta[row])
            corrected[row] = light.correct(squares, pairs[row], sides.weight, sides.means)
            series = replace(series, sides=light)
    return replace(moments, cr3={"query": corrected}, series=series)


def _no_series(shares: list[Share], shape: tuple[int, int, int]) -> Series | None:
    """Return room for what single queries weigh; None if an audit has not stored it."""
    kept = [moments.series for share in shares for moments in share.moments]
    known = [series for series in kept if series is not None]
    if len(known) < len(kept):
        return None
    most = len(shares) * max(series.heavy.shape[1] for series in known)
    sides = None
    of_sides = [series.sides for series in known if series.sides is not None]
    if len(of_sides) == len(known):
        widest = len(shares) * max(part.heavy.shape[1] for part in of_sides)
        sides = SideSeries(np.zeros((N_SIDE_POWERS, *shape[1:])), np.zeros((4, widest, *shape[1:])))
    return Series(np.zeros((N_POWERS, *shape)), np.zeros((2, most, *shape)), sides)


def _add_series(
    total: Series, group: int, series: Series, own: int, index: NDArray[np.int64], shift: float
) -> None:
    """Add what the queries of one audit and group weigh at the shared thresholds."""
    moved = series.take(lambda values: values[..., own, index]).recentre(shift)
    total.powers[:, :, group] += moved.powers
    _put_heavy(total.heavy[:, :, :, group], moved.heavy)
    if total.sides is not None and moved.sides is not None:
        total.sides.powers[:, group] += moved.sides.powers
        _put_heavy(total.sides.heavy[:, :, group], moved.sides.heavy)


def _put_heavy(places: Floats, heavy: Floats) -> None:
    """Write heavy units into the first places that are free."""
    used = (places != 0).any(axis=(0, *range(2, places.ndim)))
    taken = int(used.sum())
    places[:, taken : taken + heavy.shape[1]] = heavy


def _no_sides(
    shares: list[Share], names: tuple[str, ...], shape: tuple[int, int, int]
) -> Sides | None:
    """Return room for the sums of a mode of two sides; None where there is no such mode."""
    if any(moments.sides is None for share in shares for moments in share.moments):
        return None
    cells = shape[1:]
    return Sides(
        np.zeros((2, *cells)),
        np.zeros((2, *cells)),
        {name: np.zeros((3, 4, *cells)) for name in names},
    )


def _add_sides(
    total: Sides, group: int, sides: Sides, own: int, index: NDArray[np.int64], shift: float
) -> None:
    """Add the sums of one audit and group at the shared thresholds."""
    weight = sides.weight[:, own, index]
    total.weight[:, group] += weight
    total.total[:, group] += sides.total[:, own, index] + shift * weight
    for name, products in total.by.items():
        products[:, :, group] += recentre_sides(sides.by[name][:, :, own, index], shift)


def recentre_sides(products: Floats, shift: float) -> Floats:
    """Return Σc·c′, Σc·U′, ΣU·c′, ΣU·U′, axis 1, with U + shift·c in place of U."""
    cc, cu, uc, uu = np.moveaxis(products, 1, 0)
    moved = [cc, cu + shift * cc, uc + shift * cc, uu + shift * (cu + uc) + shift**2 * cc]
    return np.stack(moved, axis=1)


def _additive(shares: list[Share]) -> list[str]:
    """Return the families beside naive and query whose clusters are inside one query."""
    inside = ("item_query", "dyad_query")
    return [
        name
        for name in inside
        if all(name in moments.by for share in shares for moments in share.moments)
    ]


def recentre(sums: Quadratic, shift: float) -> Quadratic:
    """Return sums of U + shift·c in place of U."""
    return Quadratic(
        sums.cc, sums.cu + shift * sums.cc, sums.uu + 2 * shift * sums.cu + shift**2 * sums.cc
    )


def _center(shares: list[Share], rule: int, group: int) -> float:
    """Return the center of the first audit that has the group."""
    for share in shares:
        own = share.groups[group]
        if own is not None:
            return float(share.moments[share.rules[rule]].center[own])
    return 0.0


def with_items(
    shares: list[Share],
    tables: list[dict[str, xr.Dataset]],
    rule: int,
    moments: Moments,
    edges: Floats,
) -> Moments:
    """Add up the tables of items and of dyads, then square them."""
    n_groups = moments.pairs.shape[1]
    rows = rows_of(moments.modes, apart=moments.by_query)

    def square(group: int) -> list[ItemSums]:
        def of(kind: str, row: int) -> Rows:
            return _join_tables(shares, tables, kind, rule, row, group, moments, edges)

        found = [(of("items", row), of("dyads", row)) for row in range(len(rows.sides))]
        return square_rows(found, rows, whole_of(moments, group, rows))

    found = [square(group) for group in range(n_groups)]
    return put_item_sums(moments, found, shares[0].moments[0].owner)


def _join_tables(
    shares: list[Share],
    tables: list[dict[str, xr.Dataset]],
    kind: str,
    rule: int,
    row: int,
    group: int,
    moments: Moments,
    edges: Floats,
) -> Rows:
    found = []
    for share, table in zip(shares, tables, strict=True):
        own = share.groups[group]
        if own is None:
            continue
        there = _row_there(moments, share.kept_modes, row)
        rows = rows_of_cell(table[kind], share.rules[rule], there, own)
        mine = share.moments[share.rules[rule]]
        bins = np.searchsorted(edges, mine.edges[own])[rows["bin"]]
        kept = bins < len(edges)
        shift = float(mine.center[own] - moments.center[group])
        names, pairs = table[kind]["name"].values, rows["pairs"][kept].astype(np.float64)
        one, other = names[rows["one"][kept]], names[rows["other"][kept]]
        found.append(
            Rows(
                np.minimum(one, other),
                np.maximum(one, other),
                rows["outside"][kept].astype(np.uint8),
                bins[kept],
                pairs,
                rows["sums"][kept] + shift * pairs,
            )
        )
    return join_rows(found)


def _row_there(moments: Moments, modes: tuple[Mode, ...], row: int) -> int:
    """Return the index of a pool's row of sums in an audit with more modes."""
    here = rows_of(moments.modes, apart=moments.by_query)
    there = rows_of(modes, apart=moments.by_query)
    if row in here.twin:
        return there.twin[here.twin.index(row)]
    return there.of_mode[modes.index(moments.modes[here.of_mode.index(row)])]


def rows_of_cell(table: xr.Dataset, rule: int, row: int, group: int) -> dict[str, NDArray[Any]]:
    """Return the rows of one cell: they are together, in the order of rule, group and row."""
    here = (
        (table["rule"].values == rule)
        & (table["mode"].values == row)
        & (table["group"].values == group)
    )
    columns = ("one", "other", "outside", "bin", "pairs", "sums")
    return {name: table[name].values[here] for name in columns}


def pooled_pairs(shares: list[Share], rule: int, n_groups: int) -> Floats:
    """Return the pairs of each group in all audits, with no limit on the distance."""
    total = np.zeros(n_groups)
    for share in shares:
        found = sums_of(share.audit)["all_pairs"].values[share.rules[rule]]
        total += [0.0 if own is None else found[own] for own in share.groups]
    return total


def pooled_capped(
    shares: list[Share], n_rules: int, lost: list[str]
) -> tuple[Floats, tuple[float, float]] | None:
    """Add up the sums of capped pairs, with their bounds; None if an audit has not stored them."""
    kept = [sums_of(share.audit) for share in shares]
    if not any("capped" in sums for sums in kept):
        return None
    names = ("bounds_low", "bounds_high", "pairs_cap")
    found = {tuple(sums.attrs.get(name) for name in names) for sums in kept}
    if len(found) > 1:
        lost.append(
            "the confidence sequence: not all audits know the same bounds of the outcome and the "
            "same pairs_cap"
        )
        return None
    attrs = kept[0].attrs
    shape = (n_rules, len(shares[0].modes), len(shares[0].groups), len(CAPPED_SUMS))
    total = np.zeros(shape)
    for share, sums in zip(shares, kept, strict=True):
        values = sums["capped"].values[share.rules][:, share.modes]
        for group, own in enumerate(share.groups):
            if own is not None:
                total[:, :, group] += values[:, :, own]
    return total, (float(attrs["bounds_low"]), float(attrs["bounds_high"]))


def pooled_cross(shares: list[Share], edges: Floats, n_rules: int) -> Cross | None:
    """Add up how the shared thresholds move together; None if an audit has not stored it."""
    kept = [share.audit._saved.get("cross", None) for share in shares]
    kept = [
        cross_sums(share.audit) if found is None else found
        for share, found in zip(shares, kept, strict=True)
    ]
    if any(found is None for found in kept):
        return None
    totals = [_cross_of_rule(shares, kept, rule, edges) for rule in range(n_rules)]
    groups = np.arange(len(shares[0].groups))
    return lambda rule: [(groups, totals[rule])]


def _cross_of_rule(shares: list[Share], kept: list[Any], rule: int, edges: Floats) -> Together:
    n_groups = len(shares[0].groups)
    total = [np.zeros((len(shares[0].modes), n_groups, len(edges), len(edges))) for _ in range(3)]
    sides = np.zeros((3, 4, n_groups, len(edges), len(edges)))
    for share, found in zip(shares, kept, strict=True):
        moments = share.moments[share.rules[rule]]
        for group, own in enumerate(share.groups):
            if own is None:
                continue
            index = np.searchsorted(moments.edges[own], edges)
            cc, cu, uu = (
                found[square].values[share.rules[rule], share.modes][:, own][:, index][:, :, index]
                for square in ("cc", "cu", "uu")
            )
            shift = float(moments.center[own]) - _center(shares, rule, group)
            total[0][:, group] += cc
            total[1][:, group] += cu + shift * cc
            total[2][:, group] += uu + shift * (cu + np.swapaxes(cu, -1, -2)) + shift**2 * cc
            if "sides" in found:
                both = found["sides"].values[share.rules[rule]][:, :, own][..., index, :][
                    ..., index
                ]
                sides[:, :, group] += recentre_sides(both, shift)
    known = all("sides" in found for found in kept)
    return Together(total[0], total[1], total[2], sides if known else None)
