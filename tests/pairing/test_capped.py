import numpy as np
import pytest

import mpc_lab as mpc
from helpers import betting_oracle as oracle
from helpers.params import combined
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import capped_by_unit, list_pairs
from mpc_lab.vocabulary import MODES


def log_with_ties(seed, queries=30, unit=None):
    """Return a ranking with few different scores, so that many pairs are at one distance."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), rng.integers(1, 12, queries))
    rng.shuffle(query)
    frame = {
        "query": query,
        "score": rng.integers(0, 4, len(query)) / 8,
        "outcome": rng.normal(size=len(query)),
        "group": rng.choice(["a", "b"], len(query)),
        "unit": query // 3,
    }
    columns = {name: name for name in ("query", "score", "outcome", "group")}
    return mpc.Ranking(frame, **columns, unit=unit)


def of(ranking, mode, epsilon, cap, seed=0):
    log = sort_rows(ranking)
    member = ranking.member("a")[log.row]
    return capped_by_unit(log, member, MODES[mode].side, epsilon, cap, seed)


@pytest.mark.parametrize(
    ("cap", "mode", "unit"), combined([1, 3, 1000], ["matched", "mirrored"], [None, "unit"])
)
def test_capped_pairs_are_those_of_a_plain_loop(mode, cap, unit):
    ranking = log_with_ties(cap, unit=unit)
    found = of(ranking, mode, 0.25, cap, seed=5)
    cluster = ranking.query_code if unit is None else ranking.unit_code
    members = set(np.flatnonzero(ranking.member("a")).tolist())
    columns = (ranking.query_code, ranking.score, ranking.outcome)
    rows = list(zip(range(len(cluster)), *(column.tolist() for column in columns), strict=True))
    expected = [
        oracle.closest_pairs(
            [row for row in rows if cluster[row[0]] == k], members, mode, 0.25, cap, seed=5
        )
        for k in range(ranking.n_units)
    ]
    assert found[0].tolist() == [c for c, _ in expected]
    assert found[1] == pytest.approx([d for _, d in expected], abs=1e-12)


def test_neighbours_are_capped_too():
    ranking = log_with_ties(3)
    pairs = list_pairs(ranking, "a", None, "adjacent", 1.0)
    count = np.bincount(ranking.query_code[pairs["row_i"]], minlength=ranking.n_queries)
    assert of(ranking, "adjacent", 1.0, 2)[0].tolist() == np.minimum(count, 2).tolist()


def test_outcomes_do_not_choose_the_pairs():
    ranking = log_with_ties(4)
    pairs, sums = of(ranking, "matched", 0.25, 2)
    ranking.outcome = -3 * ranking.outcome
    again, turned = of(ranking, "matched", 0.25, 2)
    assert np.array_equal(again, pairs)
    assert turned == pytest.approx(-3 * sums, abs=1e-12)


def test_the_seed_chooses_among_pairs_at_one_distance():
    ranking = log_with_ties(5)
    assert not np.array_equal(
        of(ranking, "matched", 0.25, 2)[1], of(ranking, "matched", 0.25, 2, 1)[1]
    )
