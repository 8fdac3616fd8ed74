"""Numbers at the ends of their range, and logs of odd shapes: right, or refused in one sentence.

Every warning is an error here, numpy's above all.
"""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.inference.estimates import join_parts

pytestmark = pytest.mark.filterwarnings("error")


def ranking(queries=60, size=8, *, seed=0, groups=2, **columns):
    """Return a log of items that recur; `columns` are functions of a generator and a number."""
    rng = np.random.default_rng(seed)
    n = queries * size
    frame = {
        "query": np.repeat(np.arange(queries), size),
        "item": np.concatenate([rng.permutation(5 * size)[:size] for _ in range(queries)]),
        "score": rng.integers(0, 1 << 20, n) / (1 << 20),
        "outcome": rng.integers(0, 3, n),
        **{f"g{k}": rng.random(n) < 0.4 for k in range(groups)},
    }
    frame |= {name: make(np.random.default_rng(seed + 1), n) for name, make in columns.items()}
    names = {name: name for name in ("query", "item", "score", "outcome")}
    return mpc.Ranking(frame, **names, group=[f"g{k}" for k in range(groups)])


def audit(log, **options):
    return mpc.audit(log, progress=False, **{"pairing_modes": mpc.pairing.PAIRING_MODES} | options)


def numbers(found):
    return [found.headline[name].values for name in ("estimate", "std_error", "n_pairs", "p_value")]


@pytest.mark.parametrize("exponent", [-1050, -900, 900, 995])
def test_the_unit_of_scores_does_not_matter(exponent):
    plain = ranking()
    scaled = ranking(score=lambda _, n: np.ldexp(plain.score, exponent))
    rules = ["baseline", "boosted", "demoted"]
    one, other = (audit(log, scoring_rules=rules) for log in (plain, scaled))
    np.testing.assert_array_equal(np.ldexp(one.headline.epsilon, exponent), other.headline.epsilon)
    for ours, theirs in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("exponent", [-900, 900])
def test_the_unit_of_scores_does_not_matter_to_the_limit(exponent):
    plain = ranking(queries=400)
    scaled = ranking(queries=400, score=lambda _, n: np.ldexp(plain.score, exponent))
    one, other = (audit(log).limit("g0") for log in (plain, scaled))
    assert other.method.item() == "local quadratic"
    np.testing.assert_allclose(np.ldexp(one.bandwidth, exponent), other.bandwidth, rtol=1e-9)
    for name in ("estimate", "std_error", "n_pairs"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6)


@pytest.mark.parametrize("exponent", [-900, 900])
def test_the_unit_of_scores_does_not_matter_to_the_fair_boost(exponent):
    plain = ranking(queries=400)
    scaled = ranking(queries=400, score=lambda _, n: np.ldexp(plain.score, exponent))
    one, other = (audit(log).fair_boost("g0") for log in (plain, scaled))
    np.testing.assert_allclose(np.ldexp(one.alpha, exponent), other.alpha, rtol=1e-9)


SCORES = {
    "1e300": lambda rng, n: rng.uniform(-1, 1, n) * 1e300,
    "1e-300": lambda rng, n: rng.normal(size=n) * 1e-300,
    "subnormal": lambda rng, n: rng.integers(0, 50, n) * 5e-324,
    "minus zero": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "all tied": lambda rng, n: np.zeros(n),
    "float32 with ties": lambda rng, n: rng.integers(0, 4, n).astype(np.float32) / np.float32(3),
    "all scales": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 299, n),
}
IN_SHORT = ("1e300", "all tied")  # the others in CI


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(draw, id=name, marks=() if name in IN_SHORT else pytest.mark.long)
        for name, draw in SCORES.items()
    ],
)
def test_every_question_has_an_answer_whatever_the_scores(score):
    found = audit(ranking(score=score), bootstrap=19, adjust="romano_wolf")
    assert (found.headline.n_pairs > 0).all()
    assert np.isfinite(found.headline.estimate).all()
    assert found.summary()
    assert found.curve.sizes["group"] == 2
    found.limit("g0", pairing_mode=["matched", "mirrored"])
    found.certificate("g0")
    found.balance(permutations=3)
    found.fair_boost("g0")
    found.boost_curve("g0")
    found.compare()
    found.power()
    assert found.to_json()


@pytest.mark.parametrize("value", [-0.0, 0.0])
def test_minus_zero_is_zero(value):
    found = audit(ranking(score=lambda rng, n: np.where(rng.random(n) < 0.5, value, 0.0)))
    assert (found.headline.epsilon == 0).all()
    assert (found.headline.n_pairs.sel(pairing_mode="matched") > 0).all()


def test_all_tied_scores_pair_everyone_with_everyone():
    log = ranking(score=lambda _, n: np.full(n, 0.3))
    found = audit(log)
    member = log.member("g0").reshape(60, 8).sum(axis=1)
    matched, mirrored = (
        found.headline.n_pairs.sel(group="g0", pairing_mode=mode).item()
        for mode in ("matched", "mirrored")
    )
    assert matched == mirrored == (member * (8 - member)).sum()


def test_float32_scores_are_widened_and_ties_stay_ties():
    make = SCORES["float32 with ties"]
    narrow = audit(ranking(score=make))
    wide = audit(ranking(score=lambda rng, n: make(rng, n).astype(np.float64)))
    for ours, theirs in zip(numbers(narrow), numbers(wide), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (narrow.headline.tie_inflation.sel(pairing_mode="matched") > 1.25).all()


def test_scores_whose_distances_would_exceed_the_largest_number_are_refused():
    with pytest.raises(mpc.MpcError, match=r"at most 1e\+300 in size"):
        ranking(score=lambda rng, n: rng.choice([-1.7e308, 0.0, 1.7e308], n))


@pytest.mark.parametrize("cluster", ["query", "item", "union"])
def test_a_large_number_in_all_outcomes_changes_nothing(cluster):
    plain = ranking(queries=400)
    shifted = ranking(queries=400, outcome=lambda _, n: plain.outcome + 1e12)
    one, other = (audit(log, cluster=cluster, bootstrap=19) for log in (plain, shifted))
    for ours, theirs in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(one.headline.bootstrap_t_low, other.headline.bootstrap_t_low)
    for ask in ("limit", "certificate"):
        assert str(getattr(one, ask)("g0")) == str(getattr(other, ask)("g0"))


def test_a_gap_that_dwarfs_the_spread_does_not_cancel():
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 4, 480) / 4
    log = ranking()
    outcome = noise + 1e9 * log.member("g0")
    found = audit(ranking(outcome=lambda _, n: outcome), cluster="query", groups=["g0"])
    pairs = found.pairs("g0", epsilon=found.headline.epsilon.values.ravel()[0])
    d = (pairs.outcome - pairs.other_outcome).to_numpy() - 1e9
    assert found.headline.estimate.values.ravel()[0] == pytest.approx(1e9 + d.mean(), abs=1e-5)
    query = pairs["query"].to_numpy()
    sums = [(d - d.mean())[query == q].sum() for q in np.unique(query)]
    n = len(sums)
    expected = np.sqrt(np.square(sums).sum() * n / (n - 1)) / len(d)
    assert found.headline.std_error.values.ravel()[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_outcomes_whose_powers_cannot_be_added_are_refused(size):
    with pytest.raises(mpc.MpcError, match=r"at most 1e\+100 in size"):
        ranking(outcome=lambda rng, n: size * rng.choice([0.0, 1.0], n))


@pytest.mark.parametrize("size", [1e-69, 1e69])
def test_the_unit_of_outcomes_does_not_matter(size):
    plain = ranking(queries=400)
    scaled = ranking(queries=400, outcome=lambda _, n: plain.outcome * size)
    one, other = (audit(log, bootstrap=19) for log in (plain, scaled))
    np.testing.assert_allclose(one.headline.p_value, other.headline.p_value, rtol=1e-9)
    np.testing.assert_allclose(size * one.headline.std_error, other.headline.std_error, rtol=1e-9)
    assert one.limit("g0").p_value == pytest.approx(other.limit("g0").p_value.item(), rel=1e-6)
    for log in (one, other):
        log.regression("g0").summary()
        log.balance(permutations=3)
        log.certificate("g0")


@pytest.mark.parametrize("size", [2.0**-330, 2.0**330])
def test_the_unit_of_outcomes_does_not_matter_to_both_sides(size):
    """Near 1e99 and 1e-99, where squares of variances are beyond the numbers there are."""
    plain = ranking(queries=400)
    scaled = ranking(queries=400, outcome=lambda _, n: plain.outcome * size)
    how = {"pairing_modes": ["symmetric", "matched"], "cluster": "query"}
    one, other = (audit(log, **how).headline for log in (plain, scaled))
    for name in ("p_value", "n_effective", "place_effect_p_value"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9)
    # A part of few clusters decides between 2 and the sum, in any unit.
    joined = join_parts(np.array([1.0, 9.0]), np.array([20.0, 5.0]))
    assert join_parts(size**2 * np.array([1.0, 9.0]), np.array([20.0, 5.0])) == pytest.approx(
        joined
    )
    assert joined < 7


def test_constant_outcomes_are_not_estimable_and_have_no_regression():
    found = audit(ranking(outcome=lambda _, n: np.full(n, 0.1)))
    assert (found.headline.verdict == "not estimable").all()
    assert "all pairs alike" in found.summary()
    with pytest.raises(mpc.MpcError, match=r"outcome differences that vary; got \d+ pairs"):
        found.regression("g0")


def test_a_million_queries_of_one_item_have_no_pair():
    n = 1_000_000
    rng = np.random.default_rng(0)
    frame = {"query": np.arange(n), "score": rng.random(n), "outcome": rng.random(n)}
    frame["group"] = rng.random(n) < 0.5
    log = mpc.Ranking(frame, query="query", score="score", outcome="outcome", group=["group"])
    found = audit(log)
    assert (found.headline.n_pairs == 0).all()
    assert "No group could be estimated." in found.summary()


def test_two_thousand_groups_are_audited_one_as_the_other():
    rng = np.random.default_rng(0)
    n, groups = 2_000, 2_000
    member = rng.integers(0, groups, n)
    member[:40] = np.repeat([0, 1999], 20)
    frame = {"query": np.arange(n) % 100, "score": rng.random(n), "outcome": rng.random(n)}
    frame["group"] = np.char.add("g", np.char.zfill(member.astype(str), 4))
    names = {"query": "query", "score": "score", "outcome": "outcome", "group": "group"}
    log = mpc.Ranking(frame, **names)
    found = mpc.audit(log, threshold=0.1, epsilon=[0.1], progress=False)
    alone = mpc.audit(log, groups=["g1999"], threshold=0.1, epsilon=[0.1], progress=False)
    assert found.headline.sizes["group"] == len(np.unique(member))
    last = found.headline.sel(group="g1999")
    assert last.n_pairs.item() == alone.headline.n_pairs.item() > 0
    assert last.std_error.item() == alone.headline.std_error.item()
    assert found.summary()
