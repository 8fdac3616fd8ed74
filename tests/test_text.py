from __future__ import annotations

import math

import pytest

from mpc_lab.text import (
    column,
    entry,
    middle_cut,
    minus,
    p_value,
    plain,
    two_digits,
    with_ends,
    with_interval,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Film-Noir", "Film-Noir"),
        ("Drama\x1b[2J\x07", "Drama[2J"),
        ("\x9b31mred", "31mred"),
        ("a\nb\tc\r\u2028d", "a b c  d"),
        ("user\u202egpj.exe", "usergpj.exe"),
        ("half \ud800 pair", "half  pair"),
        ("भारत \u200d ε ≤ 1", "भारत \u200d ε ≤ 1"),
    ],
)
def test_only_what_a_terminal_shows_is_left(text, shown):
    assert plain(text) == shown


def test_line_feeds_stay_where_the_text_has_lines():
    assert plain("one\ntwo\rthree", lines=True) == "one\ntwo three"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("-0.5", "−0.5"),
        ("-1e-05", "−1e−05"),
        ("gap -0.077 (-0.1 to -inf)", "gap −0.077 (−0.1 to −inf)"),
        ("'sci-fi' and 2020-21 keep theirs", "'sci-fi' and 2020-21 keep theirs"),
        ("a - b", "a - b"),
    ],
)
def test_numbers_have_a_real_minus_sign_and_words_keep_their_hyphens(words, shown):
    assert minus(words) == shown


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (-0.02, 3, "−0.020"),
        (0.0, 3, "0"),
        (-1234.56, ",.1f", "−1,234.6"),
        (math.nan, 3, "–"),
        (math.inf, ",.0f", "∞"),
        (-math.inf, 3, "−∞"),
        (12345, ",d", "12,345"),
    ],
)
def test_an_entry_of_a_table_is_a_number_or_a_dash(value, form, shown):
    assert entry(value, form) == shown


def test_an_interval_sets_the_decimals_of_its_estimate():
    assert with_ends(-0.0312, -0.052, -0.0104) == ("−0.031", "−0.052 to −0.010")
    assert with_interval(0.1, 0.05, 0.15) == "0.100 (0.050\u00a0to\u00a00.150)"
    assert with_interval(0.5, math.nan, math.nan) == "0.5000"
    assert with_interval(math.nan, 0, 1) == "not estimable"
    assert with_ends(math.nan, 0, 1) == ("–", "–")


@pytest.mark.parametrize(
    ("value", "shown"), [(0.04, "0.0400"), (3e-9, "< 0.0001"), (math.nan, "–")]
)
def test_a_tiny_p_value_is_said_to_be_so(value, shown):
    assert p_value(value) == shown


@pytest.mark.parametrize("at_most", [17, 24, 34])
def test_names_that_begin_and_end_alike_keep_what_differs(at_most):
    kinds = ("lighting", "audio equipment", "kitchen")
    names = [f"Electronics and {kind} for the home > sub {k}" for kind in kinds for k in range(9)]
    shown = middle_cut(names, at_most)
    assert len(set(shown)) == len(names)
    assert max(map(len, shown)) <= at_most
    for whole, cut in zip(names, shown, strict=True):
        assert cut.startswith("El")
        assert cut.endswith(whole[-1])
        assert any(word[:3] in cut for word in whole.split()[2:4])


def test_numbers_of_a_column_share_their_decimals():
    assert column([0.012, 0.0137, -0.4]) == ["0.0120", "0.0137", "−0.4000"]
    assert column([0.05, 0.05]) == ["0.05", "0.05"]
    assert column([1e-9, 2.0, math.nan]) == ["1e−09", "2", "–"]
    assert with_ends(-4e-5, -0.0081, 0.008) == ("0.0000", "−0.0081 to 0.0080")
    assert with_interval(-0.42, -0.5, 0.1, places=3).startswith("−0.420 (−0.500")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0123, "0.012"), (99.4, "99"), (99.6, "100"), (123.4, "120"), (1e9, "1e+09"), (0, "0")],
)
def test_two_digits_need_no_exponent(value, shown):
    assert two_digits(value) == shown
