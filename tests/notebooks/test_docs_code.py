"""Every block of code in the pages runs, and prints what the page shows below it.

A page is read from its first block to its last, in one namespace and one folder with sample logs;
a ``toml`` block becomes its ``audit.toml``. A ``text`` block right after a ``python`` or ``sh``
block is what that prints. A command with ``--gate`` may give any of the gate's three answers. A
block that cannot run here is after a comment ``<!-- only read: why -->``, or is a
``{code-block}``; it must still be valid code.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.sample_files import write_sample_files

# The pages are run where they can be built.
pytestmark = pytest.mark.needs_docs

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    # Notebooks as they ran are run as notebooks.
    if not {"generated", "seen"} & set(path.parts) and path.parent != DOCS
)
PAGES += sorted(DOCS.glob("*.md"))
FENCE = re.compile(
    r"^(?P<ticks>```+)(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL
)
OPTIONS = re.compile(r"\A(:\w+:.*\n)+")
ONLY_READ = re.compile(r"<!-- only read: \S.*? -->\s*\Z")
# Commands that set up a machine, or are this very check; .ci/run is where they run.
SETTING_UP = ("pip install", "ruff check", "python tests/", "MPC_LAB_EXECUTED=", "bash .ci/run")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str
    only_read: bool
    follows: bool
    line: int


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page; directives such as ``{toctree}`` are none.

    A block *follows* the one before it where nothing but blank lines is between them.
    """
    made, end = [], 0
    for found in FENCE.finditer(text):
        language, code = found["language"].strip(), found["code"]
        before = text[end : found.start()]
        only_read = bool(ONLY_READ.search(before)) or language.startswith("{code-block}")
        if language.startswith("{code-block}"):
            language, code = language.removeprefix("{code-block}").strip(), OPTIONS.sub("", code)
        if not language.startswith("{"):
            line = text.count("\n", 0, found.start()) + 1
            made.append(Block(language, code, only_read, not before.strip(), line))
        end = found.end()
    return made


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    # Blank lines before the code, so that an error names the line of the page.
    code = compile("\n" * block.line + block.code, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


# The command of this package, wherever it is installed.
COMMAND = f"""mpc-lab() {{
    '{sys.executable}' -c 'import sys; from mpc_lab.cli import main; sys.exit(main())' "$@"
}}
"""


def run_shell(block: Block) -> str:
    if block.code.startswith(SETTING_UP):
        return ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", COMMAND + block.code],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "COLUMNS": "120", "HOME": os.getcwd()},
    )
    answers = range(3) if "--gate" in block.code else (0,)
    assert done.returncode in answers, done.stderr
    return done.stdout


def read(block: Block) -> None:
    """Raise where a block is not valid in its language."""
    if block.language == "python":
        ast.parse(block.code)
    elif block.language == "sh":
        subprocess.run(["bash", "-n", "-c", block.code], check=True)
    elif block.language == "toml":
        tomllib.loads(block.code)
        Path("audit.toml").write_text(block.code, "utf-8")
    elif block.language == "json":
        json.loads(block.code)
    elif block.language == "yaml":
        import yaml

        assert yaml.safe_load(block.code)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").rstrip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_block_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if any(name in page.read_text("utf-8") for name in ("movielens_ranking(", "movielens(")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nobody is there
    write_sample_files(tmp_path)
    found = blocks(page.read_text("utf-8"))
    namespace: dict[str, object] = {"__name__": "page"}
    printed: str | None = None
    for block in found:
        if block.language == "text":
            if block.follows and printed is not None:
                assert lines(printed) == lines(block.code), f"{page.name}, line {block.line}"
            printed = None
        elif block.only_read or block.language not in ("python", "sh"):
            read(block)
            printed = None
        else:
            printed = (
                run_python(block, page, namespace)
                if block.language == "python"
                else run_shell(block)
            )


def test_languages_are_known():
    known = {"python", "sh", "text", "toml", "json", "yaml"}
    for page in PAGES:
        assert {block.language for block in blocks(page.read_text("utf-8"))} <= known, page


def test_a_block_that_is_only_read_says_why():
    text = "<!-- only read: needs Airflow -->\n```python\n1 +\n```\n```python\n2\n```\n"
    first, second = blocks(text)
    assert first.only_read
    assert not second.only_read
    with pytest.raises(SyntaxError):
        read(first)


def test_a_block_with_a_caption_is_only_read():
    (found,) = blocks("```{code-block} python\n:caption: dag.py\n\nimport airflow\n```\n")
    assert found.only_read
    assert found.language == "python"
    assert found.code == "\nimport airflow\n"


def test_a_page_that_prints_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    (code, shown) = blocks(page.read_text())
    assert lines(run_python(code, page, {})) != lines(shown.code)


def test_bash_is_there():
    assert shutil.which("bash")
