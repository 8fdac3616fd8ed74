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
    pass

@pytest.mark.long
def test_long():
    pass
"""


@pytest.fixture
def need(request, monkeypatch):
    """Return what a marked test is asked, where the environment says nothing of data."""
    for name in ("MPC_LAB_DATA", "MPC_LAB_REQUIRE"):
        monkeypatch.delenv(name, raising=False)
    here = str(Path(__file__).with_name("conftest.py"))
    return request.config.pluginmanager.get_plugin(here).need


def test_absent_data_skips_and_says_why(need):
    with pytest.raises(pytest.skip.Exception, match="MPC_LAB_DATA is not set"):
        need("data")


def test_absent_data_fails_where_it_is_required(need, monkeypatch):
    monkeypatch.setenv("MPC_LAB_REQUIRE", "dask, data")
    said = "data is required by MPC_LAB_REQUIRE, but MPC_LAB_DATA is not set"
    with pytest.raises(pytest.fail.Exception, match=said):
        need("data")


def test_a_folder_without_the_files_names_them(need, monkeypatch, tmp_path):
    monkeypatch.setenv("MPC_LAB_REQUIRE", "data")
    monkeypatch.setenv("MPC_LAB_DATA", str(tmp_path))
    said = r"lacks ml-1m/ratings\.dat, ml-latest-small/ratings\.csv"
    with pytest.raises(pytest.fail.Exception, match=said):
        need("data")


def test_present_data_is_used(need, monkeypatch, tmp_path):
    for name in ("ml-1m/ratings.dat", "ml-latest-small/ratings.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1::1::5::0")
    monkeypatch.setenv("MPC_LAB_DATA", str(tmp_path))
    need("data")


@pytest.fixture
def run(tmp_path):
    """Run two marked tests in a process of its own; the environment is given by keyword."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  needs_data: data\n  long: long\n")
    (tmp_path / "test_marked.py").write_text(MARKED)
    own = ("MPC_LAB_", "PYTEST_", "CI")
    base = {name: value for name, value in os.environ.items() if not name.startswith(own)}

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
        return subprocess.run(
            command, env=base | environment, cwd=tmp_path, capture_output=True, text=True
        )

    return run


def test_what_is_skipped_is_shown_with_its_reason(run):
    result = run()
    assert result.returncode == 0
    assert "2 skipped" in result.stdout
    assert "MPC_LAB_DATA is not set" in result.stdout
    assert "takes long: it runs where CI is set" in result.stdout


def test_what_is_required_fails_and_ci_runs_what_takes_long(run):
    result = run(MPC_LAB_REQUIRE="data", CI="true")
    assert result.returncode == 1
    assert "1 passed, 1 error" in result.stdout
    assert "data is required by MPC_LAB_REQUIRE" in result.stdout


@pytest.mark.long
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


@pytest.mark.long
def test_tests_that_share_a_browser_stay_on_one_worker(tmp_path):
    (tmp_path / "test_sharing.py").write_text(SHARING)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", str(tmp_path)]
    subprocess.run([*command, "-p", "no:cacheprovider"], check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.seen"))) == 1
