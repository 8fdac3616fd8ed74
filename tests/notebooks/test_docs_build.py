"""The pages are built with all they need: equations, notebooks as they were run, the schema."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

pytestmark = pytest.mark.needs_docs

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
CONF = f"""
import sys
sys.path.insert(0, {str(EXTENSIONS)!r})
extensions = [
    "myst_nb", "live_charts", "mathml", "readable_tables", "schema_tables", "tutorial_notebooks",
]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
nb_ipywidgets_js = {{}}
notebooks_folder = "executed"
"""
PAGE = r"""
# A page

Inline $\alpha < \beta$ and displayed

$$
\frac{1}{P} \sum_i y_i
$$

$$
\hat m = \arg\min_m \sum_p m
$$

| law | gap | truth | bound |
|---|---|---|---|
| k^2 | -0.5 (-0.7 to -0.3) | nan | ≤ 0.064 |
| `-1` | 0.25 (0.1 to 0.4) | 0.3 | |

In 95 % of them.

```{schema-table} CURVE
```

```{toctree}
tutorials/01_story
```
"""
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg"><path fill="#b4500f" d="M0,0h9"/></svg>'
WIDGET = "application/vnd.jupyter.widget-view+json"


def executed_notebook() -> nbformat.NotebookNode:
    outputs = [
        new_output("display_data", {"text/html": "<p>static form</p>"}),
        new_output("display_data", {"image/svg+xml": DRAWING}),
        new_output("display_data", {WIDGET: {"model_id": "1"}, "text/plain": "Live()"}),
    ]
    cells = [new_markdown_cell("# A story"), new_code_cell("explore()", outputs=outputs)]
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return new_notebook(cells=cells, metadata={"language_info": language, "widgets": {"state": {}}})


def build(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", source, "site"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    for name in ("source/tutorials", "executed"):
        (folder / name).mkdir(parents=True)
    (folder / "source" / "conf.py").write_text(CONF)
    (folder / "source" / "index.md").write_text(PAGE)
    nbformat.write(executed_notebook(), folder / "executed" / "01_story.ipynb")
    done = build(folder, "source")
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_equations_are_mathml_and_need_no_script(site):
    page = (site / "index.html").read_text("utf-8")
    assert page.count("<math ") == 3
    assert "<mo>arg</mo>" in page
    assert "<mfrac>" in page
    assert re.findall(r"<script[^>]+math[^>]*>", page.lower()) == []


def test_the_font_of_the_equations_comes_along(site):
    assert (site / "_static" / "STIXTwoMath-Regular.ttf").stat().st_size > 100_000


def test_the_chart_library_shares_no_name_with_other_scripts(site):
    code = (site / "_static" / "mpc_lab_live.js").read_text("utf-8").strip()
    assert code.startswith("(() => {")
    assert code.endswith("})();")
    # The name that both have, without a scope of their own.
    assert "const _ =" in (site / "_static" / "doctools.js").read_text("utf-8")


def test_a_notebook_shows_its_static_form_and_no_widget(site):
    page = (site / "tutorials" / "01_story.html").read_text("utf-8")
    assert "static form" in page
    assert "Live()" not in page
    assert "widget-view" not in page


def test_a_formula_that_would_show_its_source_stops_the_build(tmp_path):
    (tmp_path / "conf.py").write_text(CONF.replace('"tutorial_notebooks",', ""))
    (tmp_path / "index.md").write_text("# A page\n\nThe $\\foobar$ of a gap.\n")
    done = build(tmp_path, ".")
    assert done.returncode != 0
    assert "foobar of this formula has no MathML" in done.stderr


def test_numbers_of_a_table_are_aligned_and_printed_as_elsewhere(site):
    page = (site / "index.html").read_text("utf-8")
    cells = re.findall(r"<td([^>]*)><p>(.*?)</p></td>", page)
    by_words = {words: "number" in kind for kind, words in cells}
    assert by_words["−0.5 (−0.7 to −0.3)"]
    assert by_words["0.3"]
    assert by_words["≤ 0.064"]
    assert not by_words["k<sup>2</sup>"]
    assert by_words["–"]  # of nan
    assert ">-1<" in page
    assert "In 95\u00a0% of them" in page


def test_drawings_of_a_notebook_have_the_ink_of_a_dark_page(site):
    drawings = [path.read_text("utf-8") for path in (site / "_images").glob("*.svg")]
    assert [one.count("prefers-color-scheme: dark") for one in drawings] == [1]


def test_the_table_of_variables_is_that_of_the_code(site):
    page = (site / "index.html").read_text("utf-8")
    assert "Dims (group, epsilon, scoring_rule, pairing_mode)" in page
    assert "band_low" in page


def test_notebooks_that_are_missing_stop_the_build(tmp_path):
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text("# A page\n")
    done = build(tmp_path, ".")
    assert done.returncode != 0
    assert "executed should hold the notebooks, but there are none" in done.stderr
