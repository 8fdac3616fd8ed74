"""What a value is: the plain type of a column, however a file stores it, and what text cells mean.

A dictionary or a view says how values are stored, not what they are, and so does a number's width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

# Words that mean "no number", 1 and 0; upper and lower case are alike.
_MISSING = ("", "na", "n/a", "nan", "+nan", "-nan", "null", "none", "<na>")
_TRUTH = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|infinity)", re.ASCII)
_WRONG = object()


@dataclass(frozen=True)
class Roles:
    """The columns to read, by what they hold."""

    labels: tuple[str, ...] = ()  # ids and labels
    numbers: tuple[str, ...] = ()  # scores, outcomes, positions
    flags: tuple[str, ...] = ()  # columns of true and false

    @property
    def all(self) -> tuple[str, ...]:
        """Every column, once."""
        return tuple(dict.fromkeys((*self.labels, *self.numbers, *self.flags)))


def plain_type(type_: Any) -> Any:
    """Return the plain type of what a type holds, None where that is not text, a number or a time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_type(pa.dictionary(pa.int8(), pa.large_string())), plain_type(pa.int16())
    (DataType(string), DataType(int64))
    """
    if isinstance(type_, pa.BaseExtensionType):
        return plain_type(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        inside = plain_type(type_.value_type)
        return None if inside is None else pa.list_(inside)
    if types.is_decimal(type_) and type_.scale < 0:
        return None
    for made, *kinds in (
        (pa.string(), types.is_string, types.is_large_string, types.is_string_view),
        (pa.binary(), types.is_binary, types.is_large_binary, types.is_binary_view),
        (pa.uint64(), types.is_uint64),
        (pa.int64(), types.is_integer),
        (pa.float64(), types.is_floating),
        (None, types.is_interval),
        (type_, types.is_primitive, types.is_null, types.is_fixed_size_binary, types.is_decimal),
    ):
        if any(is_kind(type_) for is_kind in kinds):
            return made
    return None


def is_number(type_: Any) -> bool:
    """Say whether a plain type holds numbers, truth values among them."""
    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(is_kind(type_) for is_kind in known)


def _unpack(array: Any) -> Any:
    """Return an array, or the chunks of one, without the wrapping around its values."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    if pa.types.is_dictionary(array.type):
        array = pc.dictionary_decode(array)
    return pc.run_end_decode(array) if pa.types.is_run_end_encoded(array.type) else array


def to_plain(array: Any) -> Any:
    """Return an Arrow array in the plain type of what it holds."""
    made = _unpack(array).cast(plain_type(array.type))
    if made.type != pa.float64():
        return made
    # 0.0 and -0.0 are one id in two spellings, and NaN is not an id.
    return pc.if_else(pc.is_nan(made), pa.scalar(None, made.type), pc.add(made, 0.0))


def to_float64(array: Any) -> Any:
    """Return numbers of any Arrow type as float64, correctly rounded."""
    array = _unpack(array)
    if pa.types.is_decimal(array.type):
        # Arrow's own conversion can be off by a bit: 0.7 becomes 0.7000000000000001.
        array = pc.cast(array, pa.string())
    return pc.cast(array, pa.float64(), safe=False)


def common_type(found: Sequence[Any]) -> Any:
    """Return the plain type that holds them all, None where they are of different kinds.

    2 and 2.0 are equal, also as ids, so whole numbers and floats go together.
    """
    known = list(dict.fromkeys(one for one in found if not types.is_null(one)))
    if len(known) < 2:
        return known[0] if known else pa.null()
    if all(types.is_integer(one) or types.is_floating(one) for one in known):
        return pa.float64() if pa.float64() in known else pa.int64()
    if all(types.is_list(one) for one in known):  # a list without any label goes with all others
        inside = common_type([one.value_type for one in known])
        return None if inside is None else pa.list_(inside)
    return None


def text_to_numbers(cells: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return cells of text as float64, and which of them are neither a number nor missing.

    Blanks around a number do not count. ``true`` is 1 and ``false`` is 0.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found, wrong = text_to_numbers(pa.array([" 0.5", "NA", "TRUE", "1e3", "0,5", "1_000"]))
    >>> found.to_pylist(), wrong.tolist()
    ([0.5, None, 1.0, 1000.0, None, None], [False, False, False, False, True, True])
    """
    try:
        made = pc.cast(cells, pa.float64())  # almost every column, in one step
        if not pc.any(pc.is_nan(made)).as_py():  # Arrow knows nan(5), which is not one of our words
            return made, np.zeros(len(cells), dtype=np.bool_)
    except pa.ArrowInvalid:
        pass
    coded = pc.dictionary_encode(cells, null_encoding="encode")
    found = [_read_number(cell or "") for cell in coded.dictionary.to_pylist()]
    wrong = np.array([one is _WRONG for one in found], dtype=np.bool_)
    made = pa.array([None if one is _WRONG else one for one in found], pa.float64())
    return made.take(coded.indices), wrong[coded.indices.to_numpy()]


def _read_number(cell: str) -> Any:
    word = cell.strip().lower()
    if word in _MISSING:
        return None
    return (
        _TRUTH.get(word) if word in _TRUTH else float(word) if _NUMBER.fullmatch(word) else _WRONG
    )


def text_to_truth(cells: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return cells of text as booleans, and which cells are neither true and false nor 1 and 0."""
    made, wrong = text_to_numbers(cells)
    other = pc.invert(pc.is_in(made, pa.array([0.0, 1.0, None])))
    return pc.equal(made, 1.0), wrong | other.to_numpy(zero_copy_only=False)


def text_reader(name: str, roles: Roles) -> Any:
    """Return what reads the text of a column by the part it plays, None where it stays text."""
    if name in roles.numbers:
        return text_to_numbers
    return text_to_truth if name in roles.flags else None


def as_it_looks(cells: Any) -> Any:
    """Return a column of text as numbers or truth values where all of it looks like such."""
    cells = cells.combine_chunks()
    words = {cell.strip().lower() for cell in pc.unique(cells).slice(0, 9).to_pylist() if cell}
    read = text_to_truth if words and words <= {*_TRUTH, *_MISSING} else text_to_numbers
    made, wrong = read(cells)
    return cells if wrong.any() or made.null_count == len(made) else made
