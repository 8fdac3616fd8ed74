"""How the parts of an audit lie in a netCDF file, and how they are taken out of it again.

Each part is a group, each variable a dataset with dimension scales, so that any reader of netCDF
understands the file. The sums of squares of ``moments``, which are eighteen variables in memory,
are one array over family and square: to create a dataset costs more than to fill it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import h5py
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.results.schema import Attribute, clean_attrs
from mpc_lab.results.variables import MOMENT_DIMS, SQUARES, SUM_FAMILIES

PARTS: Final = ("headline", "curve", "moments", "items", "dyads", "cross", "ids", "objective")
# The attribute of each group that lists its variables in order, with all that is not a number:
# one text is read faster than two attributes and some dimension scales of each variable.
_VARIABLES: Final = "_variables"
_STACK: Final = "squares"
_STACK_DIMS: Final = ("family", "square", *MOMENT_DIMS)
_COMPRESSED_ABOVE = 10_000
_PACKED: Final = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
# A longer attribute does not fit into the header of an object.
_LONGEST_IN_HEADER = 60_000
# What netCDF writes in the place of labels, for a dimension that has none.
_NO_LABELS: Final = "This is a netCDF dimension but not a netCDF variable. {:10d}"


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
        An open file that :func:`mpc_lab.results.foreign.check_file` has passed.
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
    """Return the families of which all three sums are there."""
    return [
        family
        for family in SUM_FAMILIES
        if all(f"{family}_{square}" in ds.data_vars for square in SQUARES)
    ]


def _write_stack(group: h5py.Group, ds: xr.Dataset, families: list[str]) -> dict[str, h5py.Dataset]:
    arrays = [[ds[f"{family}_{square}"].values for square in SQUARES] for family in families]
    # Whether to compress is decided as for one variable alone: gzip is slow on small arrays.
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
    # As xarray writes it, so that it gives back texts and truth values.
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
    # By hand: twice as fast as attrs.create, and there are two attributes to every variable.
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(max(1, len(encoded)))
    kind.set_cset(h5py.h5t.CSET_UTF8)
    kind.set_strpad(h5py.h5t.STR_NULLPAD)
    scalar = h5py.h5s.create(h5py.h5s.SCALAR)
    made = h5py.h5a.create(to.id, name.encode("utf-8", "surrogatepass"), kind, scalar)
    made.write(np.array(encoded, dtype=f"S{max(1, len(encoded))}"), mtype=kind)


def _read_variables(group: h5py.Group, part: str) -> xr.Dataset:
    attrs = _attributes(group)
    listed = _listed(group, part)
    names = {name.decode("utf-8", "surrogatepass") for name in group.id}
    stack = dict(_read_stack(group)) if part == "moments" and _STACK in names else {}
    found = {
        name: xr.Variable(note["dims"], stack[name], clean_attrs(note["attrs"]))
        if name in stack
        else _read_variable(group, name, note, part)
        # What is missing is left to the schema, which says what should be there.
        for name, note in listed.items()
        if name in stack or name in names
    }
    dims = dict.fromkeys(dim for variable in found.values() for dim in variable.dims)
    return xr.Dataset(
        {name: variable for name, variable in found.items() if name not in dims},
        coords={dim: found[dim] for dim in dims if dim in found},
        attrs=attrs,
    )


def _listed(group: h5py.Group, part: str) -> dict[str, dict[str, Any]]:
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
    families, squares = (_decoded(_values(group, dim)).tolist() for dim in ("family", "square"))
    for family, arrays in zip(families, sums, strict=True):
        for square, array in zip(squares, arrays, strict=True):
            yield f"{family}_{square}", array


def _read_variable(group: h5py.Group, name: str, note: Mapping[str, Any], part: str) -> xr.Variable:
    values = _values(group, name)
    dims = tuple(note["dims"])
    if values.ndim != len(dims):
        raise MpcError(f"{part}.{name} must have dims {dims}; got shape {values.shape}.")
    if values.dtype.kind == "S":
        values = _decoded(values)
    elif note.get("kind") == "b":
        values = values.astype(np.bool_)
    return xr.Variable(dims, values, clean_attrs(note["attrs"]))


def _values(group: h5py.Group, name: str) -> NDArray[Any]:
    """Return what a dataset holds, without the objects that h5py makes for one to hold."""
    dataset = h5py.h5d.open(group.id, name.encode("utf-8", "surrogatepass"))
    if 0 not in dataset.shape and not dataset.get_storage_size():
        raise MpcError(f"{name} must hold its numbers; got the shape {dataset.shape} alone.")
    values = np.empty(dataset.shape, dtype=dataset.dtype)
    if values.size:
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return values


def _decoded(values: NDArray[np.bytes_]) -> NDArray[np.str_]:
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
    """Return the one number or text of an attribute, which may stand in an array of one."""
    kind = attribute.get_type()
    of_any_length = kind.get_class() == h5py.h5t.STRING and kind.is_variable_str()
    values = np.empty(attribute.shape, dtype=object if of_any_length else attribute.dtype)
    if of_any_length:
        attribute.read(values, mtype=h5py.h5t.py_create(h5py.string_dtype()))
    else:
        attribute.read(values)
    plain = values.item()
    return plain.decode("utf-8", "surrogatepass") if isinstance(plain, bytes) else plain
