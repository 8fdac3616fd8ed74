import numpy as np
import pytest

from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.pairing import reach
from mpc_lab.pairing.listing import list_pairs
from mpc_lab.pairing.log import select_groups, sort_rows


@pytest.fixture(scope="module")
def log_and_gaps():
    ranking = synthetic(queries=300)
    log = sort_rows(ranking, None, select_groups(ranking.masks, np.array([1])))
    return log, list_pairs(ranking, "2", None, "matched", np.inf)["gap"]


def test_the_nearest_gap_leaves_the_number_asked_for(log_and_gaps):
    log, gaps = log_and_gaps
    assert reach.nearest_gap(log, 100) == gaps[99]
    assert reach.nearest_gap(log, 10**9) == gaps[-1]


def test_pairs_are_counted_up_to_a_gap_or_all(log_and_gaps):
    log, gaps = log_and_gaps
    assert reach.count_matched(log) == len(gaps)
    assert reach.count_matched(log, 0.1) == reach.check_listable(log, 0.1) == (gaps <= 0.1).sum()


def test_more_pairs_than_can_be_listed_are_refused(log_and_gaps, monkeypatch):
    log, gaps = log_and_gaps
    monkeypatch.setattr(reach, "MOST_LISTED", 100)
    with pytest.raises(MpcError, match=f"{len(gaps):,} pairs have a gap of at most 1, .* 100 can"):
        reach.check_listable(log, 1.0)


def test_a_group_without_pairs_has_no_gap():
    ranking = synthetic(queries=1)
    log = sort_rows(ranking, None, np.zeros((1, 10), dtype=np.uint64))
    assert np.isnan(reach.nearest_gap(log, 5))
