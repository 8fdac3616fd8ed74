"""The notebooks come along with the package, and never replace what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpc_lab.cli import notebooks as tutorials
from mpc_lab.errors import MpcError

ROOT = Path(__file__).parents[1]


def names(paths):
    return [path.name for path in paths]


def test_they_come_in_the_order_to_read_them():
    # Where the package is installed, this is true only if the wheel holds them.
    assert names(tutorials.notebooks()) == sorted(names((ROOT / "notebooks").glob("*.ipynb")))


def test_they_are_copied_whole_into_a_new_folder(tmp_path):
    copies = tutorials.copy_notebooks(tmp_path / "new" / "folder")
    assert [copy.name for copy in copies if copy.suffix == ".nc"] == ["movielens_1m.nc"]
    for copy in copies:
        assert copy.read_bytes() == (ROOT / "notebooks" / copy.name).read_bytes()


def test_a_notebook_that_was_worked_on_stays(tmp_path):
    own = tmp_path / "01_first_audit.ipynb"
    own.write_text("mine")
    with pytest.raises(
        MpcError, match=r"must not hold the notebooks yet; got 01_first_audit\.ipynb"
    ):
        tutorials.copy_notebooks(tmp_path)
    assert own.read_text() == "mine"
    assert names(tmp_path.iterdir()) == ["01_first_audit.ipynb"]


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MpcError, match=r"a file\. Name a folder"):
        tutorials.copy_notebooks(tmp_path / "file")


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "01_first_audit.ipynb").symlink_to(tmp_path / "elsewhere.ipynb")
    with pytest.raises(
        MpcError, match=r"must not hold the notebooks yet; got 01_first_audit\.ipynb"
    ):
        tutorials.copy_notebooks(folder)
    assert names(folder.iterdir()) == ["01_first_audit.ipynb"]
    assert not (tmp_path / "elsewhere.ipynb").exists()


@pytest.mark.parametrize("below", ["", "new/folder"])
def test_a_link_that_leads_nowhere_is_not_a_folder(tmp_path, below):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(MpcError, match=r"link, a link that leads nowhere\. Name another folder"):
        tutorials.copy_notebooks(tmp_path / "link" / below)
    assert names(tmp_path.iterdir()) == ["link"]


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MpcError, match=r"file, a file\. Name a folder"):
        tutorials.copy_notebooks(tmp_path / "file" / "new")


@pytest.mark.skipif(os.name != "posix", reason="other systems have other rights")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(MpcError, match=r"cannot be copied to .*: Permission denied\. Name"):
        tutorials.copy_notebooks(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_new", [True, False])
def test_copies_that_fail_halfway_leave_nothing_behind(tmp_path, monkeypatch, error, is_new):
    folder = tmp_path / "new" / "folder" if is_new else tmp_path
    opened = []

    def fill(path, mode):
        opened.append(path)
        if len(opened) == 3:
            raise error
        return open(path, mode)

    monkeypatch.setattr(tutorials, "open", fill, raising=False)
    with pytest.raises((MpcError, KeyboardInterrupt)) as caught:
        tutorials.copy_notebooks(folder)
    assert list(tmp_path.iterdir()) == []
    if isinstance(error, OSError):
        assert "No space left on device. Name another folder" in str(caught.value)


def test_an_installation_without_them_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tutorials, "_PACKAGE", tmp_path / "mpc_lab")
    with pytest.raises(MpcError, match="Install mpc-lab again"):
        tutorials.notebooks()


def test_an_installed_package_finds_them_inside_itself(tmp_path, monkeypatch):
    inside = tmp_path / "mpc_lab" / "notebooks"
    inside.mkdir(parents=True)
    (inside / "01_first_audit.ipynb").write_text("{}")
    monkeypatch.setattr(tutorials, "_PACKAGE", tmp_path / "mpc_lab")
    assert tutorials.notebooks() == [inside / "01_first_audit.ipynb"]
