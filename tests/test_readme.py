"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Language and text of each fenced block, in order."""
    return BLOCK.findall(README.read_text("utf-8"))


def lines(text: str) -> list[str]:
    """Lines without the blanks at their ends, which pandas prints and editors remove."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def test_every_python_block_runs_and_prints_what_the_next_block_shows():
    found = blocks()
    namespace: dict[str, object] = {}
    shown = 0
    for (language, code), (after, expected) in zip(found, [*found[1:], ("", "")], strict=True):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "README.md", "exec"), namespace)
            if after == "text":
                assert lines(printed.getvalue()) == lines(expected)
                shown += 1
    assert shown == 3


def test_the_two_commands_are_there():
    shell = "".join(text for language, text in blocks() if language == "sh")
    assert "pip install . && mpc-lab demo" in shell
    assert 'pip install ".[test]" && pytest' in README.read_text("utf-8")


def test_it_promises_no_fairness():
    assert "fair model" not in README.read_text("utf-8").lower()


def test_it_begins_with_a_sentence_a_picture_and_code_with_its_output_and_stays_short():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 150
    head = [part.split("\n")[0] for part in text.split("\n\n")[:5]]
    assert [word[:4] for word in head] == ["# mp", "`mpc", "<pic", "```p", "log "]
    assert [language for language, _ in blocks()[:2]] == ["python", "text"]


def test_its_moving_picture_is_small_and_there_for_light_and_dark():
    text = README.read_text("utf-8")
    for theme in ("light", "dark"):
        file = README.parent / "docs" / "_static" / f"hero-{theme}.webp"
        assert f'"docs/_static/{file.name}"' in text
        stored = file.read_bytes()
        assert b"ANIM" in stored[:64]
        assert len(stored) < 2_000_000
