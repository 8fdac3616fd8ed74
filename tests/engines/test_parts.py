"""Sorted rows are cut where a key changes, whatever the sizes in which they come."""

from __future__ import annotations

import pytest

from helpers.agreeing import random_log
from mpc_lab.engines.parts import cut_tables

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("keys", [["query"], ["name"], ["user", "query"]], ids=str)
def test_tables_end_where_a_key_changes(keys, size):
    frame = random_log(5).sort_values(keys)
    batches = pa.Table.from_pandas(frame).to_batches(max_chunksize=size)
    tables = [table.to_pandas() for table in cut_tables(batches, keys, 50)]
    assert sum(map(len, tables)) == len(frame)
    assert sum(len(table[keys].drop_duplicates()) for table in tables) == frame["query"].nunique()
    if size < 50:
        assert len(tables) > 3


def test_a_run_longer_than_a_table_stays_whole():
    rows = pa.table({"key": [0] * 3 + [1] * 500 + [2] * 40 + [None] * 2})
    tables = cut_tables(rows.to_batches(max_chunksize=9), ["key"], 10)
    keys = [table["key"].to_pylist() for table in tables]
    assert sum(map(len, keys)) == rows.num_rows
    assert [sum(key in some for some in keys) for key in range(3)] == [1, 1, 1]


def test_nothing_is_cut_from_no_rows():
    empty = pa.table({"key": pa.array([], pa.int64())})
    assert list(cut_tables(empty.to_batches(), ["key"], 1)) == []
