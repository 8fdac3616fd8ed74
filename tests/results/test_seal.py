"""A saved audit that was cut or changed is refused by name, also under a new seal."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

import mpc_lab as mpc
from helpers.saved_files import seal_again
from mpc_lab.results.storage import load


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a saved audit."""
    path = tmp_path_factory.mktemp("saved") / "a.nc"
    mpc.audit(mpc.datasets.synthetic(queries=150), progress=False).save(path)
    return path.read_bytes()


def test_every_changed_byte_is_seen(content, tmp_path):
    path = tmp_path / "a.nc"
    for place in np.linspace(0, len(content) - 1, 60).astype(int):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(mpc.MpcError, match=r"a\.nc' cannot be read as an audit"):
            load(path)


@pytest.mark.parametrize("length", [0, 1, 81, -1, -40, -81, -82])
def test_a_cut_file_is_seen(content, tmp_path, length):
    (tmp_path / "a.nc").write_bytes(content[:length])
    with pytest.raises(mpc.MpcError, match=r"a\.nc' cannot be read as an audit"):
        load(tmp_path / "a.nc")


def test_a_file_that_another_program_wrote_to_is_seen(content, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    with h5py.File(path, "a") as file:
        file["headline/estimate"][...] = 0.0
    with pytest.raises(mpc.MpcError, match=r"a\.nc' cannot be read as an audit: its seal is gone"):
        load(path)


def with_option(name, value):
    def change(file):
        options = json.loads(file.attrs["options"])
        file.attrs["options"] = json.dumps({**options, name: value})

    return change


def set_attribute(name, value):
    def change(file):
        file.attrs[name] = value

    return change


def set_text(file):
    del file["headline/verdict"]
    file["headline/verdict"] = np.full((2, 1, 1), "fair", dtype=h5py.string_dtype())


def claim_much(file):
    del file["headline/estimate"]
    file.create_dataset("headline/estimate", (10**6, 10**6), "f8", chunks=(1000, 1000))


@pytest.mark.parametrize(
    "change",
    [
        with_option("level", 7),
        with_option("cluster", "<script>"),
        with_option("adjust", None),
        with_option("tolerance", "much"),
        set_attribute("options", "["),
        set_attribute("options", "[" * 100_000),
        set_attribute("options", "[1]"),
        set_attribute("versions", "3"),
        set_attribute("n_units", "many"),
        set_attribute("schema_version", "x"),
        set_attribute("schema_version", 99),
        set_text,
        claim_much,
    ],
)
def test_a_change_under_a_new_seal_is_refused_by_what_it_holds(content, tmp_path, change):
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    with h5py.File(path, "a") as file:
        change(file)
    seal_again(path)
    with pytest.raises(mpc.MpcError, match=r"a\.nc'"):
        load(path)


@pytest.mark.parametrize("path", [b"a.nc", 3, None, "a\0b", ""])
def test_a_bad_path_is_refused(path):
    with pytest.raises(mpc.MpcError, match=r"mpc\.load must have the path|There is no file"):
        load(path)


def test_an_audit_saved_over_a_device_is_refused(tmp_path):
    audit = mpc.audit(mpc.datasets.synthetic(queries=50), progress=False)
    with pytest.raises(mpc.MpcError, match="cannot be written"):
        audit.save("/dev/null")
