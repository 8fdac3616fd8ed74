"""Fixtures of the results room: audits made by hand, and one that was saved."""

from __future__ import annotations

import pytest

from helpers.handmade import Rows, build, cell


@pytest.fixture
def make_audit():
    return build


@pytest.fixture
def audit():
    flagged = cell(0.0687, 0.0487, 0.0887, "undervalued")
    return build(cells={"1": flagged})


@pytest.fixture(scope="session")
def saved_bytes(tmp_path_factory):
    """Return the content of a good file, which many tests damage in their own way."""
    path = tmp_path_factory.mktemp("saved") / "a.nc"
    build(ranking=Rows()).save(path)
    return path.read_bytes()


@pytest.fixture
def saved(tmp_path, saved_bytes):
    (tmp_path / "a.nc").write_bytes(saved_bytes)
    return tmp_path / "a.nc"


@pytest.fixture
def audit_with_rows():
    return build(ranking=Rows(), cells={"1": cell(0.1, 0.05, 0.15, "undervalued", epsilon=0.1)})
