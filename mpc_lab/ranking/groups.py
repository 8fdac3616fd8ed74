"""Who is in which group: labels, split text, lists or boolean columns become bit masks."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError
from mpc_lab.ranking.columns import (
    Frame,
    Series,
    encode,
    get_column,
    is_missing,
    is_object,
    is_text,
    numbers,
    object_array,
    settled,
)
from mpc_lab.vocabulary import ROLES, Flags, Ints, Masks

_LISTS = (list, tuple, set, frozenset, np.ndarray)
_MOST_WORDS = 2**29  # 4 GiB of masks


@dataclass(frozen=True)
class Membership:
    """Bit ``g % 64`` of ``masks[g // 64, row]`` says whether the row is in ``groups[g]``."""

    groups: tuple[str, ...]
    masks: Masks


def read_groups(frame: Frame, group: Hashable, separator: str | None) -> Membership:
    """Return the membership of all rows; `group` is a name, or a tuple of boolean columns."""
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise MpcError(
            f"group_sep must be a text such as '|', but {separator!r} came: "
            "leave it out if each row has one label."
        )
    if isinstance(group, tuple):
        return _from_booleans(frame, group, separator)
    series = get_column(frame, group, "group")
    what = ROLES["group"].describe(group)
    if separator is not None and not is_text(series) and not is_missing(series).all():
        raise MpcError(
            f"{what} must hold text to be split by group_sep={separator!r}, but it does not: "
            "leave group_sep out."
        )
    if _holds_lists(series, what):
        return _from_lists(series, what)
    return _from_labels(series, separator, what)


def label_names(labels: Sequence[Any], what: str) -> list[str]:
    """Return ``str(label)`` of different labels, and insist that the names differ too."""
    taken: dict[str, Any] = {}
    for label in labels:
        name = str(label)
        if "\0" in name:
            raise MpcError(f"{what} has the label {name!r} with a NUL character in it: remove it.")
        if name in taken:
            raise MpcError(
                f"{what} has two labels with one name, {taken[name]!r} and {label!r}: "
                "convert them to one type."
            )
        taken[name] = label
    return list(taken)


def _from_labels(series: Series, separator: str | None, what: str) -> Membership:
    codes, labels = _coded(series, what)
    if separator is None:
        names = label_names([label for label in labels if not _blank(label)], what)
        parts = [[] if _blank(label) else [str(label)] for label in labels]
    else:
        parts = [_split(label, separator) for label in labels]
        names = label_names(list(dict.fromkeys(itertools.chain.from_iterable(parts))), what)
    groups = tuple(sorted(names))
    _bound_memory(len(groups), len(codes), what)
    index = {name: number for number, name in enumerate(groups)}
    parents = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    members = np.array([index[name] for part in parts for name in part], dtype=np.int64)
    # One column more than there are labels: code -1, no label, finds the empty one at the end.
    table = _pack(parents, members, len(parts) + 1, len(groups))
    return Membership(groups, np.take(table, codes, axis=1))


def _split(label: str, separator: str) -> list[str]:
    return [part.strip() for part in label.split(separator) if not _blank(part)]


def _blank(label: object) -> bool:
    return isinstance(label, str) and not label.strip()


def _coded(series: Series, what: str) -> tuple[Ints, list[Any]]:
    """Return codes (-1 for null) and labels, with those declared by a type but never used."""
    if series.implementation.is_pandas():
        native = series.to_native()
        if isinstance(native.dtype, pd.CategoricalDtype):
            return native.cat.codes.to_numpy(dtype=np.int64), native.cat.categories.tolist()
    present = np.flatnonzero(~is_missing(series))
    found = encode(series if len(present) == len(series) else series[present], what)
    codes = np.full(len(series), -1, dtype=np.int64)
    codes[present] = found.codes
    labels = found.labels.tolist()
    if isinstance(series.dtype, nw.Enum):
        labels = list(dict.fromkeys([*labels, *series.dtype.categories]))
    return codes, labels


def _holds_lists(series: Series, what: str) -> bool:
    if isinstance(series.dtype, nw.List | nw.Array):
        return True
    if not series.implementation.is_pandas() or not is_object(series.to_native()):
        return False
    native = series.to_native()
    kinds = set(map(type, native.to_numpy()[native.notna().to_numpy()]))
    if not any(issubclass(kind, _LISTS) for kind in kinds):
        return False
    if not all(issubclass(kind, _LISTS) for kind in kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise MpcError(
            f"{what} must hold a list in every row or in none, but it holds {listed}: "
            "use one kind, and None or [] for no group."
        )
    return True


def _from_lists(series: Series, what: str) -> Membership:
    if series.implementation.is_pandas():
        rows, distinct = _distinct_lists(series, what)
        found = _from_flat(*_flatten(distinct), len(distinct), what)
        _bound_memory(len(found.groups), len(series), what)
        return Membership(found.groups, np.take(found.masks, rows, axis=1))
    return _from_flat(*_flatten(series), len(series), what)


def _from_flat(parents: Ints, flat: Series, n_rows: int, what: str) -> Membership:
    codes, labels = _coded(flat, what)
    wanted = [not _blank(label) for label in labels]
    names = label_names(list(itertools.compress(labels, wanted)), what)
    groups = tuple(sorted(names))
    _bound_memory(len(groups), n_rows, what)
    index = {name: number for number, name in enumerate(groups)}
    member_of = np.array([*(-1 if _blank(label) else index[str(label)] for label in labels), -1])
    members = member_of[codes]
    kept = members >= 0
    return Membership(groups, _pack(parents[kept], members[kept], n_rows, len(groups)))


def _distinct_lists(series: Series, what: str) -> tuple[Ints, Series]:
    """Return which of the distinct lists each row has, and these; null is the empty list."""
    seen: dict[tuple[Any, ...], int] = {}
    lists = zip(series.to_list(), is_missing(series).tolist(), strict=True)
    try:
        codes = [seen.setdefault(() if null else tuple(value), len(seen)) for value, null in lists]
    except TypeError as error:
        raise MpcError(
            f"{what} must hold lists of labels that can be compared and hashed, but it does not "
            f"({error}): convert the labels to text."
        ) from error
    distinct = pd.Series(object_array(seen, len(seen)), dtype=object)
    return np.array(codes, dtype=np.int64), nw.from_native(distinct, series_only=True)


def _flatten(series: Series) -> tuple[Ints, Series]:
    """Return all labels of a list column one under the other, and the row each belongs to."""
    if series.implementation.is_polars() and isinstance(series.dtype, nw.List):
        frame = series.alias("label").to_frame().with_row_index("row").explode("label")
        return frame.get_column("row").to_numpy().astype(np.int64), frame.get_column("label")
    if series.implementation.is_pyarrow():
        lists = series.to_native().combine_chunks()
        labels = series.__native_namespace__().chunked_array([lists.flatten()])
        parents = lists.value_parent_indices().to_numpy().astype(np.int64)
        return parents, settled(nw.from_native(labels, series_only=True))
    values = [() if value is None else value for value in series.to_list()]
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    flat = object_array(itertools.chain.from_iterable(values), int(lengths.sum()))
    labels = pd.Series(flat, dtype=object)
    return np.repeat(np.arange(len(values)), lengths), nw.from_native(labels, series_only=True)


def _from_booleans(frame: Frame, group: tuple[Any, ...], separator: str | None) -> Membership:
    if separator is not None:
        raise MpcError(
            f"group_sep={separator!r} splits a text column, but group is a list of boolean "
            "columns: leave group_sep out."
        )
    names = label_names(group, "The list of group columns")
    groups = tuple(sorted(names))
    _bound_memory(len(groups), len(frame), "The list of group columns")
    masks = _no_members(len(groups), len(frame))
    for name, column in zip(names, group, strict=True):
        number = groups.index(name)
        masks[number // 64] |= _truth(frame, column).astype(np.uint64) << np.uint64(number % 64)
    return Membership(groups, masks)


def _truth(frame: Frame, column: Hashable) -> Flags:
    series = get_column(frame, column, "group")
    if series.dtype == nw.Boolean and not series.implementation.is_pandas():
        filled = series.fill_null(False) if series.null_count() else series
        return np.asarray(filled.to_numpy(), dtype=np.bool_)
    missing = is_missing(series)
    objects = series.implementation.is_pandas() and is_object(series.to_native())
    kind = pd.api.types.infer_dtype(series.to_native(), skipna=True) if objects else ""
    if not (series.dtype == nw.Boolean or kind in ("boolean", "empty") or missing.all()):
        raise MpcError(
            f"A list of group columns must name boolean columns, but {column!r} is not boolean: "
            f"convert it, or give a column of labels by its name alone, as in group={column!r}."
        )
    return np.equal(numbers(series, ROLES["group"].describe(column)), 1.0)  # NaN is not 1


def _no_members(n_groups: int, n_rows: int) -> Masks:
    return np.zeros((max(1, -(-n_groups // 64)), n_rows), dtype=np.uint64)


def _pack(parents: Ints, members: Ints, n_rows: int, n_groups: int) -> Masks:
    """Set bit ``members[k]`` of row ``parents[k]``; `parents` never falls."""
    masks = _no_members(n_groups, n_rows)
    if not len(parents):
        return masks
    bits = np.uint64(1) << (members % 64).astype(np.uint64)
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    for word in range(len(masks)):
        mine = np.where(members // 64 == word, bits, np.uint64(0))
        masks[word, parents[starts]] = np.bitwise_or.reduceat(mine, starts)
    return masks


def _bound_memory(n_groups: int, n_rows: int, what: str) -> None:
    if -(-n_groups // 64) * n_rows > _MOST_WORDS:
        raise MpcError(
            f"{what} gives {n_groups:,} groups for {n_rows:,} rows, more than fit in memory: "
            "name a column with fewer labels."
        )
