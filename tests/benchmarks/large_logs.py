"""Write a log of any size, with known truth, to Parquet.

    python tests/benchmarks/large_logs.py FOLDER --rows 10000000 [--items 50000] [--longest 1000000]

Integer query ids, lists of 50 to 150 rows that lie scattered over the files, 20 overlapping groups
as boolean columns ``g00`` … ``g19``, scores uniform on [0, 1] and a binary outcome whose mean is
0.3 + 0.4·score + the effects of the row's groups. With ``--longest`` one more query of so many
rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUPS = tuple(f"g{k:02d}" for k in range(20))
SHARE = np.linspace(0.02, 0.4, len(GROUPS))
EFFECT = 0.01 * np.where(np.arange(len(GROUPS)) % 2, -1.0, 1.0)
SLOPE = 0.4
_MEAN_LENGTH = 100
_STRIDE = 2_654_435_761  # odd: it scatters ids
_ROWS_IN_A_FILE = 10_000_000


def truth(epsilon: float) -> dict[str, float]:
    r"""Return the gap of every group at a threshold.

    Memberships are independent, so that a matched pair differs by the group's effect and, on
    average, by the slope times its gap: δ − 0.4·E[Δ | Δ ≤ ε], the density of Δ being 2(1 − Δ).
    """
    mean = (epsilon / 2 - epsilon**2 / 3) / (1 - epsilon / 2) if epsilon else 0.0
    return {
        group: float(effect - SLOPE * mean) for group, effect in zip(GROUPS, EFFECT, strict=True)
    }


def batches(rows: int, *, items: int = 0, longest: int = 0, seed: int = 0) -> Iterator[pa.Table]:
    """Yield the rows of a log, a million or so at a time, no query on its own."""
    queries = max(1, rows // _MEAN_LENGTH)
    rng = np.random.default_rng([seed, 0])
    size = rng.integers(_MEAN_LENGTH // 2, 3 * _MEAN_LENGTH // 2 + 1, queries)
    first = rng.integers(0, max(items, 1), queries)
    held: list[np.ndarray] = []
    n_held, number, left = 0, 1, rows
    place = 0
    while left > 0 and place < size.max():
        query = np.flatnonzero(size > place)[:left]
        held.append(np.stack([query, np.full(len(query), place)]))
        n_held, left, place = n_held + len(query), left - len(query), place + 1
        if n_held >= 1_000_000 or left <= 0 or place == size.max():
            query, at = np.concatenate(held, axis=1)
            # No item twice in a query: the stride of 1 visits 150 others.
            yield _table(query, (first[query] + at) % max(items, 1), items, [seed, number])
            held, n_held, number = [], 0, number + 1
    for start in range(0, longest, 1_000_000):
        at = np.arange(start, min(longest, start + 1_000_000))
        yield _table(np.full(len(at), queries), at, items, [seed, number])
        number += 1


def _table(query: np.ndarray, item: np.ndarray, items: int, seed: list[int]) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = len(query)
    member = rng.random((len(GROUPS), n), dtype=np.float32) < SHARE[:, None].astype(np.float32)
    score = rng.random(n)
    mean = 0.3 + SLOPE * score + EFFECT @ member
    columns = {
        "query": (query * _STRIDE) % (1 << 40),
        "score": score,
        "outcome": (rng.random(n) < mean).astype(np.int8),
    }
    if items:
        columns["item"] = item
    return pa.table({**columns, **dict(zip(GROUPS, member, strict=True))})


def write(folder: Path, rows: int, *, items: int = 0, longest: int = 0, seed: int = 0) -> int:
    """Write the log as files of about ten million rows; return how many rows it has."""
    folder.mkdir(parents=True, exist_ok=True)
    written, in_file, files = 0, 0, 0
    writer = None
    try:
        for table in batches(rows, items=items, longest=longest, seed=seed):
            if writer is None or in_file >= _ROWS_IN_A_FILE:
                if writer is not None:
                    writer.close()
                path = folder / f"part-{files:04d}.parquet"
                writer, in_file, files = pq.ParquetWriter(path, table.schema), 0, files + 1
            writer.write_table(table)
            written, in_file = written + len(table), in_file + len(table)
    finally:
        if writer is not None:
            writer.close()
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=0, help="different items; 0: no item column")
    parser.add_argument("--longest", type=int, default=0, help="rows of one more, long query")
    asked = parser.parse_args()
    print(f"{write(asked.folder, asked.rows, items=asked.items, longest=asked.longest):,} rows")


if __name__ == "__main__":
    main()
