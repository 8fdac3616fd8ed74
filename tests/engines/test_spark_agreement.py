from __future__ import annotations

import pytest
from agreeing import BOOLEANS, COLUMNS, MODES, assert_agree, random_log

import mpc_lab as mpc
from mpc_lab.engines import extras, spark_cluster

pytestmark = pytest.mark.needs_spark


def both(spark, frame, **how):
    """Audit a frame in memory and the same rows as a Spark frame."""
    how = {**COLUMNS, "group": BOOLEANS, "progress": False, **how}
    return mpc.audit(frame, **how), mpc.audit(_rows(spark, frame), **how)


def _rows(spark, frame):
    plain = frame.astype({"name": object, "label": object, "title": object, "country": object})
    return spark.createDataFrame(plain.where(plain.notna(), None)).repartition(4)


@pytest.mark.parametrize(
    "how",
    [
        {"item": "title", "scoring_rules": ["baseline", "calibrated"], "groups": ["g1"]},
        {"item": "item", "unit": "user", "adjust": "romano_wolf"},
        {"group": "label", "group_sep": "|", "query": "name", "threshold": 0.004},
        {"scoring_rules": ["boosted", mpc.Column("new")], "groups": ["g0"]},
        {"position": "position", "pairing_modes": MODES, "query": ["user", "name"]},
    ],
    ids=["union", "units", "labels", "rules", "positions"],
)
def test_spark_agrees_with_memory(how, spark):
    # Every pass is a job of a second or more, and a curve asks for all of them again.
    assert_agree(*both(spark, random_log(1), **how), curve=False)


def test_the_curve_of_spark_agrees_with_memory(spark):
    how = {"threshold": 0.004, "epsilon": [0.002, 0.004, 0.01], "groups": ["g0"], "item": "item"}
    assert_agree(*both(spark, random_log(4), **how))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"score": "scor"}, "There is no column 'scor'"),
        ({"item": "user"}, "An item may stand only once in a query"),
        ({"unit": "label"}, "The unit column 'label' must be complete"),
        ({"bootstrap": 5}, "leave bootstrap out"),
    ],
    ids=str,
)
def test_bad_rows_are_refused(how, said, spark):
    given = {**COLUMNS, "group": BOOLEANS, "progress": False, **how}
    with pytest.raises(mpc.MpcError, match=said):
        mpc.audit(_rows(spark, random_log(1)), **given)


def test_an_unreadable_file_is_named(spark, tmp_path):
    frame = random_log(1)[["query", "score", "outcome", *BOOLEANS]]
    for number in range(2):
        frame[number::2].to_parquet(tmp_path / f"{number}.parquet")
    rows = spark.read.parquet(str(tmp_path))
    (tmp_path / "1.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(mpc.MpcError, match=r"one could not be read \(.*1\.parquet") as caught:
        mpc.audit(rows, **COLUMNS, group=BOOLEANS, progress=False)
    assert caught.value.__cause__ is not None


def test_a_sorted_partition_is_cut_where_a_query_begins(monkeypatch):
    import pyarrow as pa

    from mpc_lab.engines.pieces import Spec
    from mpc_lab.ranking.names import column_names

    monkeypatch.setattr(spark_cluster, "_ROWS_AT_ONCE", 50)
    frame = random_log(5).sort_values("query")
    spec = Spec(column_names(**COLUMNS, group=BOOLEANS), drop=False)
    batches = pa.Table.from_pandas(frame).to_batches(max_chunksize=7)
    pieces = [piece.to_pandas() for piece in spark_cluster._whole_units(iter(batches), spec)]
    assert len(pieces) > 3
    assert sum(map(len, pieces)) == len(frame)
    assert sum(piece["query"].nunique() for piece in pieces) == frame["query"].nunique()


def test_an_install_without_pyspark_names_the_extra(spark, monkeypatch):
    rows = _rows(spark, random_log(1))
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(mpc.MpcError, match=r'pip install "mpc-lab\[spark\]"'):
        mpc.audit(rows, **COLUMNS, group=BOOLEANS)
