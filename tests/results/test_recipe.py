"""The recipe of an audit is pasted and run, and makes the same numbers."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.hostile import CORPUS
from mpc_lab.cli import main

COLUMNS = {
    "query": ["user", "day"],
    "item": "movie",
    "score": "s",
    "outcome": "y, rated",
    "group": "genres",
    "group_sep": "|",
}
HOW = {
    "groups": ["new, old", "it's"],
    "scoring_rules": ["baseline", mpc.Boosted(0.25), "calibrated", mpc.Column("s2")],
    "pairing_modes": ["matched", "adjacent"],
    "threshold": mpc.Smallest(60),
    "epsilon": [0.01, 0.1, 1 / 3],
    "cluster": "query",
    "level": 0.9,
    "adjust": "fdr_bh",
    "tolerance": 0.3,
    "bootstrap": 19,
    "seed": 7,
    "primary": (mpc.Boosted(0.25), "matched", mpc.Smallest(60)),
    "bounds": (0, 4),
    "pairs_cap": 7,
    "missing": "drop",
}


def frame(rows=600):
    rng = np.random.default_rng(0)
    made = {
        "user": np.repeat(np.arange(rows // 10), 10) // 2,
        "day": np.repeat(np.arange(rows // 10), 10) % 2,
        "movie": np.tile(np.arange(10), rows // 10),
        "s": rng.random(rows),
        "s2": rng.random(rows),
        "y, rated": rng.integers(0, 5, rows).astype(float),
        "genres": rng.choice(["new, old", "it's", "third", "third|it's"], rows),
    }
    made["y, rated"][3] = np.nan
    return made


def same(one, other):
    assert one.headline.identical(other.headline)
    assert one.curve.identical(other.curve)
    assert one.attrs["options"] == other.attrs["options"]


def test_the_call_of_a_frame_makes_the_same_numbers():
    rows = frame()
    audit = mpc.audit(rows, **COLUMNS, **HOW, progress=False)
    assert audit.attrs["n_dropped"] == 1
    space = {"frame": rows}
    exec(audit.recipe().call, space)
    same(space["audit"], audit)
    assert space["audit"].recipe() == audit.recipe()


def test_a_recipe_has_versions_options_checksums_and_seed():
    audit = mpc.audit(frame(), **COLUMNS, **HOW, progress=False)
    found = audit.recipe()
    assert found.versions["mpc_lab"] == mpc.__version__
    assert found.versions["numpy"] == np.__version__
    assert found.options == json.loads(audit.attrs["options"])
    assert (found.seed, found.data["fingerprint"]) == (7, audit.ranking.fingerprint())
    assert (found.command, found.files) == (None, ())
    assert audit.ranking.fingerprint() in repr(found)
    assert json.loads(found.to_json())["call"] == found.call


@pytest.fixture
def log_files(tmp_path, monkeypatch):
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(frame())
    rows[:300].to_csv("first part.csv", index=False, sep=";", encoding="latin-1")
    rows[300:].to_csv("second.csv", index=False, sep=";", encoding="latin-1")
    return ["first part.csv", "second.csv"]


@pytest.fixture
def of_files(log_files):
    how = {"sep": ";", "encoding": "latin-1", "progress": False}
    return mpc.audit(log_files, **COLUMNS, **HOW, **how)


def test_the_call_of_files_makes_the_same_numbers(of_files):
    space = {}
    exec(of_files.recipe().call, space)
    same(space["audit"], of_files)


def test_the_recipe_of_files_has_their_checksums(of_files, log_files):
    for path, one in zip(log_files, of_files.recipe().files, strict=True):
        with open(path, "rb") as file:
            content = file.read()
        digest = hashlib.sha256(content).hexdigest()
        assert one == {"path": path, "bytes": len(content), "sha256": digest}


def test_the_command_of_files_makes_the_same_numbers(of_files, tmp_path):
    program, *line = shlex.split(of_files.recipe().command)
    assert program == "mpc-lab"
    assert main([*line, "--save", "again.nc", "--quiet", "--no-progress"]) == 0
    again = mpc.load("again.nc")
    same(again, of_files)
    assert again.recipe().command == of_files.recipe().command


def test_an_audit_from_the_command_line_has_a_recipe_that_makes_it(log_files):
    line = "audit second.csv --sep ; --query user,day --score s --outcome 'y, rated' --group genres"
    assert main([*shlex.split(line), "--save", "a.nc", "--quiet", "--no-progress"]) == 0
    audit = mpc.load("a.nc")
    space = {}
    exec(audit.recipe().call, space)
    same(space["audit"], audit)
    again = shlex.split(audit.recipe().command)[1:]
    assert main([*again, "--save", "b.nc", "--quiet", "--no-progress"]) == 0
    same(mpc.load("b.nc"), audit)


def test_a_log_that_was_walked_keeps_its_memory_and_its_files(log_files):
    pytest.importorskip("duckdb")
    how = {name: HOW[name] for name in ("threshold", "epsilon", "cluster", "missing")}
    walked = mpc.audit(log_files, **COLUMNS, **how, memory="1GB", sep=";", progress=False)
    found = walked.recipe()
    assert "memory='1GB'" in found.call
    assert "--memory=1GB" in found.command
    assert [one["path"] for one in found.files] == log_files
    space = {}
    exec(found.call, space)
    same(space["audit"], walked)


def test_a_loaded_audit_has_the_same_recipe(of_files):
    of_files.save("a.nc")
    assert mpc.load("a.nc").recipe() == of_files.recipe()


def test_a_function_is_named_and_asked_for():
    def halved(ranking, group):
        return ranking.score / 2

    ranking = mpc.datasets.synthetic(queries=100)
    audit = mpc.audit(ranking, scoring_rules=[halved], threshold=0.1, progress=False)
    found = audit.recipe()
    assert "The scoring rule 'halved' must be the same function." in found.needs
    space = {"frame": ranking.to_frame(), "halved": halved}
    exec(found.call, space)
    same(space["audit"], audit)


def test_a_pool_says_which_audits_it_is_of():
    days = [
        mpc.audit(mpc.datasets.synthetic(100, seed=k), epsilon=[0.1], threshold=0.1, progress=False)
        for k in (1, 2)
    ]
    pooled = mpc.pool(days)
    space = {"audits": days}
    exec(pooled.recipe().call, space)
    assert space["audit"].headline.identical(pooled.headline)
    assert all(day.ranking.fingerprint() in pooled.recipe().needs[0] for day in days)


@pytest.mark.usefixtures("no_charts")
def test_report_card_and_json_have_the_recipe(of_files, tmp_path, no_charts):
    found = of_files.recipe()
    card = of_files.model_card()
    assert f"```python\n{found.call}\n```" in card
    assert f"```sh\n{found.command}\n```" in card
    assert json.loads(of_files.to_json())["recipe"]["command"] == found.command
    page = of_files.report(tmp_path / "a.html", progress=False).read_text("utf-8")
    assert '<div class="recipe"><code>import mpc_lab as mpc' in page
    assert found.files[0]["sha256"] in page


def test_nothing_of_a_foreign_file_runs_when_its_recipe_is_pasted(make_audit):
    evil = "0)\n__import__('os').abort()\n("
    names = [str(name) for name in CORPUS]
    audit = make_audit(
        settings={
            "scoring_rules": ["a", "b", *names],
            "threshold": "Quantile(p=0.01)",
            evil: 1,
            "adjust": evil,
            "groups": names,
        },
        attrs={
            "columns": json.dumps({"query": evil, "score": names}),
            "rule_kinds": json.dumps(
                [["function", evil], [evil, None], *(["column", n] for n in names)]
            ),
            "source": json.dumps({"files": [{"path": evil, "bytes": 1, "sha256": evil}]}),
        },
    )
    found = audit.recipe()
    assert found.command is None
    assert found.call.isascii()
    first, second = ast.parse(found.call).body
    assert isinstance(first, ast.Import)
    called = [node.func for node in ast.walk(second) if isinstance(node, ast.Call)]
    assert {ast.unparse(one) for one in called} == {"mpc.audit", "mpc.Quantile", "mpc.Column"}
    loaded = {node.id for node in ast.walk(second) if isinstance(node, ast.Name)}
    assert loaded == {"audit", "mpc", "your_function"}
