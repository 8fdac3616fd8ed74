"""What a cell of text is: a number, a truth value, or the text as it is written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What stands for no number, for 1 and for 0; capitals do not count.
_MISSING = ("", "na", "n/a", "nan", "+nan", "-nan", "null", "none", "<na>")
_TRUTH = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|infinity)", re.ASCII)
_WRONG = object()


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
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        made = pc.cast(cells, pa.float64())  # almost every column, in one step
    except pa.ArrowInvalid:
        return _look_up(cells, _read_number, pa.float64())
    if pc.any(pc.is_nan(made)).as_py():  # written as nan, or as nan(5), which is no word of ours
        return _look_up(cells, _read_number, pa.float64())
    return made, np.zeros(len(cells), dtype=np.bool_)


def text_to_truth(cells: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return cells of text as booleans, and which are none: true and false, or 1 and 0."""
    import pyarrow as pa

    return _look_up(cells, _read_truth, pa.bool_())


def _look_up(cells: Any, read: Any, wanted: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Read each different cell once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = {cell: read(cell) for cell in pc.unique(cells).to_pylist()}
    found = [known[cell] for cell in cells.to_pylist()]
    wrong = np.array([one is _WRONG for one in found], dtype=np.bool_)
    return pa.array([None if one is _WRONG else one for one in found], wanted), wrong


def _read_number(cell: str | None) -> Any:
    word = "" if cell is None else cell.strip().lower()
    if word in _MISSING:
        return None
    if word in _TRUTH:
        return _TRUTH[word]
    return float(word) if _NUMBER.fullmatch(word) else _WRONG


def _read_truth(cell: str | None) -> Any:
    read = _read_number(cell)
    return read if read is None or read is _WRONG else {0.0: False, 1.0: True}.get(read, _WRONG)


def as_it_looks(table: Any, written: tuple[str, ...]) -> Any:
    """Return a table in which columns of text that look like numbers or truth values are such."""
    import pyarrow.compute as pc

    for name in written:
        at = table.schema.get_field_index(name)
        cells = table.column(at).combine_chunks()
        words = {cell.strip().lower() for cell in pc.unique(cells).slice(0, 9).to_pylist() if cell}
        read = text_to_truth if words and words <= {*_TRUTH, *_MISSING} else text_to_numbers
        made, wrong = read(cells)
        if not wrong.any() and made.null_count < len(made):
            table = table.set_column(at, name, made)
    return table
