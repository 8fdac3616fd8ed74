"""One rule for a verdict: the bracket of both sides, and the gate built on it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mpc_lab.errors import MpcError
from mpc_lab.inference.verdicts import Interval, adjust, bracket, bracket_p, gate, outside, verdicts

NAN = float("nan")


def interval(low, high, cut=False):
    return Interval(np.array(low), np.array(high), cut)


def one(*sides, **options):
    verdict, reason = verdicts([interval(*side) for side in sides], **options)
    return str(verdict), str(reason)


@pytest.mark.parametrize(
    ("matched", "mirrored", "expected"),
    [
        ((NAN, NAN), (0.1, 0.2), ("not estimable", "")),
        ((0.1, 0.2), (NAN, NAN), ("not estimable", "")),
        ((-0.2, -0.1), (NAN, NAN), ("not estimable", "")),
        ((0.1, 0.2), (0.05, 0.3), ("undervalued", "")),
        ((-0.2, -0.1), (-0.3, -0.1), ("overvalued", "")),
        ((0.1, 0.2), (-0.2, -0.1), ("inconclusive", "scores run against outcomes")),
        ((-0.2, -0.1), (-0.1, 0.3), ("inconclusive", "bracket")),
        ((-0.2, -0.1), (0.1, 0.3), ("inconclusive", "bracket")),
        ((-0.2, 0.1), (0.1, 0.3), ("inconclusive", "bracket")),
        ((0.1, 0.2), (-0.1, 0.3), ("inconclusive", "interval covers 0")),
        ((-0.2, 0.1), (-0.3, -0.1), ("inconclusive", "interval covers 0")),
        ((0.0, 0.1), (0.0, 0.1), ("inconclusive", "interval covers 0")),
    ],
)
def test_verdict_without_tolerance(matched, mirrored, expected):
    assert one(matched, mirrored) == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ((0.1, 0.2), ("undervalued", "")),
        ((-0.2, -0.1), ("overvalued", "")),
        ((-0.1, 0.1), ("inconclusive", "interval covers 0")),
        ((NAN, NAN), ("not estimable", "")),
    ],
)
def test_a_mode_without_a_bracket_is_judged_by_its_own_interval(own, expected):
    assert one(own) == expected


@pytest.mark.parametrize(
    ("matched", "mirrored", "expected"),
    [
        ((-0.05, 0.05), (-0.02, 0.1), "within tolerance"),
        ((0.01, 0.1), (0.02, 0.09), "within tolerance"),
        ((-0.05, 0.05), (0.0, 0.11), "inconclusive"),
        ((-0.11, 0.05), (-0.05, 0.05), "inconclusive"),
        ((0.01, 0.11), (0.01, 0.05), "undervalued"),
        ((-0.11, -0.01), (-0.05, -0.01), "overvalued"),
        ((-0.05, 0.05), (NAN, NAN), "not estimable"),
    ],
)
def test_verdict_with_tolerance(matched, mirrored, expected):
    assert one(matched, mirrored, tolerance=0.1)[0] == expected


def test_an_end_cut_at_zero_excludes_zero_where_the_other_side_does_too():
    assert one((0.0, 0.3, True), (0.0, 0.3, True))[0] == "undervalued"
    assert one((0.0, 0.3, True), (0.1, 0.3))[0] == "undervalued"
    assert one((-0.3, 0.0, True), (-0.2, 0.0, True))[0] == "overvalued"
    assert one((-0.3, 0.0, True), (-0.2, 0.0)) == ("inconclusive", "bracket")
    assert one((0.0, 0.3, True), (0.0, 0.3)) == ("inconclusive", "interval covers 0")


sizes = st.integers(1, 5)


@st.composite
def families(draw):
    """Two sides of a family, with p-values that sit on and around the level."""
    n = draw(sizes)
    numbers = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 2))
    estimates = [draw(hnp.arrays(float, n, elements=numbers)) for _ in range(2)]
    errors = [draw(hnp.arrays(float, n, elements=st.floats(0.2, 1.5))) for _ in range(2)]
    missing = [
        draw(hnp.arrays(bool, n, elements=st.integers(0, 5).map(lambda k: k == 0)))
        for _ in range(2)
    ]
    return estimates, errors, missing


@given(families(), st.sampled_from(["holm", "fdr_bh", "none"]), st.sampled_from([0.9, 0.95]))
def test_the_bracket_excludes_zero_exactly_where_its_p_is_at_most_a(family, method, level):
    from scipy import stats

    found = []
    for estimate, error, missing in zip(*family, strict=True):
        dof = np.full(len(estimate), 20.0)
        p = np.where(missing, np.nan, 2 * stats.t.sf(np.abs(estimate) / error, dof))
        error = np.where(missing, np.nan, error)
        found.append(adjust(p, estimate, error, dof, method=method, level=level))
    sides = [Interval(one.ci_low_adjusted, one.ci_high_adjusted, one.ci_cut) for one in found]
    hull = bracket(sides)
    p = bracket_p([one.p_adjusted for one in found], family[0])
    verdict, _ = verdicts(sides)
    rejected = p <= round(1 - level, 15)
    np.testing.assert_array_equal(hull.above | hull.below, rejected)
    np.testing.assert_array_equal(np.isin(verdict, ["undervalued", "overvalued"]), rejected)
    np.testing.assert_array_equal(np.isnan(p), verdict == "not estimable")
    np.testing.assert_array_equal(np.isnan(hull.low), verdict == "not estimable")
    for side in sides:
        known = hull.estimable
        assert (hull.low[known] <= side.low[known]).all()
        assert (hull.high[known] >= side.high[known]).all()


def test_verdicts_keep_the_shape_of_the_cells():
    both = [interval([[0.1, -0.1]], [[0.2, 0.1]])] * 2
    verdict, reason = verdicts(both)
    assert verdict.tolist() == [["undervalued", "inconclusive"]]
    assert reason.dtype.kind == verdict.dtype.kind == "U"


@pytest.mark.parametrize(
    ("intervals", "tolerance", "expected"),
    [
        ([(-0.1, 0.1), (NAN, NAN)], None, 0),
        ([(-0.1, 0.1), (0.1, 0.2)], None, 1),
        ([(-0.3, -0.2)], None, 1),
        ([(-0.05, 0.05), (0.01, 0.02)], 0.1, 0),
        ([(-0.05, 0.05), (0.05, 0.2)], 0.1, 2),
        ([(-0.05, 0.05), (NAN, NAN)], 0.1, 2),
        ([(-0.05, 0.05), (0.11, 0.2)], 0.1, 1),
        ([(0.1, 0.2)], 0.1, 2),
        ([(-0.2, -0.11)], 0.1, 1),
        ([(-0.2, -0.11)], 0.0, 1),
    ],
)
def test_gate(intervals, tolerance, expected):
    hull = Interval(*np.array(intervals).T)
    verdict, _ = verdicts([hull], tolerance=tolerance)
    assert gate(verdict, hull.low, hull.high, tolerance=tolerance) == expected


def test_gate_does_not_fail_where_one_side_alone_is_outside():
    sides = [interval([-0.3], [-0.2]), interval([-0.1], [0.1])]
    verdict, _ = verdicts(sides, tolerance=0.1)
    hull = bracket(sides)
    assert gate(verdict, hull.low, hull.high, tolerance=0.1) == 2


def test_a_cut_interval_fails_the_gate_only_without_a_tolerance():
    cut = interval([0.0], [0.3], True)
    verdict, _ = verdicts([cut, cut])
    assert gate(verdict, cut.low, cut.high) == 1
    assert gate(verdict, cut.low, cut.high, tolerance=0.1) == 2


def test_outside_names_the_failing_cells():
    hull = interval([0.2, 0.05, -0.1], [0.3, 0.2, 0.1])
    verdict, _ = verdicts([hull], tolerance=0.1)
    assert outside(verdict, hull.low, hull.high, tolerance=0.1).tolist() == [True, False, False]


def test_gate_needs_a_cell():
    with pytest.raises(MpcError, match="at least one cell"):
        gate(np.array([], dtype=str), np.array([]), np.array([]))


@pytest.mark.parametrize("tolerance", [-0.1, NAN, float("inf")])
def test_tolerance_must_be_a_margin(tolerance):
    with pytest.raises(MpcError, match="tolerance must be a finite number of at least 0"):
        one((0.1, 0.2), (0.1, 0.2), tolerance=tolerance)
