"""The section on differences of scoring rules: where an audit has two, with chart and words."""

from __future__ import annotations

import pytest

import mpc_lab as mpc
from mpc_lab.report import page
from mpc_lab.report.context import Context
from mpc_lab.report.sections import SECTIONS
from mpc_lab.report.sections.difference import has_rules, rules


@pytest.fixture(scope="module")
def audit():
    ranking = mpc.datasets.synthetic(queries=1000, seed=1)
    two = ["baseline", mpc.Boosted(0.05), "demoted"]
    return mpc.audit(ranking, scoring_rules=two, threshold=0.05, progress=False)


def test_every_rule_is_compared_with_the_baseline(audit):
    made = rules(Context(audit))
    for rule in audit.headline["scoring_rule"].values[1:]:
        found = audit.difference(rule, "baseline")
        assert f"<h3>{rule} less baseline</h3>" in made.replace("<bdi>", "").replace("</bdi>", "")
        for group in found.groups:
            cell = found.data.sel(group=group, pairing_mode="matched")
            assert str(cell["verdict"].item()) in made
            assert f"{abs(float(cell['difference'])):.3f}" in made
    assert made.count("<figure") == 2
    assert "interval of the difference" in made
    assert "NDCG changes by" in made


def test_a_page_has_the_section_with_two_rules_alone(audit, monkeypatch, no_charts):
    few = [section for section in SECTIONS if section.name in ("finding", "rules")]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", few)
    assert '<section id="rules"><h2>2. What each scoring rule changes</h2>' in page(audit)
    one = mpc.audit(mpc.datasets.synthetic(queries=200), threshold=0.05, progress=False)
    assert not has_rules(Context(one))
    made = page(one)
    assert 'id="rules"' not in made
    assert 'href="#rules"' not in made


def test_without_rows_the_section_says_what_it_needs(audit, monkeypatch, no_charts):
    few = [section for section in SECTIONS if section.name == "rules"]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", few)
    bare = mpc.Audit(audit.headline, audit.curve, audit.moments, audit.attrs)
    assert "must have the rows of the log" in page(bare)
