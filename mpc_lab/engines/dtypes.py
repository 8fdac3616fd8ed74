"""The partitions of a frame are brought to the types that the frame declares.

A file with a missing id holds 200.0 where another holds 200: the two are one label, but neither
hash nor name says so. Here every partition learns the one type before anything is hashed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.engines.pieces import Spec
from mpc_lab.errors import MpcError

_KINDS = {
    "string": "text",
    "boolean": "truth",
    "integer": "whole",
    "floating": "fraction",
    "mixed-integer-float": "fraction",
    "empty": "nothing",
}
_NUMBERS = ("whole", "fraction")
# What Dask calls the only category of a column whose categories it has not yet seen.
_UNSEEN = "__UNKNOWN_CATEGORIES__"
_WHOLE_BELOW = 2**53  # below it every whole number is a float64 of its own


def settle(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Return a partition in the types that its frame declares, if that changes no value.

    Parameters
    ----------
    frame : pandas.DataFrame
        A partition.
    declared : pandas.DataFrame
        The columns of the whole frame, without any row.
    spec : Spec
        Which of them are labels and which are numbers.

    Raises
    ------
    MpcError
        If a column holds what its declared type cannot.
    """
    if not frame.columns.is_unique:
        return frame  # which is refused where the rows are read
    labels, group = spec.columns.labels, spec.columns.group
    labels += group if isinstance(group, tuple) else ()
    made = {name: _settled_labels(name, frame, declared) for name in labels if name in frame}
    for name in (*spec.columns.numbers, *spec.extra):
        if name in frame and name not in made:
            made[name] = _settled_numbers(name, frame, declared)
    settled = frame.copy(deep=False)
    for name, values in made.items():
        settled[name] = values  # by name: a keyword of assign would have to be text
    return settled


def _settled_labels(name: Hashable, frame: pd.DataFrame, declared: pd.DataFrame) -> Any:
    values, wanted = frame[name], declared[name]
    made = _as_declared(values, wanted)
    if made is None:
        raise _differs(name, values, wanted)
    return made


def _as_declared(values: pd.Series[Any], wanted: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return labels in the declared type, None if that is impossible or changes one of them."""
    if isinstance(wanted.dtype, pd.CategoricalDtype):
        return _as_category(values, wanted.dtype)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    target, kind = _target(wanted), _kind(values)
    if values.dtype == target and target.kind != "f":
        # Objects may be anything; of floats among them nothing says that none is a whole number.
        return None if target == np.dtype(object) and kind == "fraction" else values
    if kind == "nothing" or not values.notna().any():
        none: pd.Series[Any] = pd.Series(None, index=values.index, dtype=target, name=values.name)
        return none
    if target == np.dtype(object):
        return values.astype(object) if kind in ("text", "whole", "truth") else None
    return _cast(values, target) if _alike(kind, _kind(wanted)) else None


def _as_category(values: pd.Series[Any], wanted: pd.CategoricalDtype) -> pd.Series[Any] | None:
    categories = wanted.categories
    unseen = _UNSEEN in categories or not len(categories)
    known = pd.Series([], dtype=object if unseen else categories.dtype)
    if not isinstance(values.dtype, pd.CategoricalDtype):
        made = _as_declared(values, known)
        return None if made is None else made.astype("category")
    found = _as_declared(pd.Series(values.cat.categories), known)
    return None if found is None else values.cat.rename_categories(found.tolist())


def _target(wanted: pd.Series[Any]) -> Any:
    """Return the type of all partitions, in which a value may be missing."""
    kind = _kind(wanted)
    if kind == "whole":
        return (
            pd.UInt64Dtype() if str(wanted.dtype).lower().startswith("uint64") else pd.Int64Dtype()
        )
    if kind == "fraction":
        return np.dtype(np.float64)
    return pd.BooleanDtype() if kind == "truth" else wanted.dtype


def _kind(values: pd.Series[Any]) -> str:
    """Return what a column holds: text, whole numbers, fractions, truth values, or its type."""
    dtype, known = values.dtype, pd.api.types
    if dtype == np.dtype(object):
        found = known.infer_dtype(values, skipna=True)
        return _KINDS.get(found, found)
    for kind, is_kind in (
        ("text", known.is_string_dtype),
        ("truth", known.is_bool_dtype),
        ("whole", known.is_integer_dtype),
        ("fraction", known.is_float_dtype),
        ("moment", known.is_datetime64_any_dtype),
    ):
        if is_kind(dtype):
            return kind
    return str(dtype)


def _alike(kind: str, wanted: str) -> bool:
    return kind == wanted or (kind in _NUMBERS and wanted in _NUMBERS)


def _cast(values: pd.Series[Any], target: Any) -> pd.Series[Any] | None:
    """Return the values in another type, None if one of them would not be the same."""
    try:
        with np.errstate(invalid="ignore"):  # what does not fit is refused below
            made: pd.Series[Any] = values.astype(target)
    except (TypeError, ValueError, OverflowError):
        return None
    present = values.notna().to_numpy(dtype=bool)
    if not (made[present] == values[present]).all():
        return None
    kind = _kind(values)
    crosses = kind in _NUMBERS and (target.kind == "f") != (kind == "fraction")
    if crosses and not (made[present].abs() < _WHOLE_BELOW).all():
        return None  # two whole numbers may be one float, here or where the file was written
    return made + 0.0 if target.kind == "f" else made  # -0.0 and 0.0 are one label, two names


def _settled_numbers(name: Hashable, frame: pd.DataFrame, declared: pd.DataFrame) -> Any:
    values, wanted = frame[name], declared[name]
    kind, expected = _kind(values), _kind(wanted)
    if expected not in (*_NUMBERS, "truth"):
        return values  # which is judged where the numbers are read
    if kind == "nothing" or not values.notna().any():
        return pd.Series(np.nan, index=values.index, name=values.name)
    if not _alike(kind, expected):
        raise _differs(name, values, wanted)
    return pd.Series(
        values.to_numpy(dtype=np.float64, na_value=np.nan), index=values.index, name=values.name
    )


def _differs(name: Hashable, values: pd.Series[Any], wanted: pd.Series[Any]) -> MpcError:
    return MpcError(
        f"The column {name!r} must have one type in all partitions, but the frame declares "
        f"{wanted.dtype} and a partition has {values.dtype} with values that this type does not "
        "hold: cast the column to one type where the frame is made."
    )
