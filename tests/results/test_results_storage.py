"""A saved audit comes back bit for bit, and a file that is none is refused by name."""

from __future__ import annotations

import os
import stat

import h5py
import numpy as np
import pytest
import xarray as xr
from conftest import EMPTY, HOSTILE, Rows

import mpc_lab.results.storage as storage
from mpc_lab.errors import MpcError
from mpc_lab.results import load


def same(left: xr.DataTree, right: xr.DataTree) -> None:
    """Assert that two trees hold the same bits under the same names."""
    assert [node.path for node in left.subtree] == [node.path for node in right.subtree]
    for mine, other in zip(left.subtree, right.subtree, strict=True):
        assert mine.attrs == other.attrs
        assert {k: type(v) for k, v in mine.attrs.items()} == {
            k: type(v) for k, v in other.attrs.items()
        }
        assert list(mine.variables) == list(other.variables)
        for name, variable in mine.variables.items():
            assert variable.dtype == other.variables[name].dtype, name
            assert variable.dims == other.variables[name].dims, name
            assert variable.attrs == other.variables[name].attrs, name
            np.testing.assert_array_equal(variable.values, other.variables[name].values)
            if variable.dtype.kind == "f":
                sign = np.signbit(other.variables[name].values)
                held = ~np.isnan(variable.values)
                assert (np.signbit(variable.values) == sign)[held].all(), name


@pytest.mark.parametrize("groups", [("1",), ("1", "2"), HOSTILE, tuple(map(str, range(3000)))])
def test_round_trip_is_bit_equal(make_audit, tmp_path, groups):
    audit = make_audit(groups, cells={groups[0]: EMPTY})
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_of_several_rules_and_modes(make_audit, tmp_path):
    audit = make_audit(rules=("baseline", "böosted"), modes=("matched", "mirrored", "adjacent"))
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_keeps_negative_zero_and_infinity(make_audit, tmp_path):
    audit = make_audit(cells={"1": {"estimate": -0.0, "ci_high": np.inf}})
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_round_trip_without_moments_and_with_long_attributes(make_audit, tmp_path):
    audit = make_audit(attrs={"family": "x" * 300_000, "empty": "", "n": 3, "share": 0.5})
    audit.moments = None
    audit.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_a_loaded_audit_saves_again_to_the_same_tree(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    load(tmp_path / "a.nc").save(tmp_path / "b.nc")
    same(audit.tree, load(tmp_path / "b.nc").tree)


def test_the_file_may_replace_itself(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    loaded = load(tmp_path / "a.nc")
    loaded.save(tmp_path / "a.nc")
    same(audit.tree, load(tmp_path / "a.nc").tree)


def test_the_file_has_the_usual_permissions(audit, tmp_path):
    (tmp_path / "plain").touch()
    audit.save(tmp_path / "a.nc")
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("a.nc", "plain")]
    assert modes[0] == modes[1]


def test_a_failed_save_leaves_the_old_file_and_no_scrap(audit, tmp_path, monkeypatch):
    audit.save(tmp_path / "a.nc")
    before = (tmp_path / "a.nc").read_bytes()

    def full(*_args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(storage.os, "replace", full)
    with pytest.raises(MpcError, match=r"a\.nc' could not be written: no space left"):
        audit.save(tmp_path / "a.nc")
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]
    assert (tmp_path / "a.nc").read_bytes() == before


def test_saving_into_a_missing_folder_is_refused(audit, tmp_path):
    with pytest.raises(MpcError, match="a folder that exists"):
        audit.save(tmp_path / "none" / "a.nc")


def test_saving_over_a_folder_is_refused(audit, tmp_path):
    with pytest.raises(MpcError, match="a folder that exists"):
        audit.save(tmp_path)


def test_rows_are_never_saved(audit_with_rows, tmp_path):
    audit_with_rows.save(tmp_path / "a.nc")
    assert load(tmp_path / "a.nc").ranking is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MpcError, match=r"no file '.*gone\.nc'"):
        load(tmp_path / "gone.nc")


@pytest.mark.parametrize(
    "content", [b"", b"group,estimate\n1,0.2\n", b"\x89HDF\r\n\x1a\n" + b"0" * 99]
)
def test_a_file_of_another_kind_is_named(tmp_path, content):
    (tmp_path / "a.nc").write_bytes(content)
    with pytest.raises(MpcError, match=r"a\.nc' cannot be read as an audit"):
        load(tmp_path / "a.nc")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_named(audit, tmp_path, share):
    audit.save(tmp_path / "a.nc")
    content = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "a.nc").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(MpcError, match=r"a\.nc' cannot be read as an audit"):
        load(tmp_path / "a.nc")


def test_a_foreign_netcdf_file_is_named(tmp_path):
    xr.Dataset({"rain": ("day", [1.0])}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(MpcError, match=r"a\.nc' is not a saved audit"):
        load(tmp_path / "a.nc")


def test_a_newer_schema_is_refused(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "a") as file:
        file.attrs["schema_version"] = 99
    with pytest.raises(MpcError, match=r"saved with schema 99, newer than 1 .* upgrade mpc_lab"):
        load(tmp_path / "a.nc")


@pytest.mark.parametrize("lost", ["headline", "curve", "headline/estimate"])
def test_a_file_that_lost_a_part_is_named(audit, tmp_path, lost):
    audit.save(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "a") as file:
        del file[lost]
    with pytest.raises(MpcError, match=rf"a\.nc' is a damaged audit: .*{lost.split('/')[-1]}"):
        load(tmp_path / "a.nc")


def test_the_same_ranking_is_taken_back(audit_with_rows, tmp_path):
    audit_with_rows.save(tmp_path / "a.nc")
    ranking = Rows()
    assert load(tmp_path / "a.nc", ranking=ranking).ranking is ranking


def test_another_ranking_is_refused(audit_with_rows, tmp_path):
    audit_with_rows.save(tmp_path / "a.nc")
    with pytest.raises(MpcError, match=r"not the one that .*a\.nc.* fingerprints differ"):
        load(tmp_path / "a.nc", ranking=Rows("beef"))
