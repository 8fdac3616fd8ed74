from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from helpers.oracle import Log
from helpers.params import combined
from helpers.rival_oracle import RIVALS, Weights, errors, inequality, on_log_scale, skew
from helpers.strategies import calmly, logs, ranking_of
from mpc_lab.comparators.base import Case
from mpc_lab.comparators.inequalities import inequalities
from mpc_lab.comparators.registry import compare


def measures(log, **options):
    return {m.name: m for m in compare(Case(ranking_of(log), log.names[0], k=3, **options))}


@calmly(80)
@given(log=logs(groups=2))
def test_every_rival_equals_a_double_loop(log):
    found = measures(log)
    for name, rival in RIVALS.items():
        expected = rival(log, log.names[0], Weights())
        expected = math.exp(expected) if on_log_scale(name) else expected
        assert found[name].estimate == pytest.approx(expected, abs=1e-10, nan_ok=True), name


def one_log(seed, units):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(16), rng.integers(3, 8, 16))
    n = len(query)
    return Log(
        query=query.tolist(),
        score=(rng.integers(0, 12, n) / 8).tolist(),
        outcome=rng.integers(0, 4, n).tolist(),
        groups=[frozenset({"g"} if inside else {"h"}) for inside in rng.random(n) < 0.5],
        unit=(query // 2).tolist() if units else None,
    )


@pytest.mark.parametrize(("name", "units"), combined(RIVALS, [False, True]))
def test_every_standard_error_adds_up_what_clusters_do_to_the_measure(name, units):
    for seed in range(3):
        log = one_log(seed, units)
        found = measures(log)[name]
        error = np.array(errors(RIVALS[name], log, "g"))
        size = found.estimate if on_log_scale(name) else 1.0
        clusters = len(taking_part(name, log))
        expected = size * math.sqrt((error**2).sum() * clusters / (clusters - 1))
        assert found.std_error == pytest.approx(expected, rel=1e-6)


def taking_part(name, log):
    """Return the clusters that have what the measure is made of."""
    group = log.names[0]
    if name.startswith("pairwise"):
        kind = name.split("_")[-1]
        return {
            log.cluster[a]
            for a in range(len(log.query))
            for b in range(len(log.query))
            if log.query[a] == log.query[b]
            and log.outcome[a] > log.outcome[b]
            and ((group in log.groups[a]) == (group in log.groups[b]), kind)
            not in ((True, "inter"), (False, "intra"))
        }
    if name.endswith("_ratio"):
        return {
            log.cluster[row]
            for row in range(len(log.query))
            if len({group in log.groups[r] for r in log.rows_of(log.query[row])}) == 2
        }
    if name.startswith("skew"):
        return {c for c, member in zip(log.cluster, log.groups, strict=True) if group in member}
    return set(log.cluster)


@calmly(25)
@given(logs(groups=2))
def test_extreme_skews_are_those_of_both_sides(log):
    found = measures(log)
    both = [skew(3, side)(log, log.names[0], Weights()) for side in (True, False)]
    there = [value for value in both if not math.isnan(value)]
    assert found["min_skew@3"].estimate == pytest.approx(min(there), abs=1e-10)
    assert found["max_skew@3"].estimate == pytest.approx(max(there), abs=1e-10)


@calmly(20)
@given(logs(groups=2))
def test_inequalities_by_rank_equal_a_double_loop(log):
    found = inequalities(Case(ranking_of(log), log.names[0]), by_rank=True, draws=50)
    assert len(found) == 21
    for measure in found[:-1]:
        side, rank = measure.name.split("_")[2:]
        expected = inequality(side == "above", int(rank))(log, log.names[0], Weights())
        assert measure.estimate == pytest.approx(expected, abs=1e-10)


@calmly(20)
@given(logs(groups=2, positions=False))
def test_scores_of_another_rule_are_ranked_as_if_they_were_logged(log):
    ranking = ranking_of(log)
    turned = -ranking.score
    one = compare(Case(ranking, log.names[0], scores=turned, k=3))
    frame = ranking.to_frame().assign(score=turned)
    columns = {name: name for name in ("query", "score", "outcome", "item")}
    columns |= {"unit": "unit"} if log.unit is not None else {}
    other = compare(Case(type(ranking)(frame, **columns, group="groups"), log.names[0], k=3))
    for a, b in zip(one, other, strict=True):
        assert a.estimate == pytest.approx(b.estimate, abs=1e-12, nan_ok=True)
        assert a.ci_low == pytest.approx(b.ci_low, abs=1e-12, nan_ok=True)
