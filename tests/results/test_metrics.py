"""An audit as numbers for an experiment tracker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import mpc_lab as mpc
from helpers.hostile import COLUMNS, log
from mpc_lab.report.sections import SECTIONS


@pytest.fixture(scope="module")
def audit():
    rules = ("baseline", mpc.Boosted(0.1))
    ranking = mpc.datasets.synthetic(queries=3000)
    return mpc.audit(ranking, scoring_rules=rules, threshold=0.03, progress=False)


def test_the_numbers_are_those_of_the_headline(audit):
    found = audit.to_metrics()
    for group in audit.groups:
        cell = audit.headline.sel(group=group, scoring_rule="baseline", pairing_mode="matched")
        for name in ("estimate", "ci_low", "n_pairs", "bracket_p_adjusted", "epsilon"):
            assert found[f"baseline.matched.{group}.{name}"] == float(cell[name])
        flagged = cell.verdict.item() in ("undervalued", "overvalued")
        assert found[f"baseline.matched.{group}.flagged"] == flagged
    assert found["gate"] == 1
    assert any(key.startswith("boosted_0_1_.") for key in found)


def test_keys_are_safe_and_distinct_whatever_groups_are_called():
    audit = mpc.audit(log(), **COLUMNS, threshold=0.2, progress=False)
    found = audit.to_metrics()
    assert all(re.fullmatch(r"[\w. -]+", key, re.ASCII) for key in found)
    assert sum(key.endswith(".n_pairs") for key in found) == len(audit.groups)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.long
def test_mlflow_takes_what_the_page_logs(audit, tmp_path, monkeypatch):
    """Run the block of the how-to page, with a folder for a server."""
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow-skinny, of the extra 'dev'")
    page = Path(__file__).parents[2] / "docs/how-to/track-experiments.md"
    block = page.read_text("utf-8").split("## MLflow")[1].split("```python\n")[1].split("```")[0]
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mpc_lab.report.SECTIONS", SECTIONS[:1])
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    exec(block, {"audit": audit})
    run = mlflow.last_active_run()
    assert run.data.metrics == audit.to_metrics()
    assert [path.name for path in (tmp_path / "runs").rglob("*.html")] == ["report.html"]
