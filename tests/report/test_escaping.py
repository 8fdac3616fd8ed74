"""A name from data is shown and never obeyed, wherever it is shown."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

import mpc_lab as mpc
from helpers.hostile import COLUMNS, CORPUS, log
from mpc_lab import charts
from mpc_lab.charts.theme import specification, svg
from mpc_lab.cli.show import headline_table, to_csv

PACKAGE = Path(mpc.__file__).parent
# What a report is made of. Nothing here can run, load or lead anywhere but inside the page.
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "p", "nav"),
    *(
        "ol",
        "ul",
        "li",
        "a",
        "main",
        "section",
        "figure",
        "div",
        "script",
        "table",
        "caption",
        "figcaption",
    ),
    *("thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "details", "summary", "span", "br"),
    *("bdi", "b", "i", "code", "math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "msub"),
    *("msup", "msubsup", "munder", "mfrac", "msqrt", "svg", "g", "path", "rect", "text"),
    *("tspan", "line", "circle", "defs", "clippath", "lineargradient", "stop"),
}
LOADS = {"src", "srcset", "data", "action", "formaction", "srcdoc", "xlink:href", "poster", "ping"}


class Structure(HTMLParser):
    """What a browser would build: tags and attributes, and the text of scripts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.comments, self.scripts = set(), [], 0, []
        self._in_script = False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "script":
            self._in_script = True
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag):
        self._in_script = self._in_script and tag != "script"

    def handle_comment(self, data):
        self.comments += 1

    def handle_data(self, data):
        if self._in_script:
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)


@pytest.fixture(scope="module")
def structure(hostile_text):
    parser = Structure()
    parser.feed(hostile_text)
    parser.close()
    return parser


@pytest.mark.long
def test_the_corpus_is_large_and_all_of_it_is_audited(hostile):
    assert len(CORPUS) >= 50
    assert len(hostile.groups) >= 50


def test_a_report_has_no_element_of_the_data(structure):
    assert structure.tags <= TAGS
    assert structure.comments == 0


def test_a_report_has_no_attribute_that_runs_or_loads(structure):
    names = {name for name, _ in structure.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert names.isdisjoint(LOADS)
    links = [value for name, value in structure.attributes if name == "href"]
    assert [link for link in links if not link.startswith("#")] == []


def test_a_report_has_one_script_and_specifications_that_are_data(structure):
    assert [kind for kind, _ in structure.scripts].count(None) == 1
    specs = [json.loads(text) for kind, text in structure.scripts if kind is not None]
    assert specs
    assert "obeyed" not in dict(structure.scripts)[None]


@pytest.mark.long
def test_a_report_is_below_5_megabytes_for_more_than_50_groups(hostile_text):
    assert len(hostile_text.encode()) < 5_000_000


def every_chart(audit):
    group = audit.groups[0]
    yield charts.forest(audit)
    yield charts.ladder(audit)
    yield charts.epsilon_curve(audit, group)
    yield charts.power(audit, group)
    yield charts.bracket(mpc.audit(log(CORPUS), **COLUMNS, **BOTH), group)
    for draw in (charts.rivals, charts.calibration, charts.distance_density, charts.love):
        yield draw(audit, group)


BOTH = {"pairing_modes": ("matched", "mirrored"), "threshold": 0.1, "progress": False}


@pytest.fixture(scope="module")
def drawn(hostile):
    return [(specification(chart), svg(chart)) for chart in every_chart(hostile)]


def expressions(node, inside=False):
    """Yield every text of a specification that Vega reads as an expression or as a field."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("datasets", "data", "title", "description", "subtitle"):
                continue
            read = key in ("expr", "signal", "calculate", "filter", "test", "field", "update")
            yield from expressions(value, inside or read)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value, inside)
    elif inside and isinstance(node, str):
        yield node


@pytest.mark.long
def test_no_name_is_an_expression_or_a_field_of_a_specification(drawn):
    names = [name[:20] for name in CORPUS]
    for spec, _ in drawn:
        for text in expressions(spec):
            assert not [name for name in names if name in text]


@pytest.mark.long
def test_a_drawing_has_no_element_of_the_data(drawn):
    for _, text in drawn:
        root = ET.fromstring(text)
        tags = {element.tag.rpartition("}")[2].lower() for element in root.iter()}
        assert tags <= TAGS
        names = {name.lower() for element in root.iter() for name in element.attrib}
        assert not [name for name in names if name.startswith("on") or "href" in name]


def test_a_terminal_is_sent_no_control(hostile):
    console = Console(width=200, force_terminal=True, color_system=None, file=io.StringIO())
    console.print(headline_table(hostile.to_frame()))
    shown = console.file.getvalue() + hostile.summary()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert "[red]markup[/red]" in shown


def test_a_spreadsheet_is_given_no_formula(hostile):
    rows = list(csv.DictReader(io.StringIO(to_csv(hostile))))
    assert len(rows) == len(hostile.groups)
    for row in rows:
        for column in ("group", "scoring_rule", "verdict", "verdict_reason"):
            assert not row[column].lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))


BLOCK = re.compile(r"^```(?:python|sh)\n(.*?)\n```$", re.DOTALL | re.MULTILINE)


def test_a_model_card_has_no_markup_of_the_data(hostile):
    whole = hostile.model_card()
    assert not re.search(r"<(?!br>)", whole)
    # Blocks of code show what is in them as it is, as long as nothing in them ends one.
    card = BLOCK.sub("", whole)
    assert len(BLOCK.findall(whole)) == 1
    assert not re.search(r"(?<!\\)[\[\]`]", card)
    assert "://" not in card.replace("\\://", "")
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_nothing_in_the_data_ends_the_code_of_a_model_card():
    names = [*[name for name in CORPUS if name.strip()][:20], "```", "a\n```\n# b", "<b>&`~~~"]
    audit = mpc.audit(log([*names, "rest"]), **COLUMNS, groups=names, threshold=0.2, progress=False)
    (code,) = BLOCK.findall(audit.model_card())
    assert not set("<>&`~") & set(code)
    space = {"frame": log([*names, "rest"])}
    exec(code, space)
    assert space["audit"].headline.identical(audit.headline)


def test_the_notebook_view_has_no_element_of_the_data(hostile):
    parser = Structure()
    parser.feed(hostile._repr_html_())
    assert parser.tags <= TAGS
    assert not [name for name, _ in parser.attributes if name.startswith("on")]


def test_an_error_about_a_hostile_name_is_one_line_on_the_terminal(hostile, capsys):
    from mpc_lab.cli import main

    name = "\x1b]0;title\x07\x1b[2J\nnone.csv"
    assert main(["audit", name, "--query", name]) == 3
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert err.count("\n") == 1


FORBIDDEN_WORD = re.compile("pickle|dill|joblib|marshal")


def test_nothing_in_the_package_unpickles():
    wrong = []
    # A Spark job's own results, from its workers to its driver; never a file or a given value.
    own = {PACKAGE / "engines" / "spark.py"}
    for path in set(PACKAGE.rglob("*.py")) - own:
        # Only a file that has one of the words can have one of the names.
        if not FORBIDDEN_WORD.search(path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = {
                getattr(node, "attr", ""),
                getattr(node, "id", ""),
                getattr(node, "module", ""),
            }
            names |= {alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")}
            if names & {
                "pickle",
                "dill",
                "cloudpickle",
                "read_pickle",
                "joblib",
                "marshal",
            }:
                wrong.append(f"{path.name}:{getattr(node, 'lineno', 0)}")
            if "allow_pickle" in {keyword.arg for keyword in getattr(node, "keywords", ())}:
                wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == []
