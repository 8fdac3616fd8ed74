"""The database that sorts a log in files, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mpc_lab.engines.running import Limits, n_threads
from mpc_lab.errors import MpcError
from mpc_lab.pairing.kernels import finished, waited_for, waited_out

Result = TypeVar("Result")

_BATCH = 122_880  # rows; what DuckDB gives whatever is asked for


class Database:
    """A connection to DuckDB that sees Ctrl-C while it works.

    Python sees Ctrl-C only between two of its own steps in the main thread, and a sort is one step
    that may take minutes. So DuckDB is asked from another thread, and told to stop from this one.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)

    def do(self, command: str) -> None:
        """Carry out a command."""
        self._heard(lambda: self._connection.execute(command))

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """Return the rows of the answer."""
        return self._heard(lambda: self._connection.sql(question).fetchall())

    @contextmanager
    def batches(self, question: str) -> Iterator[Iterator[Any]]:
        """Give the answer as record batches, one after the other."""
        reader = self._heard(lambda: self._connection.sql(question).to_arrow_reader(_BATCH))

        def following() -> Any:
            return self._heard(lambda: next(reader, None))

        try:
            yield iter(following, None)
        finally:
            reader.close()  # frees what it spilled

    def register(self, name: str, rows: Any) -> None:
        """Give Arrow's table or dataset a name to ask for."""
        self._connection.register(name, rows)

    def close(self) -> None:
        """Let go of all it holds."""
        finished(self._close)

    def _close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _heard(self, work: Callable[[], Result]) -> Result:
        future = self._thread.submit(work)
        try:
            return waited_for(future)
        except BaseException:  # whatever a signal raises here
            if not future.done():
                self._connection.interrupt()
                waited_out(future)  # nothing may be closed under its hands
            raise


@contextmanager
def connect(limits: Limits, folder: Path | None) -> Iterator[Database]:
    """Open a database in memory that spills to a folder; its errors become ours."""
    import duckdb

    config: dict[str, Any] = {
        "threads": n_threads(),
        "memory_limit": f"{limits.sorting // 10**6}MB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if folder is not None:
        config["temp_directory"] = str(folder)
    try:
        database = Database(duckdb.connect(":memory:", config=config))
        try:
            # It sorts what it is given, and has no business with files or the network.
            database.do("SET enable_external_access = false")
            database.do("SET lock_configuration = true")
            yield database
        finally:
            database.close()
    except duckdb.OutOfMemoryException as error:
        raise MpcError(
            f"The log could not be sorted in the memory and the room on disk there is: "
            f"{_first_line(error)}; allow more memory=, or give a spill= folder with more room."
        ) from error
    except duckdb.IOException as error:
        raise MpcError(
            f"A file could not be read or written: {_first_line(error)}; check the room in the "
            "spill= folder."
        ) from error
    except duckdb.Error as error:
        raise MpcError(f"The log could not be read: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
