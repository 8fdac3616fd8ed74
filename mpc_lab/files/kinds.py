"""One file of each kind: its columns, and its rows some at a time."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import lzma
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mpc_lab.errors import MpcError, near_match
from mpc_lab.files.columns import common_type
from mpc_lab.files.finding import kind_of

_ROWS_AT_ONCE = 1 << 17
_LINES_AT_ONCE = 1 << 16
_BLOCK = 1 << 23  # bytes of text parsed at once
_PACKERS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_LONGEST_CELL = 1 << 30  # of a file that is looked through for what is wrong with it
_SAMPLE = 1 << 16  # letters that hold the line of names
_FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NO_LABEL = ("", "__HIVE_DEFAULT_PARTITION__")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "'|'"}
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# The bytes that stand for no letter in the encoding of old Windows files.
_NOT_IN_CP1252 = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")

# What readers raise on files that they cannot read.
_UNREADABLE: tuple[type[Exception], ...] = (ArithmeticError, EOFError, LookupError, MemoryError)
_UNREADABLE += (OSError, RuntimeError, TypeError, ValueError, csv.Error, lzma.LZMAError)


class LogFile:
    """One file of a log.

    Parameters
    ----------
    path : str
    sep, encoding : str or None
        Of text; found where they are None.
    """

    def __init__(self, path: str, sep: str | None, encoding: str | None) -> None:
        self.path, self._sep, self._encoding = path, sep, encoding

    @cached_property
    def own_schema(self) -> Any:
        """The columns that the file itself has."""
        with self._named_errors():
            return self._read_schema()

    @cached_property
    def folders(self) -> dict[str, str | None]:
        """The columns that folders such as ``day=1`` stand for, where the file lacks them."""
        parts = [_FOLDER.fullmatch(part) for part in Path(self.path).parts[:-1]]
        pairs = [(unquote(part[1]), unquote(part[2])) for part in parts if part]
        found = dict(pairs)
        if len(found) < len(set(pairs)):
            raise MpcError(f"The folders of {self.path!r} must name each column once; got two.")
        return {
            key: None if value in _NO_LABEL else value
            for key, value in found.items()
            if key not in self.own_schema.names
        }

    @property
    def names(self) -> list[str]:
        """All its columns, those of folders last."""
        return [*self.own_schema.names, *self.folders]

    def is_text(self, name: str) -> bool:
        """Say whether a column is text of which the part that it plays says what it means."""
        return name in self.folders

    def field(self, name: str) -> Any:
        """Return the field of a column, which the file must have exactly once."""
        import pyarrow as pa

        count = self.own_schema.names.count(name)
        if count > 1:
            raise MpcError(
                f"Column names must differ; got {name!r} {count} times in {self.path!r}. Rename "
                "the columns."
            )
        if not count and name not in self.folders:
            raise MpcError(f"{self.path!r} has no column {name!r}.{near_match(name, self.names)}")
        return self.own_schema.field(name) if count else pa.field(name, pa.string())

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the columns of these names as they are in the file, some rows at a time."""
        import pyarrow as pa

        own = [name for name in names if name not in self.folders]
        with self._named_errors():
            # Some column of the file says how many rows there are.
            for batch in self._read_batches(own or self.own_schema.names[:1]):
                columns = [
                    pa.array([self.folders[name]] * batch.num_rows, pa.string())
                    if name in self.folders
                    else batch.column(own.index(name))
                    for name in names
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))

    def size(self, names: Sequence[str]) -> tuple[int, int]:
        """Return about how many rows there are, and bytes of these columns."""
        with self._named_errors():
            return self._read_size(names)

    def how(self) -> str:
        """Return how text is read, where that is not what everybody expects."""
        return ""

    def line_of(self, row: int) -> int:
        """Return the line in which a row, counted from 0, begins."""
        return row + 1

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn what a reader raises on a file that it cannot read into one sentence."""
        import pyarrow as pa

        try:
            yield
        except MpcError:
            raise
        except (pa.ArrowException, *_UNREADABLE) as error:
            raise MpcError(f"{self.path!r} cannot be read: {self._explain(error)}.") from error

    def _explain(self, error: BaseException) -> str:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return lines[0].rstrip(".")

    def _read_schema(self) -> Any:
        raise NotImplementedError

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        raise NotImplementedError

    def _read_size(self, names: Sequence[str]) -> tuple[int, int]:
        raise NotImplementedError


class Typed(LogFile):
    """A Parquet or Feather file, whose columns have types."""

    @cached_property
    def _rows(self) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.fs as pa_fs

        # A path that looks like an address is still a file of this machine.
        path, here = os.path.abspath(self.path), pa_fs.LocalFileSystem()
        return ds.dataset(path, format=kind_of(self.path), filesystem=here, partitioning=None)

    def _read_schema(self) -> Any:
        return self._rows.schema.remove_metadata()

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        for batch in self._rows.to_batches(columns=names, batch_size=_ROWS_AT_ONCE):
            batch.validate(full=True)
            yield batch

    def _read_size(self, names: Sequence[str]) -> tuple[int, int]:
        rows, share = self._rows.count_rows(), len(names) / max(1, len(self.own_schema))
        return rows, int(4 * os.path.getsize(self.path) * share) + 8 * rows * len(names)


@dataclass(frozen=True)
class _Scan:
    """What one look at all bytes of a text file finds."""

    encoding: str
    bytes: int
    lines: int
    quotes: int


class Written(LogFile):
    """A file of text, perhaps packed."""

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        import pyarrow as pa

        end = os.path.splitext(self.path)[1].lower()
        if end == ".xz":
            with lzma.open(self.path) as file:
                yield file
        else:
            with pa.input_stream(self.path, compression=_PACKERS.get(end)) as file:
                yield file

    @cached_property
    def scan(self) -> _Scan:
        """Look at all bytes once: whether they are UTF-8, how many, and how many quotes."""
        size, lines, quotes, found, decoder = 0, 1, 0, self._encoding, _Utf8()
        with self._named_errors(), self._bytes() as file:
            while block := bytes(file.read(_BLOCK)):
                if not size and not found:
                    found = next((n for mark, n in _BOMS.items() if block.startswith(mark)), None)
                size += len(block)
                lines += max(block.count(b"\n"), block.count(b"\r"))
                quotes += block.count(b'"')
                decoder.feed(block)
        return _Scan(found or decoder.encoding(), size, lines, quotes)

    def how(self) -> str:
        """Return how its letters are written, where that is not UTF-8."""
        return "" if self.scan.encoding == "utf-8" else f"encoded as {self.scan.encoding}"

    def _read_size(self, names: Sequence[str]) -> tuple[int, int]:
        return self.scan.lines, self.scan.bytes

    @contextmanager
    def _lines(self) -> Iterator[Any]:
        """Open the text as Python reads it."""
        encoding = "utf-8-sig" if self.scan.encoding == "utf-8" else self.scan.encoding
        with self._bytes() as file:
            yield io.TextIOWrapper(file, encoding, newline="")


class _Utf8:
    """Finds out whether bytes are UTF-8, and what else they may be."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._valid = self._windows = True

    def feed(self, block: bytes, *, final: bool = False) -> None:
        if block.isascii() and not final and not self._decoder.getstate()[0]:
            return  # many times faster than to decode it
        self._windows = self._windows and not any(byte in block for byte in _NOT_IN_CP1252)
        try:
            if self._valid:
                self._decoder.decode(block, final)
        except UnicodeDecodeError:
            self._valid = False

    def encoding(self) -> str:
        self.feed(b"", final=True)
        return "utf-8" if self._valid else "cp1252" if self._windows else "latin-1"


class Text(Written):
    """A table of text, its first line the names of its columns."""

    @cached_property
    def sep(self) -> str:
        """What separates its cells: given, or what cuts the first line into the most names."""
        if self._sep is not None:
            return self._sep
        with self._named_errors(), self._lines() as lines:
            sample = lines.read(_SAMPLE)
        counts = {sep: len(_first_row(sample, sep)) for sep in (self._usual, *_SEPARATORS)}
        return max(counts, key=lambda sep: counts[sep])

    @property
    def _usual(self) -> str:
        return "\t" if ".tsv" in os.path.basename(self.path).lower() else ","

    def is_text(self, name: str) -> bool:
        """Every column is."""
        return True

    def how(self) -> str:
        """Return what separates its cells and how its letters are written, if unexpected."""
        found = _SEPARATORS.get(self.sep, repr(self.sep))
        said = [] if self.sep == self._usual else [f"separated by {found}"]
        return " and ".join([*said, *filter(None, [super().how()])])

    def line_of(self, row: int) -> int:
        """Return the line in which a row begins; cells may hold line breaks, and lines be empty."""
        with self._lines() as lines:
            rows = _numbered_rows(lines, self.sep)
            return next((line for line, _ in itertools.islice(rows, row + 1, None)), row + 2)

    def _read_schema(self) -> Any:
        import pyarrow as pa

        if not self.scan.bytes:
            raise MpcError(f"{self.path!r} is empty; its first line must name the columns.")
        with self._reader() as reader:
            return pa.schema([(name, pa.string()) for name in reader.schema.names])

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        types = dict.fromkeys(names, pa.string())
        rows = 1
        with self._reader(include_columns=names, column_types=types) as reader:
            for batch in reader:
                rows += batch.num_rows
                yield batch
        # Arrow takes all that follows an open quote for one cell, and so may have lost rows.
        if self.scan.quotes and rows < self.scan.lines - 1 and self._wrong_row()[0]:
            raise ValueError("CSV parse error: a quote")

    @contextmanager
    def _reader(self, **wanted: Any) -> Iterator[Any]:
        import pyarrow.csv as pa_csv

        encoding = "utf8" if self.scan.encoding == "utf-8" else self.scan.encoding
        with (
            self._bytes() as file,
            pa_csv.open_csv(
                file,
                read_options=pa_csv.ReadOptions(block_size=_BLOCK, encoding=encoding),
                parse_options=pa_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    strings_can_be_null=True, null_values=[""], **wanted
                ),
            ) as reader,
        ):
            yield reader

    def _explain(self, error: BaseException) -> str:
        said = super()._explain(error)
        if "straddles two block boundaries" in said:
            return f"a row is longer than {_BLOCK >> 20} MB; perhaps a quote is never closed"
        if "Empty CSV file" in said:
            return "it has no rows below the line of names"
        if not said.startswith("CSV parse error"):
            return said
        line, cells, names = self._wrong_row()
        if cells < 0:
            opened = f"the quote that opens in the row of line {line:,} is never closed"
            return f"{opened}, or inside a cell"
        cut = _SEPARATORS.get(self.sep, repr(self.sep))
        wanted = f"line {line:,} must have {names:,} cells, one for each name in the first line"
        return f"{wanted}; got {cells:,}, separated by {cut}" if line else said

    def _wrong_row(self) -> tuple[int, int, int]:
        """Return the line and length of the first row unlike the line of names, and its length.

        A length of -1: a quote there is not closed, or closed inside a cell. A line of 0: there
        is no such row.
        """
        last, names = 1, 0
        with self._lines() as lines:
            rows = _numbered_rows(lines, self.sep)
            try:
                for line, cells in rows:
                    names = names or len(cells)
                    if len(cells) != names:
                        return line, len(cells), names
                    last = line + 1
            except csv.Error:
                return last, -1, names
        return 0, 0, names


def _numbered_rows(lines: Any, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a text that are not empty, each with the line in which it begins."""
    rows = csv.reader(lines, delimiter=sep, strict=True)
    last, before = 0, csv.field_size_limit(_LONGEST_CELL)
    try:
        for cells in rows:
            if cells:
                yield last + 1, cells
            last = rows.line_num
    finally:
        csv.field_size_limit(before)


def _first_row(sample: str, sep: str) -> list[str]:
    try:
        return next((row for _, row in _numbered_rows(io.StringIO(sample, newline=""), sep)), [])
    except csv.Error:
        return []


class JsonLines(Written):
    """One JSON object a line; a key that a line lacks is missing there."""

    def _read_schema(self) -> Any:
        import pyarrow as pa

        found: dict[str, list[Any]] = {}
        for columns in self._columns():
            for name, made in columns.items():
                found.setdefault(name, []).append(made.type)
        kinds = {name: common_type(types) for name, types in found.items()}
        for name, made in kinds.items():
            if made is None:
                raise self._mixed(name, map(str, dict.fromkeys(found[name])))
        return pa.schema(kinds.items())

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        schema = pa.schema([self.own_schema.field(name) for name in names])
        for columns in self._columns(names):
            arrays = [columns[one.name].cast(one.type) for one in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _columns(self, names: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        with self._lines() as lines:
            short = iter(lambda: lines.readline(_BLOCK), "")
            numbered = ((number, line) for number, line in enumerate(short, 1) if line.strip())
            while some := list(itertools.islice(numbered, _LINES_AT_ONCE)):
                rows = [self._parse(*one) for one in some]
                wanted = names or dict.fromkeys(itertools.chain.from_iterable(rows))
                yield {name: self._array(name, [row.get(name) for row in rows]) for name in wanted}

    def _parse(self, number: int, line: str) -> dict[str, Any]:
        if len(line) == _BLOCK:
            raise MpcError(f"Line {number:,} of {self.path!r} is longer than {_BLOCK >> 20} MB.")
        try:
            found = json.loads(line.strip())
        except (ValueError, RecursionError) as error:
            raise MpcError(f"Line {number:,} of {self.path!r} is not JSON: {error}.") from error
        if not isinstance(found, dict):
            kind = type(found).__name__
            raise MpcError(f"Line {number:,} of {self.path!r} must be a JSON object; got {kind}.")
        return found

    def _array(self, name: str, values: list[Any]) -> Any:
        import pyarrow as pa

        held = {type(value) for value in values if value is not None}
        try:
            if bool in held and len(held) > 1:  # which Arrow would take for numbers
                raise self._mixed(name, sorted(one.__name__ for one in held))
            return pa.array(values)
        except (OverflowError, pa.ArrowException) as error:
            if held != {int}:
                raise self._mixed(name, sorted(one.__name__ for one in held)) from error
        # Too large for 64 bits: kept digit by digit.
        return pa.array([v if v is None else Decimal(v) for v in values], pa.decimal256(76))

    def _mixed(self, name: str, kinds: Any) -> MpcError:
        listed = " and ".join(kinds)
        return MpcError(
            f"Column {name!r} of {self.path!r} must hold values of one kind; got {listed}."
        )


KINDS: dict[str, type[LogFile]] = {
    "text": Text,
    "json": JsonLines,
    "parquet": Typed,
    "feather": Typed,
}
