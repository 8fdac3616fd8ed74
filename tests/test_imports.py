"""The house has one direction: a room imports only from rooms above it, and loads when used."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpc_lab

# The tree, not the installed copy: pyproject.toml is beside it.
PACKAGE = Path(__file__).parents[1] / "mpc_lab"
ROOMS = (
    "errors",
    "vocabulary",
    "roles",
    "files",
    "text",
    "writing",
    "html",
    "ranking",
    "formats",
    "rankers",
    "datasets",
    "scoring",
    "pairing",
    "inference",
    "objective",
    "comparators",
    "results",
    "engines",
    "run",
    "offsets",
    "discovery",
    "charts",
    "explorers",
    "report",
    "cli",
    "magics",
)
# The methods that look forward: they import, inside the function, from a room below their own.
FORWARD = {
    ("mpc_lab.results.audit", "Audit.explore"),
    ("mpc_lab.results.audit", "Audit.model_card"),
    ("mpc_lab.results.audit", "Audit.report"),
    ("mpc_lab.results.audit", "Audit.to_json"),
}
FRONT_DOOR = "mpc_lab"
COMES_WITH_LAB = {"ipython"}
# Packages that are installed under another name.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}


pytestmark = pytest.mark.xdist_group("imports")  # each module is parsed once for all tests
parsed = functools.cache(ast.parse)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(name: str) -> str:
    """Return the room of a dotted name; what the front door itself holds is in no room."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else FRONT_DOOR


def imported(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Dotted names of this package that one import statement asks for."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = module.split(".")
        base = base[: len(base) - node.level + is_package] if node.level else []
        home = ".".join([*base, *([node.module] if node.module else [])])
        whole = home == FRONT_DOOR
        names = [f"{home}.{alias.name}" if whole else home for alias in node.names]
    else:
        names = []
    yield from (name for name in names if name.split(".")[0] == FRONT_DOOR)


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Pairs (function that holds the import or "", dotted name asked for)."""

    def walk(node: ast.AST, scope: tuple[str, ...], function: str) -> Iterator[tuple[str, str]]:
        for name in imported(node, module, is_package):
            yield function, name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope = (*scope, node.name)
            if not isinstance(node, ast.ClassDef):
                function = function or ".".join(scope)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # an import is a statement
                yield from walk(child, scope, function)

    yield from walk(parsed(source), (), "")


def forward_looks(source: str, module: str, is_package: bool = False) -> list[str]:
    """Name the imports of a module that the order of the rooms does not allow."""
    own = room_of(module)
    wrong = []
    for function, name in imports(source, module, is_package):
        room = room_of(name)
        if room == "__version__" or room == own:
            continue
        is_above = room in ROOMS and ROOMS.index(room) < ROOMS.index(own)
        if not is_above and (not function or (module, function) not in FORWARD):
            wrong.append(f"{module}{':' if function else ''}{function} imports {name}")
    return wrong


def imports_by_text(source: str) -> bool:
    names = {"import_module", "__import__"}
    return any(name in source for name in names) and any(
        getattr(node, "attr", getattr(node, "id", None)) in names
        for node in ast.walk(parsed(source))
    )


def declared() -> set[str]:
    """Distributions that an install of the package, with any of its extras, brings along."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return {re.split(r"[\[<>=~! ]", text)[0].lower() for texts in lists for text in texts}


def packages_asked_for(source: str) -> set[str]:
    asked = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            asked |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            asked.add(node.module.split(".")[0])
    return asked - {FRONT_DOOR} - sys.stdlib_module_names


@pytest.mark.parametrize("name", mpc_lab.__all__)
def test_every_public_name_loads(name):
    assert getattr(mpc_lab, name) is getattr(mpc_lab, name)
    assert name in dir(mpc_lab)


def test_every_module_is_in_a_known_room():
    assert {room_of(name) for name in modules()} <= {*ROOMS, FRONT_DOOR}


def test_no_room_imports_from_a_room_below_it():
    wrong = []
    for name, path in modules().items():
        if name != FRONT_DOOR:
            wrong += forward_looks(path.read_text("utf-8"), name, path.name == "__init__.py")
    assert wrong == []


def test_no_entry_of_the_lists_above_is_stale():
    assert [room for room in ROOMS if room not in map(room_of, modules())] == []
    looking = {
        (name, function)
        for name, path in modules().items()
        for function, other in imports(path.read_text("utf-8"), name, path.name == "__init__.py")
        if room_of(other) in ROOMS and room_of(name) in ROOMS
        if ROOMS.index(room_of(other)) > ROOMS.index(room_of(name))
    }
    assert set(FORWARD) - looking == set()


def test_no_name_of_a_class_exists_twice():
    names = [
        node.name
        for path in modules().values()
        for node in ast.walk(parsed(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_package_asked_for_is_declared():
    sources = [path.read_text("utf-8") for path in modules().values()]
    asked = {
        DISTRIBUTIONS.get(package, package.lower())
        for source in sources
        for package in packages_asked_for(source)
    }
    assert asked - COMES_WITH_LAB <= declared()


def test_only_the_front_door_imports_by_text():
    by_text = [name for name, path in modules().items() if imports_by_text(path.read_text("utf-8"))]
    assert by_text == [FRONT_DOOR]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mpc_lab.ranking.core", "from mpc_lab.results import Audit"),
        ("mpc_lab.ranking.core", "import mpc_lab.pairing.sweep"),
        ("mpc_lab.ranking.core", "from mpc_lab import pairing"),
        ("mpc_lab.ranking.core", "import mpc_lab as mpc"),
        ("mpc_lab.ranking.core", "from mpc_lab import Audit"),
        ("mpc_lab.ranking.core", "from ..results.audit import Audit"),
        ("mpc_lab.ranking.core", "from mpc_lab.attic import dust"),
        ("mpc_lab.ranking.core", "if TYPE_CHECKING:\n    from mpc_lab.results import Audit"),
        ("mpc_lab.ranking.core", "try:\n    import mpc_lab.run\nexcept ImportError: pass"),
        ("mpc_lab.ranking.core", "def late():\n    from mpc_lab.run import audit"),
        ("mpc_lab.results.audit", "from mpc_lab.report import write"),
        ("mpc_lab.results.audit", "def report():\n    from mpc_lab.report import write"),
    ],
)
def test_a_forward_look_is_seen(module, source):
    assert len(forward_looks(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mpc_lab.results.audit", "from mpc_lab.inference.verdicts import verdict"),
        ("mpc_lab.results.audit", "from .schema import HEADLINE"),
        ("mpc_lab.results.audit", "from mpc_lab import __version__, errors"),
        ("mpc_lab.results.audit", "def speed():\n    from mpc_lab.pairing import listing"),
        (
            "mpc_lab.results.audit",
            "class Audit:\n    def report(self):\n        from mpc_lab.report import write",
        ),
    ],
)
def test_a_look_back_and_the_named_methods_are_allowed(module, source):
    assert forward_looks(source, module) == []
