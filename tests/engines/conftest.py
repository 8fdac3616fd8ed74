"""One Dask cluster and one Spark session for all tests that need them."""

from __future__ import annotations

import os
import sys

import pytest


@pytest.fixture(scope="session")
def dask_client():
    """Return the client of two workers, each a process of its own."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def spark():
    """Return a Spark session of two local workers, bound to this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()
