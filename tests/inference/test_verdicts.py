import numpy as np
import pytest

from mpc_lab.errors import MpcError
from mpc_lab.inference.verdicts import gate, outside, verdicts

NAN = float("nan")


def one(interval, mirrored, **options):
    verdict, reason = verdicts(*map(np.array, (*interval, *mirrored)), **options)
    return str(verdict), str(reason)


@pytest.mark.parametrize(
    ("matched", "mirrored", "expected"),
    [
        ((NAN, NAN), (0.1, 0.2), ("not estimable", "")),
        ((0.1, 0.2), (-0.2, -0.1), ("undervalued", "")),
        ((0.1, 0.2), (NAN, NAN), ("undervalued", "")),
        ((-0.2, -0.1), (-0.3, -0.1), ("overvalued", "")),
        ((-0.2, -0.1), (-0.1, 0.3), ("inconclusive", "bracket")),
        ((-0.2, -0.1), (0.1, 0.3), ("inconclusive", "bracket")),
        ((-0.2, -0.1), (NAN, NAN), ("inconclusive", "bracket")),
        ((-0.2, 0.1), (-0.3, -0.1), ("inconclusive", "interval covers 0")),
        ((0.0, 0.1), (0.0, 0.1), ("inconclusive", "interval covers 0")),
        ((-0.1, 0.0), (-0.3, -0.1), ("inconclusive", "interval covers 0")),
    ],
)
def test_verdict_without_tolerance(matched, mirrored, expected):
    assert one(matched, mirrored) == expected


@pytest.mark.parametrize(
    ("matched", "expected"),
    [
        ((-0.05, 0.05), "within tolerance"),
        ((0.01, 0.1), "within tolerance"),
        ((-0.1, -0.01), "within tolerance"),
        ((0.01, 0.11), "undervalued"),
        ((-0.11, -0.01), "overvalued"),
        ((-0.2, 0.05), "inconclusive"),
        ((NAN, NAN), "not estimable"),
    ],
)
def test_verdict_with_tolerance(matched, expected):
    assert one(matched, (-0.5, -0.1), tolerance=0.1)[0] == expected


def test_an_end_cut_at_zero_excludes_zero():
    assert one((0.0, 0.3), (0.0, 0.3), cut=True)[0] == "undervalued"
    assert one((-0.3, 0.0), (-0.2, 0.0), cut=True, mirrored_cut=True)[0] == "overvalued"
    assert one((-0.3, 0.0), (-0.2, 0.0), cut=True) == ("inconclusive", "bracket")


def test_verdicts_keep_the_shape_of_the_cells():
    low, high = np.array([[0.1, -0.1]]), np.array([[0.2, 0.1]])
    verdict, reason = verdicts(low, high, low, high)
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
    ],
)
def test_gate(intervals, tolerance, expected):
    low, high = np.array(intervals).T
    verdict, _ = verdicts(low, high, low, high, tolerance=tolerance)
    assert gate(verdict, low, high, tolerance=tolerance) == expected


def test_gate_does_not_fail_on_a_bracket():
    low, high = np.array([-0.3]), np.array([-0.2])
    verdict, _ = verdicts(low, high, np.array([-0.1]), np.array([0.1]), tolerance=0.1)
    assert gate(verdict, low, high, tolerance=0.1) == 2


def test_a_cut_interval_fails_the_gate_only_without_a_tolerance():
    low, high = np.array([0.0]), np.array([0.3])
    verdict, _ = verdicts(low, high, low, high, cut=True)
    assert gate(verdict, low, high, cut=True) == 1
    assert gate(verdict, low, high, cut=True, tolerance=0.1) == 2


def test_outside_names_the_failing_cells():
    low, high = np.array([0.2, 0.05, -0.1]), np.array([0.3, 0.2, 0.1])
    verdict, _ = verdicts(low, high, low, high, tolerance=0.1)
    assert outside(verdict, low, high, tolerance=0.1).tolist() == [True, False, False]


def test_gate_needs_a_cell():
    with pytest.raises(MpcError, match="at least one cell"):
        gate(np.array([], dtype=str), np.array([]), np.array([]))


@pytest.mark.parametrize("tolerance", [-0.1, NAN, float("inf")])
def test_tolerance_must_be_a_margin(tolerance):
    with pytest.raises(MpcError, match="tolerance must be a finite number of at least 0"):
        one((0.1, 0.2), (0.1, 0.2), tolerance=tolerance)
