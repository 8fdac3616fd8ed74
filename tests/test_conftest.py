"""Skipping must be visible, and must turn into failing where a thing is required."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MARKED = """
import pytest

@pytest.mark.needs_data
def test_data(data_folder):
    assert (data_folder / "ml-1m" / "ratings.dat").read_text() == "1::1::5::0"
"""


@pytest.fixture
def run(tmp_path):
    """Run one marked test in a process of its own; the environment is given by keyword."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs_data: the data\n")
    (tmp_path / "test_marked.py").write_text(MARKED)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("MPC_LAB_", "PYTEST_"))}

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
        return subprocess.run(
            command, env=base | environment, cwd=tmp_path, capture_output=True, text=True
        )

    return run


def test_absent_data_skips_and_says_why(run):
    result = run()
    assert result.returncode == 0
    assert "1 skipped" in result.stdout
    assert "MPC_LAB_DATA is not set" in result.stdout


def test_absent_data_fails_where_it_is_required(run):
    result = run(MPC_LAB_REQUIRE="dask, data")
    assert result.returncode == 1
    assert "data is required by MPC_LAB_REQUIRE, but MPC_LAB_DATA is not set" in result.stdout


def test_a_folder_without_the_files_names_them(run, tmp_path):
    result = run(MPC_LAB_REQUIRE="data", MPC_LAB_DATA=str(tmp_path))
    assert result.returncode == 1
    assert "lacks ml-1m/ratings.dat, ml-latest-small/ratings.csv" in result.stdout


def test_present_data_is_used(run, tmp_path):
    for name in ("ml-1m/ratings.dat", "ml-latest-small/ratings.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1::1::5::0")
    result = run(MPC_LAB_REQUIRE="data", MPC_LAB_DATA=str(tmp_path))
    assert result.returncode == 0
    assert "1 passed" in result.stdout


def test_a_misspelt_requirement_stops_the_run(run):
    result = run(MPC_LAB_REQUIRE="dta")
    assert result.returncode == 4
    assert "got dta" in result.stderr


SHARING = """
import pathlib
import pytest

@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("number", range(6))
def test_number(number, worker_id):
    pathlib.Path(__file__).with_name(f"{worker_id}.seen").touch()
"""


def test_tests_that_share_a_browser_stay_on_one_worker(tmp_path):
    (tmp_path / "test_sharing.py").write_text(SHARING)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", str(tmp_path)]
    subprocess.run([*command, "-p", "no:cacheprovider"], check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.seen"))) == 1
