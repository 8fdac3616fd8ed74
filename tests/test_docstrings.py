"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import tokenize
from pathlib import Path

import pytest

import mpc_lab

MODULES = [
    module.name
    for module in pkgutil.walk_packages(mpc_lab.__path__, "mpc_lab.")
    if not module.name.endswith("__main__")
]
METHODS = [name for name, _ in inspect.getmembers(mpc_lab.Audit, inspect.isfunction)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name, no_charts):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith("_")])
def test_every_method_of_an_audit_says_what_it_takes_and_gives_and_shows_it(name):
    method = getattr(mpc_lab.Audit, name)
    text = inspect.getdoc(method)
    takes = [each for each in inspect.signature(method).parameters if each != "self"]
    for section in [*(["Parameters"] if takes else []), "Returns", "Examples"]:
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    listed = text.partition("\nParameters\n")[2].partition("\nReturns\n")[0]
    described = re.findall(r"\w+", " ".join(re.findall(r"^(\S.*?)(?: : .*)?$", listed, re.M)))
    assert set(described) >= set(takes)
    example = text.split("\nExamples\n")[1]
    assert example.startswith("--------\n>>> import")
    assert f".{name}(" in example


# Turns of phrase that nobody would say.
ODD = re.compile(
    r"\b(anew|amiss|reckon\w*|what came|at hand|all the same|stands?|lies|dealt|"
    r"(is|are|were|be) told|do(es)? better|told apart)\b",
    re.IGNORECASE,
)
ROOT = Path(__file__).parents[1]


def prose(path: Path) -> str:
    """Return what a person reads of a file: of Python its comments and texts."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text("utf-8"))["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells)
    if path.suffix != ".py":
        return path.read_text("utf-8")
    read = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    with path.open("rb") as file:
        return "\n".join(one.string for one in tokenize.tokenize(file.readline) if one.type in read)


@pytest.mark.parametrize(
    "room", ["README.md", "mpc_lab/**/*.py", "docs/**/*.md", "notebooks/*.ipynb"]
)
def test_nothing_that_people_read_has_an_odd_turn_of_phrase(room):
    files = sorted(ROOT.glob(room))
    found = {str(path): odd[0] for path in files if (odd := ODD.search(prose(path)))}
    assert files
    assert found == {}


def test_no_backslash_of_an_equation_was_lost():
    """Where one was, "theta" begins with a tab, and nobody can read the equation."""
    files = Path(mpc_lab.__file__).parent.rglob("*.py")
    assert [path for path in files if set(path.read_text("utf-8")) & set("\t\f\b\v")] == []
