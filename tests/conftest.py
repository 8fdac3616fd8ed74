"""What a test may need from outside, and the settings that all tests share.

A test marked ``needs_<name>`` is skipped where that thing is absent. Where the environment
variable ``MPC_LAB_REQUIRE`` names it (a comma list), the test fails instead: a machine that is
meant to have everything cannot pass by skipping. A test marked ``long`` runs where ``CI`` is set.
So does one that needs a browser, Dask, Spark, Sphinx or a kernel, unless ``MPC_LAB_REQUIRE`` names
that: the time of plain ``pytest`` does not depend on what is installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

REQUIRABLE = frozenset({"browser", "data", "notebooks", "dask", "spark", "docs"})
LONGEST_COMPILING = 60  # seconds
DATA_FILES = ("ml-1m/ratings.dat", "ml-latest-small/ratings.csv")

# For workers and what tests start: each core has a worker already, and what is tested is the
# installed package, not the tree that happens to be the current folder.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PYTHONSAFEPATH", "1")

# Kernels compile inside the first example, so no example can have a deadline. CI tries the number
# that hypothesis has by default, and the same ones each time.
IS_CI = bool(os.environ.get("CI"))
hypothesis.settings.register_profile("default", deadline=None, max_examples=10)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if IS_CI else "default")


def data_problem() -> str:
    """Say why the data cannot be used; empty if it can."""
    folder = os.environ.get("MPC_LAB_DATA", "")
    if not folder:
        return f"MPC_LAB_DATA is not set: it names the folder that holds {DATA_FILES[0]}"
    absent = [name for name in DATA_FILES if not Path(folder, name).is_file()]
    return f"MPC_LAB_DATA={folder} lacks {', '.join(absent)}" if absent else ""


def packages_problem(*names: str) -> str:
    """Say which packages are not installed; empty if all are."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return f"{', '.join(absent)} not installed" if absent else ""


def chromium() -> str:
    """Return the path of a Chromium to run, empty if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or ""


def browser_problem() -> str:
    absent = packages_problem("playwright", "jupyterlab", "notebook", "voila")
    return absent or ("" if chromium() else "there is no chromium on the path")


def spark_problem() -> str:
    absent = packages_problem("pyspark", "pyarrow")
    return absent or ("" if shutil.which("java") else "there is no java on the path")


# One entry for each marker needs_<name>: why the thing is absent, or an empty text.
PROBLEMS: dict[str, Callable[[], str]] = {
    "browser": browser_problem,
    "dask": lambda: packages_problem("dask", "distributed", "pyarrow"),
    "data": data_problem,
    "docs": lambda: packages_problem("sphinx", "myst_nb"),
    "notebooks": lambda: packages_problem("nbclient", "ipykernel"),
    "spark": spark_problem,
}
# Each of these starts something costly that its tests share, so they run on one worker.
SHARED = ("browser", "dask", "spark")
# What runs where CI is set, or where it is asked for by its name.
ASKED_FOR = (*SHARED, "docs", "notebooks")
# The tests of these folders read what one costly fixture makes.
TOGETHER = ("charts", "explorers", "report")


def required() -> frozenset[str]:
    names = os.environ.get("MPC_LAB_REQUIRE", "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def need(name: str) -> None:
    """Skip the running test if ``name`` is absent, or fail it if it is required."""
    problem = PROBLEMS[name]()
    if problem and name in required():
        pytest.fail(f"{name} is required by MPC_LAB_REQUIRE, but {problem}", pytrace=False)
    if problem:
        pytest.skip(problem)


def pytest_configure(config: pytest.Config) -> None:
    unknown = required() - REQUIRABLE
    if unknown:
        raise pytest.UsageError(
            f"MPC_LAB_REQUIRE takes names out of {', '.join(sorted(REQUIRABLE))}; "
            f"got {', '.join(sorted(unknown))}"
        )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let one worker compile a kernel while the others wait, then take it from numba's cache.

    Left to themselves, all workers compile what they meet at the same time, each for itself. To
    wait saves time and no more: a worker that waited long compiles for itself.
    """
    shared = os.environ.get("PYTEST_XDIST_TESTRUNUID")  # only workers have it
    if not shared or sys.platform == "win32":
        return
    import fcntl

    from numba.core.dispatcher import Dispatcher

    compile_alone, lock = Dispatcher.compile, threading.RLock()
    path = Path(tempfile.gettempdir(), f"mpc_lab_compiling_{shared}")
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    session.config.add_cleanup(lambda: path.unlink(missing_ok=True))
    session.config.add_cleanup(lambda: os.close(file))
    inside = 0  # compiling a kernel compiles what it calls

    def wait_for_turn() -> None:
        last = time.monotonic() + LONGEST_COMPILING
        while time.monotonic() < last:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.02)

    def compile_in_turn(self: Dispatcher, signature: object) -> object:
        nonlocal inside
        with lock:
            if not inside:
                wait_for_turn()
            inside += 1
            try:
                return compile_alone(self, signature)
            finally:
                inside -= 1
                if not inside:
                    fcntl.flock(file, fcntl.LOCK_UN)

    Dispatcher.compile = compile_in_turn
    session.config.add_cleanup(lambda: setattr(Dispatcher, "compile", compile_alone))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in SHARED:
            if item.get_closest_marker(f"needs_{name}"):
                item.add_marker(pytest.mark.xdist_group(name))
                break
        else:
            if item.path.parent.name in TOGETHER:
                item.add_marker(pytest.mark.xdist_group(item.path.parent.name))
            elif not any(item.iter_markers("xdist_group")) and not any(item.iter_markers("long")):
                # What the tests of a file share is made on one worker; long ones fill the gaps.
                item.add_marker(pytest.mark.xdist_group(item.path.name))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and not IS_CI:
        pytest.skip("takes long: it runs where CI is set (CI=true pytest)")
    for name in PROBLEMS:
        if item.get_closest_marker(f"needs_{name}"):
            if name in ASKED_FOR and not IS_CI and name not in required():
                pytest.skip(f"needs {name}: it runs where CI is set, or MPC_LAB_REQUIRE={name}")
            need(name)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder with ``ml-1m`` and ``ml-latest-small``; mark its tests ``needs_data``."""
    need("data")
    return Path(os.environ["MPC_LAB_DATA"])


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the path of a Chromium; mark its tests ``needs_browser``."""
    need("browser")
    return chromium()


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the charts and most placebos out of a report whose words are asked for."""
    for name in ("draw", "figure"):
        monkeypatch.setattr(
            f"mpc_lab.report.context.Context.{name}", lambda *_, **__: "<figure></figure>"
        )
    for module in ("context", "sections.checks"):
        monkeypatch.setattr(f"mpc_lab.report.{module}.PLACEBOS", 10)


# One Dask cluster and one Spark session for all tests that need them.


@pytest.fixture(scope="session")
def dask_client():
    """Return the client of two workers, each a process of its own."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def spark():
    """Return a Spark session of two local workers, bound to this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()
