"""The files of one log, read as one table."""

from __future__ import annotations

import codecs
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.files.cells import as_it_looks, text_to_numbers, text_to_truth
from mpc_lab.files.columns import (
    Roles,
    cast_labels,
    common_type,
    is_number,
    plain_type,
    to_float64,
    to_plain,
)
from mpc_lab.files.finding import find_paths, kind_of
from mpc_lab.files.kinds import KINDS, LogFile

_BYTES_OF_A_ROW = 300  # of an audit in memory: codes, scores, outcomes, masks, and these sorted
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,(\d{1,2}|\d{4,})\s*")  # 1,000 may be a thousand


def find_files(data: Any, sep: str | None = None, encoding: str | None = None) -> Files:
    """Return the files that a path, a pattern, a folder or a list of these stands for.

    Parameters
    ----------
    data : path or list of paths
        A pattern has ``*``, ``?``, ``[…]``, or ``**`` for any folders. A folder stands for the
        files of a log inside it, except ``.txt`` and those whose name, or whose folder's, starts
        with ``.`` or ``_``. A file that is named twice is read once.
    sep, encoding : str, optional
        What separates the cells of text files, and how their letters are written; found where
        they are not given.
    """
    paths, again = find_paths(data)
    kinds = {kind_of(path) for path in paths}
    for what, given, has in (
        ("separator", sep, {"text"}),
        ("encoding", encoding, {"text", "json"}),
    ):
        if given is not None and not kinds & has:
            raise MpcError(f"The {what} must be that of a text file; got none. Leave it out.")
    return Files(paths, _check_separator(sep), _check_encoding(encoding), again)


def _check_separator(sep: Any) -> str | None:
    made = {"\\t": "\t", "tab": "\t"}.get(sep, sep) if isinstance(sep, str) else sep
    one = isinstance(made, str) and len(made) == 1 and made.isascii() and made not in '"\r\n\0'
    if made is not None and not one:
        raise MpcError(f'The separator must be one character such as ";" or "\\t"; got {sep!r}.')
    return made


def _check_encoding(encoding: Any) -> str | None:
    try:
        known = None if encoding is None else codecs.lookup(encoding).name
        "".encode(known or "utf-8")  # rot13 and the like do not encode text
    except (LookupError, TypeError) as error:
        raise MpcError(
            f'The encoding must be one that Python knows, such as "latin-1"; got {encoding!r}.'
        ) from error
    return known


@dataclass(frozen=True)
class Files:
    """The files of one log.

    Attributes
    ----------
    paths : tuple of str
        Each file once.
    sep, encoding : str or None
        As given; None where they are to be found, file by file.
    again : tuple of str
        A sentence for each file that was named again.
    """

    paths: tuple[str, ...]
    sep: str | None = None
    encoding: str | None = None
    again: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[LogFile, ...]:
        """The files, ready to be read."""
        how = (self.sep, self.encoding)
        return tuple(KINDS[kind_of(path)](path, *how) for path in self.paths)

    @property
    def names(self) -> list[str]:
        """The columns of the first file, with those that its folders are named for."""
        return self.parts[0].names

    def notes(self) -> list[str]:
        """Return what a person should know of how the files are read."""
        return [*self.again, *_how_text_is_read(self.parts)]

    def stamp(self) -> list[dict[str, Any]]:
        """Return what changes when a file does: its size, time and checksum."""
        return [_stamp(path) for path in self.paths]

    def bytes_in_memory(self, roles: Roles) -> int:
        """Estimate what an audit of the rows in memory takes."""
        sizes = [part.size(roles.all) for part in self.parts]
        return sum(_BYTES_OF_A_ROW * rows + 3 * read for rows, read in sizes)

    def schema(self, roles: Roles) -> Any:
        """Return the one type of each column over all files, or say which files differ."""
        import pyarrow as pa

        return pa.schema([(name, self._type(name, roles)) for name in roles.all])

    def _type(self, name: str, roles: Roles) -> Any:
        found = {part.path: _type_read(part, name, roles) for part in self.parts}
        made = common_type(list(found.values()))
        if made is None:
            (one, first), *others = found.items()
            path, other = next(pair for pair in others if common_type([first, pair[1]]) is None)
            raise MpcError(
                f"Column {name!r} must be of one kind in all files; got {first} in {one!r} and "
                f"{other} in {path!r}. Write it in one kind."
            )
        return made

    def batches(self, roles: Roles, done: Callable[[], None] | None = None) -> Iterator[Any]:
        """Yield the rows of all files as record batches of that schema, in the order of the files.

        Parameters
        ----------
        roles : Roles
        done : callable, optional
            Called after each file.
        """
        import pyarrow as pa

        schema = self.schema(roles)
        for part in self.parts:
            row = 0
            for batch in part.batches(roles.all):
                columns = [
                    _convert(array, wanted, part, row, roles)
                    for array, wanted in zip(batch.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
                row += batch.num_rows
            if done is not None:
                done()

    def read(self, roles: Roles, done: Callable[[], None] | None = None) -> Any:
        """Return the rows of all files as one table in memory."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(roles, done), schema=self.schema(roles))

    def check(self, roles: Roles) -> None:
        """Raise what reading these columns would, where the files are still there."""
        if all(os.path.exists(path) for path in self.paths):
            for _ in self.batches(roles):
                pass

    def head(self, rows: int = 10_000) -> Any:
        """Return the first rows of the first file, all columns, as they look."""
        import pyarrow as pa

        part = self.parts[0]
        first = list(itertools.islice(part.batches(part.names), 1))
        table = pa.Table.from_batches(first, pa.schema([part.field(name) for name in part.names]))
        written = tuple(name for name in part.names if part.is_text(name))
        return as_it_looks(table.slice(0, rows), written)

    def column(self, name: str) -> Any:
        """Return one column of all files, as it looks."""
        table = self.read(Roles(labels=(name,)))
        written = (name,) if any(part.is_text(name) for part in self.parts) else ()
        return as_it_looks(table, written).column(0)

    def read_all(self) -> Sheet:
        """Return all columns that all files have, while it is not yet known what they are."""
        labels: list[str] = []
        numbers: list[str] = []
        written: list[str] = []
        notes = self.notes()
        for name in dict.fromkeys(self.names):
            try:
                kinds = {
                    part.is_text(name): plain_type(part.field(name).type) for part in self.parts
                }
                # What is a number in another file is one in a text file too.
                mixed = len(kinds) > 1 and is_number(kinds[False])
                self._type(name, Roles(numbers=(name,)) if mixed else Roles(labels=(name,)))
            except MpcError as error:
                notes.append(f"{error} That column is left out.")
                continue
            (numbers if mixed else labels).append(name)
            written += [name] if True in kinds and not mixed else []
        table = self.read(Roles(tuple(labels), tuple(numbers)))
        return Sheet(table, tuple(written), self, tuple(notes))


@dataclass(frozen=True)
class Sheet:
    """All columns of some files in memory, while it is not yet known what they are.

    Attributes
    ----------
    table : pyarrow.Table
        Columns of text files as the text that is written there.
    written : tuple of str
        The names of these columns.
    files : Files
        Where they came from.
    notes : tuple of str
        What a person should know of how they were read.
    """

    table: Any
    written: tuple[str, ...]
    files: Files
    notes: tuple[str, ...] = ()

    def as_it_looks(self) -> Any:
        """Return a table to guess from, in which a column that looks like numbers holds numbers."""
        return as_it_looks(self.table, self.written)

    def by_role(self, roles: Roles) -> Any:
        """Return the table by the parts that its columns play.

        A column of numbers in which some cell is none stays text, for a person to look at.
        """
        table = self.table
        for name in self.written:
            if name not in (*roles.numbers, *roles.flags):
                continue
            read = text_to_numbers if name in roles.numbers else text_to_truth
            made, wrong = read(table.column(name).combine_chunks())
            if not wrong.any():
                table = table.set_column(table.schema.get_field_index(name), name, made)
        return table


def _stamp(path: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise MpcError(f"{path!r} can no longer be read: {error.strerror}.") from error
    size, time = status.st_size, status.st_mtime_ns
    return {"path": path, "bytes": size, "modified_ns": time, "sha256": digest}


def _how_text_is_read(parts: Sequence[LogFile]) -> Iterator[str]:
    """Say it once for all files that are alike; commas and UTF-8 are what everybody expects."""
    alike: dict[str, list[str]] = {}
    for part in parts:
        alike.setdefault(part.how(), []).append(part.path)
    alike.pop("", None)
    for said, paths in alike.items():
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        yield f"{paths[0]!r}{more}: read as text {said}."


def _type_read(part: LogFile, name: str, roles: Roles) -> Any:
    """Return the type that a column of one file has once it is read."""
    import pyarrow as pa

    plain = plain_type(part.field(name).type)
    if part.is_text(name) and name in roles.flags:
        return pa.bool_()
    if part.is_text(name):
        return pa.float64() if name in roles.numbers else plain
    return pa.float64() if roles.is_only_number(name) and is_number(plain) else plain


def _convert(array: Any, wanted: Any, part: LogFile, row: int, roles: Roles) -> Any:
    """Return the values of one column in the type of all files; `row` is that of the first."""
    name = wanted.name
    try:
        if part.is_text(name):
            made = _convert_text(array, name, part, row, roles)
        elif roles.is_only_number(name) and is_number(plain_type(array.type)):
            made = to_float64(array)
        else:
            made = to_plain(array)
        made = cast_labels(made, wanted.type)
    except MpcError:
        raise
    except (ValueError, TypeError, ArithmeticError, NotImplementedError, LookupError) as error:
        raise MpcError(
            f"Column {name!r} of {part.path!r} must hold text, numbers or times; got {array.type}, "
            f"which cannot be read ({str(error).splitlines()[0]})."
        ) from error
    if made is None:
        raise MpcError(
            f"Column {name!r} must be of one kind in all files, because large whole numbers that "
            f"differ can be one float; got both kinds, and large ones in {part.path!r}. Write it "
            "in one kind."
        )
    return made


def _convert_text(array: Any, name: str, part: LogFile, row: int, roles: Roles) -> Any:
    """Return cells of text by the part that their column plays."""
    if name in roles.numbers:
        (made, wrong), what = text_to_numbers(array), "numbers"
    elif name in roles.flags:
        (made, wrong), what = text_to_truth(array), "true and false, or 1 and 0"
    else:
        return array
    if wrong.any():
        at = int(wrong.argmax())
        cell, line = array[at].as_py(), part.line_of(row + at)
        comma = " Write decimals with a point." if _DECIMAL_COMMA.fullmatch(cell) else ""
        raise MpcError(
            f"Column {name!r} of {part.path!r} must hold {what}; got {cell!r} in line {line:,}."
            f"{comma} Correct it, or name another column."
        )
    return made
