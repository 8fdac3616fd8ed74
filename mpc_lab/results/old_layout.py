"""Reading the audits that mpc_lab 0.1 saved: schema 1, one netCDF variable for every variable."""

from __future__ import annotations

import io

import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.results.foreign import PACKED_AT_MOST
from mpc_lab.results.schema import clean_attrs, text

_SPARE = 1 << 26


def read_old_parts(data: bytes, name: str) -> dict[str, xr.Dataset]:
    """Return the parts of an audit of schema 1, with the attributes under ``"/"``.

    Parameters
    ----------
    data : bytes
        The content of a file that :func:`mpc_lab.results.foreign.check_file` has passed.
    name : str
        The path, for the error message.
    """
    with xr.open_datatree(io.BytesIO(data), engine="h5netcdf", decode_times=False) as tree:
        _check_size(tree, data, name)
        tree.load()
        parts = {part: _restore(child.to_dataset()) for part, child in tree.children.items()}
        return {"/": xr.Dataset(attrs=clean_attrs(tree.attrs)), **parts}


def _check_size(tree: xr.DataTree, data: bytes, name: str) -> None:
    """Refuse a small file that claims to hold more than there is memory for."""
    claimed = sum(node.to_dataset(inherit=False).nbytes for node in tree.subtree)
    if claimed > PACKED_AT_MOST * len(data) + _SPARE:
        raise MpcError(
            f"{name!r} claims to hold {claimed:,} bytes, more than such a file can; it was not "
            "written by audit.save()."
        )


def _restore(ds: xr.Dataset) -> xr.Dataset:
    # A file keeps texts of any length, and coordinates in an order of its own.
    whole = {name: _plain(variable) for name, variable in ds.variables.items()}
    dims = dict.fromkeys(dim for name in ds.data_vars for dim in whole[name].dims)
    return xr.Dataset(
        {name: whole[name] for name in ds.data_vars},
        coords={dim: whole[dim] for dim in dims if dim in ds.coords},
        attrs=clean_attrs(ds.attrs),
    )


def _plain(variable: xr.Variable) -> xr.Variable:
    values = text(variable.values) if variable.dtype.kind in "OUT" else variable.values
    return xr.Variable(variable.dims, values, variable.attrs)
