"""Saving an audit to netCDF and reading it back bit for bit.

Behind the netCDF data stands a seal, the hash of all bytes before it: a file that was cut or
changed is told before anything reads it. It is no signature: whoever means harm can seal anew, so
what is read is checked all the same, and nothing in it is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from mpc_lab.arguments import as_flag
from mpc_lab.errors import MpcError
from mpc_lab.results.rows import known_scores
from mpc_lab.results.schema import clean_attrs, text
from mpc_lab.results.variables import SCHEMA_VERSION
from mpc_lab.writing import replacing, target_path

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

_ENGINE: Final = "h5netcdf"
_COMPRESSED_ABOVE = 10_000
EXTRAS = ("items", "dyads", "cross", "ids", "objective")
_SEAL = re.compile(rb"\nmpc_lab sha256 ([0-9a-f]{64})\n\Z")
_SEAL_LENGTH = 81
_CHUNK = 1 << 20
# gzip packs no more than a thousandfold: what claims to be larger was not written by save.
_PACKED_AT_MOST, _SPARE = 1_100, 1 << 26


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
    target_path(path, "An audit")
    tree = xr.DataTree.from_dict({**audit.tree.to_dict(), **_extras(audit, items, ids, key)})
    with replacing(path, "An audit") as part:
        tree.to_netcdf(part, engine=_ENGINE, encoding=_encoding(tree))
        seal = _digest(part, part.stat().st_size)
        with open(part, "ab") as file:
            file.write(f"\nmpc_lab sha256 {seal}\n".encode())


def _digest(path: Path, length: int) -> str:
    """Return the hash of the first bytes of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while length > 0:
            block = file.read(min(_CHUNK, length))
            if not block:
                break
            digest.update(block)
            length -= len(block)
    return digest.hexdigest()


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise MpcError(f"An audit is loaded from the path of a file, not {path!r}.")
    if "\0" in os.fspath(path):
        raise MpcError(f"There is no file {os.fspath(path)!r} to load an audit from.")
    return Path(path).expanduser()


def _extras(audit: Audit, items: bool, ids: bool, key: str | None) -> dict[str, xr.Dataset]:
    from mpc_lab.results.extras import cross_sums, item_tables, query_ids

    found: dict[str, xr.Dataset] = {}
    if as_flag("items", items):
        found |= item_tables(audit)
        cross = cross_sums(audit)
        found |= {} if cross is None else {"cross": cross}
    if as_flag("ids", ids):
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
    if ranking is not None and not hasattr(ranking, "fingerprint"):
        came = type(ranking).__name__
        raise MpcError(f"ranking takes an mpc.Ranking of the audit's rows, but {came} came.")
    sealed = _check_seal(source)
    parts = _read(source)
    attrs = parts["/"].attrs
    if ranking is not None:
        _check_rows(ranking, attrs, source)
    try:
        _check_options(attrs)
        found = Audit(
            parts["headline"],
            parts["curve"],
            parts.get("moments"),
            attrs,
            ranking=ranking,
            scores=None if ranking is None else partial(known_scores, ranking),
            extras={name: parts[name] for name in EXTRAS if name in parts},
        )
        # Checked now: a damaged part should not wait until it is asked for.
        _ = found.curve, found.moments
    except (KeyError, MpcError) as error:
        raise MpcError(f"{str(source)!r} is a damaged audit: {error}") from error
    if not sealed:
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: its seal is gone, so it was cut or "
            "changed since it was saved; give the file as audit.save() wrote it."
        )
    return found


def _check_rows(ranking: Ranking, attrs: Mapping[Any, Any], source: Path) -> None:
    """Refuse rows that the audit was not made from."""
    if "fingerprint" in attrs:
        if ranking.fingerprint() == attrs["fingerprint"]:
            return
        raise MpcError(
            f"The ranking is not the one that {str(source)!r} was made from: their fingerprints "
            "differ; give the same rows in the same order."
        )
    # An audit of files or of a cluster never saw all rows at once, and has no fingerprint.
    for name in ("n_rows", "n_queries", "n_units", "n_items"):
        if getattr(ranking, name) != attrs.get(name):
            raise MpcError(
                f"The ranking is not the one that {str(source)!r} was made from: its {name} is "
                f"{getattr(ranking, name):,}, not {attrs.get(name)}; give the same rows."
            )


def _check_seal(source: Path) -> bool:
    """Say whether a file has a seal; refuse it if the seal is not its own."""
    try:
        if not source.is_file():
            raise MpcError(f"There is no file {str(source)!r} to load an audit from.")
        size = source.stat().st_size
        with open(source, "rb") as file:
            file.seek(max(0, size - _SEAL_LENGTH))
            found = _SEAL.search(file.read())
    except (OSError, RuntimeError) as error:
        raise MpcError(f"{str(source)!r} cannot be read: {error}.") from error
    if found is None:
        return False
    if _digest(source, size - len(found[0])) != found[1].decode():
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: it was damaged or changed since it was "
            "saved; give the file as audit.save() wrote it."
        )
    return True


def _check_options(attrs: Mapping[Any, Any]) -> None:
    """Refuse options that no audit was run with; what audits say is worked out from them."""
    from mpc_lab.inference.estimates import FAMILIES
    from mpc_lab.inference.multiplicity import METHODS
    from mpc_lab.results.plan import checked_level

    texts = [name for name in ("options", "versions", "columns") if name in attrs]
    try:
        found = {name: json.loads(str(attrs[name])) for name in texts}
        options = found.get("options", {})
        if not all(isinstance(value, dict) for value in found.values()):
            raise MpcError("its options, versions and columns must be JSON objects.")
        if "level" in options:
            checked_level(options["level"])
        if options.get("cluster", FAMILIES[0]) not in FAMILIES:
            raise MpcError(f"it has an unknown cluster {options['cluster']!r}.")
        if options.get("adjust", METHODS[0]) not in METHODS:
            raise MpcError(f"it has an unknown adjust {options['adjust']!r}.")
        tolerance = options.get("tolerance")
        if tolerance is not None and not isinstance(tolerance, int | float):
            raise MpcError(f"its tolerance must be a number, not {tolerance!r}.")
        for name in ("n_rows", "n_queries", "n_units", "n_items", "n_dropped"):
            if not isinstance(attrs.get(name, 0), int):
                raise MpcError(f"{name} must be a count, not {attrs[name]!r}.")
    except MpcError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise MpcError(f"its options cannot be read: {error}.") from error


def _read(source: Path) -> dict[str, xr.Dataset]:
    try:
        with xr.open_datatree(source, engine=_ENGINE, decode_times=False) as tree:
            _check_version(source, tree.attrs)
            _check_size(source, tree)
            tree.load()
            children = {name: _restore(child.to_dataset()) for name, child in tree.children.items()}
            return {"/": xr.Dataset(attrs=clean_attrs(tree.attrs)), **children}
    except MpcError:
        raise
    except Exception as error:
        # Other people's readers may raise anything on other people's files.
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


def _check_size(source: Path, tree: xr.DataTree) -> None:
    """Refuse a small file that claims to hold more than there is memory for."""
    claimed = sum(node.to_dataset(inherit=False).nbytes for node in tree.subtree)
    if claimed > _PACKED_AT_MOST * source.stat().st_size + _SPARE:
        raise MpcError(
            f"{str(source)!r} claims to hold {claimed:,} bytes, more than such a file can; it was "
            "not written by audit.save()."
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
