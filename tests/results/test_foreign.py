"""A file from somebody else can point into other files, link in a circle or claim any size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import mpc_lab as mpc
from helpers.saved_files import seal_again
from mpc_lab.results.storage import load

OLD = Path(__file__).with_name("audit_0_1.nc")
PLACE = "headline/estimate"


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The bytes of an audit as it is saved today, and as 0.1 saved it."""
    path = tmp_path_factory.mktemp("saved") / "a.nc"
    mpc.audit(mpc.datasets.synthetic(queries=150), progress=False).save(path)
    return {"new": path.read_bytes(), "old": OLD.read_bytes()}


@pytest.fixture(params=["new", "old"])
def path(request, contents, tmp_path):
    (tmp_path / "secret").write_bytes(np.arange(1000.0).tobytes())
    (tmp_path / "a.nc").write_bytes(contents[request.param])
    return tmp_path / "a.nc"


def refused(path, change, match, **options):
    """Assert that a file is refused in one sentence and a hint once it was changed and sealed."""
    with h5py.File(path, "a", **options) as file:
        change(file)
    seal_again(path)
    with pytest.raises(mpc.MpcError, match=match) as error:
        load(path)
    assert str(error.value).startswith(f"{str(path)!r} ")
    assert "\n" not in str(error.value)


def replace(file, **made):
    del file[PLACE]
    return file.create_dataset(PLACE, **made)


def test_both_files_are_good_before_anything_is_changed(path):
    assert load(path).attrs["schema_version"] == 2


def test_storage_in_another_file_is_refused(path):
    secret = [(str(path.with_name("secret")), 0, 16)]
    refused(
        path,
        lambda file: replace(file, shape=(2, 1, 1), dtype="f8", external=secret),
        "must hold its numbers itself; got storage in other files at '/headline/estimate'",
    )


@pytest.mark.parametrize("source", ["other.h5", "."])
def test_a_virtual_dataset_is_refused(path, source):
    where = str(path.with_name(source)) if source != "." else "."

    def change(file):
        del file[PLACE]
        layout = h5py.VirtualLayout((2, 1, 1), "f8")
        layout[...] = h5py.VirtualSource(where, "headline/std_error", (2, 1, 1))
        file.create_virtual_dataset(PLACE, layout)

    refused(path, change, "must hold its numbers itself; got storage in other files")


@pytest.mark.parametrize(
    ("link", "match"),
    [
        (h5py.ExternalLink("secret", "/"), "must hold its parts itself; got a link to another"),
        (h5py.SoftLink("/headline/std_error"), "must hold its parts itself; got a soft link"),
        (h5py.SoftLink("/nowhere"), "got a soft link at '/headline/estimate'"),
    ],
)
def test_a_link_to_elsewhere_is_refused(path, link, match):
    def change(file):
        del file[PLACE]
        file[PLACE] = link

    refused(path, change, match)


def test_a_part_that_is_a_link_is_refused(path):
    def change(file):
        del file["curve"]
        file["curve"] = h5py.ExternalLink("other.nc", "/curve")

    refused(path, change, "got a link to another file at '/curve'")


def test_two_links_to_one_dataset_are_refused(path):
    def change(file):
        file["headline/again"] = file[PLACE]

    refused(path, change, "must hold each object once; got a second link to the same object")


LOAD = """
import sys
import mpc_lab as mpc
for path in sys.argv[1:]:
    try:
        mpc.load(path)
    except mpc.MpcError as error:
        print(error)
"""
CIRCLES = [("headline/up", "/"), ("headline/up", "headline"), ("up", "/")]


def test_a_circle_of_links_is_refused_and_not_walked(contents, tmp_path):
    """In a process of its own, which a walk in circles would end."""
    paths = []
    for kind, content in contents.items():
        for number, (inner, outer) in enumerate(CIRCLES):
            paths.append(tmp_path / f"{kind}{number}.nc")
            paths[-1].write_bytes(content)
            with h5py.File(paths[-1], "a") as file:
                file[inner] = file[outer]
            seal_again(paths[-1])
    words = [sys.executable, "-c", LOAD, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert len(told) == len(paths)
    assert all("got a second link to the same object" in line for line in told)


def add_type(file):
    file["headline/type"] = np.dtype("f8")


def use_named_type(file):
    file["type"] = np.dtype("f8")
    replace(file, shape=(2, 1, 1), dtype=file["type"])
    del file["type"]


def attach_named_type(file):
    file["type"] = np.dtype("f8")
    file.attrs.create("level", 0.5, dtype=file["type"])
    del file["type"]


def add_filter_twice(file):
    del file[PLACE]
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((2, 1, 1))
    made.set_deflate(9)
    made.set_deflate(9)
    space = h5py.h5s.create_simple((2, 1, 1))
    h5py.h5d.create(file["headline"].id, b"estimate", h5py.h5t.IEEE_F64LE, space, made)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.create_group("headline/in/side"), "must hold groups of datasets; got a group"),
        (add_type, "must hold groups of datasets; got a named type"),
        (use_named_type, "must hold (plain numbers and texts|groups)"),
        (attach_named_type, "must hold plain numbers and texts; got a named type at '/:level'"),
        (
            lambda f: replace(f, data=np.array([f.ref, f.ref]), dtype=h5py.ref_dtype),
            "must hold plain numbers and texts; got another type at '/headline/estimate'",
        ),
        (lambda f: replace(f, shape=(2,), dtype=h5py.regionref_dtype), "got another type"),
        (lambda f: replace(f, shape=(2,), dtype=h5py.vlen_dtype("f8")), "got another type"),
        (lambda f: replace(f, shape=(2,), dtype=[("a", "f8"), ("b", "f8")]), "got another type"),
        (lambda f: replace(f, shape=(2,), dtype=h5py.opaque_dtype("M8[s]")), "got another type"),
        (lambda f: replace(f, shape=(2,), dtype=np.longdouble), "got another type"),
        (
            lambda f: replace(f, data=np.zeros(9), chunks=(3,), compression="lzf"),
            "must be packed by gzip and shuffle alone; got the filters 32000",
        ),
        (lambda f: replace(f, data=np.zeros(9, int), chunks=(3,), scaleoffset=1), "filters 6"),
        (add_filter_twice, "got the filters 1, 1"),
        (lambda f: replace(f, data=np.zeros(9), maxshape=(None,)), "an array that may grow"),
        (lambda f: replace(f, data=np.zeros((1,) * 9)), "must hold arrays of at most 8 dims"),
        (lambda f: replace(f, data=h5py.Empty("f8")), "must hold arrays of at most 8 dims"),
        (
            lambda f: replace(f, shape=(10**6, 10**6), dtype="f8"),
            "must hold all that it claims; got a claim of 8,000,000,000,000 bytes",
        ),
        (
            lambda f: replace(f, shape=(10**6, 10**6), dtype="f8", chunks=(1000, 1000)),
            "got a claim of 8,000,000,000,000 bytes at '/headline/estimate'",
        ),
        (lambda f: replace(f, shape=(10,), dtype="S1000000000"), "got a claim of 10,000,000,000"),
        (lambda f: f.attrs.create("a", f.ref, dtype=h5py.ref_dtype), "got another type at '/:a'"),
        (
            lambda f: f.attrs.create("a", ["x", "y"], dtype=h5py.string_dtype()),
            "must have attributes of one text each; got several at '/:a'",
        ),
        (
            lambda f: [f["curve"].create_dataset(str(k), data=0.0) for k in range(1001)],
            "must hold at most 1,000 objects; got 1,",
        ),
        (
            lambda f: [f.attrs.create(f"a{k}", k) for k in range(1001)],
            "must have at most 1,000 attributes; got 1,",
        ),
    ],
)
def test_what_is_never_saved_is_refused(path, change, match):
    refused(path, change, match)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("options", "[]", "options must be a JSON object; got list"),
        ("columns", "{", "options cannot be read"),
        ("alpha", "5", "alpha must be a JSON object; got int"),
        ("in_sample", "{", "options cannot be read"),
        ("in_sample", '"calibrated"', "in_sample must be a JSON list; got str"),
        ("left_out_of_sides", '["<b>"]', "left_out_of_sides must hold numbers of queries"),
    ],
)
def test_attributes_of_the_wrong_kind_are_refused(path, name, value, match):
    with h5py.File(path, "a") as file:
        file.attrs[name] = value
    seal_again(path)
    with pytest.raises(mpc.MpcError, match=match):
        load(path)


def test_an_attribute_too_large_for_a_header_is_refused(path):
    # Without "latest", HDF5 refuses to write it.
    def change(file):
        file.create_group("more").attrs["a"] = np.zeros(10_000)

    refused(
        path, change, r"must have attributes of at most 65,536 bytes; got more", libver="latest"
    )


def test_one_chunk_of_a_large_array_is_refused(path):
    def change(file):
        made = replace(file, shape=(10**5, 10**5), dtype="f8", chunks=(10, 10), compression="gzip")
        made[0, 0] = 1.0

    refused(path, change, "got a claim of 80,000,000,000 bytes")


def test_a_dimension_without_content_is_not_read_as_numbers(path):
    def change(file):
        replace(file, shape=(10**12,), dtype="f4").make_scale("estimate")

    refused(
        path,
        change,
        r"a\.nc' (cannot be read as an audit: estimate must hold|claims|cannot be read)",
    )


def test_texts_of_any_length_are_refused_today(contents, tmp_path):
    (tmp_path / "a.nc").write_bytes(contents["new"])
    texts = np.full((2, 1, 1), "undervalued", dtype=h5py.string_dtype())
    refused(
        tmp_path / "a.nc",
        lambda file: replace(file, data=texts),
        "must hold plain numbers and texts; got texts of any length",
    )


def test_texts_that_share_their_letters_are_refused(contents, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(contents["old"])
    with h5py.File(path, "a") as file:
        made = file.create_dataset("headline/more", (1000,), h5py.string_dtype())
        made[0] = "x" * 100_000
        start = made.id.get_offset()
    content = bytearray(path.read_bytes())
    content[start : start + 16_000] = content[start : start + 16] * 1000
    path.write_bytes(content)
    refused(path, lambda file: None, "must hold all that it claims; got texts of 100,")


def test_a_reference_that_leads_nowhere_is_refused(contents, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(contents["old"])

    def change(file):
        del file["headline/group"]

    refused(path, change, r"a\.nc' ")


def test_a_file_that_begins_with_something_else_is_refused(contents, tmp_path):
    path = tmp_path / "a.nc"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["schema_version"] = 2
    refused(path, lambda file: None, "cannot be read as an audit")


@pytest.mark.parametrize(
    "listed", ["[]", '{"estimate": 3}', '{"estimate": {"dims": [1], "attrs": {}}}', "[" * 99_999]
)
def test_a_wrong_list_of_variables_is_refused(contents, tmp_path, listed):
    path = tmp_path / "a.nc"
    path.write_bytes(contents["new"])

    def change(file):
        file["headline"].attrs["_variables"] = listed

    refused(path, change, r"a\.nc' (cannot be read as an audit: headline must list|cannot be read)")


def test_attributes_and_dims_in_the_list_are_checked(contents, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(contents["new"])

    def change(file):
        group = file["headline"]
        listed = group.attrs["_variables"].decode()
        group.attrs["_variables"] = listed.replace('"group", ', "", 1)

    refused(path, change, r"cannot be read as an audit: headline\.\w+ must have dims .*; got shape")
