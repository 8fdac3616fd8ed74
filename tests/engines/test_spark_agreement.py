from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, random_log
from mpc_lab.engines import running

pytestmark = pytest.mark.needs_spark


def _rows(spark, frame):
    plain = frame.astype({"name": object, "label": object, "title": object, "country": object})
    return spark.createDataFrame(plain.where(plain.notna(), None)).repartition(4)


def test_an_unreadable_file_is_named(spark, tmp_path):
    frame = random_log(1)[["query", "score", "outcome", *BOOLEANS]]
    for number in range(2):
        frame[number::2].to_parquet(tmp_path / f"{number}.parquet")
    rows = spark.read.parquet(str(tmp_path))
    (tmp_path / "1.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(mpc.MpcError, match=r"got one that is not \(.*1\.parquet") as caught:
        mpc.audit(rows, **COLUMNS, group=BOOLEANS, progress=False)
    assert caught.value.__cause__ is not None


def test_prices_that_are_many_over_all_partitions_are_no_labels(spark):
    frame = random_log(1)
    frame["price"] = np.arange(len(frame)) % 60 + 0.25
    with pytest.raises(mpc.MpcError, match=r"must hold labels; got \d\d different numbers"):
        mpc.audit(_rows(spark, frame), **COLUMNS, group="price", progress=False)


def test_an_install_without_pyspark_names_the_extra(spark, monkeypatch):
    rows = _rows(spark, random_log(1))
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    with pytest.raises(mpc.MpcError, match=r'pip install "mpc-lab\[spark\]"'):
        mpc.audit(rows, **COLUMNS, group=BOOLEANS)
