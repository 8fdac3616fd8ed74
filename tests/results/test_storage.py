"""A saved audit comes back bit for bit, and a file that is none is refused by name."""

from __future__ import annotations

import errno
import io
import os
import stat
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import xarray as xr

import mpc_lab as mpc
import mpc_lab.results.storage as storage
import storage_speed
from helpers.handmade import EMPTY, Rows
from helpers.hostile import HOSTILE
from helpers.saved_files import same
from mpc_lab.errors import MpcError
from mpc_lab.results import load
from mpc_lab.results.pooling import cross_sums, item_tables, query_ids


def test_round_trip_of_hostile_names_and_odd_numbers(make_audit, tmp_path):
    odd = {"estimate": -0.0, "ci_high": np.inf, "verdict_reason": ""}
    cells = {HOSTILE[0]: EMPTY, HOSTILE[1]: odd}
    rules, modes = ("baseline", "böosted"), ("matched", "mirrored", "adjacent")
    audit = make_audit(HOSTILE, rules, modes, cells, attrs={"n": 3, "share": 0.5, "empty": ""})
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_of_one_group_without_moments_and_with_a_long_attribute(make_audit, tmp_path):
    audit = make_audit(("1",), attrs={"family": "x" * 300_000})
    audit.moments = None
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_of_arrays_large_enough_to_be_compressed(make_audit, tmp_path):
    audit = make_audit(tuple(map(str, range(4000))))
    audit.save(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["curve/estimate"].compression == "gzip"
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_of_attributes_and_texts_of_every_kind(make_audit, tmp_path):
    attrs = {"long": "é" * 40_000, "lone": "\ud800", "n": -(2**63), "tiny": 5e-324, "b": "a\nb "}
    audit = make_audit(("\ud800", "a\0b", "x" * 100_000), attrs=attrs)
    audit.headline["estimate"].attrs["note"] = "mine"
    audit.moments["query_cc"].attrs["units"] = "pairs"
    audit.save(tmp_path / "a.nc")
    loaded = load(tmp_path / "a.nc")
    same(audit.tree, loaded.tree)
    assert list(loaded.attrs) == list(audit.attrs)


def test_round_trip_of_everything_that_can_be_saved(tmp_path):
    how = {"scoring_rules": ("baseline", mpc.Boosted(0.1)), "epsilon": [0.01, 0.1]}
    modes = ("matched", "mirrored", "adjacent")
    log = mpc.datasets.synthetic(queries=100)
    audit = mpc.audit(log, **how, pairing_modes=modes, bootstrap=19, progress=False)
    audit.save(tmp_path / "a.nc", items=True, ids=True, key="k")
    loaded = load(tmp_path / "a.nc")
    wanted = {**item_tables(audit), "cross": cross_sums(audit), "ids": query_ids(audit, "k")}
    for part, ds in wanted.items():
        same(xr.DataTree(ds), xr.DataTree(loaded._saved[part]))
    same(audit.tree, loaded.tree)
    loaded.save(tmp_path / "b.nc")
    same(load(tmp_path / "b.nc").tree, loaded.tree)


def test_the_sums_of_squares_are_one_array_over_family_and_square(tmp_path):
    audit = mpc.audit(mpc.datasets.synthetic(queries=100), progress=False)
    audit.save(tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", group="moments", engine="h5netcdf") as moments:
        assert moments["squares"].dims[:2] == ("family", "square")
        assert not {"query_cc", "item_uu"} & {*moments.data_vars}
        found = moments["squares"].sel(family="item", square="uu").values
    np.testing.assert_array_equal(found, audit.moments["item_uu"].values)


@pytest.mark.long
def test_saving_and_loading_take_an_eighth_of_what_they_took_in_0_1():
    # The time of the processor, which other tests on the same machine do not lengthen much.
    seconds, _ = storage_speed.measure(storage_speed.build(), 3, time.process_time)
    assert seconds["save"] <= storage_speed.AT_MOST * seconds["save 0.1"]
    assert seconds["load"] <= storage_speed.AT_MOST * seconds["load 0.1"]


def test_any_reader_of_netcdf_understands_the_file(saved):
    loaded = load(saved)
    with xr.open_datatree(saved, engine="h5netcdf") as tree:
        assert tree.attrs["options"] == loaded.attrs["options"]
        for part in ("headline", "curve"):
            ours, theirs = getattr(loaded, part), tree[part].to_dataset()
            for name, array in ours.data_vars.items():
                assert theirs[name].dims == array.dims
                assert theirs[name].attrs == array.attrs
                assert (theirs[name].values == array.values).all()
            assert theirs["group"].values.tolist() == ["1", "2"]


def test_a_loaded_audit_may_replace_its_own_file(saved):
    loaded = load(saved)
    (saved.parent / "plain").touch()
    loaded.save(saved)
    same(loaded.tree, load(saved).tree)
    modes = {stat.S_IMODE(os.stat(path).st_mode) for path in saved.parent.iterdir()}
    assert len(modes) == 1


def test_a_failed_save_leaves_the_old_file_and_no_scrap(audit, saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(storage.os, "replace", full)
    with pytest.raises(MpcError, match=r"a\.nc' cannot be written: no space left"):
        audit.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["a.nc"]
    assert saved.read_bytes() == before


@pytest.mark.parametrize("room", [0, 1000])
def test_a_disk_that_is_full_leaves_the_old_file_and_no_scrap(audit, saved, monkeypatch, room):
    before = saved.read_bytes()

    class Full(io.FileIO):
        """A file on a disk with little room left."""

        def write(self, content):
            super().write(content[:room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage, "open", Full, raising=False)
    with pytest.raises(MpcError, match=r"a\.nc' cannot be written: .*No space left"):
        audit.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["a.nc"]
    assert saved.read_bytes() == before


# A limit on the size of files stops a write in its middle as a full disk does, and needs no mount.
FULL = """
import resource, signal, sys
import mpc_lab as mpc
audit = mpc.audit(mpc.datasets.synthetic(queries=150), progress=False)
audit.tree
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, resource.RLIM_INFINITY))
try:
    audit.save(sys.argv[1])
except mpc.MpcError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot limit the size of files")
@pytest.mark.long
def test_python_ends_well_after_a_write_that_failed(tmp_path):
    words = [sys.executable, "-c", FULL, str(tmp_path / "a.nc")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert "a.nc' cannot be written: " in done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["none/a.nc", "."])
def test_a_path_that_cannot_be_a_file_is_refused(audit, tmp_path, path):
    with pytest.raises(MpcError, match="Give a file in a folder that exists"):
        audit.save(tmp_path / path)


def test_rows_are_never_saved(saved):
    assert load(saved).ranking is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MpcError, match=r"no file '.*gone\.nc'"):
        load(tmp_path / "gone.nc")


@pytest.mark.parametrize("content", [b"", b"group,estimate\n1,0.2\n", b"\x89HDF\r\n\x1a\n0000"])
def test_a_file_of_another_kind_is_named(tmp_path, content):
    (tmp_path / "a.nc").write_bytes(content)
    with pytest.raises(MpcError, match=r"a\.nc' cannot be read as an audit"):
        load(tmp_path / "a.nc")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_named(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(MpcError, match=r"a\.nc' cannot be read as an audit"):
        load(saved)


def test_a_foreign_netcdf_file_is_named(tmp_path):
    xr.Dataset({"rain": ("day", [1.0])}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(MpcError, match=r"a\.nc' must be a saved audit"):
        load(tmp_path / "a.nc")


def test_a_newer_schema_is_refused(saved):
    with h5py.File(saved, "a") as file:
        file.attrs["schema_version"] = 99
    with pytest.raises(MpcError, match=r"a schema of at most 2, .*; got 99\. Upgrade mpc_lab"):
        load(saved)


@pytest.mark.parametrize("lost", ["headline", "curve", "headline/estimate"])
def test_a_file_that_lost_a_part_is_named(saved, lost):
    with h5py.File(saved, "a") as file:
        del file[lost]
    with pytest.raises(
        MpcError, match=rf"a\.nc' cannot be read as an audit: .*{lost.split('/')[-1]}"
    ):
        load(saved)


def test_the_same_ranking_is_taken_back(saved):
    ranking = Rows()
    assert load(saved, ranking=ranking).ranking is ranking


def test_another_ranking_is_refused(saved):
    with pytest.raises(MpcError, match=r"must be the one that .*a\.nc.* another fingerprint"):
        load(saved, ranking=Rows("beef"))
