"""Partitions that differ in type from what their frame declares, or that cannot be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, assert_agree, random_log
from mpc_lab.engines.dask import settle
from mpc_lab.engines.partitions import Spec
from mpc_lab.ranking.names import column_names

dask = pytest.importorskip("dask")
pytestmark = pytest.mark.needs_dask

HOW = {**COLUMNS, "group": BOOLEANS, "progress": False}


def opened(folder, *frames):
    """Write each frame into a file and return all of them as one Dask frame, a file a partition.

    `read_parquet` would do as well, but joins small files if few of their columns are needed.
    """
    import dask.dataframe as dd

    for number, frame in enumerate(frames):
        frame.to_parquet(folder / f"{number}.parquet")
    parts = [dask.delayed(pd.read_parquet)(path) for path in sorted(folder.glob("*.parquet"))]
    return dd.from_delayed(parts, meta=frames[0][:0], verify_meta=False)


def halves(seed):
    """Return two frames that share most queries."""
    frame = random_log(seed)
    return frame[::2], frame[1::2]


def check(folder, frames, **how):
    """Compare the files with the same rows in memory."""
    how = {**HOW, **how}
    with dask.config.set(scheduler="sync"):
        there = mpc.audit(opened(folder, *frames), **how)
    assert_agree(mpc.audit(pd.concat(frames, ignore_index=True), **how), there, curve=False)


@pytest.mark.parametrize("floats_first", [False, True])
@pytest.mark.parametrize(
    ("column", "how"),
    [
        ("query", {"item": "item"}),
        ("user", {"unit": "user"}),
        ("user", {"query": ["user", "query"]}),
    ],
    ids=["query", "unit", "two"],
)
def test_ids_that_are_floats_in_one_file_agree_with_memory(column, how, floats_first, tmp_path):
    ints, floats = halves(1)
    floats = floats.astype({column: float})
    check(tmp_path, (floats, ints) if floats_first else (ints, floats), **how)


@pytest.mark.parametrize("floats_first", [False, True])
@pytest.mark.parametrize("holed", [False, True])
def test_items_that_are_floats_in_one_file_agree_with_memory(holed, floats_first, tmp_path):
    frame = random_log(1)
    apart = frame["query"] % 2 == 0  # no query is in both files, so that nothing is shuffled
    ints, floats = frame[apart], frame[~apart].astype({"item": float})
    if holed:
        floats.iloc[::9, floats.columns.get_loc("item")] = np.nan
    frames = (floats, ints) if floats_first else (ints, floats)
    how = {"missing": "drop"} if holed else {"scoring_rules": ["baseline", "calibrated"]}
    check(tmp_path, frames, item="item", **how)


def test_lists_of_groups_are_left_as_they_are(tmp_path):
    import dask.dataframe as dd

    one, other = (
        frame.assign(kinds=[["a", "b"][: k % 3] for k in frame["item"]]) for frame in halves(1)
    )
    opened(tmp_path, one, other)
    how = {**HOW, "group": "kinds"}
    with dask.config.set(scheduler="sync"):
        there = mpc.audit(dd.read_parquet(str(tmp_path / "*.parquet")), **how)
    assert_agree(mpc.audit(pd.concat([one, other]), **how), there, curve=False)


@pytest.mark.parametrize("wide", [False, True])
def test_files_that_dask_reads_itself_agree_with_memory(wide, tmp_path):
    import dask.dataframe as dd

    frames = [frame if wide else frame[["query", "score", "outcome"]] for frame in halves(1)]
    frames = [frame.assign(g0=frame.index % 3 == 0) for frame in frames]
    frames[1] = frames[1].astype({"query": float})
    opened(tmp_path, *frames)
    how = {**HOW, "group": ["g0"]}
    with dask.config.set(scheduler="sync"):
        there = mpc.audit(dd.read_parquet(str(tmp_path / "*.parquet")), **how)
    assert_agree(mpc.audit(pd.concat(frames), **how), there, curve=False)


def test_a_missing_id_is_left_out_as_in_memory(tmp_path):
    whole, holed = halves(3)
    holed = holed.astype({"query": float})
    holed.iloc[::9, holed.columns.get_loc("query")] = np.nan
    check(tmp_path, (whole, holed), item="item", missing="drop")


def test_a_missing_id_agrees_on_two_workers(dask_client, tmp_path):
    whole, holed = halves(3)
    holed = holed.astype({"query": float})
    holed.iloc[::9, holed.columns.get_loc("query")] = np.nan
    frames, how = (whole, holed), {**HOW, "missing": "drop"}
    there = mpc.audit(opened(tmp_path, *frames), **how)
    assert_agree(mpc.audit(pd.concat(frames), **how), there, curve=False)


def test_a_missing_id_is_refused_where_nothing_may_be_missing(tmp_path):
    whole, holed = halves(3)
    holed = holed.astype({"query": float})
    holed.iloc[4, holed.columns.get_loc("query")] = np.nan
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(mpc.MpcError, match="The query column 'query' must be complete"),
    ):
        mpc.audit(opened(tmp_path, whole, holed), **HOW)


def test_group_labels_have_the_names_of_the_declared_type(tmp_path):
    frames = [frame.assign(kind=frame["item"] % 3) for frame in halves(1)]
    how = {**HOW, "group": "kind"}
    there = frames[1].assign(kind=frames[1]["kind"].where(frames[1].index % 5 > 0))
    together = pd.concat([frames[0], there]).astype({"kind": "Int64"})
    assert there["kind"].dtype == np.float64
    with dask.config.set(scheduler="sync"):
        found = mpc.audit(opened(tmp_path, frames[0], there), **how)
    assert_agree(mpc.audit(together, **how), found, curve=False)


def test_numbers_may_be_whole_in_one_file(tmp_path):
    one, other = halves(1)
    other = other.astype({"outcome": float, "position": "Int32"})
    other = other.assign(score=(other["score"] * 1024).astype(np.int8))
    one = one.assign(score=one["score"] * 1024)
    check(tmp_path, (one, other), position="position", pairing_modes=["adjacent"])


def test_booleans_that_are_missing_in_one_file_agree_with_memory(dask_client, tmp_path):
    one, other = halves(1)
    other = other.assign(g0=other["g0"].astype(object).where(other.index % 4 > 0, None))
    there = mpc.audit(opened(tmp_path, one, other), **HOW)
    assert_agree(mpc.audit(pd.concat([one, other]), **HOW), there, curve=False)


@pytest.mark.parametrize(
    ("column", "change", "types"),
    [
        (
            "query",
            lambda values: values + 0.5,
            "int64 in the frame's declaration and float64 in a partition",
        ),
        (
            "query",
            lambda values: values.astype(str),
            "int64 in the frame's declaration and str in a partition",
        ),
        (
            "name",
            lambda values: np.arange(len(values)),
            "got str.* in the frame's declaration and int64 in a partition",
        ),
        (
            "score",
            lambda values: values.astype(str),
            "got float64 in the frame's declaration and str in a partition",
        ),
        (
            "outcome",
            lambda values: values > 1,
            "got int64 in the frame's declaration and bool in a partition",
        ),
        (
            "position",
            lambda values: values > 1,
            "got int64 in the frame's declaration and bool in a partition",
        ),
        (
            "new",
            lambda values: values > 1,
            "got float64 in the frame's declaration and bool in a partition",
        ),
    ],
    ids=["fraction", "text", "number", "score", "outcome", "position", "rule"],
)
def test_types_that_do_not_fit_are_named(column, change, types, tmp_path):
    one, other = halves(1)
    frame = opened(tmp_path, one, other.assign(**{column: change(other[column])}))
    how = {**HOW, "query": ["query", "name"], "position": "position"}
    said = f"Column '{column}' must have one type in all partitions; .*{types}.*\\. Cast"
    with dask.config.set(scheduler="sync"), pytest.raises(mpc.MpcError, match=said):
        mpc.audit(frame, scoring_rules=["baseline", mpc.Column("new")], **how)


@pytest.mark.parametrize(
    ("declared", "found", "expected"),
    [
        (np.array([], int), [3, None], [3, None]),
        (np.array([], float), [3, 4], [3.0, 4.0]),
        (np.array([], float), [-0.0, 0.0], [0.0, 0.0]),
        (np.array([], float), [2**53 + 1], None),
        (np.array([], "uint64"), [-1], None),
        (np.array([], int), np.array([2**64 - 1], "uint64"), None),
        (np.array([], int), np.array([1e30]), None),
        (np.array([], int), np.array([2.0**53]), None),
        (np.array([], int), np.array([2**60 + 1], "int64"), [2**60 + 1]),
        (np.array([], float), np.array([1e30]), [1e30]),
        (pd.Series([], dtype="string"), [None, None], [None, None]),
        (pd.Series([], dtype="string"), pd.Categorical(["b", "a"]), ["b", "a"]),
        (pd.Series([], dtype=object), ["a", None], ["a", None]),
        (pd.Series([], dtype=object), [3, 4], [3, 4]),
        (pd.Series([], dtype=object), [3.0, 4.0], None),
        (pd.Series([1])[:0].astype(pd.CategoricalDtype([1, 2])), [2.0, 1.0], [2, 1]),
        (
            pd.Series([], dtype=pd.CategoricalDtype([1, 2])),
            pd.Categorical([2.0, 1.0]),
            [2, 1],
        ),
        (pd.Series([], dtype=pd.CategoricalDtype([1, 2])), ["a"], None),
        (pd.Series([], dtype="category"), ["a", "b"], ["a", "b"]),
        (pd.Series([], dtype="datetime64[ns]"), np.array([7], "M8[s]"), [pd.Timestamp(7e9)]),
        (pd.Series([], dtype="datetime64[s]"), np.array([7], "M8[ns]"), None),
    ],
)
def test_labels_keep_their_values_or_are_refused(declared, found, expected):
    spec = Spec(column_names(query="q", score="s", outcome="o", group="g"), drop=False)
    frame, meta = pd.DataFrame({"q": found}), pd.DataFrame({"q": declared})
    if expected is None:
        with pytest.raises(mpc.MpcError, match="Column 'q' must have one type"):
            settle(frame, meta, spec)
        return
    made = settle(frame, meta, spec)["q"]
    plain = [None if pd.isna(value) else value for value in made.tolist()]
    assert list(map(repr, plain)) == list(map(repr, expected))


def test_all_partitions_have_one_type_after_settling():
    spec = Spec(column_names(query="q", score="s", outcome="o", group="g"), drop=False)
    meta = pd.DataFrame({"q": np.array([], int)})
    made = [settle(pd.DataFrame({"q": found}), meta, spec) for found in ([1], [1.0], [None])]
    assert {str(frame["q"].dtype) for frame in made} == {"Int64"}


@pytest.mark.parametrize("harm", ["damaged", "vanished"])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_file_that_cannot_be_read_is_an_error_of_ours(harm, scheduler, tmp_path):
    frame = opened(tmp_path, *halves(1))
    path = tmp_path / "1.parquet"
    path.unlink() if harm == "vanished" else path.write_bytes(b"PAR1 and no more")
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(mpc.MpcError, match=r"got one that is not \(\w+: ") as caught,
    ):
        mpc.audit(frame, **HOW)
    assert caught.value.__cause__ is not None


def test_a_file_that_cannot_be_read_by_a_worker_is_an_error_of_ours(dask_client, tmp_path):
    frame = opened(tmp_path, *halves(1))
    (tmp_path / "1.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(mpc.MpcError, match="must be readable; got one that is not"):
        mpc.audit(frame, **HOW)


def test_an_error_in_the_code_that_makes_partitions_is_reported():
    import dask.dataframe as dd

    def fail(rows):
        raise RuntimeError("the tap is dry")

    frame = random_log(1)
    made = dd.from_pandas(frame, npartitions=2).map_partitions(fail, meta=frame[:0])
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(mpc.MpcError, match="RuntimeError: the tap is dry") as caught,
    ):
        mpc.audit(made, **HOW)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_file_that_vanishes_between_two_passes_is_an_error_of_ours():
    from mpc_lab.engines.dask import DaskParts, later

    def gone():
        raise FileNotFoundError("7.parquet")

    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(mpc.MpcError, match=r"FileNotFoundError: 7\.parquet"),
    ):
        DaskParts([later(gone)()], None).collect(len, "counting")


@pytest.mark.parametrize("error", [MemoryError, ConnectionResetError, KeyboardInterrupt])
def test_what_happens_to_the_machine_is_not_blamed_on_the_log(error):
    from mpc_lab.engines.dask import reading_partitions

    with pytest.raises(error, match="as it came"), reading_partitions():
        raise error("as it came")


def test_a_lost_worker_is_not_blamed_on_the_log():
    from distributed.comm import CommClosedError

    from mpc_lab.engines.dask import reading_partitions

    for blamed in (Exception, OSError):
        with pytest.raises(CommClosedError, match="lost"), reading_partitions(blamed):
            raise CommClosedError("lost")


def test_prices_that_are_many_over_all_partitions_are_no_labels(tmp_path):
    frame = random_log(1)
    frame["price"] = np.arange(len(frame)) * 80 // len(frame) + 0.25  # 40 in each half
    halves = [frame[: len(frame) // 2], frame[len(frame) // 2 :]]
    rows = opened(tmp_path, *halves)
    with pytest.raises(mpc.MpcError, match=r"must hold labels; got 80 different numbers"):
        mpc.audit(rows, **{**HOW, "group": "price"})
