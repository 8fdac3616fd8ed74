"""Any eager table becomes a narwhals frame, and its columns plain arrays.

Numbers become float64, labels dense codes; who is in which group, said by labels, split text, lists
or boolean columns, becomes bit masks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.errors import MpcError, near_match
from mpc_lab.files.values import is_number, plain_type, to_float64
from mpc_lab.roles import ROLES
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks, Objects

Frame: TypeAlias = nw.DataFrame[Any]
Series: TypeAlias = nw.Series[Any]

_ACCEPTED = (
    "a pandas, polars or pyarrow table, another eager frame narwhals knows, or a dict of arrays"
)
_NUMBERS_AS_OBJECTS = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}


# ---- the table


def open_table(data: object) -> Frame:
    """Return `data` as a narwhals frame over pandas, polars or pyarrow; `data` is not copied."""
    if isinstance(data, Mapping):
        return nw.from_native(_from_arrays(data), eager_only=True)
    try:
        frame: Frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise MpcError(
            f"Column names must differ; got {_repeated_names(data)} more than once. Rename them."
        ) from error
    except TypeError as error:
        raise MpcError(_refusal(data)) from error
    if frame.implementation.is_pandas():
        # Copy-on-write: later changes by the caller do not reach the ranking.
        return nw.from_native(frame.to_native().copy(deep=False), eager_only=True)
    if frame.implementation.is_polars() or frame.implementation.is_pyarrow():
        return frame
    return nw.from_native(frame.to_pandas(), eager_only=True)


def _refusal(data: object) -> str:
    kind = f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins.")
    try:
        nw.from_native(data)  # type: ignore[call-overload]
    except TypeError:
        return f"The rows must be {_ACCEPTED}; got {kind}."
    return (
        f"The rows must be in memory; got the lazy {kind}. Collect it first, "
        "for example with .collect(), .compute() or .df()."
    )


def _repeated_names(data: Any) -> str:
    names = list(getattr(data, "columns" if isinstance(data, pd.DataFrame) else "column_names"))
    repeated = dict.fromkeys(name for name in names if names.count(name) > 1)
    return ", ".join(map(repr, repeated))


def _from_arrays(arrays: Mapping[Any, Any]) -> pd.DataFrame:
    columns = {name: _one_dimensional(name, values) for name, values in arrays.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{length} for {name!r}" for name, length in lengths.items())
        raise MpcError(f"The arrays of a dict must have one length; got {listed}.")
    return pd.DataFrame(columns)


def _one_dimensional(name: Hashable, values: Any) -> pd.Series[Any]:
    dimensions = getattr(values, "ndim", 1)
    unfit = isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__")
    if unfit or dimensions == 0:
        raise MpcError(
            f"Entry {name!r} of the dict must be an array; got {type(values).__name__}. "
            "Give one value for each row."
        )
    if dimensions != 1:
        raise MpcError(
            f"Entry {name!r} of the dict must have one dimension; got {dimensions}. "
            "Give each of its columns its own name."
        )
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return pandas_series(series).reset_index(drop=True)
    if hasattr(values, "to_pylist"):  # a pyarrow array, whose own way to pandas loses integers
        values = values.to_pylist()
    try:
        column: pd.Series[Any] = pd.Series(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise MpcError(
            f"Entry {name!r} of the dict must be an array of numbers, texts or lists; got values "
            f"that pandas cannot read ({error}). Correct them."
        ) from error
    listed = isinstance(values, list | tuple) and column.dtype.kind == "f"
    if listed and pd.api.types.infer_dtype(values, skipna=True) == "integer":
        return pd.Series(values, dtype=object)  # whole numbers beside None stay whole
    return column


def get_column(frame: Frame, name: Hashable, role: str = "") -> Series:
    """Return one column, or say which name was probably meant."""
    if not _has(frame, name):
        hint = near_match(name, map(str, frame.columns))
        purpose = f" to use as {role}" if role else ""
        raise MpcError(f"There is no column {name!r}{purpose}.{hint}")
    return settle(frame.get_column(name))  # type: ignore[arg-type]


def _has(frame: Frame, name: Any) -> bool:
    """Say whether there is such a column; anything without a hash, such as an array, is not one."""
    try:
        return name in dict.fromkeys(frame.columns)
    except TypeError:
        return False


def settle(series: Series) -> Series:
    """Turn a dictionary column of pyarrow, alone or inside pandas, into a pandas categorical."""
    if series.dtype != nw.Categorical or series.implementation.is_polars():
        return series
    native: Any = series.to_native()
    if series.implementation.is_pandas():
        if isinstance(native.dtype, pd.CategoricalDtype):
            return series
        native = native.array.__arrow_array__()
    # pyarrow's own conversion: pd.Series(native), which narwhals uses, loses nulls here.
    return nw.from_native(native.to_pandas(), series_only=True)


def take_rows(frame: Frame, rows: Ints) -> Frame:
    """Return the given rows of a frame, in that order."""
    return frame[rows]


def pandas_series(series: Series) -> pd.Series[Any]:
    """Convert to pandas without turning integers with nulls into floats."""
    if series.implementation.is_pandas():
        native: pd.Series[Any] = series.to_native()
        return native
    if series.dtype.is_integer() and series.null_count():
        return pd.Series(series.to_list(), dtype=str(series.dtype))
    try:
        converted: pd.Series[Any] = series.to_native().to_pandas()
        return converted
    except ModuleNotFoundError:  # polars needs pyarrow for this
        return pd.Series(series.to_list())


def pandas_frame(frame: Frame) -> pd.DataFrame:
    """Convert to a pandas frame of its own, rows numbered from 0."""
    if frame.implementation.is_pandas():
        native: pd.DataFrame = frame.to_native()
        return native.reset_index(drop=True)
    return pd.DataFrame({series.name: pandas_series(series) for series in frame.iter_columns()})


# ---- one column


@dataclass(frozen=True)
class Codes:
    """Labels as whole numbers 0, 1, … in the order in which they first appear."""

    codes: Ints
    labels: Objects

    def first_rows(self) -> Ints:
        """Return the row in which each label appears first."""
        # Codes are numbered by first appearance, so a new label is a new running maximum.
        return np.flatnonzero(np.diff(np.maximum.accumulate(self.codes), prepend=-1))


def object_array(values: Iterable[Any], count: int) -> Objects:
    """Return an array of objects; tuples stay one object each."""
    return np.fromiter(values, dtype=object, count=count)


def numbers(series: Series, what: str) -> Floats:
    """Return a new float64 array with NaN for missing values."""
    try:
        values = _pandas_numbers(series.to_native()) if _is_pandas(series) else _numbers(series)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise MpcError(
            f"{what} must hold numbers; got a value that does not fit a float64 ({error}). "
            "Convert the column first."
        ) from error
    if values is None:
        raise MpcError(f"{what} must hold numbers; got {_kind(series)}. {_how_to_convert(series)}.")
    return values


_ANSWERS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"})
_COMMA_NUMBER = re.compile(r"[-+]?\d+,\d+")


def _how_to_convert(series: Series) -> str:
    """Return how to make numbers of what a column holds."""
    # Cells of other types, such as times in an unknown zone, may not even be readable.
    cells = [str(cell).strip() for cell in series.head(100).to_list()] if is_text(series) else []
    column = f"frame[{series.name!r}]"
    if cells and any({cell.lower() for cell in cells} <= answers for answers in _ANSWERS):
        first = next((one for one in cells if one.lower()[0] in "yt"), cells[0])
        return f"Make them 1 and 0, for example with {column} == {first!r}"
    commas = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    if commas and all(cell in commas or cell.isdecimal() for cell in cells):
        return (
            "Write decimals with a point, for example with "
            f'{column}.str.replace(",", ".").astype(float)'
        )
    return "Convert it first, for example with pandas.to_numeric or a cast to Float64"


def _is_pandas(series: Series) -> bool:
    return series.implementation.is_pandas()


def _numbers(series: Series) -> Floats | None:
    dtype = series.dtype
    if series.implementation.is_pyarrow() and is_number(plain_type(series.to_native().type)):
        return np.array(to_float64(series.to_native()).to_numpy(), dtype=np.float64)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return np.full(len(series), np.nan) if series.null_count() == len(series) else None


def is_object(values: pd.Series[Any]) -> bool:
    """Whether a pandas column holds plain Python objects."""
    return bool(values.dtype == np.dtype(object))


def _pandas_numbers(values: pd.Series[Any]) -> Floats | None:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _pandas_numbers(pd.Series(dtype.categories))
        return None if categories is None else np.append(categories, np.nan)[values.cat.codes]
    if is_object(values):
        if pd.api.types.infer_dtype(values, skipna=True) not in _NUMBERS_AS_OBJECTS:
            return None
        present = values.notna().to_numpy()
        found = np.full(len(values), np.nan)
        found[present] = values.to_numpy()[present].astype(np.float64)
        return found
    known = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    if pd.api.types.is_complex_dtype(dtype) or not (known or values.isna().all()):
        return None
    # A copy: to_numpy may be a view of the caller's memory, and read-only.
    return np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _kind(series: Series) -> str:
    if is_text(series):
        return "text"
    if _is_pandas(series) and is_object(series.to_native()):
        return f"Python objects ({pd.api.types.infer_dtype(series.to_native(), skipna=True)})"
    if _is_pandas(series):
        return str(series.to_native().dtype)
    return str(series.dtype)


def is_text(series: Series) -> bool:
    """Whether every value that is not missing is a text."""
    if not _is_pandas(series):
        return isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum)
    native = series.to_native()
    values = native.cat.categories if isinstance(native.dtype, pd.CategoricalDtype) else native
    return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")


def is_missing(series: Series) -> Flags:
    """Return where a value is null, None or NaN."""
    if series.dtype.is_float():
        return np.isnan(numbers(series, "The column"))
    if _is_pandas(series):
        return np.asarray(series.to_native().isna(), dtype=np.bool_)
    if not series.null_count():
        return np.zeros(len(series), dtype=np.bool_)
    return np.asarray(series.is_null().to_numpy(), dtype=np.bool_)


def encode(series: Series, what: str) -> Codes:
    """Return the codes of a column that has no missing value."""
    try:
        if _is_pandas(series):
            codes, uniques = pd.factorize(series.to_native())
            return Codes(codes.astype(np.int64), _labels(uniques.tolist()))
        codes, _ = pd.factorize(_stand_ins(series))
        coded = Codes(codes.astype(np.int64), np.empty(0, dtype=object))
        return Codes(coded.codes, _labels(series[coded.first_rows()].to_list()))
    except (TypeError, ValueError, NotImplementedError, ArithmeticError, LookupError) as error:
        raise MpcError(
            f"{what} must hold values that can be compared and hashed; got {_kind(series)}. "
            "Convert them to text or whole numbers."
        ) from error


def _labels(values: list[Any]) -> Objects:
    """Return labels unchanged, except for 0.0 in place of -0.0: the two are one label."""
    return object_array(
        (one + 0.0 if isinstance(one, float) else one for one in values), len(values)
    )


def _stand_ins(series: Series) -> NDArray[Any]:
    """Return a number for each row, the same for equal values, without visiting rows in Python."""
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return series.to_numpy()
    if series.implementation.is_pyarrow():
        chunks = series.to_native().dictionary_encode().unify_dictionaries().chunks
        return np.concatenate([np.empty(0, np.int32), *(chunk.indices for chunk in chunks)])
    numbered = series.alias("label").to_frame().with_row_index("row")
    return numbered.select(nw.col("row").min().over("label")).get_column("row").to_numpy()


def combine(parts: list[Codes]) -> Codes:
    """Return the codes of several columns taken together; a label is a tuple."""
    codes = parts[0].codes
    for part in parts[1:]:
        # Both factors are at most the number of rows, so the product fits 63 bits.
        codes = pd.factorize(codes * len(part.labels) + part.codes)[0].astype(np.int64)
    first = Codes(codes, parts[0].labels).first_rows()
    labels = zip(*(part.labels[part.codes[first]] for part in parts), strict=True)
    return Codes(codes, object_array(labels, len(first)))


# ---- groups

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
            f"group_sep must be a text such as '|'; got {separator!r}. "
            "Leave it out if each row has one label."
        )
    if isinstance(group, tuple):
        return _from_booleans(frame, group, separator)
    series = get_column(frame, group, "group")
    what = ROLES["group"].describe(group)
    if separator is not None and not is_text(series) and not is_missing(series).all():
        raise MpcError(
            f"{what} must hold text to be split by group_sep={separator!r}; got {series.dtype}. "
            "Leave group_sep out."
        )
    if _holds_lists(series, what):
        return _from_lists(series, what)
    return _from_labels(series, separator, what)


def label_kind(frame: Frame, group: Hashable, separator: str | None) -> str:
    """Return how a table says who is in which group.

    ``flags``: several boolean columns. ``split``: texts to be split. ``lists`` and ``number
    lists``: a list a row. ``number``, ``flag``, ``text``: one label a row; ``other`` for any other.
    """
    if isinstance(group, tuple):
        return "flags"
    if separator is not None:
        return "split"
    series = get_column(frame, group, "group")
    if _holds_lists(series, ROLES["group"].describe(group)):
        return "number lists" if _is_numeric(_flatten(series)[1]) else "lists"
    if is_text(series):
        return "text"
    labels = _encode(series, ROLES["group"].describe(group))[1]
    if labels and all(isinstance(label, bool | np.bool_) for label in labels):
        return "flag"
    return "number" if _is_numeric(series) else "other"


def _is_numeric(series: Series) -> bool:
    """Whether labels are numbers, as a column or as objects."""
    if series.dtype.is_numeric():
        return True
    if not _is_pandas(series):
        return False
    found = pd.api.types.infer_dtype(series.to_native(), skipna=True)
    return found in {"integer", "floating", "mixed-integer-float", "decimal"}


def label_names(labels: Sequence[Any], what: str) -> list[str]:
    """Return ``str(label)`` of different labels, and insist that the names differ too."""
    taken: dict[str, Any] = {}
    for label in labels:
        name = str(label)
        if "\0" in name:
            raise MpcError(
                f"{what} must have labels without a NUL character; got {name!r}. Remove it."
            )
        if name in taken:
            raise MpcError(
                f"{what} must have labels with different names; got {taken[name]!r} and {label!r}. "
                "Convert them to one type."
            )
        taken[name] = label
    return list(taken)


def _from_labels(series: Series, separator: str | None, what: str) -> Membership:
    codes, labels = _encode(series, what)
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


def _encode(series: Series, what: str) -> tuple[Ints, list[Any]]:
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
            f"{what} must hold a list in every row or in none; got {listed}. "
            "Use one kind, and None or [] for no group."
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
    codes, labels = _encode(flat, what)
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
            f"{what} must hold lists of labels that can be compared and hashed; got others "
            f"({error}). Convert the labels to text."
        ) from error
    distinct = pd.Series(object_array(seen, len(seen)), dtype=object)
    return np.array(codes, dtype=np.int64), nw.from_native(distinct, series_only=True)


def _flatten(series: Series) -> tuple[Ints, Series]:
    """Return all labels of a list column in one column, and the row that each belongs to."""
    if series.implementation.is_polars() and isinstance(series.dtype, nw.List):
        frame = series.alias("label").to_frame().with_row_index("row").explode("label")
        return frame.get_column("row").to_numpy().astype(np.int64), frame.get_column("label")
    if series.implementation.is_pyarrow():
        lists = series.to_native().combine_chunks()
        labels = series.__native_namespace__().chunked_array([lists.flatten()])
        parents = lists.value_parent_indices().to_numpy().astype(np.int64)
        return parents, settle(nw.from_native(labels, series_only=True))
    values = [() if value is None else value for value in series.to_list()]
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    flat = object_array(itertools.chain.from_iterable(values), int(lengths.sum()))
    labels = pd.Series(flat, dtype=object)
    return np.repeat(np.arange(len(values)), lengths), nw.from_native(labels, series_only=True)


def _from_booleans(frame: Frame, group: tuple[Any, ...], separator: str | None) -> Membership:
    if separator is not None:
        raise MpcError(
            f"group must be one column of text to be split by group_sep={separator!r}; got a list "
            "of boolean columns. Leave group_sep out."
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
            f"A list of group columns must name boolean columns; got {column!r}, which is not. "
            f"Convert it, or give a column of labels by its name alone, as in group={column!r}."
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
            f"{what} must have no more groups than fit in memory; got {n_groups:,} for {n_rows:,} "
            "rows. Name a column with fewer labels."
        )
