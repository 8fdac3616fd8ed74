"""Folders of files with mixed schemas: in memory and walked they must be one log, or one sentence.

Kinds, separators, encodings, types, orders and names of columns differ from file to file; now and
then a column is missing, a cell is odd, or a folder is named like a column.
"""

from __future__ import annotations

import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers.fuzzing import Finding

COLUMNS = {"query": "q", "item": "i", "score": "s", "outcome": "y", "group": "g"}
KINDS = ("csv", "csv", "tsv", "txt.gz", "jsonl", "parquet", "parquet", "feather")
IDS = ("text", "whole", "float", "large", "day", "decimal", "unsigned")
NUMBERS = ("float", "float", "whole", "narrow", "decimal", "truth", "text")
ODD_CELLS = ("", "NA", "nan", "true", " 1 ", "1_0", "0,5", "x", "1e400", "18446744073709551616")
FOLDERS = ("", "", "s=1", "S=1", "q=7", "day=1", "g=é", "x=__HIVE_DEFAULT_PARTITION__")
MORE = ("S", "Q", "G", "s.x", "ü", "", "extra")


@st.composite
def folders(draw):
    """Draw the files of a folder: where they are, of what kind, and what is in them."""
    whole = {"ids": draw(st.sampled_from(IDS)), "numbers": draw(st.sampled_from(NUMBERS))}
    files = []
    for number in range(draw(st.integers(1, 3))):
        alike = draw(st.integers(0, 3)) > 0
        files.append(
            {
                "place": draw(st.sampled_from(FOLDERS)),
                "kind": draw(st.sampled_from(KINDS)),
                "seed": number + 10 * draw(st.integers(0, 99)),
                "ids": whole["ids"] if alike else draw(st.sampled_from(IDS)),
                "numbers": whole["numbers"] if alike else draw(st.sampled_from(NUMBERS)),
                "sep": draw(st.sampled_from((",", ";", "\t", "|"))),
                "encoding": draw(st.sampled_from(("utf-8", "utf-8", "latin-1", "utf-16"))),
                "order": draw(st.permutations("qisyg")),
                "lost": draw(st.sampled_from((None,) * 9 + tuple("qisyg"))),
                "more": draw(st.lists(st.sampled_from(MORE), max_size=2, unique=True)),
                "odd": draw(st.sampled_from((None,) * 3 + ODD_CELLS)),
            }
        )
    more = draw(st.sampled_from(({}, {}, {"unit": "g"}, {"segment": "q"}, {"position": "y"})))
    return {"files": files, "missing": draw(st.sampled_from(("raise", "drop"))), "more": more}


def write(folder: Path, drawn: dict) -> None:
    """Write what was drawn into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for number, file in enumerate(drawn["files"]):
        place = folder / file["place"]
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{number}.{file['kind']}"
        columns = {name: _column(name, number, file) for name in file["order"]}
        columns = {name: made for name, made in columns.items() if name != file["lost"]}
        columns |= {name: ["é", "b"] * 10 for name in file["more"]}
        _WRITERS[file["kind"].split(".")[0]](path, columns, file)


def _column(name: str, number: int, file: dict) -> list:
    draw = np.random.default_rng([file["seed"], ord(name)])
    if name == "g":
        return draw.choice(["a", "b", "é"], 20).tolist()
    if name in "qi":
        ids = [4 * number + k // 5 if name == "q" else k % 5 for k in range(20)]
        return [_AS_ID[file["ids"]](one) for one in ids]
    made = [_AS_NUMBER[file["numbers"]](int(one)) for one in draw.integers(0, 5, 20)]
    if file["odd"] is not None and name == "s" and file["kind"][:3] in ("csv", "tsv", "txt"):
        made[7] = file["odd"]
    return made


_AS_ID = {
    "text": lambda k: f"0{k}",
    "whole": int,
    "float": float,
    "large": lambda k: 2**53 + k,
    "day": lambda k: (pd.Timestamp("2026-01-01") + pd.Timedelta(days=k)).date(),
    "decimal": lambda k: Decimal(k) / 2,
    "unsigned": lambda k: 2**63 + k,
}
_AS_NUMBER = {
    "float": lambda k: k / 8,
    "whole": int,
    "narrow": np.float32,
    "decimal": lambda k: Decimal(k) / 10,
    "truth": bool,
    "text": lambda k: f"{k}.5",
}


def _write_text(path: Path, columns: dict, file: dict) -> None:
    sep = "\t" if file["kind"] == "tsv" else file["sep"]
    text = pd.DataFrame(columns).to_csv(index=False, sep=sep).encode(file["encoding"])
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def _write_json(path: Path, columns: dict, file: dict) -> None:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row, default=_as_json) + "\n" for row in rows), "utf-8")


def _as_json(value: object) -> object:
    return float(value) if isinstance(value, Decimal | np.floating) else str(value)


def _table(columns: dict) -> pa.Table:
    arrays = [
        pa.array(np.array(values)) if isinstance(values[0], np.floating) else _array(values)
        for values in columns.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _array(values: list) -> pa.Array:
    unsigned = isinstance(values[0], int) and max(values) >= 2**63
    return pa.array(values, pa.uint64() if unsigned else None)


def _write_parquet(path: Path, columns: dict, file: dict) -> None:
    pq.write_table(_table(columns), path)


def _write_feather(path: Path, columns: dict, file: dict) -> None:
    feather.write_feather(_table(columns), str(path), compression="uncompressed")


_WRITERS = {
    "csv": _write_text,
    "tsv": _write_text,
    "txt": _write_text,
    "jsonl": _write_json,
    "parquet": _write_parquet,
    "feather": _write_feather,
}


def compare(folder: Path, drawn: dict) -> None:
    """Audit a folder in memory and walked; another answer, or another sentence, is a finding."""
    write(folder, drawn)
    paths = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    found = [_answer(paths, drawn, memory) for memory in (None, "1GB")]
    if found[0] != found[1]:
        raise Finding(f"in memory {found[0]}, walked {found[1]}")


def _answer(paths: list[str], drawn: dict, memory: str | None) -> object:
    how = {"missing": drawn["missing"], "memory": memory, "progress": False, "epsilon": [0.1]}
    try:
        table = mpc.audit(paths, **COLUMNS, **how, **drawn["more"]).to_frame()
    except mpc.MpcError as error:
        return str(error)
    counts = table[["group", "n_pairs", "n_queries", "n_items", "verdict"]].values.tolist()
    return counts, table[["estimate", "epsilon"]].round(9).fillna(-1.0).values.tolist()
