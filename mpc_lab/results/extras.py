"""What is saved beside an audit on request, so that it can be pooled with others.

Item tables hold the sums of every item and of every two items that met; ids hold a keyed hash of
every query. Both are off by default, because they say something about single items and queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.results.restore import moments_by_rule
from mpc_lab.results.rows import need_rows

if TYPE_CHECKING:
    from mpc_lab.pairing.item_tables import Table
    from mpc_lab.pairing.log import Log
    from mpc_lab.results.audit import Audit

_KEY_MARK = b"mpc_lab key"
_NO_KEY = b"mpc_lab items"


def item_tables(audit: Audit) -> dict[str, xr.Dataset]:
    """Return the tables ``items`` and ``dyads``: a row for each cell, cluster, side and bin.

    Clusters are numbered; ``name`` holds a hash of each item's label, the same in every log.
    """
    from mpc_lab.pairing.item_tables import MOST_KEPT, tables_of_group

    ranking = need_rows(audit, "save(items=True)")
    if ranking.item_code is None:
        raise MpcError(
            "items=True saves sums of items, but this ranking has none: name its item column."
        )
    most = most_pairs(audit)
    if most > MOST_KEPT:
        raise MpcError(
            f"items=True saves the sums of every two items that met, at most {MOST_KEPT:,} pairs "
            f"of a group, but a group has {most:,} up to the largest epsilon; save without items, "
            "or audit with a shorter epsilon=[…]."
        )
    names = _hashes(ranking.item_labels(np.arange(ranking.n_items)), _NO_KEY)
    rows: dict[str, list[dict[str, NDArray[Any]]]] = {"items": [], "dyads": []}
    for rule, moments in enumerate(moments_by_rule(audit)):
        for group, (log, bit) in enumerate(_logs(audit, rule)):
            counts = moments.pairs[:, group, -1].tolist()
            found = tables_of_group(
                log, bit, moments.edges[group], float(moments.center[group]), counts
            )
            for mode, tables in enumerate(found):
                for kind, table in zip(rows, tables, strict=True):
                    rows[kind].append(_columns(table, rule, mode, group))
    return {kind: _joined(parts, names) for kind, parts in rows.items()}


def most_pairs(audit: Audit) -> int:
    """Return the pairs of the cell that has the most, up to the largest threshold."""
    return max(int(moments.pairs.max(initial=0)) for moments in moments_by_rule(audit))


def _logs(audit: Audit, rule: int) -> Iterator[tuple[Log, int]]:
    """Yield, for each group, a log under a rule and the group's place in its masks."""
    from mpc_lab.pairing.log import select_groups, sort_rows

    ranking = need_rows(audit, "save(items=True)")
    label = str(audit.headline["scoring_rule"].values[rule])
    shared: Log | None = None
    for k, group in enumerate(audit.groups):
        scores = None if audit.scores is None else audit.scores(label, group)
        if scores is not None:
            yield sort_rows(ranking, scores, ranking.member(group).astype(np.uint64)[None]), 0
            continue
        if shared is None:
            chosen = np.array([ranking.group_index(name) for name in audit.groups])
            shared = sort_rows(ranking, masks=select_groups(ranking.masks, chosen))
        yield shared, k


def _columns(table: Table, rule: int, mode: int, group: int) -> dict[str, NDArray[Any]]:
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
        "pairs": table.pairs.astype(np.uint32),
        "sums": table.sums,
    }


def _joined(parts: list[dict[str, NDArray[Any]]], names: NDArray[np.uint64]) -> xr.Dataset:
    rows = {name: ("row", np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return xr.Dataset({**rows, "name": ("item", names)})


def query_ids(audit: Audit, key: str | None) -> xr.Dataset:
    """Return a keyed hash of every query (of every unit, where there are any)."""
    if not isinstance(key, str) or not key:
        raise MpcError(
            'ids=True saves hashes of query ids, and needs a secret for them: key="…", the same '
            "for all audits that are to be pooled."
        )
    ranking = need_rows(audit, "save(ids=True)")
    if ranking.unit_code is None:
        labels = ranking.query_labels(np.arange(ranking.n_queries))
    else:
        labels = ranking.unit_labels(np.arange(ranking.n_units))
    secret = hashlib.blake2b(key.encode("utf-8", "surrogatepass")).digest()
    mark = hashlib.blake2b(_KEY_MARK, key=secret, digest_size=16).hexdigest()
    return xr.Dataset({"id": ("query", np.sort(_hashes(labels, secret)))}, attrs={"key": mark})


def _hashes(labels: NDArray[Any], secret: bytes) -> NDArray[np.uint64]:
    named = (str(label).encode("utf-8", "surrogatepass") for label in labels)
    digests = (hashlib.blake2b(name, key=secret, digest_size=8).digest() for name in named)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def cross_sums(audit: Audit) -> xr.Dataset | None:
    """Return how the thresholds of each cell move together over queries, for a pooled band."""
    if audit.cross is None:
        return None
    found = []
    for rule in range(audit.headline.sizes["scoring_rule"]):
        parts = audit.cross(rule)
        order = np.argsort(np.concatenate([groups for groups, _ in parts]), kind="stable")
        found.append(
            {
                square: np.concatenate([getattr(sums, square) for _, sums in parts], axis=1)[
                    :, order
                ]
                for square in ("cc", "cu", "uu")
            }
        )
    dims = ("scoring_rule", "pairing_mode", "group", "bin", "other_bin")
    return xr.Dataset(
        {square: (dims, np.stack([rule[square] for rule in found])) for square in found[0]}
    )
