"""Saving an audit to netCDF and reading it back bit for bit."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.results.rows import known_scores
from mpc_lab.results.schema import clean_attrs, text
from mpc_lab.results.variables import SCHEMA_VERSION

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

_ENGINE: Final = "h5netcdf"
_COMPRESSED_ABOVE = 10_000
EXTRAS = ("items", "dyads", "cross", "ids", "objective")
# What h5py, h5netcdf and xarray raise on files they cannot make sense of.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError)


def save(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    items: bool = False,
    ids: bool = False,
    key: str | None = None,
) -> None:
    """Write an audit to a netCDF file, which is replaced only once the new one is complete.

    Parameters
    ----------
    audit : Audit
        What to save: headline, curve, moments and attributes, never rows.
    path : path
        The file; its folder must exist.
    items, ids, key
        See :meth:`Audit.save`.
    """
    target = _path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise MpcError(f"{str(target)!r} cannot be written: give a file in a folder that exists.")
    tree = xr.DataTree.from_dict({**audit.tree.to_dict(), **_extras(audit, items, ids, key)})
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        tree.to_netcdf(partial, engine=_ENGINE, encoding=_encoding(tree))
        os.replace(partial, target)
    except OSError as error:
        raise MpcError(f"{str(target)!r} could not be written: {error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise MpcError(f"An audit is saved to and loaded from the path of a file, not {path!r}.")
    return Path(path).expanduser()


def _extras(audit: Audit, items: bool, ids: bool, key: str | None) -> dict[str, xr.Dataset]:
    from mpc_lab.results.extras import cross_sums, item_tables, query_ids

    found: dict[str, xr.Dataset] = {}
    if items:
        found |= item_tables(audit)
        cross = cross_sums(audit)
        found |= {} if cross is None else {"cross": cross}
    if ids:
        found["ids"] = query_ids(audit, key)
    return found


def load(path: str | os.PathLike[str], ranking: Ranking | None = None) -> Audit:
    """Read an audit that was saved.

    Parameters
    ----------
    path : path
        A file written by :meth:`Audit.save`.
    ranking : Ranking, optional
        The rows the audit was made from, for the methods that need them.

    Returns
    -------
    Audit
    """
    from mpc_lab.results.audit import Audit

    source = _path(path)
    parts = _read(source)
    attrs = parts["/"].attrs
    if ranking is not None and ranking.fingerprint() != attrs.get("fingerprint"):
        raise MpcError(
            f"The ranking is not the one that {str(source)!r} was made from: their fingerprints "
            "differ; give the same rows in the same order."
        )
    try:
        return Audit(
            parts["headline"],
            parts["curve"],
            parts.get("moments"),
            attrs,
            ranking=ranking,
            scores=None if ranking is None else partial(known_scores, ranking),
            extras={name: parts[name] for name in EXTRAS if name in parts},
        )
    except (KeyError, MpcError) as error:
        raise MpcError(f"{str(source)!r} is a damaged audit: {error}") from error


def _read(source: Path) -> dict[str, xr.Dataset]:
    if not source.is_file():
        raise MpcError(f"There is no file {str(source)!r} to load an audit from.")
    try:
        with xr.open_datatree(source, engine=_ENGINE, decode_times=False) as tree:
            _check_version(source, tree.attrs)
            tree.load()
            children = {name: _restore(child.to_dataset()) for name, child in tree.children.items()}
            return {"/": xr.Dataset(attrs=clean_attrs(tree.attrs)), **children}
    except MpcError:
        raise
    except _UNREADABLE as error:
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: it is truncated, damaged or of another "
            "kind; give a file written by audit.save()."
        ) from error


def _check_version(source: Path, attrs: Mapping[Any, Any]) -> None:
    version = attrs.get("schema_version")
    if version is None:
        raise MpcError(f"{str(source)!r} is not a saved audit; give a file made by audit.save().")
    if int(version) > SCHEMA_VERSION:
        raise MpcError(
            f"{str(source)!r} was saved with schema {int(version)}, newer than {SCHEMA_VERSION} "
            "that this mpc_lab reads; upgrade mpc_lab."
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


def _encoding(tree: xr.DataTree) -> dict[str, Any]:
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    return {
        node.path: {
            str(name): packed
            for name, variable in node.data_vars.items()
            if variable.size > _COMPRESSED_ABOVE and variable.dtype.kind in "fiu"
        }
        for node in tree.subtree
    }
