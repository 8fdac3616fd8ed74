from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.agreeing import assert_agree

pytestmark = pytest.mark.needs_data
HOW = {"scoring_rules": ["baseline", "boosted"], "groups": ["Action", "Documentary", "Drama"]}


@pytest.fixture(scope="module")
def rows(data_folder):
    ranking = mpc.datasets.movielens_ranking("1m", folder=data_folder)
    return ranking.to_frame(), ranking.columns.given()


@pytest.fixture(scope="module")
def in_memory(rows):
    frame, columns = rows
    return mpc.audit(frame, **columns, **HOW, progress=False)


def test_files_agree_with_memory(rows, in_memory, tmp_path):
    frame, columns = rows
    frame.to_parquet(tmp_path / "log.parquet")
    found = mpc.audit(tmp_path, **columns, **HOW, memory="1GB", progress=False)
    assert_agree(in_memory, found)


@pytest.mark.needs_dask
def test_dask_agrees_with_memory(rows, in_memory, dask_client):
    import dask.dataframe as dd

    frame, columns = rows
    log = dd.from_pandas(frame, npartitions=4)
    assert_agree(in_memory, mpc.audit(log, **columns, **HOW, progress=False), curve=False)


@pytest.mark.needs_spark
def test_spark_agrees_with_memory(rows, in_memory, spark):
    frame, columns = rows
    log = spark.createDataFrame(frame.astype({"genres": object}))
    assert_agree(in_memory, mpc.audit(log, **columns, **HOW, progress=False), curve=False)
