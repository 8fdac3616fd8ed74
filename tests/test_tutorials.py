"""The notebooks come along with the package, and never replace what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc_lab import tutorials
from mpc_lab.errors import MpcError

ROOT = Path(__file__).parents[1]


def names(paths):
    return [path.name for path in paths]


def test_they_come_in_the_order_to_read_them():
    # Where the package is installed, this is true only if the wheel holds them.
    assert names(tutorials.notebooks()) == sorted(names((ROOT / "notebooks").glob("*.ipynb")))


def test_they_are_copied_whole_into_a_new_folder(tmp_path):
    copies = tutorials.copy_notebooks(tmp_path / "new" / "folder")
    for copy in copies:
        assert copy.read_bytes() == (ROOT / "notebooks" / copy.name).read_bytes()


def test_a_notebook_that_was_worked_on_stays(tmp_path):
    own = tmp_path / "01_first_audit.ipynb"
    own.write_text("mine")
    with pytest.raises(MpcError, match=r"has 01_first_audit\.ipynb already"):
        tutorials.copy_notebooks(tmp_path)
    assert own.read_text() == "mine"
    assert names(tmp_path.iterdir()) == ["01_first_audit.ipynb"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MpcError, match="is a file: name another"):
        tutorials.copy_notebooks(tmp_path / "file")


def test_an_installation_without_them_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tutorials, "_PACKAGE", tmp_path / "mpc_lab")
    with pytest.raises(MpcError, match="install mpc-lab anew"):
        tutorials.notebooks()


def test_an_installed_package_finds_them_inside_itself(tmp_path, monkeypatch):
    inside = tmp_path / "mpc_lab" / "notebooks"
    inside.mkdir(parents=True)
    (inside / "01_first_audit.ipynb").write_text("{}")
    monkeypatch.setattr(tutorials, "_PACKAGE", tmp_path / "mpc_lab")
    assert tutorials.notebooks() == [inside / "01_first_audit.ipynb"]
