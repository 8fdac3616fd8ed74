"""What is declared before the run leads, is kept in the file, and marks all else exploratory."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.cli import main
from mpc_lab.cli.show import headline_table
from mpc_lab.report import schema
from mpc_lab.results.view import html_view

RULES, MODES = ("baseline", "boosted"), ("matched", "mirrored")
DECLARED = ("boosted", "matched", mpc.Smallest(300))


def run(primary, **options):
    ranking = mpc.datasets.synthetic(queries=300)
    how = {"scoring_rules": RULES, "pairing_modes": MODES, "threshold": mpc.Smallest(300)}
    return mpc.audit(ranking, **how, primary=primary, progress=False, **options)


@pytest.fixture(scope="module")
def audit():
    return run(DECLARED)


@pytest.fixture(scope="module")
def silent():
    return run(None)


def test_all_cells_but_the_declared_ones_are_exploratory(audit, silent):
    marks = audit.headline["exploratory"]
    assert not marks.sel(scoring_rule="boosted", pairing_mode="matched").any()
    assert int(marks.sum()) == marks.size - len(audit.groups)
    assert "exploratory" not in silent.headline


def test_a_declaration_changes_no_number(audit, silent):
    assert audit.headline.drop_vars("exploratory").identical(silent.headline)


def test_a_dict_declares_the_same(audit):
    named = {"scoring_rule": "boosted", "pairing_mode": "matched", "threshold": mpc.Smallest(300)}
    assert run(named).attrs["options"] == audit.attrs["options"]


def test_a_rule_may_be_declared_as_an_object():
    ranking = mpc.datasets.synthetic(queries=100)
    rule = mpc.Boosted(0.1)
    found = mpc.audit(
        ranking,
        scoring_rules=[rule],
        threshold=0.05,
        primary=(rule, "matched", 0.05),
        progress=False,
    )
    primary = json.loads(found.attrs["options"])["primary"]
    assert primary["scoring_rule"] == "boosted(0.1)"


@pytest.mark.parametrize(
    ("primary", "match"),
    [
        (("calibrated", "matched", mpc.Smallest(300)), "scoring rule of this run .'baseline', 'bo"),
        (("baseline", "adjacent", mpc.Smallest(300)), "pairing mode of this run .'matched', 'mir"),
        (("baseline", "matched", 0.02), r"threshold of this run, Smallest\(k=300\); got 0.02"),
        (("baseline", "matched"), "must be a rule, a mode and a threshold; got"),
        ("baseline", "must be a rule, a mode and a threshold; got 'baseline'"),
        ({"scoring_rule": "baseline"}, "must name scoring_rule, pairing_mode, threshold"),
    ],
)
def test_a_declaration_must_be_of_this_run(primary, match):
    with pytest.raises(mpc.MpcError, match=match):
        run(primary)


def test_the_declared_cells_lead_the_summary_and_the_rest_is_marked(audit):
    text = audit.summary()
    assert (
        "Declared before the run: scoring rule 'boosted', matched pairs, threshold "
        "Smallest(k=300). Everything else is exploratory." in text
    )
    assert "Exploratory, under rule 'baseline'" in text
    assert "Scores of rule 'boosted'." in text


@pytest.mark.usefixtures("no_charts")
def test_without_a_declaration_nothing_is_called_exploratory(silent, tmp_path, no_charts):
    silent.report(tmp_path / "a.html", progress=False)
    texts = [silent.summary(), silent.to_json(), silent.model_card(), html_view(silent)]
    assert not any("xploratory" in text for text in texts)
    assert "xploratory" not in (tmp_path / "a.html").read_text("utf-8")


@pytest.mark.usefixtures("no_charts")
def test_view_report_json_and_card_mark_the_rest(audit, tmp_path):
    marked = "Rule 'baseline', matched pairs (exploratory)"
    audit.report(tmp_path / "a.html", progress=False)
    page = (tmp_path / "a.html").read_text("utf-8")
    for text in (html_view(audit), page):
        assert marked in text.replace("&#x27;", "'")
    assert page.count("Exploratory: this goes beyond what was declared before the run.") == 4
    found = json.loads(audit.to_json())
    jsonschema.validate(found, schema())
    assert found["settings"]["primary"]["scoring_rule"] == "boosted"
    expected = [(c["scoring_rule"], c["pairing_mode"]) != DECLARED[:2] for c in found["cells"]]
    assert [cell["exploratory"] for cell in found["cells"]] == expected
    assert "Exploratory, under rule 'baseline'" in audit.model_card()


def test_a_declaration_is_kept_in_the_file(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    again = mpc.load(tmp_path / "a.nc", ranking=audit.ranking)
    assert again.headline.identical(audit.headline)
    assert again.summary() == audit.summary()


def test_pools_keep_a_declaration_that_all_share(audit):
    days = [
        mpc.audit(
            mpc.datasets.synthetic(queries=200, seed=seed),
            threshold=0.1,
            epsilon=[0.05, 0.1],
            primary=("baseline", "matched", 0.1),
            progress=False,
        )
        for seed in (1, 2)
    ]
    pooled = mpc.pool(days)
    assert "Declared before the run: scoring rule 'baseline'" in pooled.summary()
    with pytest.raises(mpc.MpcError, match="audits must have one threshold"):
        mpc.pool([days[0], run(None)])


def test_the_explorer_says_where_it_has_left_what_was_declared(audit):
    explorer = audit.explore()
    _ = explorer.widget
    note = explorer.controls["standing"]
    assert (explorer.scoring_rule, explorer.pairing_mode, note.text) == ("boosted", "matched", "")
    explorer.scoring_rule = "baseline"
    assert note.text == "Exploratory: not what was declared before the run."
    explorer.scoring_rule = "boosted"
    assert note.text == ""
    explorer.epsilon = float(audit.grid[-1])
    assert "Exploratory" in note.text


@pytest.fixture
def log_file(tmp_path):
    frame = mpc.datasets.synthetic(queries=60).to_frame()
    frame.to_csv(tmp_path / "log.csv", index=False)
    line = ["audit", str(tmp_path / "log.csv"), "--query", "query", "--score", "score"]
    return [*line, "--outcome", "outcome", "--group", "type", "--no-progress"]


def test_the_command_line_declares(log_file, tmp_path, capsys):
    declared = ["--rules", "baseline,boosted:0.1", "--threshold", "0.1"]
    declared += ["--primary", "boosted:0.1,matched,0.1", "--save", str(tmp_path / "a.nc")]
    assert main([*log_file, *declared]) == 0
    found = mpc.load(tmp_path / "a.nc")
    assert found.headline["exploratory"].values[:, :, 0].tolist() == [[True, False]] * 2
    assert "Declared before the run" in capsys.readouterr().out
    columns = [column.header for column in headline_table(found.to_frame()).columns]
    assert "declared" in columns


def test_a_config_file_declares(log_file, tmp_path):
    config = tmp_path / "audit.toml"
    config.write_text('primary = ["baseline", "matched", "quantile:0.01"]\n')
    save = ["--save", str(tmp_path / "a.nc"), "--config", str(config), "--quiet"]
    assert main([*log_file, *save]) == 0
    assert not np.any(mpc.load(tmp_path / "a.nc").headline["exploratory"])


def test_a_declaration_on_the_line_needs_three_parts(log_file, capsys):
    assert main([*log_file, "--primary", "baseline"]) == 3
    assert "primary must be a rule, a mode and a threshold" in capsys.readouterr().err
