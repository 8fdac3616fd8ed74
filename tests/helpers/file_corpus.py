"""Logs as other people write them: small, odd, and each with the one answer it must have."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

COLUMNS = {"query": "q", "item": "i", "score": "s", "outcome": "y", "group": "g"}


def log(seed: int = 0, queries: int = 12) -> pd.DataFrame:
    """Return lists of five items, with ties, ids as text."""
    draw = np.random.default_rng(seed)
    n = 5 * queries
    return pd.DataFrame(
        {
            "q": [f"{k // 5}" for k in range(n)],
            "i": [f"{k % 5 + 3 * (k // 5 % 4)}" for k in range(n)],
            "s": draw.integers(0, 8, n) / 8,
            "y": draw.integers(0, 3, n).astype(float),
            "g": draw.choice(["a", "b", "é"], n),
        }
    )


BASE = log()
Write = Callable[[Path], None]


def text(frame: pd.DataFrame = BASE, sep: str = ",", encoding: str = "utf-8", **how: Any) -> Write:
    """Write a table of text."""

    def write(path: Path) -> None:
        path.write_bytes(frame.to_csv(index=False, sep=sep, **how).encode(encoding))

    return write


def raw(content: bytes | str) -> Write:
    """Write these bytes."""
    whole = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(whole) and None


def packed(pack: Callable[[bytes], bytes], frame: pd.DataFrame = BASE) -> Write:
    """Write a packed CSV."""
    return raw(pack(frame.to_csv(index=False).encode()))


def arrow(frame: pd.DataFrame = BASE, names: list[str] | None = None, **types: Any) -> Write:
    """Write Parquet or Feather, some columns in other types."""

    def write(path: Path) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for name, made in types.items():
            values = made(frame[name]) if callable(made) else pa.array(frame[name]).cast(made)
            table = table.set_column(table.schema.get_field_index(name), name, values)
        table = table if names is None else table.select(names)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            feather.write_feather(table, str(path), compression="uncompressed")

    return write


def as_lines(frame: pd.DataFrame, change: Callable[[dict], dict] = dict) -> bytes:
    rows = frame.to_dict("records")
    return "".join(json.dumps(change(row)) + "\n" for row in rows).encode()


def lines(frame: pd.DataFrame = BASE, change: Callable[[dict], dict] = dict) -> Write:
    """Write JSON lines."""
    return raw(as_lines(frame, change))


def whole(column: pd.Series) -> pa.Array:
    return pa.array(column.astype("int64"))


def halves(frame: pd.DataFrame = BASE) -> tuple[pd.DataFrame, pd.DataFrame]:
    return frame[:30].reset_index(drop=True), frame[30:].reset_index(drop=True)


def with_cell(row: int, column: str, cell: str) -> pd.DataFrame:
    """Return the log as text with one cell of another spelling."""
    frame = BASE.astype({"s": str, "y": str})
    frame.loc[row, column] = cell
    return frame


@dataclass(frozen=True)
class Case:
    """Some files, and what they must be: a log in memory, or a sentence.

    Attributes
    ----------
    files : dict
        Relative path to what writes it.
    frame : DataFrame
        The log that the files hold.
    said : str
        Instead: what the error must match.
    given : tuple of str
        What is given to the doors; by default the folder.
    how : dict
        Further keywords of an audit.
    engines : tuple of str
        Engines that know such types.
    link : dict
        Links to make: name to target.
    """

    files: dict[str, Write]
    frame: pd.DataFrame = field(default_factory=lambda: BASE)
    said: str = ""
    given: tuple[str, ...] = ()
    how: dict[str, Any] = field(default_factory=dict)
    engines: tuple[str, ...] = ("memory", "duckdb", "dask", "spark")
    link: dict[str, str] = field(default_factory=dict)


FIRST, SECOND = halves()
NUMBERED = BASE.astype({"q": "int64", "i": "int64"})
HEAD = "q,i,s,y,g\n"
ZERO = BASE.assign(q=[0.0 if k // 5 < 2 else float(k // 5) for k in range(60)], i=range(60))
SIGNED = ZERO.assign(q=[-0.0 if k % 2 and not q else q for k, q in enumerate(ZERO["q"])])
ZONED = pd.Series(pd.date_range("2026-01-01", periods=60, freq="h", tz="Asia/Tokyo")).where(
    np.arange(60) % 2 == 0, pd.Timestamp("2026-07-01 12:00", tz="Asia/Tokyo")
)
IN_MEMORY = ("memory", "duckdb")

CASES: dict[str, Case] = {
    # text, as it is written everywhere
    "commas": Case({"a.csv": text()}),
    "tabs": Case({"a.tsv": text(sep="\t")}),
    "semicolons": Case({"a.csv": text(sep=";")}),
    "bars": Case({"a.csv": text(sep="|")}),
    "txt": Case({"a.txt": text(sep="\t")}, given=("a.txt",)),
    "latin-1": Case({"a.csv": text(sep=";", encoding="latin-1")}),
    "a BOM": Case({"a.csv": text(encoding="utf-8-sig")}),
    "utf-16": Case({"a.csv": text(encoding="utf-16")}),
    "given separator": Case({"a.csv": text(sep="^")}, how={"sep": "^"}),
    "given encoding": Case(
        {"a.csv": text(BASE.replace("é", "ї"), encoding="cp1251")},
        BASE.replace("é", "ї"),
        how={"encoding": "cp1251"},
    ),
    "gzip": Case({"a.csv.gz": packed(gzip.compress)}),
    "bzip2": Case({"a.csv.bz2": packed(bz2.compress)}),
    "xz": Case({"a.csv.xz": packed(lzma.compress)}),
    "zstd": Case({"a.csv.zst": packed(lambda b: pa.compress(b, "zstd", asbytes=True))}),
    "windows lines": Case({"a.csv": text(lineterminator="\r\n")}),
    "old mac lines": Case({"a.csv": text(lineterminator="\r")}),
    "empty lines": Case({"a.csv": raw(BASE.to_csv(index=False).replace("\n", "\n\n"))}),
    "no last line break": Case({"a.csv": raw(BASE.to_csv(index=False).rstrip("\n"))}),
    "all quoted": Case({"a.csv": text(quoting=1)}),
    "quotes, separators and breaks in a cell": Case(
        {"a.csv": text(BASE.replace("a", 'x,"y"\nz'))}, BASE.replace("a", 'x,"y"\nz')
    ),
    "a quote inside a cell": Case(
        {"a.csv": raw(BASE.to_csv(index=False).replace(",a\n", ',5" pipe\n'))},
        BASE.replace("a", '5" pipe'),
    ),
    "other columns": Case({"a.csv": text(BASE.assign(x="ü", y2=1)[["x", *BASE, "y2"]])}),
    "columns in another order": Case({"a.csv": text(FIRST), "b.csv": text(SECOND[[*"gysiq"]])}),
    # what a cell is
    "leading zeros": Case(
        {"a.csv": text(BASE.assign(q="00" + BASE["q"]))}, BASE.assign(q="00" + BASE["q"])
    ),
    "1 and 1.0 are two ids": Case(
        {"a.csv": text(BASE.replace({"q": {"3": "1.0"}}))}, BASE.replace({"q": {"3": "1.0"}})
    ),
    "NA is a label": Case({"a.csv": text(BASE.replace("a", "NA"))}, BASE.replace("a", "NA")),
    "an empty label is none": Case({"a.csv": text(BASE.replace("a", ""))}, BASE.replace("a", None)),
    "blanks around numbers": Case(
        {"a.csv": text(BASE.assign(s=" " + BASE["s"].astype(str) + "  "))}
    ),
    "plus signs": Case({"a.csv": text(BASE.assign(s="+" + BASE["s"].astype(str)))}),
    "exponents": Case({"a.csv": text(BASE.assign(s=BASE["s"].map("{:e}".format)))}),
    "truth as outcome": Case(
        {"a.csv": text(BASE.assign(y=np.where(BASE["y"] > 0, "TRUE", "false")))},
        BASE.assign(y=(BASE["y"] > 0).astype(float)),
    ),
    "truth among numbers": Case({"a.csv": text(BASE.assign(y=BASE["y"].replace({1.0: "true"})))}),
    "missing words": Case(
        {
            "a.csv": text(
                BASE.assign(
                    s=[
                        {0: "NA", 7: "NaN", 9: "-nan", 13: "NAN", 17: "null", 21: ""}.get(k, s)
                        for k, s in enumerate(BASE["s"])
                    ]
                )
            )
        },
        BASE.drop([0, 7, 9, 13, 17, 21]),
        how={"missing": "drop"},
    ),
    "large whole numbers": Case(
        {"a.csv": text(BASE.assign(s=[f"{2**64 + 4096 * int(8 * s)}" for s in BASE["s"]]))},
        BASE.assign(s=2.0**64 + 4096 * (8 * BASE["s"])),
    ),
    "every digit": Case(
        {"a.csv": text(BASE.assign(s=[f"{0.1 + s:.25f}" for s in BASE["s"]]))},
        BASE.assign(s=[float(f"{0.1 + s:.25f}") for s in BASE["s"]]),
    ),
    "flags": Case(
        {"a.csv": text(BASE.assign(g=np.where(BASE["g"] == "a", "1", "0"), h="False"))},
        BASE.assign(g=BASE["g"] == "a", h=False),
        how={"group": ["g", "h"]},
    ),
    # other kinds
    "parquet": Case({"a.parquet": arrow()}),
    "feather": Case({"a.feather": arrow()}),
    "json lines": Case({"a.jsonl": lines()}),
    "packed json lines": Case({"a.ndjson.gz": raw(gzip.compress(as_lines(BASE)))}),
    "lists of labels": Case(
        {"a.jsonl": lines(change=lambda row: {**row, "g": [row["g"], "all"]})},
        BASE.assign(g=[[one, "all"] for one in BASE["g"]]),
    ),
    "numbers as ids": Case({"a.parquet": arrow(NUMBERED)}, NUMBERED),
    "narrow types": Case({"a.parquet": arrow(NUMBERED, q=pa.int8(), s=pa.float32())}, NUMBERED),
    "dictionaries": Case(
        {"a.parquet": arrow(g=lambda c: pa.array(c).dictionary_encode(), q=pa.large_string())}
    ),
    "views and half floats": Case(
        {
            "a.feather": arrow(
                g=lambda c: pa.array(c.tolist(), pa.string_view()),
                s=lambda c: pa.array(c.to_numpy("float16")),
            )
        },
    ),
    "decimals": Case(
        {
            "a.parquet": arrow(
                BASE,
                s=lambda c: pa.array(
                    [Decimal(int(8 * s) + 1) / 10 for s in c], pa.decimal128(9, 4)
                ),
            )
        },
        BASE.assign(s=[(int(8 * s) + 1) / 10 for s in BASE["s"]]),
    ),
    "unsigned ids": Case(
        {"a.parquet": arrow(NUMBERED, q=lambda c: pa.array([2**63 + v for v in c], pa.uint64()))},
        NUMBERED.assign(q=np.uint64(2**63) + NUMBERED["q"].astype("uint64")),
        engines=("memory", "duckdb", "dask"),  # Spark has no unsigned numbers
    ),
    "two zeros": Case({"a.parquet": arrow(SIGNED)}, ZERO),
    "times with a zone as groups": Case(
        {"a.parquet": arrow(BASE.assign(g=ZONED))},
        BASE.assign(g=ZONED),
        engines=IN_MEMORY,  # clusters have one zone for all columns
    ),
    "days as ids": Case(
        {
            "a.parquet": arrow(
                BASE.assign(
                    q=pd.to_datetime("2026-01-01") + pd.to_timedelta(BASE["q"].astype(int), "D")
                )
            )
        },
        BASE.assign(q=pd.to_datetime("2026-01-01") + pd.to_timedelta(BASE["q"].astype(int), "D")),
    ),
    # several files
    "two files": Case({"a.csv": text(FIRST), "b.csv": text(SECOND)}),
    "a folder in a folder": Case({"x/a.csv": text(FIRST), "y/z/b.csv": text(SECOND)}),
    "a pattern": Case({"a1.csv": text(), "b1.csv": text(log(1))}, given=("a*.csv",)),
    "two separators": Case({"a.csv": text(FIRST), "b.csv": text(SECOND, sep=";")}),
    "two encodings": Case({"a.csv": text(FIRST), "b.csv": text(SECOND, encoding="latin-1")}),
    "two kinds": Case({"a.csv": text(FIRST), "b.parquet": arrow(SECOND)}),
    "whole numbers and floats": Case(
        {"a.parquet": arrow(FIRST, q=whole), "b.parquet": arrow(SECOND.astype({"q": float}))},
        BASE.astype({"q": float}),
    ),
    "named twice": Case({"a.csv": text()}, given=("a.csv", "./a.csv")),
    "a link to a file that is there too": Case({"a.csv": text()}, link={"b.csv": "a.csv"}),
    "hidden and other files": Case(
        {"a.csv": text(), ".b.csv": text(log(1)), "_c/d.csv": text(log(2)), "README.txt": raw("x")}
    ),
    "an address as a name": Case({"http:/x/a.csv": text()}, given=("http:/x/a.csv",)),
    "a name with a star": Case({"a*.csv": text(), "ab.csv": text(log(1))}, given=("a*.csv",)),
    # folders that are columns
    "a folder as query": Case(
        {f"q={k}/a.csv": text(BASE[BASE["q"] == str(k)].drop(columns="q")) for k in range(3)},
        BASE[BASE["q"].isin(["0", "1", "2"])],
    ),
    "a folder as number": Case({"s=0.5/a.csv": text(BASE.drop(columns="s"))}, BASE.assign(s=0.5)),
    "folders that differ from columns in case": Case(
        {f"S=0/Q=1/G=z/{k}.parquet": arrow(half) for k, half in enumerate(halves())}
    ),
    "folders named like columns": Case({"s=9/q=9/g=9/a.csv": text()}),
    "columns that differ in case": Case(
        {
            "a.parquet": arrow(FIRST.assign(S=7.0, Q="x", G="w")),
            "b.parquet": arrow(SECOND.assign(S=7.0, Q="x", G="w")[[*"GSQgyisq"]]),
        }
    ),
    # what is refused
    "no such column": Case({"a.csv": text()}, said="a.csv' has no column 'z'", how={"score": "z"}),
    "the first file lacks a column": Case(
        {"a.parquet": arrow(FIRST.drop(columns="s")), "b.parquet": arrow(SECOND)},
        said=r"a\.parquet' has no column 's'",
    ),
    "the second file lacks a column": Case(
        {"a.parquet": arrow(FIRST), "b.parquet": arrow(SECOND.drop(columns="s"))},
        said=r"b\.parquet' has no column 's'",
    ),
    "a name in another case": Case(
        {"a.csv": text(BASE.rename(columns={"s": "S"}))},
        said=r"a\.csv' has no column 's'",
    ),
    "a name twice": Case({"a.csv": raw("q,q,i,s,y,g\n1,1,1,1,1,a\n")}, said="got 'q' 2 times"),
    "large ids as floats elsewhere": Case(
        {
            "a.parquet": arrow(FIRST, q=lambda c: pa.array([2**53 + int(v) for v in c])),
            "b.parquet": arrow(SECOND.astype({"q": float})),
        },
        said="must fit double, its type in all files; got int64",
    ),
    "text here and numbers there": Case(
        {"a.parquet": arrow(FIRST), "b.parquet": arrow(SECOND, q=whole)},
        said="Column 'q' must be of one kind in all files; got string in",
    ),
    "a short row": Case(
        {"a.csv": raw(f"{HEAD}1,1,1,1,a\n1,2,1\n")}, said="line 3 must have 5 cells"
    ),
    "a long row": Case(
        {"a.csv": raw(f"{HEAD}1,1,1,1,a\n\n1,2,1,0,b,c\n")}, said="line 4 must have 5 cells"
    ),
    "an open quote": Case(
        {"a.csv": raw(f'{HEAD}1,1,1,1,a\n1,"2,1,0,b\n')}, said="line 3 is never closed"
    ),
    "a word as score": Case(
        {"a.csv": text(with_cell(3, "s", "high"))}, said="numbers; got 'high' in line 5"
    ),
    "a decimal comma": Case(
        {"a.csv": text(with_cell(3, "s", "0,5"), sep=";")}, said="'0,5' in line 5. Write decimals"
    ),
    "a grouped number": Case(
        {"a.csv": text(with_cell(3, "y", "1_000"))}, said="got '1_000' in line 5"
    ),
    "no flag": Case(
        {"a.csv": text(BASE.assign(g="2", h="1"))},
        said="true and false, or 1 and 0; got '2' in line 2",
        how={"group": ["g", "h"]},
    ),
    "a hole": Case({"a.csv": text(with_cell(3, "s", ""))}, said="got 1 missing value in row 3"),
    "an empty file": Case(
        {"a.csv": raw(b"")},
        said="columns in its first line; got an empty file",
    ),
    "names alone": Case({"a.csv": raw(HEAD)}, said="must have rows; got none"),
    "not JSON": Case({"a.jsonl": raw('{"q": 1}\nno\n')}, said="Line 2 of .* must be JSON"),
    "JSON of two kinds": Case(
        {"a.jsonl": lines(change=lambda row: {**row, "q": row["q"] if row["y"] else 7})},
        said="'q' of .* must hold values of one kind",
    ),
    "packed and cut": Case(
        {"a.csv.gz": raw(gzip.compress(BASE.to_csv(index=False).encode())[:-9])},
        said=r"a\.csv\.gz' cannot be read",
    ),
    "a damaged file": Case({"a.parquet": raw(b"PAR1 no PAR1")}, said=r"a\.parquet' cannot be read"),
    "an unknown kind": Case({"a.xlsx": raw(b"x")}, said="must be CSV", given=("a.xlsx",)),
    "an address": Case(
        {}, said="a file of this machine; got 'https:", given=("https://example.org/a.csv",)
    ),
    "a link to nothing": Case(
        {}, said="a link to one that does not exist", link={"a.csv": "gone.csv"}
    ),
}
