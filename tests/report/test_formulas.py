"""The formulas of a report are those of their LaTeX."""

from __future__ import annotations

import json
import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "_ext" / "formulas.py"


@pytest.mark.needs_docs
def test_the_file_of_formulas_is_up_to_date():
    made = runpy.run_path(str(SCRIPT))
    kept = json.loads(made["FILE"].read_text("utf-8"))
    latex = {name: formula["latex"] for name, formula in kept["formulas"].items()}
    assert latex == made["FORMULAS"]
    # Another version of the library may write the same formula otherwise.
    if kept["made_with"] == f"latex2mathml {version('latex2mathml')}":
        assert kept == json.loads(made["make"]())


def test_every_formula_is_in_the_report(text):
    assert text.count("<math ") == 8
    assert "<merror" not in text
