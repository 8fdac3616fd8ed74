"""One class for each kind of file: its columns, and its rows in batches."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import lzma
import os
import re
from collections import Counter, namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pa_csv

from mpc_lab.errors import MpcError, near_match
from mpc_lab.files.values import common_type

_ROWS_AT_ONCE = 1 << 17
_BLOCK = 1 << 23  # bytes of text parsed at once
_PACKERS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_SAMPLE = 1 << 16  # letters that hold the line of names
_FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NO_LABEL = ("", "__HIVE_DEFAULT_PARTITION__")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "'|'"}
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
ACCEPTED = (
    "CSV (.csv, .tsv, .txt) or JSON lines (.jsonl, .ndjson), each also .gz, .bz2, .zst or .xz; "
    "Parquet (.parquet, .pq) or Feather (.feather, .arrow)"
)


class LogFile:
    """One file of a log; `sep` and `encoding` are for text, and detected where they are None."""

    _read_schema: Any
    _read_batches: Any
    size: Any

    def __init__(self, path: str, sep: str | None, encoding: str | None) -> None:
        self.path, self._sep, self._encoding = path, sep, encoding

    @cached_property
    def own_schema(self) -> Any:
        """The columns that the file itself has."""
        with self._named_errors():
            return self._read_schema()

    @cached_property
    def folders(self) -> dict[str, str | None]:
        """The columns that folders such as ``day=1`` name, where the file lacks them."""
        parts = [_FOLDER.fullmatch(part) for part in Path(self.path).parts[:-1]]
        pairs = [(unquote(part[1]), unquote(part[2])) for part in parts if part]
        found = dict(pairs)
        if len(found) < len(set(pairs)):
            name, times = Counter(name for name, _ in set(pairs)).most_common(1)[0]
            raise MpcError(
                f"The folders of {self.path!r} must name each column once; got {name!r} {times} "
                "times. Rename the folders."
            )
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
        """Say whether a column is text whose meaning depends on the role of the column."""
        return name in self.folders

    def field(self, name: str) -> Any:
        """Return the field of a column, which the file must have exactly once."""
        count = len(self.own_schema.get_all_field_indices(name))
        if count > 1:
            raise MpcError(
                f"Column names must differ; got {name!r} {count} times in {self.path!r}. Rename "
                "the columns."
            )
        if not count and name not in self.folders:
            raise MpcError(f"{self.path!r} has no column {name!r}.{near_match(name, self.names)}")
        return self.own_schema.field(name) if count else pa.field(name, pa.string())

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the columns of these names as they are in the file, in batches of rows."""
        own = [name for name in names if name not in self.folders]
        with self._named_errors():
            # Any one column of the file tells how many rows there are.
            for batch in self._read_batches(own or self.own_schema.names[:1]):
                found, rows = iter(batch.columns), batch.num_rows
                columns = [
                    pa.array([self.folders[name]] * rows, pa.string())
                    if name in self.folders
                    else next(found)
                    for name in names
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))

    def how(self) -> str:
        """Return how text is read, if not in the usual way."""
        return ""

    def line_of(self, row: int) -> int:
        """Return the line in which a row, counted from 0, begins."""
        return row + 1

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn what a reader raises on a file that it cannot read into one sentence."""
        try:
            yield
        except MpcError:
            raise
        except Exception as error:  # whatever a reader raises
            raise MpcError(f"{self.path!r} cannot be read: {self._explain(error)}.") from error

    def _explain(self, error: BaseException) -> str:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return lines[0].rstrip(".")


class Typed(LogFile):
    """A Parquet or Feather file, whose columns have types."""

    @cached_property
    def _rows(self) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.fs as pa_fs

        parquet = self.path.lower().endswith((".parquet", ".pq"))
        format_ = ds.ParquetFileFormat() if parquet else ds.IpcFileFormat()
        # A path that looks like an address is still a file of this machine.
        return format_.make_fragment(os.path.abspath(self.path), pa_fs.LocalFileSystem())

    def _read_schema(self) -> Any:
        return self._rows.physical_schema.remove_metadata()

    def _only(self, names: Sequence[str]) -> Any:
        """Return a scan of these columns; others may have names that occur twice."""
        schema = pa.schema([self.own_schema.field(name) for name in names])
        return self._rows.scanner(schema=schema, batch_size=_ROWS_AT_ONCE)

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        # Before 23.0.1, Arrow confuses columns if some are views, unless it reads all of them.
        views = any("view" in str(one.type) for one in self.own_schema)
        for batch in self._only(self.own_schema.names if views else names).to_batches():
            found = batch.select(names)
            found.validate(full=True)
            yield found

    def size(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows there are, and about how many bytes of these columns."""
        with self._named_errors():
            own = [name for name in names if name not in self.folders]
            rows, share = self._only(own).count_rows(), len(own) / max(1, len(self.own_schema))
            return rows, int(4 * os.path.getsize(self.path) * share) + 8 * rows * len(names)


# What one pass over all bytes of a text file finds.
_Scan = namedtuple("_Scan", "encoding bytes lines quotes")


class Written(LogFile):
    """A file of text, perhaps packed."""

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        end = os.path.splitext(self.path)[1].lower()
        if end != ".xz":
            with pa.input_stream(self.path, compression=_PACKERS.get(end)) as file:
                yield file
            return
        with open(self.path, "rb") as packed, lzma.open(packed) as unpacked:
            packed.seek(-min(2, os.path.getsize(self.path)), os.SEEK_END)
            if packed.read() != b"YZ":  # Python passes over what follows the packed rows
                raise lzma.LZMAError("its end is not that of a packed file")
            packed.seek(0)
            yield unpacked

    @cached_property
    def scan(self) -> _Scan:
        """Scan all bytes once: whether they are UTF-8, how many there are, and how many quotes."""
        size, lines, quotes, found, known = 0, 1, 0, self._encoding, "utf-8"
        decoder = codecs.getincrementaldecoder("utf-8")()
        with self._named_errors(), self._bytes() as file:
            while block := bytes(file.read(_BLOCK)):
                if not size and not found:
                    found = next((n for mark, n in _BOMS.items() if block.startswith(mark)), None)
                size += len(block)
                lines += max(block.count(b"\n"), block.count(b"\r"))
                quotes += block.count(b'"')
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    known = "cp1252"
        cut = decoder.getstate()[0]  # the file ends in the middle of a letter
        return _Scan(found or ("cp1252" if cut else known), size, lines, quotes)

    def how(self) -> str:
        """Return the encoding, if it is not UTF-8."""
        return "" if self.scan.encoding == "utf-8" else f"encoded as {self.scan.encoding}"

    def size(self, names: Sequence[str]) -> tuple[int, int]:
        """Return about how many rows there are, and the bytes of all columns."""
        return self.scan.lines, self.scan.bytes

    @contextmanager
    def _lines(self) -> Iterator[Any]:
        """Open the text as Python reads it."""
        encoding = "utf-8-sig" if self.scan.encoding == "utf-8" else self.scan.encoding
        with self._bytes() as file:
            yield io.TextIOWrapper(file, encoding, newline="")


class Text(Written):
    """A table of text, its first line the names of its columns."""

    @cached_property
    def sep(self) -> str:
        """Its separator: as given, or the one that finds most names in the first line."""
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
        """Return the separator and the encoding, if either is unexpected."""
        found = _SEPARATORS.get(self.sep, repr(self.sep))
        said = [] if self.sep == self._usual else [f"separated by {found}"]
        return " and ".join([*said, *filter(None, [super().how()])])

    def line_of(self, row: int) -> int:
        """Return the line in which a row begins; cells may hold line breaks, and lines be empty."""
        rows = itertools.islice(self._rows(), row + 1, None)
        return next((line for line, _ in rows), row + 2)

    def _read_schema(self) -> Any:
        if not self.scan.bytes:
            raise MpcError(
                f"{self.path!r} must name the columns in its first line; got an empty file. Leave "
                "it out, or write the names."
            )
        with self._reader() as reader:
            return pa.schema([(name, pa.string()) for name in reader.schema.names])

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        rows, types = 1, dict.fromkeys(names, pa.string())
        with self._reader(include_columns=names, column_types=types) as reader:
            for batch in reader:
                rows += batch.num_rows
                yield batch
        # Arrow takes everything after an open quote for one cell, and so may have lost rows.
        if self.scan.quotes and rows < self.scan.lines - 1 and (wrong := self._find_wrong_row()):
            raise ValueError(wrong)

    @contextmanager
    def _reader(self, **wanted: Any) -> Iterator[Any]:
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
        return (said.startswith("CSV parse error") and self._find_wrong_row()) or said

    def _find_wrong_row(self) -> str:
        """Say what is wrong with the first row that does not match the line of names, if any."""
        line, names = 0, 0
        try:
            for line, cells in self._rows():
                names = names or len(cells)
                if len(cells) != names:
                    cut = _SEPARATORS.get(self.sep, repr(self.sep))
                    return (
                        f"line {line:,} must have {names:,} cells, one for each name in the first "
                        f"line; got {len(cells):,}, separated by {cut}"
                    )
        except csv.Error:
            opens = f"the quote that opens in the row of line {line + 1:,}"
            return f"{opens} is never closed, or inside a cell"
        return ""

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        with self._lines() as lines:
            yield from _numbered_rows(lines, self.sep)


def _numbered_rows(lines: Any, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a text that are not empty, each with the line in which it begins."""
    rows = csv.reader(lines, delimiter=sep, strict=True)
    last, before = 0, csv.field_size_limit(_BLOCK)
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

    def field(self, name: str) -> Any:
        """Return the field of a column, whose values must be of one kind."""
        found = super().field(name)
        if held := self._mixed.get(name):
            raise MpcError(
                f"Column {name!r} of {self.path!r} must hold values of one kind; got "
                f"{' and '.join(sorted(held))}. Write it as one kind."
            )
        return found

    def _read_schema(self) -> Any:
        found: dict[str, list[Any]] = {}
        held: dict[str, set[str]] = {}
        for rows in self._objects():
            for name in dict.fromkeys(itertools.chain.from_iterable(rows)):
                values = [row.get(name) for row in rows]
                made = _to_array(values)
                known = [type(value).__name__ for value in values if value is not None]
                held.setdefault(name, set()).update(known if made is None else [str(made.type)])
                found.setdefault(name, []).append(None if made is None else made.type)
        kinds = {name: None if None in all_ else common_type(all_) for name, all_ in found.items()}
        self._mixed = {name: held[name] for name, made in kinds.items() if made is None}
        return pa.schema([(n, pa.null() if made is None else made) for n, made in kinds.items()])

    def _read_batches(self, names: list[str]) -> Iterator[Any]:
        schema = pa.schema([self.own_schema.field(name) for name in names])
        for rows in self._objects():
            columns = [_to_array([row.get(one.name) for row in rows]) for one in schema]
            arrays = [made.cast(one.type) for made, one in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _objects(self) -> Iterator[list[dict[str, Any]]]:
        with self._lines() as lines:
            short = iter(lambda: lines.readline(_BLOCK), "")
            numbered = ((number, line) for number, line in enumerate(short, 1) if line.strip())
            while some := list(itertools.islice(numbered, _ROWS_AT_ONCE)):
                yield [self._parse(*one) for one in some]

    def _parse(self, number: int, line: str) -> dict[str, Any]:
        if len(line) == _BLOCK:
            raise MpcError(
                f"Line {number:,} of {self.path!r} must have at most {_BLOCK >> 20} MB; got "
                "a longer one. Write one object a line."
            )
        try:
            found = json.loads(line.strip())
        except (ValueError, RecursionError) as error:
            raise MpcError(
                f"Line {number:,} of {self.path!r} must be JSON; got {error}."
            ) from error
        if not isinstance(found, dict):
            kind = type(found).__name__
            raise MpcError(f"Line {number:,} of {self.path!r} must be a JSON object; got {kind}.")
        return found


def _to_array(values: list[Any]) -> Any:
    """Return values of JSON as an Arrow array, None where they are of different kinds."""
    held = {type(value) for value in values if value is not None}
    try:
        # Arrow would take true among numbers for 1.
        return None if bool in held and len(held) > 1 else pa.array(values)
    except (OverflowError, pa.ArrowException):
        if held != {int}:
            return None
    # Too large for 64 bits: kept digit by digit.
    return pa.array([v if v is None else Decimal(v) for v in values], pa.decimal256(76))


_PACKED = ("", ".xz", *_PACKERS)
KINDS: dict[str, type[LogFile]] = {
    **{end + packed: Text for end in (".csv", ".tsv", ".txt") for packed in _PACKED},
    **{end + packed: JsonLines for end in (".jsonl", ".ndjson") for packed in _PACKED},
    **dict.fromkeys((".parquet", ".pq", ".feather", ".arrow", ".ipc"), Typed),
}


def kind_of(path: str | os.PathLike[str]) -> type[LogFile] | None:
    """Return the kind of a file by the end of its name; None for a file that is not a log."""
    name = os.path.basename(os.fspath(path)).lower()
    return next((kind for end, kind in KINDS.items() if name.endswith(end)), None)
