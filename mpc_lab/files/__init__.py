"""What the files of a log mean: which files there are, their kinds, and what a cell of text is.

The only room that reads CSV, Parquet, Feather or JSON lines. Every entry point and every engine
gets the same Arrow batches from here, so that a log gives the same answer however it is read. It
may import pyarrow and `mpc_lab.errors`, and nothing else of mpc_lab.

The files of one log, which a path, a pattern or a folder names, are read as one table.
"""

from __future__ import annotations

import codecs
import glob
import hashlib
import itertools
import os
import re
import shutil
import stat
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
from pyarrow import types

from mpc_lab.errors import MpcError
from mpc_lab.files.kinds import ACCEPTED, LogFile, Text, Typed, kind_of
from mpc_lab.files.values import (
    Roles,
    as_it_looks,
    common_type,
    is_number,
    plain_type,
    text_reader,
    text_to_numbers,
    to_float64,
    to_plain,
)

__all__ = ["ACCEPTED", "Files", "Roles", "Sheet", "find_files", "take_upload"]

_BYTES_OF_A_ROW = 300  # an audit in memory: codes, scores, outcomes, masks, and these sorted
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,(\d{1,2}|\d{4,})\s*")  # 1,000 may be a thousand


def find_files(data: Any, sep: str | None = None, encoding: str | None = None) -> Files:
    """Return the files that a path, a pattern, a folder or a list of these names.

    Parameters
    ----------
    data : path or list of paths
        A pattern has ``*``, ``?``, ``[…]``, or ``**`` for any folders. A folder means the
        files of a log inside it, except ``.txt`` and those whose name, or whose folder's, starts
        with ``.`` or ``_``. A file that is named twice is read once.
    sep, encoding : str, optional
        What separates the cells of text files, and how their letters are written; found where
        they are not given.
    """
    paths, again = _find_paths(data)
    kinds = {kind_of(path) for path in paths}
    if (sep is not None and Text not in kinds) or (encoding is not None and kinds <= {Typed}):
        raise MpcError(
            "sep and encoding must go with a text file; got no text files. Leave them out."
        )
    cut = {"\\t": "\t", "tab": "\t"}.get(str(sep), sep)
    if sep is not None and (str(cut) != cut or not re.fullmatch(r'[^"\r\n\0\x80-\U0010ffff]', cut)):
        raise MpcError(f'The separator must be one character such as ";" or "\\t"; got {sep!r}.')
    try:
        known = None if encoding is None else codecs.lookup(encoding).name
        "".encode(known or "utf-8")  # rot13 and the like are not text encodings
    except (LookupError, TypeError) as error:
        raise MpcError(
            f'The encoding must be one that Python knows, such as "latin-1"; got {encoding!r}.'
        ) from error
    return Files(paths, cut, known, again)


class _Upload(str):
    """The path of an upload: in a folder of our own, which sentences do not mention."""

    def __repr__(self) -> str:
        return repr(os.path.basename(self))


def take_upload(
    name: str, content: bytes | memoryview, sep: str | None = None, encoding: str | None = None
) -> Files:
    """Return a file that was handed over as bytes; it is there as long as somebody holds it."""
    folder = mkdtemp(prefix="mpc_lab_")
    path = _Upload(os.path.join(folder, os.path.basename(name) or "upload"))
    weakref.finalize(path, shutil.rmtree, folder, ignore_errors=True)
    with open(path, "wb") as file:
        file.write(content)
    return find_files(path, sep, encoding)


@dataclass(frozen=True)
class Files:
    """The files of one log."""

    paths: tuple[str, ...]  # each file once
    sep: str | None = None  # as given; None where it is to be detected, file by file
    encoding: str | None = None  # likewise
    again: tuple[str, ...] = ()  # a sentence for each file that was named twice

    @cached_property
    def parts(self) -> tuple[LogFile, ...]:
        """The files, opened and ready to be read."""
        kinds = [(path, kind_of(path) or Text) for path in self.paths]
        return tuple(kind(path, self.sep, self.encoding) for path, kind in kinds)

    @property
    def names(self) -> list[str]:
        """The columns of the first file, with those that its folders are named for."""
        return self.parts[0].names

    def notes(self) -> list[str]:
        """Return what a person should know about how the files are read."""
        alike: dict[str, list[str]] = {}
        for part in self.parts:
            alike.setdefault(part.how(), []).append(part.path)
        alike.pop("", None)  # commas and UTF-8 are expected and need no note
        said = [
            f"{path!r}{f' and {len(more):,} more' if more else ''}: read as text {how}."
            for how, (path, *more) in alike.items()
        ]
        return [*self.again, *said]

    def stamp(self) -> list[dict[str, Any]]:
        """Return what changes when a file does: its size, time and checksum."""
        made = []
        for path in self.paths:
            try:
                status = os.stat(path)
                with open(path, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise MpcError(f"{path!r} cannot be read any more: {error.strerror}.") from error
            size, time = status.st_size, status.st_mtime_ns
            made.append({"path": path, "bytes": size, "modified_ns": time, "sha256": digest})
        return made

    def origin(self, stamp: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return how to find the files again, together with their `stamp`."""
        checked = [
            # The folder of an upload is our own, and is gone by the time anybody looks for it.
            {**one, "path": os.path.basename(path) if isinstance(path, _Upload) else path}
            for path, one in zip(self.paths, stamp, strict=True)
        ]
        kept = [{name: one[name] for name in ("path", "bytes", "sha256")} for one in checked]
        return {"kind": "files", "files": kept, "sep": self.sep, "encoding": self.encoding}

    def bytes_in_memory(self, roles: Roles) -> int:
        """Estimate what an audit of the rows in memory takes."""
        sizes = [part.size(roles.all) for part in self.parts]
        return sum(_BYTES_OF_A_ROW * rows + 3 * read for rows, read in sizes)

    def schema(self, roles: Roles) -> Any:
        """Return the one type of each column over all files, or say which files differ."""
        return pa.schema([(name, self._type(name, roles)) for name in roles.all])

    def _type(self, name: str, roles: Roles) -> Any:
        found = {part.path: _how_read(part, name, roles)[0] for part in self.parts}
        made = common_type(list(found.values()))
        if made is None:
            (one, first), *others = found.items()
            path, other = next(pair for pair in others if common_type([first, pair[1]]) is None)
            raise MpcError(
                f"Column {name!r} must be of one kind in all files; got {first} in {one!r} and "
                f"{other} in {path!r}. Write it as one kind in all files."
            )
        return made

    def batches(self, roles: Roles, done: Callable[[], None] | None = None) -> Iterator[Any]:
        """Yield the rows of all files as record batches of that schema, in the order of the files.

        `done` is called after each file.
        """
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
        return pa.Table.from_batches(self.batches(roles, done), schema=self.schema(roles))

    def head(self, rows: int = 10_000) -> Any:
        """Return the first rows, all columns, as they look."""
        return self.read_all(rows).as_it_looks()

    def column(self, name: str) -> Any:
        """Return one column of all files, as it looks."""
        number, text = self._look(name)
        made = self.read(Roles(numbers=(name,)) if number else Roles(labels=(name,))).column(0)
        return as_it_looks(made) if text else made

    def _look(self, name: str) -> tuple[bool, bool]:
        """Say whether a column is read as numbers or as text while its role is not known.

        A column that holds numbers in one file holds numbers in a text file too.
        """
        kinds = {part.is_text(name): plain_type(part.field(name).type) for part in self.parts}
        number = len(kinds) > 1 and is_number(kinds[False])
        self._type(name, Roles(numbers=(name,)) if number else Roles(labels=(name,)))
        return number, True in kinds and not number

    def read_all(self, rows: int | None = None) -> Sheet:
        """Return all columns that every file has, or only this many of the first rows."""
        looks, notes = {}, self.notes()
        for name in dict.fromkeys(self.names):
            try:
                looks[name] = self._look(name)
            except MpcError as error:
                notes.append(f"{error} That column is left out.")
        numbers = tuple(name for name, (number, _) in looks.items() if number)
        roles = Roles(tuple(name for name in looks if name not in numbers), numbers)
        batches = itertools.islice(self.batches(roles), None if rows is None else 1)
        table = pa.Table.from_batches(batches, self.schema(roles)).slice(0, rows)
        far = [name for name in looks if _is_beyond_python(table.column(name))]
        notes += [
            f"Column {name!r} has times that Python does not know. That column is left out."
            for name in far
        ]
        written = tuple(name for name, (_, text) in looks.items() if text)
        return Sheet(table.drop_columns(far), written, self, tuple(notes))


@dataclass(frozen=True)
class Sheet:
    """All columns of some files in memory, before their roles are known."""

    table: Any  # columns of text files are the text that is written there
    written: tuple[str, ...]  # the names of these columns
    files: Files
    notes: tuple[str, ...] = ()  # what a person should know of how they were read

    def as_it_looks(self) -> Any:
        """Return a table to guess roles from: columns that look like numbers hold numbers."""
        text, names = set(self.written), self.table.column_names
        columns = [
            as_it_looks(column) if name in text else column
            for name, column in zip(names, self.table.columns, strict=True)
        ]
        return pa.table(columns, names) if names else self.table

    def by_role(self, roles: Roles) -> Any:
        """Return the table, with its columns read according to their roles.

        A number column with a cell that is not a number stays text, for a person to look at.
        """
        table = self.table
        for name in {*roles.numbers, *roles.flags}.intersection(self.written):
            made, wrong = text_reader(name, roles)(table.column(name).combine_chunks())
            if not wrong.any():
                table = table.set_column(table.schema.get_field_index(name), name, made)
        return table


def _is_beyond_python(column: Any) -> bool:
    """Say whether a column has a day or time that Python cannot show, such as the year 30,000."""
    try:
        return types.is_temporal(column.type) and column.to_pandas() is None
    except (ValueError, ArithmeticError, LookupError):
        return True


def _how_read(part: LogFile, name: str, roles: Roles) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of a column of one file once it is read, and the function that reads it."""
    kept = part.field(name).type
    plain, read = plain_type(kept), text_reader(name, roles) if part.is_text(name) else None
    if plain is None:
        raise MpcError(
            f"Column {name!r} of {part.path!r} must hold text, numbers or times that Python "
            f"knows; got {kept}. Write it as one of these."
        )
    if read is not None:
        return pa.float64() if read is text_to_numbers else pa.bool_(), read
    if name in roles.numbers and name not in roles.labels and is_number(plain):
        return pa.float64(), to_float64
    return plain, to_plain


def _convert(array: Any, wanted: Any, part: LogFile, row: int, roles: Roles) -> Any:
    """Return the values of one column in the type of all files; `row` is that of the first."""
    name, read = wanted.name, _how_read(part, wanted.name, roles)[1]
    try:
        found = read(array)
        made, wrong = found if isinstance(found, tuple) else (found, None)
        made = made.cast(wanted.type)
    except (ValueError, TypeError, ArithmeticError, NotImplementedError, LookupError) as error:
        raise MpcError(
            f"Column {name!r} of {part.path!r} must fit {wanted.type}, its type in all files; got "
            f"{array.type} ({str(error).splitlines()[0]}). Write it in one type."
        ) from error
    if wrong is not None and wrong.any():
        raise _bad_cell(array, int(wrong.argmax()), name, part, row, roles)
    return made


def _bad_cell(array: Any, at: int, name: str, part: LogFile, row: int, roles: Roles) -> MpcError:
    what = "numbers" if name in roles.numbers else "true and false, or 1 and 0"
    cell, line = array[at].as_py(), part.line_of(row + at)
    remedy = " Write decimals with a point." if _DECIMAL_COMMA.fullmatch(cell) else ""
    if str(cell).strip().lower() in ("yes", "no", "y", "n"):
        remedy = " Write 1 for yes and 0 for no."
    return MpcError(
        f"Column {name!r} of {part.path!r} must hold {what}; got {cell!r} in line {line:,}."
        f"{remedy} Correct it, or name another column."
    )


def _find_paths(data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return each file once, and a sentence for each that was named again."""
    given = data if isinstance(data, list | tuple) else [data]
    found: dict[tuple[int, int], str] = {}
    again: dict[str, None] = {}
    for path in itertools.chain.from_iterable(map(_expand, given)):
        status = _status(path)
        file = (status.st_dev, status.st_ino)
        if file in found:
            same = path == found[file]
            said = "named more than once" if same else f"the same file as {found[file]!r}"
            again[f"{path!r} is {said}; it is read once."] = None
        else:
            found[file] = path
    for path in found.values():
        if kind_of(path) is None:
            raise MpcError(f"A file of a log must be {ACCEPTED}; got {path!r}. Leave it out.")
    return tuple(found.values()), tuple(again)


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise MpcError(f"A file of a log must be an ordinary file; got {path!r}.")
        with open(path, "rb"):
            return status
    except FileNotFoundError as error:
        raise MpcError(
            f"{path!r} must lead to a file; got a link to one that does not exist. Fix the link, "
            "or leave it out."
        ) from error
    except OSError as error:
        raise MpcError(f"{path!r} cannot be read: {error.strerror}.") from error


def _expand(given: str | os.PathLike[str]) -> list[str]:
    path = os.fspath(given)
    if isinstance(path, bytes) or "\0" in path:
        raise MpcError(f"A path must be text without NUL; got {path!r}.")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://?", path) and not os.path.exists(path):
        raise MpcError(
            f"A path must be a file of this machine; got {path!r}. Download it or mount it first."
        )
    whole = os.path.expanduser(path)
    if os.path.isdir(whole):
        found = sorted(_walk(whole))
    elif os.path.lexists(whole):
        found = [whole]
    else:
        matched = glob.glob(whole, recursive=True)
        found = sorted(file for file in matched if not os.path.isdir(file))
    if not found:
        raise MpcError(
            f"There is no file {path!r}. Give the path of a file of a log, a pattern such as "
            '"logs/*.csv", or a folder of such files.'
        )
    return found


def _walk(folder: str) -> Iterator[str]:
    """Yield the files of a log in a folder and in those that it holds or links to, each once.

    Files that are hidden or still being written are skipped. A .txt beside logs is usually a
    README, so it is read only if it is named.
    """
    seen = set()

    def refuse(error: OSError) -> None:
        raise MpcError(f"{error.filename!r} cannot be read: {error.strerror}.") from error

    for place, inner, names in os.walk(folder, followlinks=True, onerror=refuse):
        seen.add(os.path.realpath(place))
        paths = {name: os.path.join(place, name) for name in inner}
        inner[:] = [n for n in inner if n[0] not in "_." and os.path.realpath(paths[n]) not in seen]
        for name in names:
            if name[0] not in "_." and ".txt" not in name.lower() and kind_of(name):
                yield os.path.join(place, name)
