"""The how-to about learned rankers: its code runs where they are, and finds what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mpc_lab as mpc

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "learned-rankers.md"


def run_page(package):
    """Run the page with one of its two rankers and return what it made."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    other = {"lightgbm": "import xgboost", "xgboost": "import lightgbm"}[package]
    made: dict = {}
    for block in blocks:
        if not block.startswith(other):
            exec(compile(block, str(PAGE), "exec"), made)
    return made


@pytest.mark.long
@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_the_finding_of_the_page_survives_every_definition_of_close(package, capsys):
    pytest.importorskip(package)
    made = run_page(package)
    assert capsys.readouterr().out == "undervalued\n"
    found = made["audit"].closeness("small press")
    assert (found["ci_low"] > 0).all()
    spread = made["log"].groupby("query")["score"].std()
    assert spread.max() > 3 * spread.min()


def test_a_shift_of_all_scores_of_a_query_changes_no_distance():
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(40), 15)
    log = {
        "query": query,
        "score": rng.integers(0, 64, len(query)) / 64,
        "outcome": rng.integers(0, 3, len(query)),
        "group": rng.choice(["a", "b"], len(query)),
    }
    shift, stretch = (
        np.repeat(rng.integers(-8, 8, 40), 15),
        np.repeat(2.0 ** (np.arange(40) % 4), 15),
    )
    roles = {name: name for name in log}
    how = {"closeness": "query_sd", "threshold": 0.2, "progress": False}
    one = mpc.audit(log, **roles, **how).headline
    other = mpc.audit(log | {"score": shift + stretch * log["score"]}, **roles, **how).headline
    np.testing.assert_array_equal(one["n_pairs"], other["n_pairs"])
    np.testing.assert_allclose(one["estimate"], other["estimate"], rtol=1e-12)
