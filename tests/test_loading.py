"""What is used decides what is loaded: one process, in which each step loads more than the last.

That a package is absent after a step holds for all steps before it too.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mpc_lab as mpc

pytestmark = pytest.mark.xdist_group("loading")  # one process for all tests

FRONT = ("altair", "ipywidgets", "numba", "pandas", "scipy", "statsmodels", "vl_convert", "xarray")
NOT_TO_READ = tuple(name for name in FRONT if name not in ("pandas", "xarray"))
# Name: what is done, and what it must not have loaded.
STEPS = {
    "the front door": ("import mpc_lab as mpc", FRONT),
    "an error": ("mpc.MpcError", FRONT),
    "the command line": ("import mpc_lab.cli; mpc_lab.cli.make_parser()", FRONT),
    "the room of rankings": ("import mpc_lab.ranking", (*NOT_TO_READ, "xarray")),
    "the room of results": (
        "import mpc_lab.results",
        ("altair", "ipywidgets", "numba", "statsmodels"),
    ),
    "the words of a saved audit": (
        "from mpc_lab.explorers import explorer as static\n"
        "static.words_html(mpc.load(sys.argv[1]))",
        ("altair", "statsmodels", "vl_convert"),
    ),
    "a panel and its words": (
        "audit = mpc.audit(mpc.datasets.synthetic(queries=300), progress=False)\n"
        "explorer = audit.explore(tab='Boost'); assert 'mpc-static' in static.words_html(audit)",
        ("altair", "statsmodels", "vl_convert"),
    ),
    "a curve": (
        "audit.curve\n"
        "from mpc_lab.pairing import long_lists, sweep, windows\n"
        "late = [sweep.find_long, windows.add_windows, long_lists._find, long_lists._book]\n"
        "compiled = [kernel.__name__ for kernel in late if getattr(kernel, 'signatures', ())]",
        ("altair", "statsmodels", "vl_convert"),
    ),
    "a panel that is shown": ("explorer.widget", ("statsmodels",)),
    "the pictures of a saved audit": (
        "static.pictures_html(mpc.load(sys.argv[1]))",
        ("statsmodels",),
    ),
    # A module of that name would take the place of the function at the door.
    "a tab before the panel that starts": (
        "for name in [name for name in sys.modules if name.startswith('mpc_lab.explorers')]:\n"
        "    del sys.modules[name]\n"
        "vars(mpc).pop('explorers', None); mpc.explorers.PairsExplorer\n"
        "assert callable(mpc.explorers.start)",
        ("statsmodels",),
    ),
}
SHOWN = ("seen['kernels of long lists'] = compiled", "print(json.dumps(seen))")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Return the names of the packages that were there after each step."""
    saved = tmp_path_factory.mktemp("saved") / "a.nc"
    mpc.audit(mpc.datasets.synthetic(queries=300), progress=False).save(saved)
    lines = ["import json, sys", "seen = {}"]
    for name, (code, _) in STEPS.items():
        lines += [code, f"seen[{name!r}] = sorted({{m.split('.')[0] for m in sys.modules}})"]
    command = [sys.executable, "-c", "\n".join([*lines, *SHOWN]), str(saved)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_loaded_that_is_not_needed(loaded, step):
    _, absent = STEPS[step]
    assert set(loaded[step]).isdisjoint(absent)


def test_the_steps_load_what_they_are_about(loaded):
    assert "xarray" in loaded["the room of results"]
    assert {"altair", "vl_convert"} <= set(loaded["the pictures of a saved audit"])


def test_an_ordinary_log_never_loads_the_kernels_of_long_lists(loaded):
    assert loaded["kernels of long lists"] == []
