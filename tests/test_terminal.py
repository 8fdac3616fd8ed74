from __future__ import annotations

import pytest

from mpc_lab.terminal import plain


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
