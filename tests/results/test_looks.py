"""The count of audits of one log: what a reader sees of what was tried."""

from __future__ import annotations

import time

import pytest

import mpc_lab as mpc
from mpc_lab.results import plan, wording


def audit_of(frame, **how):
    columns = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}
    return mpc.audit(frame, **columns, progress=False, **how)


def test_audits_of_one_log_are_counted_with_their_options(tmp_path, no_charts):
    frame = mpc.datasets.synthetic(queries=150, seed=81).to_frame()
    for level in (0.9, 0.8):
        audit_of(frame, level=level)
    audit_of(mpc.datasets.synthetic(queries=150, seed=82).to_frame())
    third = audit_of(frame, threshold=0.05, ascending=True)
    assert len(third.looks) == 3
    assert [one["level"] for one in third.looks] == [0.9, 0.8, 0.95]
    said = wording.looks_in_words(third.looks)
    assert said.startswith("3rd audit of this log in one process; before it: ")
    assert "level=0.9" in said
    assert "threshold=Quantile(p=0.01)" in said
    page = third.report(tmp_path / "r.html", progress=False).read_text("utf-8")
    assert "3rd audit of this log" in page
    assert "3rd audit of this log" in third.model_card()


def test_the_first_audit_of_a_log_says_nothing(tmp_path):
    first = audit_of(mpc.datasets.synthetic(queries=150, seed=83).to_frame())
    assert len(first.looks) == 1
    assert "audit of this log" not in first.model_card()


def test_a_saved_audit_keeps_the_count_apart_from_what_is_compared(tmp_path):
    frame = mpc.datasets.synthetic(queries=150, seed=84).to_frame()
    one, two = audit_of(frame), audit_of(frame)
    assert one.attrs == two.attrs
    assert one.headline.identical(two.headline)
    two.save(tmp_path / "a.nc")
    back = mpc.load(tmp_path / "a.nc")
    assert len(back.looks) == 2
    assert back.looks == tuple(two.looks)
    assert "looks" not in back.attrs
    assert mpc.pool([back]) is back


def test_a_file_with_a_strange_count_still_loads(tmp_path):
    from mpc_lab.results.storage import _looks

    assert _looks("{") == _looks("3") == _looks("[4]") == ()


def test_counting_costs_next_to_nothing():
    ranking = mpc.datasets.synthetic(queries=100_000, seed=1)
    started = time.process_time()  # of this process alone, however busy the machine is
    plan.key_of(ranking, {})
    assert time.process_time() - started < 0.5  # a checksum of a million rows, nothing more


def test_a_frame_on_a_cluster_is_not_counted_and_its_card_says_so():
    dask = pytest.importorskip("dask.dataframe")
    frame = mpc.datasets.synthetic(queries=150, seed=86).to_frame()
    found = audit_of(dask.from_pandas(frame.sort_values("query"), npartitions=2))
    assert found.looks == ()
    assert "Audits of a frame on a cluster are not counted" in found.model_card()
    assert "not counted" not in audit_of(frame).model_card()
