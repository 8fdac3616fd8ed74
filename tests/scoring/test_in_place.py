import pytest

import mpc_lab as mpc


def in_place(ranking, group):
    score = ranking.score
    score[ranking.member(group)] += 0.1
    return score


def test_a_rule_that_changes_the_ranking_is_refused_and_the_ranking_stays_as_it_was():
    ranking = mpc.datasets.synthetic(queries=50)
    before = ranking.score.copy()
    with pytest.raises(mpc.MpcError, match="'in_place' must leave the ranking unchanged"):
        mpc.audit(ranking, scoring_rules=["baseline", in_place], progress=False)
    assert (ranking.score == before).all()
    assert ranking.score.flags.writeable


def test_an_error_inside_a_rule_is_the_users_own():
    def broken(ranking, group):
        raise ValueError("no such model")

    with pytest.raises(ValueError, match="no such model"):
        mpc.audit(mpc.datasets.synthetic(queries=50), scoring_rules=[broken], progress=False)
