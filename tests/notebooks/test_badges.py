"""The README leads to every notebook, here and on Binder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
EXTRAS = ["duckdb", "files", "lab"]  # what the notebooks use
README = (ROOT / "README.md").read_text("utf-8")
BADGE = re.compile(r"\(https://mybinder\.org/v2/gh/[\w-]+/[\w-]+/HEAD\?urlpath=lab/tree/([^)]+)\)")


def test_a_badge_opens_each_notebook_in_jupyterlab():
    wanted = [f"notebooks/{path.name}" for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    assert BADGE.findall(README) == wanted


def test_each_notebook_is_linked_as_it_ran():
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert f"](docs/tutorials/seen/{path.stem}.md)" in README


def test_binder_has_its_three_files():
    requirements = (ROOT / "binder" / "requirements.txt").read_text("utf-8").split("\n")
    pins = [line for line in requirements if line and not line.startswith("#")]
    assert pins.pop() == f".[{','.join(EXTRAS)}]"
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
    assert (ROOT / "binder" / "runtime.txt").read_text("utf-8").strip() == "python-3.11"
    script = (ROOT / "binder" / "postBuild").read_text("utf-8")
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "\nset -e\n" in script
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o111


def test_all_that_the_package_needs_is_pinned_for_binder():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    requirements = (ROOT / "binder" / "requirements.txt").read_text("utf-8")
    pinned = {name.lower() for name in re.findall(r"^([\w.-]+)==", requirements, re.MULTILINE)}
    assert {re.split(r"[\[<>=~! ]", text)[0].lower() for text in needed} <= pinned
