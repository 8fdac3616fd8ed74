"""How the parts of an audit are laid out in a netCDF file, and how they are read from it.

Each part is a group, each variable a dataset with dimension scales, so that any reader of netCDF
understands the file. The sums of squares of ``moments``, which are eighteen variables in memory,
are one array over family and square, because creating a dataset costs more than filling it. Files
of mpc_lab 0.1 (schema 1) hold one netCDF variable for every variable.

A file may come from somebody else, so it is checked before it is read. HDF5 can do more than hold
numbers: a file can point into other files, link in a circle, and claim sizes that it does not hold.
Whatever :func:`write_parts` never writes is refused. All checks look at headers alone; no link is
followed before it is known to be a plain one.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import h5py
import numpy as np
import xarray as xr
from h5py import h5a, h5d, h5g, h5l, h5o, h5r, h5s, h5t, h5z
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.results.schema import (
    MOMENT_DIMS,
    SCHEMAS,
    SQUARES,
    SUM_FAMILIES,
    Attribute,
    clean_attrs,
    noted,
    text,
)

PARTS: Final = (
    "headline",
    "curve",
    "moments",
    "items",
    "dyads",
    "cross",
    "ids",
    "queries",
    "objective",
    "places",
)
# The attribute of each group that lists its variables in order, with everything about them that is
# not a number: one text is read faster than several attributes of each variable.
_VARIABLES: Final = "_variables"
_STACK: Final = "squares"
_STACK_DIMS: Final = ("family", "square", *MOMENT_DIMS)
_COMPRESSED_ABOVE = 10_000
_PACKED: Final = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
# A longer attribute does not fit into the header of an object.
_LONGEST_IN_HEADER = 60_000
# What netCDF writes in place of labels for a dimension without labels.
_NO_LABELS: Final = "This is a netCDF dimension but not a netCDF variable. {:10d}"
SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
# Well above what any audit needs: one or two hundred objects with some twenty attributes at most.
_MOST_OBJECTS = 1_000
_MOST_ATTRIBUTES = 1_000
_LARGEST_ATTRIBUTE = 1 << 16
_MOST_DIMS = 8
# gzip compresses at most a thousandfold: what claims to be larger was not written by save.
PACKED_AT_MOST: Final = 1_100
_FILTERS: Final = frozenset((h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32))
_LAYOUTS: Final = frozenset((h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED))
_NUMBERS: Final = frozenset((h5t.INTEGER, h5t.FLOAT))
# How netCDF ties variables to their dimensions; the only references that a saved audit holds.
_DIMENSIONS: Final = {"DIMENSION_LIST": h5t.VLEN, "REFERENCE_LIST": h5t.COMPOUND}
_LINKS: Final = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
# A file stores a text of any length as its length and its place in the file.
_TEXT_IN_FILE: Final = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])
_SPARE = 1 << 26
_BRACKET_OF_0_1: Final = {
    "bracket_low": "ci_low_adjusted",
    "bracket_high": "ci_high_adjusted",
    "bracket_p_adjusted": "p_adjusted",
}


def write_parts(file: h5py.File, parts: Mapping[str, xr.Dataset]) -> None:
    """Write the parts of an audit to an open file.

    Parameters
    ----------
    file : h5py.File
        An empty file that keeps the order of what is written.
    parts : mapping of str to xarray.Dataset
        Name to part; the attributes of ``"/"`` become those of the file.
    """
    for name, ds in parts.items():
        group = file if name == "/" else file.create_group(name, track_order=True)
        for key, value in clean_attrs(ds.attrs).items():
            _write_attribute(group, key, value)
        if name != "/":
            _write_variables(group, ds, name)


def read_parts(file: h5py.File) -> dict[str, xr.Dataset]:
    """Return the parts that :func:`write_parts` wrote, with the attributes under ``"/"``.

    Parameters
    ----------
    file : h5py.File
        An open file that :func:`check_file` has passed.
    """
    found = {"/": xr.Dataset(attrs=_attributes(file["/"]))}
    for name in PARTS:
        if name in file:
            found[name] = _read_variables(file[name], name)
    return found


def _write_variables(group: h5py.Group, ds: xr.Dataset, part: str) -> None:
    families = _stackable(ds) if part == "moments" else []
    stacked = {f"{family}_{square}" for family in families for square in SQUARES}
    listed = {
        str(name): {
            "dims": list(map(str, variable.dims)),
            "kind": variable.dtype.kind,
            "attrs": clean_attrs(variable.attrs),
        }
        for name, variable in ds.variables.items()
    }
    _write_attribute(group, _VARIABLES, json.dumps(listed))
    alone = {str(name): one for name, one in ds.variables.items() if name not in stacked}
    made = {name: _write_variable(group, name, variable) for name, variable in alone.items()}
    dims = {name: variable.dims for name, variable in alone.items()}
    if families:
        made |= _write_stack(group, ds, families)
        dims |= {_STACK: _STACK_DIMS, "family": ("family",), "square": ("square",)}
    _attach_scales(group, made, dims)


def _stackable(ds: xr.Dataset) -> list[str]:
    """Return the families for which all three sums are present."""
    return [
        family
        for family in SUM_FAMILIES
        if all(f"{family}_{square}" in ds.data_vars for square in SQUARES)
    ]


def _write_stack(group: h5py.Group, ds: xr.Dataset, families: list[str]) -> dict[str, h5py.Dataset]:
    arrays = [[ds[f"{family}_{square}"].values for square in SQUARES] for family in families]
    # Compress only if a single variable would be: gzip is slow on small arrays.
    packed = _PACKED if arrays[0][0].size > _COMPRESSED_ABOVE else {}
    labels = {"family": families, "square": list(SQUARES)}
    return {
        _STACK: group.create_dataset(_STACK, data=np.stack(list(map(np.stack, arrays))), **packed),
        **{
            dim: _write_variable(group, dim, xr.Variable(dim, np.array(names)))
            for dim, names in labels.items()
        },
    }


def _write_variable(group: h5py.Group, name: str, variable: xr.Variable) -> h5py.Dataset:
    values = _storable(variable.values)
    packed = _PACKED if values.size > _COMPRESSED_ABOVE else {}
    made = group.create_dataset(name, data=values, **packed)
    for key, value in clean_attrs(variable.attrs).items():
        _write_attribute(made, key, value)
    # As xarray writes it, so that xarray reads texts and truth values back.
    if variable.dtype.kind == "U":
        _write_attribute(made, "_Encoding", "utf-8")
    if variable.dtype.kind == "b":
        _write_attribute(made, "dtype", "bool")
    return made


def _storable(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in a form that every reader of netCDF knows: no bool, text as UTF-8."""
    if values.dtype.kind == "b":
        return values.astype(np.int8)
    if values.dtype.kind == "U":
        encoded = np.char.encode(values, "utf-8", "surrogatepass")
        return encoded.astype(h5py.string_dtype("utf-8", encoded.dtype.itemsize))
    return values


def _attach_scales(
    group: h5py.Group, made: Mapping[str, h5py.Dataset], dims: Mapping[str, tuple[Any, ...]]
) -> None:
    """Say in the way of netCDF which dimensions each dataset has."""
    scales: dict[str, h5py.Dataset] = {}
    for name, dataset in made.items():
        for dim, size in zip(dims[name], dataset.shape, strict=True):
            if dim in scales:
                continue
            scales[dim] = made[dim] if dim in made else group.create_dataset(dim, (size,), ">f4")
            label = dim if dim in made else _NO_LABELS.format(size)
            h5py.h5ds.set_scale(scales[dim].id, label.encode("utf-8", "surrogatepass"))
    for name, dataset in made.items():
        for axis, dim in enumerate(dims[name]):
            if name not in scales:
                h5py.h5ds.attach_scale(dataset.id, scales[dim].id, axis)


def _write_attribute(to: h5py.HLObject, name: str, value: Attribute) -> None:
    if not isinstance(value, str):
        to.attrs.create(name, value)
        return
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) > _LONGEST_IN_HEADER:
        to.attrs.create(name, encoded, dtype=h5py.string_dtype("utf-8"))
        return
    # By hand, which is twice as fast as attrs.create: every variable has two attributes.
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(max(1, len(encoded)))
    kind.set_cset(h5py.h5t.CSET_UTF8)
    kind.set_strpad(h5py.h5t.STR_NULLPAD)
    scalar = h5py.h5s.create(h5py.h5s.SCALAR)
    made = h5py.h5a.create(to.id, name.encode("utf-8", "surrogatepass"), kind, scalar)
    made.write(np.array(encoded, dtype=f"S{max(1, len(encoded))}"), mtype=kind)


def _read_variables(group: h5py.Group, part: str) -> xr.Dataset:
    attrs = _attributes(group)
    listed = _list_variables(group, part)
    names = {name.decode("utf-8", "surrogatepass") for name in group.id}
    stack = dict(_read_stack(group)) if part == "moments" and _STACK in names else {}
    found = {
        name: xr.Variable(note["dims"], stack[name], clean_attrs(note["attrs"]))
        if name in stack
        else _read_variable(group, name, note, part)
        # The schema finds out what is missing.
        for name, note in listed.items()
        if name in stack or name in names
    }
    dims = dict.fromkeys(dim for variable in found.values() for dim in variable.dims)
    return xr.Dataset(
        {name: variable for name, variable in found.items() if name not in dims},
        coords={dim: found[dim] for dim in dims if dim in found},
        attrs=attrs,
    )


def _list_variables(group: h5py.Group, part: str) -> dict[str, dict[str, Any]]:
    """Return what the file says of the variables of a part: dims, kind and attributes of each."""
    found = json.loads(_read_attribute(h5py.h5a.open(group.id, _VARIABLES.encode())))
    sound = isinstance(found, dict) and all(
        isinstance(note, dict)
        and isinstance(note.get("dims"), list)
        and all(isinstance(dim, str) for dim in note["dims"])
        and isinstance(note.get("attrs"), dict)
        for note in found.values()
    )
    if not sound:
        raise MpcError(f"{part} must list its variables with dims and attributes; got others.")
    return dict(found)


def _read_stack(group: h5py.Group) -> Iterator[tuple[str, NDArray[np.float64]]]:
    sums = _values(group, _STACK)
    families, squares = (_decode(_values(group, dim)).tolist() for dim in ("family", "square"))
    for family, arrays in zip(families, sums, strict=True):
        for square, array in zip(squares, arrays, strict=True):
            yield f"{family}_{square}", array


def _read_variable(group: h5py.Group, name: str, note: Mapping[str, Any], part: str) -> xr.Variable:
    values = _values(group, name)
    dims = tuple(note["dims"])
    if values.ndim != len(dims):
        raise MpcError(f"{part}.{name} must have dims {dims}; got shape {values.shape}.")
    if values.dtype.kind == "S":
        values = _decode(values)
    elif note.get("kind") == "b":
        values = values.astype(np.bool_)
    return xr.Variable(dims, values, clean_attrs(note["attrs"]))


def _values(group: h5py.Group, name: str) -> NDArray[Any]:
    """Return the contents of a dataset, without the wrapper objects that h5py makes."""
    dataset = h5py.h5d.open(group.id, name.encode("utf-8", "surrogatepass"))
    if 0 not in dataset.shape and not dataset.get_storage_size():
        raise MpcError(f"{name} must hold its numbers; got the shape {dataset.shape} alone.")
    values = np.empty(dataset.shape, dtype=dataset.dtype)
    if values.size:
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return values


def _decode(values: NDArray[np.bytes_]) -> NDArray[np.str_]:
    return np.char.decode(values, "utf-8", "surrogatepass")


def _attributes(of: h5py.HLObject) -> dict[str, Attribute]:
    """Return the attributes of a group, in their order where the file keeps one."""
    tracked = of.id.get_create_plist().get_attr_creation_order()
    order = h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME
    found: dict[str, Any] = {}
    for index in range(h5py.h5a.get_num_attrs(of.id)):
        attribute = h5py.h5a.open(of.id, index=index, index_type=order)
        name = attribute.name.decode("utf-8", "surrogatepass")
        if name != _VARIABLES:
            found[name] = _read_attribute(attribute)
    return clean_attrs(found)


def _read_attribute(attribute: Any) -> Any:
    """Return the one number or text of an attribute, which may be in an array of one."""
    kind = attribute.get_type()
    of_any_length = kind.get_class() == h5py.h5t.STRING and kind.is_variable_str()
    values = np.empty(attribute.shape, dtype=object if of_any_length else attribute.dtype)
    if of_any_length:
        attribute.read(values, mtype=h5py.h5t.py_create(h5py.string_dtype()))
    else:
        attribute.read(values)
    plain = values.item()
    return plain.decode("utf-8", "surrogatepass") if isinstance(plain, bytes) else plain


def read_old_parts(data: bytes, name: str) -> dict[str, xr.Dataset]:
    """Return the parts of an audit of schema 1, with the attributes under ``"/"``.

    Parameters
    ----------
    data : bytes
        The content of a file that :func:`check_file` has passed.
    name : str
        The path, for the error message.
    """
    with xr.open_datatree(io.BytesIO(data), engine="h5netcdf", decode_times=False) as tree:
        _check_size(tree, data, name)
        tree.load()
        parts = {part: _restore(part, child.to_dataset()) for part, child in tree.children.items()}
        if "headline" in parts:
            parts["headline"] = _with_own_brackets(parts["headline"])
        # The verdicts stay as they are; this attribute names the rules they were given by.
        attrs = {**clean_attrs(tree.attrs), "rules": "0.1"}
        return {"/": xr.Dataset(attrs=attrs), **parts}


def _with_own_brackets(headline: xr.Dataset) -> xr.Dataset:
    """Add the variables of a bracket: verdicts of 0.1 rested on the mode's own interval and p."""
    found = dict(headline.data_vars)
    for name, own in _BRACKET_OF_0_1.items():
        if own in found:
            found[name] = found[own].copy()
            found[name].attrs = noted(SCHEMAS["headline"][name])
    ordered = {name: found.pop(name).variable for name in SCHEMAS["headline"] if name in found}
    return xr.Dataset(ordered | found, headline.coords, headline.attrs)


def _check_size(tree: xr.DataTree, data: bytes, name: str) -> None:
    """Refuse a small file that claims to hold more than there is memory for."""
    claimed = sum(node.to_dataset(inherit=False).nbytes for node in tree.subtree)
    if claimed > PACKED_AT_MOST * len(data) + _SPARE:
        raise MpcError(
            f"{name!r} must not claim to hold more than a file of its size can; got {claimed:,} "
            "bytes. Give a file as audit.save() wrote it."
        )


def _restore(part: str, ds: xr.Dataset) -> xr.Dataset:
    # A file stores texts of any length, and coordinates in its own order.
    whole = {name: _plain(variable) for name, variable in ds.variables.items()}
    for name, variable in SCHEMAS.get(part, {}).items():
        if name in whole:
            whole[name].attrs = noted(variable)
    dims = dict.fromkeys(dim for name in ds.data_vars for dim in whole[name].dims)
    return xr.Dataset(
        {name: whole[name] for name in ds.data_vars},
        coords={dim: whole[dim] for dim in dims if dim in ds.coords},
        attrs=clean_attrs(ds.attrs),
    )


def _plain(variable: xr.Variable) -> xr.Variable:
    values = text(variable.values) if variable.dtype.kind in "OUT" else variable.values
    return xr.Variable(variable.dims, values, variable.attrs)


def check_file(file: h5py.File, data: bytes, name: str, *, is_old: bool) -> None:
    """Refuse a file that holds what no saved audit holds.

    Parameters
    ----------
    file : h5py.File
        The file, opened from `data`.
    data : bytes
        The whole content of the file.
    name : str
        The path, for the error message.
    is_old : bool
        Whether it is a file of schema 1, which has texts of any length and which is read by the
        references that it holds.
    """
    survey = _Survey(data, name, is_old)
    root = h5g.open(file.id, b"/")
    survey.visit(h5o.get_info(root), "/")
    survey.check_attributes(root, "/")
    survey.check_group(root, "/", depth=0)
    if is_old:
        survey.check_references()


@dataclass
class _Survey:
    """What was seen in a file so far."""

    data: bytes
    name: str
    is_old: bool
    seen: set[tuple[int, int]] = field(default_factory=set)
    datasets: list[tuple[str, Any]] = field(default_factory=list)
    held: int = 0
    texts: int = 0

    def refuse(self, wanted: str, found: str, place: str) -> NoReturn:
        raise MpcError(
            f"{self.name!r} must {wanted}; got {found} at {place!r}. Give a file as audit.save() "
            "wrote it."
        )

    def visit(self, info: Any, place: str) -> None:
        """Note an object, or refuse it if a link has already led to it."""
        key = (int(info.fileno), int(info.addr))
        # A loop of links is an object that is reached twice.
        if key in self.seen or info.rc > 1:
            self.refuse("hold each object once", "a second link to the same object", place)
        self.seen.add(key)
        if len(self.seen) > _MOST_OBJECTS:
            self.refuse(f"hold at most {_MOST_OBJECTS:,} objects", "more", place)

    def check_group(self, group: Any, place: str, depth: int) -> None:
        count = group.get_num_objs()
        if count > _MOST_OBJECTS:
            self.refuse(f"hold at most {_MOST_OBJECTS:,} objects", f"{count:,}", place)
        for name in list(group):
            here = f"{place.rstrip('/')}/{name.decode('utf-8', 'replace')}"
            link = group.links.get_info(name)
            if link.type != h5l.TYPE_HARD:
                kind = _LINKS.get(link.type, "a link of an unknown kind")
                self.refuse("hold its parts itself", kind, here)
            info = h5o.get_info(group, name)
            self.visit(info, here)
            if info.type == h5o.TYPE_DATASET:
                self.check_dataset(h5d.open(group, name), here)
            elif info.type == h5o.TYPE_GROUP and depth == 0:
                inner = h5g.open(group, name)
                self.check_attributes(inner, here)
                self.check_group(inner, here, depth + 1)
            else:
                kind = "a group in a group" if info.type == h5o.TYPE_GROUP else "a named type"
                self.refuse("hold groups of datasets", kind, here)

    def check_dataset(self, dataset: Any, place: str) -> None:
        # Check the storage first: even asking for a shape can open the files of a virtual dataset.
        made = dataset.get_create_plist()
        if made.get_layout() not in _LAYOUTS or made.get_external_count():
            self.refuse("hold its numbers itself", "storage in other files", place)
        self.check_filters(made, place)
        kind = dataset.get_type()
        self.check_type(kind, place)
        space = dataset.get_space()
        if space.get_simple_extent_type() == h5s.NULL or len(dataset.shape) > _MOST_DIMS:
            self.refuse(f"hold arrays of at most {_MOST_DIMS} dims", "another form", place)
        if space.get_simple_extent_dims(True) != dataset.shape:
            self.refuse("hold arrays of one size", "an array that may grow", place)
        self.check_attributes(dataset, place)
        self.check_size(dataset, kind, made, place)
        self.datasets.append((place, dataset))

    def check_filters(self, made: Any, place: str) -> None:
        filters = [made.get_filter(index)[0] for index in range(made.get_nfilters())]
        # The same filter applied twice could compress a millionfold.
        if not _FILTERS.issuperset(filters) or len(set(filters)) < len(filters):
            numbers = ", ".join(map(str, filters))
            self.refuse("be packed by gzip and shuffle alone", f"the filters {numbers}", place)

    def check_type(self, kind: Any, place: str) -> None:
        if kind.committed():
            self.refuse("hold plain numbers and texts", "a named type", place)
        family = kind.get_class()
        is_number = family in _NUMBERS and kind.get_size() <= 8
        if not is_number and family != h5t.STRING:
            self.refuse("hold plain numbers and texts", "another type", place)

    def check_size(self, dataset: Any, kind: Any, made: Any, place: str) -> None:
        """Refuse a dataset that claims more than the file holds for it."""
        stored = dataset.get_storage_size()
        claimed = math.prod(dataset.shape) * kind.get_size()
        if _is_dimension_alone(dataset, kind, stored):
            return
        self.held += stored
        packed = PACKED_AT_MOST if made.get_nfilters() else 1
        if claimed > packed * stored or self.held > len(self.data):
            self.refuse("hold all that it claims", f"a claim of {claimed:,} bytes", place)
        if kind.get_class() == h5t.STRING and kind.is_variable_str():
            self.check_texts(dataset, stored, place)

    def check_texts(self, dataset: Any, stored: int, place: str) -> None:
        """Refuse texts of any length that share their bytes, and so claim more than there are."""
        plain = dataset.get_create_plist().get_layout() == h5d.CONTIGUOUS
        count = math.prod(dataset.shape)
        if not self.is_old or not plain or stored != count * _TEXT_IN_FILE.itemsize:
            self.refuse("hold plain numbers and texts", "texts of any length", place)
        if count:
            found = np.frombuffer(self.data, _TEXT_IN_FILE, count, dataset.get_offset())
            self.add_text(int(found["length"].sum(dtype=np.int64)), place)

    def add_text(self, length: int, place: str) -> None:
        self.texts += length
        if self.texts > len(self.data):
            self.refuse("hold all that it claims", f"texts of {self.texts:,} letters", place)

    def check_attributes(self, of: Any, place: str) -> None:
        count = h5a.get_num_attrs(of)
        if count > _MOST_ATTRIBUTES:
            self.refuse(f"have at most {_MOST_ATTRIBUTES:,} attributes", f"{count:,}", place)
        for index in range(count):
            attribute = h5a.open(of, index=index)
            self.check_attribute(attribute, place)

    def check_attribute(self, attribute: Any, place: str) -> None:
        name = attribute.name.decode("utf-8", "replace")
        here = f"{place}:{name}"
        kind = attribute.get_type()
        if attribute.get_storage_size() > _LARGEST_ATTRIBUTE:
            self.refuse(f"have attributes of at most {_LARGEST_ATTRIBUTE:,} bytes", "more", here)
        if kind.get_class() == _DIMENSIONS.get(name) and not kind.committed():
            return
        self.check_type(kind, here)
        if kind.get_class() == h5t.STRING and kind.is_variable_str():
            if attribute.shape != ():
                self.refuse("have attributes of one text each", "several", here)
            text = np.empty((), dtype=object)
            attribute.read(text, mtype=h5t.py_create(h5py.string_dtype()))
            self.add_text(len(text.item()), here)

    def check_references(self) -> None:
        """Refuse references to objects that no link leads to, which no other check has seen."""
        for place, dataset in self.datasets:
            if not h5a.exists(dataset, b"DIMENSION_LIST"):
                continue
            for found in h5py.AttributeManager(h5py.Dataset(dataset))["DIMENSION_LIST"]:
                for reference in found:
                    info = h5o.get_info(h5r.dereference(reference, dataset))
                    if (int(info.fileno), int(info.addr)) not in self.seen:
                        self.refuse("name its own dimensions", "another object", place)


def _is_dimension_alone(dataset: Any, kind: Any, stored: int) -> bool:
    """Say whether this is a dimension without labels, which has a size and no content."""
    flat = len(dataset.shape) == 1 and kind.get_class() == h5t.FLOAT and kind.get_size() == 4
    return flat and not stored and h5a.exists(dataset, b"NAME")
