"""How far a reader must walk: files and functions that an audit and its report run through.

    python tests/benchmarks/files_walked.py [CHECKOUT ...] [--names]

Each checkout is the root of a working tree, measured in a process of its own; without any, this
one. ``--names`` lists what was counted. Everything runs once before it is counted, so that imports
and compiling are left out; a compiled kernel is no Python function and is not seen.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).parents[2]

# A registry names each of its modules once, in a list of modes, measures, charts and so on:
# there one importer is what is wanted. Folders, with a slash, and single modules.
REGISTRIES = (
    "results/preflight",
    "charts/",
    "cli/",
    "comparators/",
    "explorers/boost",
    "explorers/calibration",
    "explorers/checks",
    "explorers/compare",
    "explorers/epsilon",
    "explorers/groups",
    "explorers/pairs",
    "explorers/place",
    "explorers/rivals",
    "explorers/story",
    "explorers/why",
    "report/sections/",
    "results/questions/",
)
# From Python 3.12 on these are no functions of their own.
COMPREHENSIONS = ("<dictcomp>", "<listcomp>", "<setcomp>")


class Walk:
    """The functions of one package that ran between ``start`` and ``stop``, in any thread."""

    def __init__(self, package: Path) -> None:
        self._home = f"{package}{os.sep}"
        self.codes: set[CodeType] = set()

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self._home):
            self.codes.add(frame.f_code)

    def during(self, call: Callable[[], Any]) -> Walk:
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def files(self) -> list[str]:
        return sorted({code.co_filename.removeprefix(self._home) for code in self.codes})


def outside_registries(files: list[str]) -> list[str]:
    return [file for file in files if not file.startswith(REGISTRIES)]


def walked(package: Path) -> dict[str, list[str]]:
    """Count the walk of an audit of a frame, and of the report of that audit."""
    import mpc_lab as mpc

    assert Path(mpc.__file__).parent == package, f"{mpc.__file__} is not in {package}"
    frame = mpc.datasets.synthetic(queries=300).to_frame()
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    path = Path(tempfile.mkdtemp(), "report.html")

    def audit() -> Any:
        return mpc.audit(frame, **columns, group="type", progress=False)

    made = audit()
    found = {}
    for name, call in (("audit", audit), ("report", lambda: made.report(path, progress=False))):
        call()
        walk = Walk(package).during(call)
        found[f"files that {name} walks"] = walk.files()
        found[f"files that {name} walks, outside registries"] = outside_registries(walk.files())
        found[f"functions that {name} runs"] = sorted(
            f"{code.co_filename.removeprefix(f'{package}{os.sep}')}:{code.co_qualname}"
            for code in walk.codes
            if code.co_name not in COMPREHENSIONS
        )
    return found


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Dotted names that a module asks for, be they modules or what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            yield home
            yield from (f"{home}.{alias.name}" for alias in node.names)


def strings(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a front door loads by text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def counted(package: Path) -> dict[str, list[str]]:
    """Count what can be seen without running anything."""
    paths = modules(package)
    importers: dict[str, set[str]] = defaultdict(set)
    classes: Counter[str] = Counter()
    for name, path in paths.items():
        tree = ast.parse(path.read_text("utf-8"))
        asked = set(imported(tree, name, path.name == "__init__.py"))
        if path.name == "__init__.py":
            asked |= set(strings(tree))
        for other in asked & set(paths) - {name}:
            importers[other].add(name)
        # Protocols and overloads may repeat a name inside one module: those are one class.
        classes.update({node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)})
    single = [
        f"{name} by {next(iter(importers[name]))}"
        for name, path in paths.items()
        if len(importers[name]) == 1 and path.name != "__init__.py"
    ]
    home = {name: str(path.relative_to(package)) for name, path in paths.items()}
    outside = [text for text in single if outside_registries([home[text.split(" ")[0]]])]
    lines = {name: path.read_text("utf-8").count("\n") for name, path in paths.items()}
    return {
        "modules": sorted(paths),
        "modules with one importer": single,
        "modules with one importer, outside registries": outside,
        "class names that exist twice": sorted(name for name, n in classes.items() if n > 1),
        "lines": [str(sum(lines.values()))],
        "modules above 600 lines": [f"{name} {n}" for name, n in lines.items() if n > 600],
    }


def measure(checkout: Path) -> dict[str, list[str]]:
    """Ask a process whose mpc_lab is that of the checkout."""
    home = {"PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}
    result = subprocess.run(
        [sys.executable, __file__, "--child", str(checkout)],
        env=os.environ | home,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(result.stdout.splitlines()[-1])
    return found


def show(found: dict[str, dict[str, list[str]]], names: bool) -> None:
    print(f"| | {' | '.join(found)} |\n|---|{'---:|' * len(found)}")
    for what in next(iter(found.values())):
        values = [one[what] for one in found.values()]
        cells = [value[0] if what == "lines" else str(len(value)) for value in values]
        print(f"| {what} | {' | '.join(cells)} |")
    for checkout, one in found.items() if names else ():
        for what, entries in one.items():
            print(f"\n{checkout}: {what}", *entries, sep="\n  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--names", action="store_true", help="list what was counted")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        package = options.checkouts[0] / "mpc_lab"
        print(json.dumps(walked(package) | counted(package)))
    else:
        found = {path.name: measure(path) for path in map(Path.resolve, options.checkouts)}
        show(found, options.names)


if __name__ == "__main__":
    main()
