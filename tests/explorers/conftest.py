"""Drawings that the tests of tabs show again and again are made once for a cell of an audit.

What a chart draws has tests of its own.
"""

from __future__ import annotations

import functools
import importlib

import pytest


@functools.cache
def made_once(make):
    """Return a function that keeps what ``make`` draws of an audit, and the audit."""
    made = {}

    def drawn(audit, *cell, **options):
        key = (id(audit), cell, tuple(options.items()))
        if key not in made:
            made[key] = audit, make(audit, *cell, **options)
        return made[key][1]

    return drawn


@pytest.fixture(autouse=True)
def _drawn_once(monkeypatch):
    for name in ("epsilon_curve", "tie"):
        # By its module: the package has the function under the same name.
        module = importlib.import_module(f"mpc_lab.charts.{name}")
        monkeypatch.setattr(module, name, made_once(getattr(module, name)))
