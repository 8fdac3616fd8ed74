"""A cluster that is gone is one sentence, whatever pages its own errors fill."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess
import sys
from pathlib import Path

import pytest

import mpc_lab as mpc
from mpc_lab.engines.dask import reaching_dask
from mpc_lab.engines.spark import reaching_spark

TESTS = Path(__file__).parents[1]

# Each cluster lives in a process of its own, so that those of other tests survive.
DEAD_SPARK = """
import os, signal, sys, threading
os.environ["PYSPARK_PYTHON"] = sys.executable
from helpers.agreeing import BOOLEANS, COLUMNS, random_log
from pyspark.sql import SparkSession
import mpc_lab as mpc
from mpc_lab.engines import spark

session = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
rows = session.createDataFrame(random_log(1)[["query", "score", "outcome", *BOOLEANS]])

def kill():
    os.kill(session.sparkContext._gateway.proc.pid, signal.SIGKILL)
    session.sparkContext._gateway.proc.wait()

collected = spark._collect
calls = []

def collected_until_killed(answers):
    calls.append(answers)
    if len(calls) == 3:
        # While the answers are waited for.
        threading.Timer(0.1, kill).start()
    return collected(answers)

if sys.argv[1] == "before":
    kill()
elif sys.argv[1] == "stopped":
    session.stop()
else:
    spark._collect = collected_until_killed
try:
    mpc.audit(rows, **COLUMNS, group=BOOLEANS, progress=False)
except mpc.MpcError as error:
    print(f"said: {error}")
"""

DEAD_DASK = """
import os, signal, sys, time
from helpers.agreeing import BOOLEANS, COLUMNS, random_log
import mpc_lab as mpc

def die_on_a_worker(frame, parent):
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame

def wait(frame):
    time.sleep(60)
    return frame

def main():
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    dask.config.set({
        "distributed.scheduler.allowed-failures": 0,
        "distributed.comm.timeouts.connect": "2s",
        "distributed.worker.multiprocessing-method": "forkserver",
    })
    frame = random_log(1)[["query", "score", "outcome", *BOOLEANS]]
    rows = dd.from_pandas(frame, npartitions=2)
    lost = sys.argv[1]
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)
    if lost == "worker":
        rows = rows.map_partitions(die_on_a_worker, os.getpid(), meta=frame.iloc[:0])
    else:
        rows = rows.map_partitions(wait, meta=frame.iloc[:0])
        cluster.loop.call_later(1, lambda: cluster.loop.add_callback(cluster.scheduler.close))
    try:
        mpc.audit(rows, **COLUMNS, group=BOOLEANS, progress=False)
    except mpc.MpcError as error:
        print(f"said: {error}", flush=True)
    os._exit(0)

if __name__ == "__main__":
    main()
"""


def last_words(script, how, tmp_path):
    """Run a script beside the helpers of these tests, and return what it said and its errors."""
    path = tmp_path / "lost.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\n{script}")
    result = subprocess.run(
        [sys.executable, str(path), how], capture_output=True, text=True, timeout=120, check=False
    )
    said = [line for line in result.stdout.splitlines() if line.startswith("said: ")]
    assert len(said) == 1, result.stdout + result.stderr
    return said[0], result.stderr


@pytest.mark.needs_spark
@pytest.mark.parametrize("when", ["before", "during", "stopped"])
def test_a_spark_session_that_is_gone_is_one_sentence(tmp_path, when):
    said, errors = last_words(DEAD_SPARK, when, tmp_path)
    assert "The Spark session does not answer any more (" in said
    assert said.endswith("Start a session, make the frame again from it, and run the audit again.")
    assert "mpc_lab" not in errors  # PySpark's own threads may complain


@pytest.mark.needs_dask
@pytest.mark.parametrize(
    ("lost", "why"), [("worker", "KilledWorker"), ("scheduler", "CancelledError")]
)
def test_a_dask_cluster_that_is_gone_is_one_sentence(tmp_path, lost, why):
    said, _ = last_words(DEAD_DASK, lost, tmp_path)
    assert "The Dask cluster did not finish the audit (" in said
    assert why in said
    assert said.endswith("connect to it again, and run the audit again.")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError("Timed out. Look around"), "(TimeoutError: Timed out)"),
        (asyncio.CancelledError(), "(CancelledError)"),
        (concurrent.futures.CancelledError("sum"), "(CancelledError: sum)"),
        (ConnectionResetError(104, "reset"), "(ConnectionResetError: [Errno 104] reset)"),
    ],
)
def test_errors_from_dask_are_shortened(error, why):
    with pytest.raises(mpc.MpcError) as caught, reaching_dask():
        raise error
    assert why in str(caught.value)
    assert caught.value.__cause__ is error


def test_a_loss_is_found_below_what_it_led_to():
    above = ValueError("Unable to parse datatype.")
    above.__cause__ = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(mpc.MpcError, match="ConnectionRefusedError"), reaching_spark():
        raise above


@pytest.mark.parametrize("reaching", [reaching_spark, reaching_dask])
@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("ours"), mpc.MpcError("the log"), KeyboardInterrupt(), AssertionError()],
)
def test_other_errors_come_out_as_they_are(reaching, error):
    with pytest.raises(type(error)) as caught, reaching():
        raise error
    assert caught.value is error
