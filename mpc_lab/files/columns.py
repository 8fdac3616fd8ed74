"""The type in which a column is read, whichever way a file keeps it, and its values in that type.

A dictionary or a view says how values are kept, not what they are; nor does the width of a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_EXACT_BELOW = 2**53  # below it every whole number is a float64 of its own


@dataclass(frozen=True)
class Roles:
    """The columns to read, by what is read out of them.

    Attributes
    ----------
    labels : tuple of str
        Ids and labels.
    numbers : tuple of str
        Scores, outcomes, positions.
    flags : tuple of str
        Columns of true and false.
    """

    labels: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every column, once."""
        return tuple(dict.fromkeys((*self.labels, *self.numbers, *self.flags)))

    def is_only_number(self, name: str) -> bool:
        """Say whether a column is read as numbers and not as labels too."""
        return name in self.numbers and name not in self.labels


def plain_type(type_: Any) -> Any:
    """Return the plain type of what a type holds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_type(pa.dictionary(pa.int8(), pa.large_string())), plain_type(pa.int16())
    (DataType(string), DataType(int64))
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(type_, pa.BaseExtensionType):
        return plain_type(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if str(type_).startswith(("list", "large_list", "fixed_size_list")):
        return pa.list_(plain_type(type_.value_type))
    for is_kind, made in (
        (lambda one: str(one) in ("large_string", "string_view"), pa.string()),
        (lambda one: str(one) in ("large_binary", "binary_view"), pa.binary()),
        (types.is_uint64, pa.uint64()),
        (types.is_integer, pa.int64()),
        (types.is_floating, pa.float64()),
    ):
        if is_kind(type_):
            return made
    return type_


def is_number(type_: Any) -> bool:
    """Say whether a plain type holds numbers, truth values among them."""
    from pyarrow import types

    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(is_kind(type_) for is_kind in known)


def to_plain(array: Any) -> Any:
    """Return an Arrow array in the plain type of what it holds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = plain_type(array.type)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = pc.dictionary_decode(array)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    made = array if array.type == wanted else pc.cast(array, wanted)
    if wanted != pa.float64():
        return made
    # 0.0 and -0.0 are one id in two spellings, and NaN is none.
    return pc.if_else(pc.is_nan(made), pa.scalar(None, wanted), pc.add(made, 0.0))


def to_float64(array: Any) -> Any:
    """Return numbers of any Arrow type as float64, correctly rounded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = pc.dictionary_decode(array)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_decimal(array.type):
        # Arrow's own conversion can be off by a bit: 0.7 becomes 0.7000000000000001.
        array = pc.cast(array, pa.string())
    return pc.cast(array, pa.float64(), safe=False)


def common_type(found: Sequence[Any]) -> Any:
    """Return the plain type that holds them all, None where they are of different kinds.

    2 and 2.0 are equal, also as ids, so whole numbers and floats go together.
    """
    import pyarrow as pa
    from pyarrow import types

    known = list(dict.fromkeys(one for one in found if not types.is_null(one)))
    if len(known) < 2:
        return known[0] if known else pa.null()
    if all(types.is_integer(one) or types.is_floating(one) for one in known):
        return pa.float64() if pa.float64() in known else pa.int64()
    if all(types.is_list(one) for one in known):  # a list without any label goes with all others
        inside = common_type([one.value_type for one in known])
        return None if inside is None else pa.list_(inside)
    return None


def cast_labels(array: Any, wanted: Any) -> Any:
    """Return labels in the type of all files, None where two of them might become one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if array.type == wanted or pa.types.is_null(array.type) or pa.types.is_list(array.type):
        return array.cast(wanted)
    ends = [end for end in pc.min_max(array).as_py().values() if end is not None]
    most = _EXACT_BELOW if wanted == pa.float64() else 2**63
    return None if any(abs(end) >= most for end in ends) else array.cast(wanted)
