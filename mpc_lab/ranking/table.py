"""The door: any eager table becomes a narwhals frame whose columns can be asked for by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.errors import MpcError, near_match

Frame: TypeAlias = nw.DataFrame[Any]
Series: TypeAlias = nw.Series[Any]

_ACCEPTED = (
    "a pandas, polars or pyarrow table, another eager frame narwhals knows, or a dict of arrays"
)


def open_table(data: object) -> Frame:
    """Return `data` as a narwhals frame over pandas, polars or pyarrow; `data` is not copied."""
    if isinstance(data, Mapping):
        return nw.from_native(_from_arrays(data), eager_only=True)
    try:
        frame: Frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise MpcError(
            f"Column names must differ, but {_repeated_names(data)} more than once: rename them."
        ) from error
    except TypeError as error:
        raise MpcError(_refusal(data)) from error
    if frame.implementation.is_pandas():
        # Copy-on-write: what the caller later writes into the frame stays out of the ranking.
        return nw.from_native(frame.to_native().copy(deep=False), eager_only=True)
    if frame.implementation.is_polars() or frame.implementation.is_pyarrow():
        return frame
    return nw.from_native(frame.to_pandas(), eager_only=True)


def _refusal(data: object) -> str:
    kind = f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins.")
    try:
        nw.from_native(data)  # type: ignore[call-overload]
    except TypeError:
        return f"The rows must come as {_ACCEPTED}, but {kind} came."
    return (
        f"The rows must be in memory, but the lazy {kind} came: collect it first, "
        "for example with .collect(), .compute() or .df()."
    )


def _repeated_names(data: Any) -> str:
    names = list(getattr(data, "columns" if isinstance(data, pd.DataFrame) else "column_names"))
    repeated = dict.fromkeys(name for name in names if names.count(name) > 1)
    return f"{', '.join(map(repr, repeated))} {'occurs' if len(repeated) == 1 else 'occur'}"


def _from_arrays(arrays: Mapping[Any, Any]) -> pd.DataFrame:
    columns = {name: _one_dimensional(name, values) for name, values in arrays.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise MpcError(f"The arrays of a dict must have one length, but {listed}: make them equal.")
    return pd.DataFrame(columns)


def _one_dimensional(name: Hashable, values: Any) -> pd.Series[Any]:
    dimensions = getattr(values, "ndim", 1)
    unfit = isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__")
    if unfit or dimensions == 0:
        raise MpcError(
            f"Entry {name!r} of the dict must be an array, but {type(values).__name__} came: "
            "give one value for each row."
        )
    if dimensions != 1:
        raise MpcError(
            f"Entry {name!r} of the dict must have one dimension, but it has {dimensions}: "
            "give each of its columns its own name."
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
            f"Entry {name!r} of the dict must be an array of numbers, texts or lists, but pandas "
            f"cannot take it ({error}): correct its values."
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
    return settled(frame.get_column(name))  # type: ignore[arg-type]


def _has(frame: Frame, name: Any) -> bool:
    """Say whether there is such a column; what has no hash, such as an array, names none."""
    try:
        return name in dict.fromkeys(frame.columns)
    except TypeError:
        return False


def settled(series: Series) -> Series:
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


def take_rows(frame: Frame, rows: NDArray[np.int64]) -> Frame:
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
