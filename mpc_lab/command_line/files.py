"""Log files: which there are, what columns they have, and the rows of the columns that are needed.

CSV and TSV (also compressed), Parquet and Feather. Ids in CSV are read as the text that stands
there: ``007`` stays ``007`` in every file, so that a query that is split over files stays one.
"""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab.engines.files import FALSE, NO_NUMBER, ONE, TRUE, ZERO
from mpc_lab.errors import MpcError, near_match

if TYPE_CHECKING:
    import pandas as pd

_TEXT = {".csv": ",", ".tsv": "\t"}
_PACKED = (".gz", ".bz2", ".xz")
_ARROW = (".parquet", ".pq", ".feather", ".arrow")
_KINDS = (
    "CSV (.csv, .tsv, also .gz, .bz2, .xz), Parquet (.parquet, .pq) or Feather (.feather, .arrow)"
)
_WILD = "*?["
_ROWS_AT_ONCE = 500_000


@dataclass(frozen=True)
class Columns:
    """The columns to read, by how they are read.

    Attributes
    ----------
    ids : tuple of str
        Labels and ids: in CSV, the text as it stands there.
    numbers : tuple of str
        Scores, outcomes, positions.
    flags : tuple of str
        Columns of true and false; 1 and 0 are taken as such in CSV.
    """

    ids: tuple[str, ...]
    numbers: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def all(self) -> list[str]:
        """Every column, once."""
        return list(dict.fromkeys((*self.ids, *self.numbers, *self.flags)))


def find_files(patterns: Iterable[str]) -> list[Path]:
    """Return the files that names and patterns stand for, each once, in order.

    Parameters
    ----------
    patterns : iterable of str
        Names of files, or patterns with ``*``, ``?``, ``[…]`` and ``**`` for any folders.
    """
    found: dict[Path, Path] = {}
    for pattern in patterns:
        for path in _matching(pattern):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _matching(pattern: str) -> list[Path]:
    if "\0" in pattern:
        raise MpcError(f"A file name holds no NUL, but {pattern!r} came.")
    path = Path(pattern).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        raise MpcError(
            f"{pattern!r} is a folder; name its files, for example {pattern + '/*.csv'!r}."
        )
    if not any(mark in pattern for mark in _WILD):
        raise MpcError(f"There is no file {pattern!r} to audit.")
    matched = sorted(
        path for path in map(Path, glob.glob(str(path), recursive=True)) if path.is_file()
    )
    if not matched:
        raise MpcError(f"No file matches {pattern!r}.")
    return matched


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a file."""
    with _named_errors(path):
        if _is_arrow(path):
            return [str(name) for name in _schema(path).names]
        return [str(name) for name in _first_rows(path, 0).columns]


def head(path: Path, rows: int = 10_000) -> pd.DataFrame:
    """Return the first rows of a file, all columns."""
    with _named_errors(path):
        if not _is_arrow(path):
            return _first_rows(path, rows)
        frame: pd.DataFrame = _first_batches(path, rows).to_pandas()
        return frame


def read_log(
    paths: Sequence[Path],
    columns: Columns,
    done: Callable[[], None] | None = None,
) -> Any:
    """Read the columns of several files as one log.

    Parameters
    ----------
    paths : sequence of Path
    columns : Columns
    done : callable, optional
        Called after each file.

    Returns
    -------
    pandas.DataFrame or pyarrow.Table
    """
    parts = []
    for path in paths:
        _check_columns(path, columns)
        with _named_errors(path):
            parts.append(_read_arrow(path, columns) if _is_arrow(path) else _text(path, columns))
        if done is not None:
            done()
    return parts[0] if len(parts) == 1 else _joined(paths, parts)


def _check_columns(path: Path, columns: Columns) -> None:
    known = column_names(path)
    for name in columns.all:
        if name not in known:
            raise MpcError(f"{str(path)!r} has no column {name!r}.{near_match(name, known)}")


def _is_arrow(path: Path) -> bool:
    kind = path.suffix.lower()
    if kind in _ARROW:
        return True
    if kind in _PACKED:
        kind = Path(path.stem).suffix.lower()
    if kind not in _TEXT:
        raise MpcError(f"{str(path)!r} is of no kind that is read here: {_KINDS}.")
    return False


# -- text ------------------------------------------------------------------------------------


def _separator(path: Path) -> str:
    named = Path(path.stem) if path.suffix.lower() in _PACKED else path
    return _TEXT[named.suffix.lower()]


def _read_csv(path: Path, **options: Any) -> Any:
    import pandas as pd

    # Every digit counts; newer pandas reads them all and knows no other way.
    if int(pd.__version__.split(".")[0]) < 3:
        options["float_precision"] = "round_trip"
    return pd.read_csv(
        path,
        sep=_separator(path),
        encoding="utf-8-sig",
        low_memory=False,
        index_col=False,
        **options,
    )


def _first_rows(path: Path, rows: int) -> pd.DataFrame:
    import pandas as pd

    with warnings.catch_warnings():
        # Rows with too many fields are told when the file is read for good.
        warnings.simplefilter("ignore", pd.errors.ParserWarning)
        frame: pd.DataFrame = _read_csv(path, nrows=rows)
    return frame


def _strictly(path: Path, parts: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of a file; a row that has more fields than there are names is an error."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield from parts
        except pd.errors.ParserWarning as error:
            raise MpcError(
                f"{str(path)!r} cannot be read: a row has more fields than the first line has "
                "names; correct that row, or quote its commas."
            ) from error


def _text(path: Path, columns: Columns) -> pd.DataFrame:
    import pandas as pd

    # A column that is an id and a number too, such as a position, is read as a number.
    ids = [name for name in columns.ids if name not in columns.numbers]
    # All columns are parsed, in parts, and the others let go: told to read some columns only,
    # pandas drops fields behind the last name in silence, and rows with a stray comma with them.
    kept = set(columns.all)
    others = [name for name in column_names(path) if name not in kept]
    with _read_csv(
        path,
        dtype=dict.fromkeys([*ids, *others], str),
        # "NA" may be a country; only an empty field is no label.
        keep_default_na=False,
        na_values={name: [""] if name in ids else list(NO_NUMBER) for name in columns.all},
        chunksize=_ROWS_AT_ONCE,
    ) as parts:
        frame: pd.DataFrame = pd.concat(
            [part[columns.all] for part in _strictly(path, parts)], ignore_index=True
        )
    for name in columns.numbers:
        _check_number(path, frame, name)
    for name in columns.flags:
        frame[name] = _flags(path, frame[name])
    return frame


def _check_number(path: Path, frame: pd.DataFrame, name: str) -> None:
    import pandas as pd

    column = frame[name]
    if pd.api.types.is_numeric_dtype(column) or column.isna().all():
        return
    wrong = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    if wrong.isin(["True", "False", "true", "false", True, False]).all():
        return  # booleans beside empty fields, which the log is asked about later
    raise MpcError(
        f"Column {name!r} of {str(path)!r} must hold numbers, but row {int(wrong.index[0]) + 1:,} "
        f"has {wrong.iloc[0]!r}; correct it, or name another column."
    )


def _flags(path: Path, column: pd.Series[Any]) -> pd.Series[Any]:
    known = {**dict.fromkeys((*TRUE, *ONE), True), **dict.fromkeys((*FALSE, *ZERO), False)}
    texts = column.astype(str)
    wrong = column.notna() & ~texts.isin(list(known))
    if wrong.any():
        raise MpcError(
            f"Column {column.name!r} of {str(path)!r} must hold true and false, or 1 and 0, but "
            f"{str(column[wrong].iloc[0])!r} came; several --group columns are true or false."
        )
    return texts.map(known).where(column.notna(), None).astype("boolean")


# -- Arrow -----------------------------------------------------------------------------------


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise MpcError(
            "Parquet and Feather files are read with pyarrow, which is not installed; "
            'install mpc-lab with the extra "files": pip install "mpc-lab[files]".'
        ) from error
    return pa


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _schema(path: Path) -> Any:
    pa = _arrow()
    if _is_parquet(path):
        import pyarrow.parquet as pq

        return pq.read_schema(path)
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        return reader.schema


def _read_arrow(path: Path, columns: Columns) -> Any:
    _arrow()
    if _is_parquet(path):
        import pyarrow.parquet as pq

        table = pq.ParquetFile(path).read(columns=columns.all)
    else:
        import pyarrow.feather as feather

        table = feather.read_table(path, columns=columns.all, memory_map=False)
    table.validate(full=True)
    # Metadata of pandas would bring an index back that the log has no use for.
    return table.replace_schema_metadata(None)


def _first_batches(path: Path, rows: int) -> Any:
    pa = _arrow()
    if _is_parquet(path):
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        first = next(file.iter_batches(batch_size=rows), None)
        schema, batches = file.schema_arrow, [] if first is None else [first]
    else:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            schema = reader.schema
            batches = [reader.get_batch(0)] if reader.num_record_batches else []
    return (
        pa.Table.from_batches(batches, schema=schema).slice(0, rows).replace_schema_metadata(None)
    )


# -- several files as one --------------------------------------------------------------------


def _joined(paths: Sequence[Path], parts: list[Any]) -> Any:
    import pandas as pd

    if all(isinstance(part, pd.DataFrame) for part in parts):
        return pd.concat(parts, ignore_index=True)
    pa = _arrow()
    tables = [
        pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata(None)
        if isinstance(part, pd.DataFrame)
        else part
        for part in parts
    ]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise MpcError(_unlike(paths, tables)) from error


def _unlike(paths: Sequence[Path], tables: list[Any]) -> str:
    """Say which column is of another kind in two files."""
    first = tables[0].schema
    for path, table in zip(paths, tables, strict=True):
        for field in first:
            kind = table.schema.field(field.name).type
            if kind != field.type:
                return (
                    f"Column {field.name!r} is {field.type} in {str(paths[0])!r} and {kind} in "
                    f"{str(path)!r}; write it in one kind, so that equal values are equal."
                )
    return f"The files {str(paths[0])!r} and others cannot be joined: their columns differ."


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises on a file it cannot make sense of into one sentence."""
    import lzma
    import zlib

    try:
        yield
    except MpcError:
        raise
    except PermissionError as error:
        raise MpcError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    # pyarrow's errors are among these, but for one that is an Exception of its own.
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        NotImplementedError,
        ArithmeticError,
        OSError,
        EOFError,
        RuntimeError,
        MemoryError,
        lzma.LZMAError,
        zlib.error,
    ) as error:
        raise MpcError(f"{str(path)!r} cannot be read: {_first_line(error)}.") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
