"""Sorted rows on disk, in chunks of whole units, for as many passes as are wanted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpc_lab.engines.parts import Part
from mpc_lab.errors import MpcError
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.log import Log, below_by_position, below_by_score
from mpc_lab.pairing.stopping import finished

Columns = dict[str, NDArray[Any]]
# What kernels take; on disk a column is as narrow as it came.
_TYPES: dict[str, Any] = {"outcome": np.float64, "item": np.int64}


@contextmanager
def spill_folder(spill: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Make a folder of our own inside the one for spilling, and remove it at the end."""
    known = spill is None or isinstance(spill, str | os.PathLike)
    if not known or (spill is not None and not os.path.isdir(spill)):
        raise MpcError(f"spill must be a folder that exists, but {str(spill)!r} is none.")
    try:
        made = Path(tempfile.mkdtemp(prefix="mpc_lab-", dir=spill))
    except OSError as error:
        raise MpcError(
            f"No folder for spilling could be made ({error}): give spill=, a folder that can be "
            "written to."
        ) from error
    try:
        yield made
    finally:
        finished(partial(shutil.rmtree, made, ignore_errors=True))


@dataclass(frozen=True)
class _Chunk:
    """Where a chunk stands: its rows, its query bounds and its unit bounds."""

    rows: slice
    starts: slice
    units: slice
    first_query: int


class Spool:
    """Files of one column each, and where the chunks lie in them.

    Parameters
    ----------
    folder : Path
    n_words : int
        Words of masks a row has.
    extra : tuple of str
        Names of other score columns.
    positions : bool
        Whether ties are broken by logged positions, which also say who is whose neighbour.
    """

    def __init__(self, folder: Path, n_words: int, extra: tuple[str, ...], positions: bool) -> None:
        self.folder = folder
        self.n_words = n_words
        self.extra = extra
        self.positions = positions
        self.chunks: list[_Chunk] = []
        self.n_rows, self.n_queries, self.n_units = 0, 0, 0
        self._types: dict[str, np.dtype[Any]] = {}
        self._open: dict[str, BinaryIO] = {}
        self._bounds = [0, 0]

    def append(self, columns: Columns, starts: Ints, units: Ints) -> None:
        """Write one chunk of whole units.

        Parameters
        ----------
        columns : dict of arrays
            ``score``, ``outcome``, ``mask0`` …, and where there are any ``item``, ``tie`` and other
            score columns ``extra0`` …
        starts, units : int64 arrays
            As in `Log`.
        """
        n_rows = int(starts[-1])
        try:
            for name, values in {**columns, "starts": starts, "units": units}.items():
                self._write(name, np.ascontiguousarray(values))
        except OSError as error:
            raise MpcError(f"{_no_room(self.folder)} ({error}).") from error
        first, second = self._bounds
        self.chunks.append(
            _Chunk(
                slice(self.n_rows, self.n_rows + n_rows),
                slice(first, first + len(starts)),
                slice(second, second + len(units)),
                self.n_queries,
            )
        )
        self._bounds = [first + len(starts), second + len(units)]
        self.n_rows += n_rows
        self.n_queries += len(starts) - 1
        self.n_units += len(units) - 1

    def _write(self, name: str, values: NDArray[Any]) -> None:
        if name not in self._open:
            self._open[name] = open(self.folder / name, "wb", buffering=0)  # noqa: SIM115
            self._types[name] = values.dtype
        if values.dtype != self._types[name]:
            raise TypeError(f"{name} changed from {self._types[name]} to {values.dtype}")
        view, written = memoryview(values.view(np.uint8).data), 0
        while written < len(view):  # the system may take less than it is given
            written += self._open[name].write(view[written:])

    def close(self) -> None:
        """End the writing."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def read(self, number: int) -> Part:
        """Read one chunk."""
        chunk = self.chunks[number]
        starts, units = self._read("starts", chunk.starts), self._read("units", chunk.units)
        n_rows = chunk.rows.stop - chunk.rows.start
        nothing = np.empty(0, dtype=np.int64)
        row = np.arange(n_rows)
        tie = self._read("tie", chunk.rows) if "tie" in self._types else row
        masks = np.empty((self.n_words, n_rows), dtype=np.uint64)
        for word, mask in enumerate(masks):
            mask[:] = self._read(f"mask{word}", chunk.rows)
        log = Log(
            units=units,
            starts=starts,
            score=self._read("score", chunk.rows),
            outcome=self._read("outcome", chunk.rows),
            masks=masks,
            item=self._read("item", chunk.rows) if "item" in self._types else nothing,
            below=below_by_position(starts, -tie) if self.positions else below_by_score(starts),
            row=row,
            tie=tie,
            origin=chunk.first_query,
        )
        extra = {name: self._read(f"extra{k}", chunk.rows) for k, name in enumerate(self.extra)}
        return Part(log, extra)

    def _read(self, name: str, where: slice) -> NDArray[Any]:
        kind = self._types[name]
        count = where.stop - where.start
        try:
            found = np.fromfile(
                self.folder / name, kind, count=count, offset=where.start * kind.itemsize
            )
        except OSError as error:
            raise MpcError(f"What was spilled to {str(self.folder)!r} is lost: {error}.") from error
        if len(found) < count:
            raise MpcError(f"What was spilled to {str(self.folder)!r} is cut short; run it again.")
        return found.astype(_TYPES.get(name, kind), copy=False)


def _no_room(folder: Path) -> str:
    return (
        f"The folder {str(folder.parent)!r} could not take what spills; give spill= with more room"
    )
