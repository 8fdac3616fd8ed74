"""Where the rows of an audit come from: a frame of the notebook, a file, an upload."""

from __future__ import annotations

import importlib.util
import io
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.results.wording import quoted
from mpc_lab.terminal import plain

KINDS = (".csv", ".tsv", ".parquet", ".feather", ".arrow")
ACCEPTED = ".csv, .tsv, .csv.gz, .parquet, .feather or .arrow"
_ARROW = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
_COMPRESSED: dict[str, Any] = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zip": "zip",
    ".xz": "xz",
    ".zst": "zstd",
}
# Whole numbers up to here are exact as floats.
_EXACT = 2.0**53


def frames_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a namespace by name: pandas, polars, pyarrow, what narwhals knows.

    Names that begin with an underscore are left out: IPython keeps its history under them.
    """
    return {
        name: value
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and _is_table(value)
    }


def _is_table(value: object) -> bool:
    if isinstance(value, type):
        return False
    found: Any = nw.from_native(value, eager_only=True, pass_through=True)
    return isinstance(found, nw.DataFrame)


def notebook_names() -> dict[str, Any]:
    """Return what the user of this notebook has named; nothing outside of IPython."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return {} if instance is None else dict(instance.user_ns)


def read_path(path: str) -> pd.DataFrame:
    """Read a file of the machine that the kernel runs on.

    Parameters
    ----------
    path : str
        A CSV, Parquet or Feather file; ``~`` is the home folder.

    Returns
    -------
    pandas.DataFrame
    """
    written = path.strip().strip("\"'")
    if not written:
        raise MpcError(f"Give the path of a file that ends in {ACCEPTED}.")
    file = Path(written).expanduser()
    if not file.exists():
        raise MpcError(
            f"There is no file '{plain(written)}'; paths count from '{plain(Path.cwd())}'."
        )
    if file.is_dir():
        raise MpcError(f"'{plain(written)}' is a folder: give the path of one file in it.")
    try:
        with file.open("rb") as opened:
            return _read(opened, file.name)
    except OSError as error:
        raise MpcError(f"The file {quoted(written)} cannot be read: {error}.") from error


def read_upload(name: str, content: bytes | memoryview) -> pd.DataFrame:
    """Read a file that was handed over as bytes, by the end of its name."""
    return _read(io.BytesIO(bytes(content)), name)


def _read(opened: BinaryIO, name: str) -> pd.DataFrame:
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    packed = suffixes[-1:] and suffixes[-1] in _COMPRESSED
    kind = (suffixes[-2:-1] if packed else suffixes[-1:]) or [""]
    if kind[0] in (".csv", ".tsv", ".txt"):
        return _read_text(opened, name, suffixes[-1] if packed else None, kind[0])
    if kind[0] in _ARROW and not packed:
        return _read_arrow(opened, name, kind[0])
    raise MpcError(f"The file {quoted(name)} should end in {ACCEPTED}: name it by what it holds.")


def _read_text(opened: BinaryIO, name: str, packed: str | None, kind: str) -> pd.DataFrame:
    def read(**options: Any) -> pd.DataFrame:
        opened.seek(0)
        options |= {"sep": "\t" if kind == ".tsv" else ",", "low_memory": False}
        compression = None if packed is None else _COMPRESSED[packed]
        made: Any = pd.read_csv(opened, compression=compression, index_col=False, **options)
        return pd.DataFrame(made)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return _with_ids_as_text(read(), read)
    except pd.errors.ParserWarning as error:
        raise MpcError(
            f"The file {quoted(name)} cannot be read as a table of text: a row has more fields "
            "than the first line has names; correct that row, or quote its commas."
        ) from error
    except (ValueError, UnicodeError, pd.errors.ParserError, EOFError) as error:
        raise MpcError(
            f"The file {quoted(name)} cannot be read as a table of text: {error}; check that it "
            "is UTF-8, with one line of names first."
        ) from error


def _with_ids_as_text(frame: pd.DataFrame, read: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Return the table with the text of those columns that reading as numbers would change.

    The id ``007`` is not 7, and the country ``NA`` is not missing.
    """
    kinds = [frame.iloc[:, place].dtype.kind for place in range(frame.shape[1])]
    numbers = [place for place, kind in enumerate(kinds) if kind in "iuf"]
    others = [place for place, kind in enumerate(kinds) if kind == "O"]
    changed = [place for place in others if _hides_text(frame.iloc[:, place])]
    if numbers:
        # Bytes of a fixed width make no object for each cell: as fast as reading the numbers.
        texts = read(dtype="S24", usecols=numbers, keep_default_na=False, skipinitialspace=True)
        for at, place in enumerate(numbers):
            # Older pandas makes objects of them all the same.
            written = texts.iloc[:, at].to_numpy().astype("S24")
            if _changes(written, frame.iloc[:, place].to_numpy()):
                changed.append(place)
    if changed:
        texts = read(dtype=str, usecols=changed, keep_default_na=False, na_values=[""])
        for at, place in enumerate(sorted(changed)):
            frame.isetitem(place, texts.iloc[:, at].array)
    return frame


def _hides_text(column: pd.Series[Any]) -> bool:
    """Whether what is missing may be a word such as NA, or integers were too long for 64 bits."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    return kind == "integer" or (kind == "string" and bool(column.hasnans))


def _changes(texts: NDArray[np.bytes_], values: NDArray[Any]) -> bool:
    """Whether a text is another one as a number: a 0 before digits, or too many digits."""
    codes = np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), -1)
    has_sign = (codes[:, 0] == ord("-")) | (codes[:, 0] == ord("+"))
    first = np.where(has_sign, codes[:, 1], codes[:, 0])
    second = np.where(has_sign, codes[:, 2], codes[:, 1])
    if ((first == ord("0")) & (second >= ord("0")) & (second <= ord("9"))).any():
        return True
    large = texts[np.abs(values) >= _EXACT] if values.dtype.kind == "f" else texts[:0]
    return bool(np.char.isdigit(np.char.lstrip(large, b"+-")).any())


def _read_arrow(opened: BinaryIO, name: str, kind: str) -> pd.DataFrame:
    if importlib.util.find_spec("pyarrow") is None:
        raise MpcError(
            f"Reading {kind} files needs pyarrow, which is not installed: pip install pyarrow, or "
            "save the table as CSV."
        )
    try:
        if kind in (".parquet", ".pq"):
            return pd.read_parquet(opened)
        return pd.read_feather(opened)
    except (ValueError, OSError) as error:
        raise MpcError(f"The file {quoted(name)} cannot be read as {kind}: {error}.") from error
