"""A bar in a notebook: it shows late, says how far the work is, and leaves nothing."""

from __future__ import annotations

import pytest

from mpc_lab.engines.running import NotebookBar


class Shown:
    """What a notebook was given to show."""

    def __init__(self) -> None:
        self.bundles = []

    def display(self, bundle, **_how):
        self.bundles.append(bundle)
        return self

    def update(self, bundle, **_how):
        self.bundles.append(bundle)


@pytest.fixture
def shown(monkeypatch):
    made = Shown()
    monkeypatch.setattr("IPython.display.display", made.display)
    return made


def test_short_work_shows_no_bar(shown):
    bar = NotebookBar(total=2, delay=60, unit="block")
    bar.update(2)
    bar.close()
    assert shown.bundles == []


def test_a_bar_says_how_far_it_is_and_is_empty_in_the_end(shown):
    bar = NotebookBar(total=0, delay=0, unit="block")
    bar.total += 4
    bar.set_description("counting <pairs>", refresh=False)
    bar.update(1)
    bar.close()
    first, last = shown.bundles
    assert first["text/plain"].startswith("counting <pairs>, 1 of 4 blocks")
    assert "&lt;pairs&gt;" in first["text/html"]
    assert set(last.values()) == {""}
