"""The notebooks are clean files with a conclusion, and run where there is only the package."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import mpc_lab as mpc

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


def named(path: Path) -> str:
    return path.stem


def code(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def text(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_there_are_eight():
    assert [path.stem for path in ALL] == [
        "01_first_audit",
        "02_why_not_calibration",
        "03_movielens",
        "04_epsilon",
        "05_your_own_log",
        "06_rivals",
        "07_clicks_and_places",
        "08_why_and_what_to_do",
    ]


@pytest.mark.parametrize("path", ALL, ids=named)
def test_a_notebook_is_valid_and_holds_no_output(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("path", ALL, ids=named)
def test_a_notebook_starts_offline_and_ends_with_a_conclusion(path):
    assert code(path)[0].startswith("%load_ext mpc_lab")
    assert "## Conclusion" in text(path)


@pytest.mark.parametrize("path", ALL, ids=named)
def test_a_notebook_draws_with_our_charts_only(path):
    source = "\n".join(code(path))
    assert "mpc.charts." in source
    for other in ("import altair", "matplotlib", "plotly", ".plot("):
        assert other not in source


# The others that need no data run so where .ci/run runs all notebooks: tests/helpers/execute.py.
@pytest.mark.needs_notebooks
def test_a_notebook_runs_without_data_and_network():
    from helpers.execute import BYTES, NEED_NO_DATA, SECONDS, execute

    cut_off = {"MPC_LAB_DATA": None}
    ran = execute(NOTEBOOKS / f"{NEED_NO_DATA[0]}.ipynb", network=False, variables=cut_off)
    counts = [cell.execution_count for cell in ran.notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert ran.processor_seconds <= SECONDS
    assert ran.peak_bytes <= BYTES


@pytest.mark.needs_notebooks
def test_movielens_shows_its_stored_result_where_there_is_no_data(tmp_path):
    from helpers.execute import execute

    empty = {"MPC_LAB_DATA": None, "XDG_CACHE_HOME": str(tmp_path)}
    ran = execute(NOTEBOOKS / "03_movielens.ipynb", network=False, variables=empty)
    said = [
        output["data"]["text/markdown"]
        for cell in ran.notebook.cells
        for output in cell.get("outputs", [])
        if "text/markdown" in output.get("data", {})
    ]
    assert said[0].startswith("**This is the stored result of a run on MovieLens 1M**")
    assert "Put ml-1m.zip from GroupLens" in said[0]
    assert sum(words.startswith("*Skipped: this cell needs the ratings") for words in said) == 3
    assert "**undervalued** at the margin: Documentary, Drama" in said[-1]


@pytest.mark.needs_notebooks
def test_your_own_log_goes_from_an_inconclusive_run_to_a_sentence():
    from helpers.execute import execute

    ran = execute(NOTEBOOKS / "05_your_own_log.ipynb", variables={"MPC_LAB_DATA": None})
    said = "\n".join(
        output.get("text", "") + str(output.get("data", {}).get("text/markdown", ""))
        for cell in ran.notebook.cells
        for output in cell.get("outputs", [])
    )
    steps = ["places: Column 'place'", "▲ undervalued", "> Among products", "left out\n", "files "]
    found = [said.index(step) for step in steps]
    assert found == sorted(found)
    shown = str(ran.notebook.cells)
    assert shown.index("is inconclusive: `bought`") < shown.index("is undervalued: `bought`")


def test_the_stored_result_is_small_and_holds_no_rows_ids_or_items():
    stored = mpc.load(NOTEBOOKS / "movielens_1m.nc")
    assert (NOTEBOOKS / "movielens_1m.nc").stat().st_size < 300_000
    assert stored.ranking is None
    assert set(stored.tree) == {"headline", "curve", "moments", "objective"}
    assert len(stored.groups) == 18
    assert stored.tree.attrs["n_rows"] == 104_449
