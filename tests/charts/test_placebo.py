"""Charts of checks: placebo groups, and charts from numbers that are there already."""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from helpers.drawn import rows, spec, subtitle, title
from mpc_lab import charts


def test_a_clear_gap_is_outside_the_placebos(make_audit):
    audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), threshold=0.02, progress=False)
    found = audit.balance((), "1", permutations=40)
    words = title(charts.placebo(audit, "1", found=found))
    assert words.startswith("Group '1': the gap in both orders, ")
    assert "is outside the range of groups drawn at random" in words


def test_a_meaningless_group_is_among_the_placebos(make_audit):
    audit = make_audit(["a", "b"], threshold=0.1)
    chart = charts.placebo(audit, "a", permutations=30)
    assert "is no larger than those of groups drawn at random" in title(chart)
    assert sum(row["groups"] for row in rows(chart, "groups")) == 30
    assert "30 groups of the same size" in subtitle(chart)


def test_placebos_need_at_least_one(audit):
    with pytest.raises(mpc.MpcError, match="permutations must be a whole number of at least 1"):
        charts.placebo(audit, "1", permutations=0)


def test_a_group_without_pairs_is_said_to_have_too_few(empty):
    assert "too few pairs" in title(charts.placebo(empty, "rare", permutations=2))


def test_charts_of_given_numbers_are_those_of_numbers_found_by_the_chart(audit):
    balance = audit.balance((), "1", epsilon=0.03, permutations=0)
    pairs = [
        (charts.love(audit, "1", epsilon=0.03), charts.love(audit, "1", found=balance)),
        (charts.rivals(audit, "1"), charts.rivals(audit, "1", found=audit.compare(["1"]))),
        (
            charts.distance_density(audit, "1"),
            charts.distance_density(audit, "1", found=audit.limit("1")),
        ),
    ]
    for asked, given in pairs:
        assert title(asked) == title(given)
        assert list(spec(asked)["datasets"].values()) == list(spec(given)["datasets"].values())


def test_the_threshold_of_a_love_plot_can_be_given(audit):
    assert "ε = 0.03" in subtitle(charts.love(audit, "1", epsilon=0.03))
