"""What a report holds, in which order, and what it leaves out."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import altair as alt
import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.hostile import COLUMNS, log
from mpc_lab.engines import running
from mpc_lab.report import context, page
from mpc_lab.report.context import Section
from mpc_lab.report.sections import SECTIONS
from mpc_lab.report.sections.finding import pairs
from mpc_lab.report.sections.method import _spelt
from mpc_lab.report.sections.rivals import rivals

ORDER = [
    "finding",
    "forest",
    "verdicts",
    "curves",
    "ladder",
    "power",
    "balance",
    "why",
    "rivals",
    "boosts",
    "pairs",
    "method",
    "settings",
]


class Text(HTMLParser):
    """The words of a page by section, without scripts and styles."""

    def __init__(self):
        super().__init__()
        self.sections, self.here, self.skip = {}, "", 0

    def handle_starttag(self, tag, attrs):
        self.skip += tag in ("script", "style")
        if tag == "section":
            self.here = dict(attrs)["id"]

    def handle_endtag(self, tag):
        self.skip -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.skip:
            self.sections[self.here] = self.sections.get(self.here, "") + data


def words(text):
    parser = Text()
    parser.feed(text)
    return parser.sections


@pytest.fixture(scope="module")
def sections(text):
    return words(text)


def test_the_sections_are_in_the_order_that_was_promised(text):
    # The audit has one rule: nothing to subtract.
    assert [section.name for section in SECTIONS if section.name != "rules"] == ORDER
    assert re.findall(r'<section id="(\w+)">', text) == ORDER


def test_the_finding_is_that_of_the_summary(sections):
    assert "Group '1' is undervalued: outcome is" in sections["finding"]


def test_the_table_has_each_group_with_its_bracket(audit, sections):
    cell = audit.headline.sel(group="1").squeeze()
    assert "Adjusted 95\u00a0% bracket" in sections["verdicts"]
    low, high = (f"{float(cell[f'bracket_{end}']):.3f}" for end in ("low", "high"))
    assert f"{low} to {high}" in sections["verdicts"].replace("−", "-")
    assert f"{int(cell.n_pairs):,}" in sections["verdicts"]


def test_the_curves_have_their_limit_and_certificate(audit, sections):
    assert f"{float(audit.limit('1').estimate):.3f}" in sections["curves"]
    assert audit.certificate("1").sentence[:60] in sections["curves"].replace("\u00a0", " ")


def test_the_other_sections_have_the_numbers_of_the_audit(audit, sections):
    explained = audit.compare(["1"])["explanation"].item()
    assert explained in sections["rivals"].replace("\u00a0", " ")
    assert f"{audit.fair_boost('1').alpha:.4f}".lstrip("-") in sections["boosts"]
    query = audit.pairs("1", limit=1)["query"].iloc[0]
    assert str(query) in sections["pairs"]
    assert "Queries needed for a gap of 0.01" in sections["power"]
    assert "Placebos rejected" in sections["balance"]


def test_no_setting_is_shown_as_the_code_it_is_kept_in(hostile_text):
    shown = hostile_text[hostile_text.index("Other attributes") :].split("</section>")[0]
    assert "groups of one scoring rule and one pairing mode" in shown
    assert "\\u00d7" not in shown
    assert "\\u001b" not in shown


def test_control_characters_of_a_name_are_nowhere_spelt_out(no_charts):
    frame = log(("a\x1b[2J", "b\nc"))
    audit = mpc.audit(frame, **COLUMNS, threshold=0.1, progress=False)
    shown = rivals(context.Context(audit))
    assert "group &#x27;a[2J&#x27;" in shown
    assert "group &#x27;b c&#x27;" in shown
    assert "\\x1b" not in shown


def test_every_setting_version_and_the_fingerprint_are_there(audit, sections):
    shown = sections["settings"]
    for word in ("tolerance", "0.01", "holm", "numpy", mpc.__version__):
        assert word in shown
    assert audit.ranking.fingerprint() in shown


def test_no_pair_is_shown_unless_asked_for(audit):
    shown = pairs(context.Context(audit))
    assert "None was asked for" in shown
    assert "<table" not in shown


def test_the_script_occurs_once_and_every_chart_has_a_drawing(text):
    figures = text.count('<figure class="chart"')
    assert figures >= 9
    assert text.count('<div class="static"><svg') == figures
    assert text.count('<script type="application/json">') == figures
    assert text.count("<script>") == 1
    assert len(text) < 3_000_000


def test_the_ids_of_drawings_differ(audit):
    frame = pd.DataFrame({"x": [1, 2]})
    chart = alt.Chart(frame).mark_point(clip=True).encode(x="x:Q")
    page = context.Context(audit)
    made = page.figure(chart) + page.figure(chart)
    found = re.findall(r'\bid="([^"]+)"', made)
    assert len(found) == len(set(found)) == 2
    assert all(made.count(f"url(#{name})") >= 1 for name in found)


def test_the_page_may_run_its_one_script_and_fetch_nothing(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "eval" not in policy
    assert not re.search(r'(?:src|href)="(?!#)', text[: text.index("<script>")])


def test_an_audit_without_rows_leaves_out_what_needs_them_and_says_so(audit, tmp_path, no_charts):
    audit.save(tmp_path / "a.nc")
    path = mpc.load(tmp_path / "a.nc").report(tmp_path / "a.html", pairs=5)
    found = words(path.read_text("utf-8"))
    for name in ("balance", "rivals", "boosts", "pairs"):
        assert "must have the rows of the log" in found[name]
    assert "The limit ε → 0 and the certificate need the rows" in found["curves"]
    assert "Group '1' is undervalued" in found["finding"]
    assert audit.ranking.fingerprint() in found["settings"]


def test_what_is_left_out_to_bound_the_size_is_named(hostile, monkeypatch):
    monkeypatch.setattr(context, "CLOSELY", 1)
    note = context.Context(hostile).focus_note()
    flagged = context.Context(hostile).flagged
    assert len(flagged) > 1
    assert f"largest gaps of {len(flagged)} flagged groups; left out" in note
    for cell in flagged[1:]:
        assert cell.group in note
    assert context.Context(hostile).focus_note(len(flagged)) == ""


def test_without_a_finding_the_nearest_groups_are_shown():
    audit = mpc.audit(mpc.datasets.synthetic(queries=100), progress=False)
    made = context.Context(audit)
    assert [cell.group for cell in made.focus]
    assert "No group is flagged" in made.focus_note()


def test_a_report_of_groups_without_any_pair_says_so(no_charts):
    log = {"q": [1, 2], "s": [0.1, 0.2], "y": [1.0, 0.0], "g": ["a", "b"]}
    audit = mpc.audit(log, query="q", score="s", outcome="y", group="g", progress=False)
    found = words(page(audit))
    assert "No group could be estimated" in found["finding"]
    assert (
        "in no query is there a pair of an item inside the group and one outside it"
        in found["verdicts"]
    )


def test_a_report_can_show_its_progress(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "_SECONDS_BEFORE_IT_SHOWS", 0)
    monkeypatch.setattr("mpc_lab.report.SECTIONS", SECTIONS[:2])
    audit = mpc.audit(mpc.datasets.synthetic(queries=50), progress=False)
    audit.report(tmp_path / "a.html", progress=True)
    assert "writing the report" in capsys.readouterr().err
    audit.report(tmp_path / "a.html", progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("pairs", [-1, 501, 2.5, True, "5"])
def test_a_bad_number_of_pairs_is_refused(audit, tmp_path, pairs):
    with pytest.raises(mpc.MpcError, match="pairs"):
        audit.report(tmp_path / "a.html", pairs=pairs)


@pytest.mark.parametrize("path", ["none/a.html", ".", "", "a\0b", "a.pdf", "a.JSON"])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(
    audit, tmp_path, monkeypatch, path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mpc_lab.report.page", lambda *_: pytest.fail("work was done"))
    with pytest.raises(mpc.MpcError, match=r"path must be|written"):
        audit.report(path)


def test_a_failed_report_leaves_the_old_one(audit, tmp_path, monkeypatch):
    (tmp_path / "a.html").write_text("old")

    def full(*_args):
        raise OSError("no space left on device")

    monkeypatch.setattr("mpc_lab.writing.os.replace", full)
    monkeypatch.setattr("mpc_lab.report.page", lambda *_: "new")
    with pytest.raises(mpc.MpcError, match="cannot be written: no space left"):
        audit.report(tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_text() == "old"


def test_a_section_is_one_line_in_the_registry(audit, monkeypatch, no_charts):
    own = Section("greeting", "A greeting", lambda context: f"<p>{len(context.focus)} groups</p>")
    monkeypatch.setattr("mpc_lab.report.SECTIONS", [*SECTIONS[:1], own])
    made = page(audit)
    assert '<section id="greeting"><h2>2. A greeting</h2><p>2 groups</p></section>' in made


def test_both_sides_of_a_tie_head_the_curves_and_are_not_called_place(text, sections):
    """The audit has matched pairs alone, and its log does not say what was shown."""
    curves = text[text.index('<section id="curves">') : text.index('<section id="ladder">')]
    assert curves.index("at a tie") < curves.index("<figure")
    assert "ranked below the other" in sections["curves"]
    assert "the jump is not called an effect of place" in sections["curves"]
    assert "ranked above ▶" in sections["curves"]
    assert "shown above" not in sections["curves"]


def test_with_positions_the_sides_go_by_place_whatever_modes_were_asked(monkeypatch):
    of_curves = [section for section in SECTIONS if section.name == "curves"]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", of_curves)
    log = mpc.datasets.clicks(600, seed=1, eta=1.0)
    audit = mpc.audit(log, pairing_modes=["matched"], progress=False)
    curves = words(page(audit))["curves"]
    assert "shown below the other" in curves
    assert "effect of place" in curves


def test_with_symmetric_pairs_the_sides_of_matched_ones_are_compared(monkeypatch):
    of_balance = [section for section in SECTIONS if section.name == "balance"]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", of_balance)
    for module in ("context", "sections.checks"):
        monkeypatch.setattr(f"mpc_lab.report.{module}.PLACEBOS", 20)
    audit = mpc.audit(mpc.datasets.clicks(600, seed=1, eta=1.0), progress=False)
    balance = words(page(audit))["balance"]
    assert "These are matched pairs" in balance
    assert "Placebos rejected" in balance


def test_a_list_in_a_list_of_the_settings_is_in_plain_words():
    assert _spelt({"groups": [["a", "b"], ["c", "d"]]}) == "groups: a and b, c and d"


def test_one_group_is_not_called_groups(monkeypatch):
    of_finding = [section for section in SECTIONS if section.name == "finding"]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", of_finding)
    audit = mpc.audit(mpc.datasets.clicks(300, seed=1), progress=False)
    assert "<b>1</b>group<" in page(audit)


def test_the_call_that_makes_the_same_numbers_can_be_pasted(text):
    shown = re.search(r'<div class="recipe"><code>(.*?)</code>', text, re.DOTALL)
    code = html.unescape(shown[1])
    assert compile(code, "recipe", "exec")
    assert code.startswith("import mpc_lab as mpc\n")


def rows_of(text, section):
    """Return the cells of the first table of a section as words."""
    body = text[text.index(f'<section id="{section}">') :]
    body = body[body.index("<tbody>") : body.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body)
    return [
        [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)]
        for row in rows
    ]


def test_numbers_of_a_column_share_their_decimals(text):
    for section, columns in {"power": (1, 2, 3, 4), "balance": (1, 3, 4)}.items():
        rows = rows_of(text, section)
        assert len(rows) == 2
        for column in columns:
            ends = {cell[column].strip("\u00a0%").partition(".")[2] for cell in rows}
            assert {len(end) for end in ends} == {1 if column == 1 and section == "balance" else 3}


def test_scores_of_a_pair_are_given_to_the_digit_in_which_they_differ():
    near = np.array([0.5, 0.500004, 0.7, 0.700008, 0.3, 0.3])
    log = pd.DataFrame({"query": np.repeat(range(30), 6), "score": np.tile(near, 30)})
    log["group"] = np.tile(["g", "h"], 90)
    log["outcome"] = np.tile([1, 0, 0, 1, 1], 36)
    columns = {name: name for name in ("query", "score", "outcome", "group")}
    audit = mpc.audit(log, **columns, threshold=0.001, progress=False)
    shown = rows_of(page(audit, pairs=90), "pairs")
    assert {tuple(row[4:6]) for row in shown} == {
        ("0.300000", "0.300000"),
        ("0.500000", "0.500004"),
        ("0.700000", "0.700008"),
    }
