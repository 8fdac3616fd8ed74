import itertools

import numpy as np
import pytest

from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.pairing import pairs
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import close_rows, shuffle_within


def test_close_rows_are_all_pairs_of_a_query_within_epsilon():
    log = sort_rows(synthetic(queries=20))
    lower, upper = close_rows(log, 0.1)
    query = np.repeat(np.arange(20), 10)
    gap = log.score[None, :] - log.score[:, None]
    close = (query[:, None] == query) & (gap <= 0.1) & np.triu(np.ones_like(gap, dtype=bool), 1)
    assert set(zip(lower, upper, strict=True)) == set(zip(*np.nonzero(close), strict=True))


def test_shuffling_keeps_the_members_of_every_query():
    rng = np.random.default_rng(0)
    member = rng.random(90) < 0.3
    starts = np.array([0, 0, 7, 8, 60, 90])
    shuffled = shuffle_within(starts, member, rng)
    assert (shuffled != member).any()
    for a, b in itertools.pairwise(starts):
        assert shuffled[a:b].sum() == member[a:b].sum()


def test_every_deal_is_equally_likely():
    rng = np.random.default_rng(1)
    starts, member = np.array([0, 4]), np.array([True, True, False, False])
    drawn = [tuple(shuffle_within(starts, member, rng)) for _ in range(6000)]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 4 * np.sqrt(6000 * 5 / 36)


def test_too_many_close_rows_are_refused(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_CLOSE", 100)
    with pytest.raises(
        MpcError, match=r"pairs of rows to list; got [\d,]+ with a distance of at most 0\.5"
    ):
        close_rows(sort_rows(synthetic(queries=20)), 0.5)
