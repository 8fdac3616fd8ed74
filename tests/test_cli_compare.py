"""``mpc-lab compare`` and the exit codes of its gate."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab.cli import main

COLUMNS = ["--query", "q", "--outcome", "y", "--group", "g", "--threshold", "0.1"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log whose score "good" knows the outcome, and whose score "poor" does not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"q": np.repeat(np.arange(300), 10), "g": np.tile(list("ab"), 1500)})
    frame["y"] = (frame["g"] == "a") * 1.0 + rng.normal(size=3000)
    frame["good"] = frame["y"] + 0.1 * rng.normal(size=3000)
    frame["poor"] = rng.random(3000)
    path = tmp_path_factory.mktemp("compare") / "log.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("new", "old", "code"), [("poor", "good", 1), ("good", "poor", 0), ("good", "good", 0)]
)
def test_a_log_is_gated_by_its_two_scores(log, new, old, code, capsys):
    words = [str(log), "--score", new, "--against", old, *COLUMNS, "--gate", "--no-worse-by", "0.1"]
    assert main(["compare", *words]) == code
    said = capsys.readouterr().out
    assert "further from 0 than the old one" in said
    assert said.startswith(f"Gap of score '{new}' less gap of score '{old}'.")


def test_a_log_is_compared_by_the_options_of_an_audit(log, tmp_path, capsys):
    how = {"pairing_modes": ["symmetric", "matched"], "estimand": "root", "level": 0.9}
    audit = mpc.audit(
        pd.read_csv(log), query="q", outcome="y", group="g", score="good", threshold=0.1,
        scoring_rules=["baseline", mpc.Column("poor")], groups=["a"], adjust="none", **how,
        progress=False,
    )  # fmt: skip
    words = [str(log), "--score", "poor", "--against", "good", *COLUMNS, "--groups", "a"]
    words += ["--modes", "symmetric,matched", "--estimand", "root", "--level", "0.9"]
    words += ["--adjust", "none", "--memory", "1GB", "--json", "-"]
    assert main(["compare", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = audit.difference("poor", "baseline").to_dict()
    assert found["attrs"]["level"] == 0.9
    assert len(found["cells"]) == len(expected["cells"]) == 2
    for one, other in zip(found["cells"], expected["cells"], strict=True):
        assert one["pairing_mode"] == other["pairing_mode"]
        for name in ("difference", "std_error", "ci_low_adjusted", "churn"):
            assert one[name] == pytest.approx(other[name], rel=1e-9)


def test_no_output_takes_the_place_of_what_is_compared(log, tmp_path, capsys):
    words = [str(log), "--score", "poor", "--against", "good", *COLUMNS, "--save", str(log)]
    assert main(["compare", *words]) == 3
    assert "got a file that is read" in capsys.readouterr().err
    saved = str(tmp_path / "a.nc")
    mpc.audit(mpc.datasets.synthetic(500), progress=False).save(saved)
    assert main(["compare", saved, saved, "--save", saved]) == 3
    assert mpc.load(saved).groups == ("1", "2")


def test_saved_audits_are_compared_and_the_numbers_printed(tmp_path, capsys):
    paths = [str(tmp_path / f"{k}.nc") for k in (1, 2)]
    for seed, path in enumerate(paths):
        mpc.audit(mpc.datasets.synthetic(500, seed=seed), progress=False).save(path)
    assert main(["compare", *paths, "--gate", "--json", "-"]) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["gate"]["answer"] == 2
    assert [cell["group"] for cell in found["cells"]] == ["1", "2"]
    assert "Clustered by query" in said.err


def test_a_saved_audit_against_itself_passes(tmp_path, capsys):
    path = str(tmp_path / "a.nc")
    mpc.audit(mpc.datasets.synthetic(500), progress=False).save(path)
    assert main(["compare", path, path, "--gate"]) == 0
    assert "no difference: both gaps are made of the same pairs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.nc"], "must have two saved audits"),
        (["a.nc", "b.nc", "--score", "s"], "must go with a log"),
        (["a.nc", "b.nc", "--against", "s"], "--against must go with a log"),
        (["a.csv", "b.csv"], "one log, or two saved audits"),
        (["a.csv", "b.nc"], "or two files of --save"),
        (["a.csv", "--score", "s"], "--score NEW and --against OLD"),
    ],
)
def test_wrong_words_are_an_error_and_no_answer_of_the_gate(words, message, capsys):
    assert main(["compare", *words, "--gate"]) == 3
    assert message in capsys.readouterr().err
