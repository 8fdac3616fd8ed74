"""Saving an audit to netCDF and reading it back bit for bit.

The file is made in memory and written as plain bytes, because the HDF5 library ends the whole
process if the disk is full when it closes a file. For the same reason a file is read into memory
first: what was checked is then what is read.

Behind the netCDF data comes a seal, the hash of all bytes before it: a file that was cut or
changed is found before anything reads it. It is not a signature: an attacker can make a new seal,
so the contents are checked as well, and nothing in a file is ever run.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import xarray as xr

from mpc_lab.errors import MpcError, check_flag, check_level
from mpc_lab.results.base import as_audited, check_same_rows, known_scores
from mpc_lab.results.netcdf import SIGNATURE, check_file, read_old_parts, read_parts, write_parts
from mpc_lab.results.schema import SCHEMA_VERSION
from mpc_lab.results.wording import declared
from mpc_lab.vocabulary import public_variances
from mpc_lab.writing import replacing, target_path

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

EXTRAS: Final = ("items", "dyads", "cross", "ids", "queries", "objective", "places")
# Attributes that are one JSON text, and the type it holds.
_JSON: Final = {
    **dict.fromkeys(("options", "versions", "columns", "alpha"), dict),
    **dict.fromkeys(("in_sample", "left_out_of_sides"), list),
}
_COUNTS: Final = ("n_rows", "n_queries", "n_units", "n_items", "n_dropped", "n_left_out_of_sides")
_SEAL = re.compile(rb"\nmpc_lab sha256 ([0-9a-f]{64})\n\Z")
_SEAL_LENGTH = 81


def save(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    items: bool = False,
    ids: bool = False,
    queries: bool = False,
    key: str | None = None,
) -> None:
    """Write an audit to a netCDF file, which is replaced only once the new one is complete.

    Parameters
    ----------
    audit : Audit
        What to save: headline, curve, moments and attributes, never rows.
    path : path
        The file; its folder must exist.
    items, ids, queries, key
        See :meth:`Audit.save`.
    """
    target_path(path)
    tree = audit.tree.to_dict()
    parts = {name.strip("/") or "/": part for name, part in tree.items()}
    if audit.looks:
        parts["/"] = parts["/"].assign_attrs(looks=json.dumps(audit.looks))
    with _build(parts | _extras(audit, items, ids, queries, key)).getbuffer() as content:
        seal = f"\nmpc_lab sha256 {hashlib.sha256(content).hexdigest()}\n".encode()
        with replacing(path) as part, open(part, "wb") as file:
            file.write(content)
            file.write(seal)


def _build(parts: Mapping[str, xr.Dataset]) -> io.BytesIO:
    """Return the bytes of a file, before its seal."""
    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        write_parts(file, parts)
    return content


def _looks(written: object) -> tuple[dict[str, Any], ...]:
    """Return the list of audits that a file counts; anything that is not such a list is ignored."""
    try:
        found = json.loads(str(written))
    except ValueError:
        return ()
    listed = found if isinstance(found, list) else []
    return tuple(one for one in listed if isinstance(one, dict))


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise MpcError(f"mpc.load must have the path of a saved audit; got {path!r}.")
    if "\0" in os.fspath(path):
        raise MpcError(
            f"There is no file {os.fspath(path)!r}. Give a file written by audit.save()."
        )
    return Path(path).expanduser()


def _extras(
    audit: Audit, items: bool, ids: bool, queries: bool, key: str | None
) -> dict[str, xr.Dataset]:
    from mpc_lab.results.pooled_places import PLACES, kept_places
    from mpc_lab.results.pooling import cross_sums, item_tables, query_ids

    found: dict[str, xr.Dataset] = {}
    places = kept_places(audit)
    found |= {} if places is None else {PLACES: places}
    if check_flag("items", items):
        found |= item_tables(audit)
        cross = cross_sums(audit)
        found |= {} if cross is None else {"cross": cross}
    if check_flag("ids", ids):
        found["ids"] = query_ids(audit, key)
    if check_flag("queries", queries):
        from mpc_lab.results.two_audits import query_sums

        found["queries"] = query_sums(audit, key)
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
        raise MpcError(f"ranking must be an mpc.Ranking; got {type(ranking).__name__}.")
    data = _content(source)
    sealed = _check_seal(source, data)
    parts = _read(source, data)
    attrs = {**parts["/"].attrs, "schema_version": SCHEMA_VERSION}
    looks = _looks(attrs.pop("looks", "[]"))
    if ranking is not None:
        _check_rows(ranking, attrs, source)
    try:
        _check_options(attrs)
        ranking = ranking if ranking is None else as_audited(ranking, attrs)
        found = Audit(
            parts["headline"],
            parts["curve"],
            parts.get("moments"),
            attrs,
            ranking=ranking,
            scores=None if ranking is None else partial(known_scores, ranking),
            saved={name: parts[name] for name in EXTRAS if name in parts},
        )
        found._looks = looks
        # Checked now, so that a damaged part is found before it is needed.
        _ = found.curve, found.moments
    except (KeyError, MpcError) as error:
        raise MpcError(f"{str(source)!r} cannot be read as an audit: {error}") from error
    if not sealed:
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: its seal is gone, so it was cut or "
            "changed since it was saved. Give the file as audit.save() wrote it."
        )
    return found


def _check_rows(ranking: Ranking, attrs: Mapping[Any, Any], source: Path) -> None:
    """Refuse rows that the audit was not made from."""
    if "fingerprint" in attrs:
        if ranking.fingerprint() == attrs["fingerprint"]:
            return
        raise MpcError(
            f"ranking must be the one that {str(source)!r} was made from; got one with another "
            "fingerprint. Give the same rows in the same order."
        )
    # An audit of files or of a cluster never saw all rows at once, and has no fingerprint.
    check_same_rows(ranking, attrs, repr(str(source)))


def _content(source: Path) -> bytes:
    try:
        if not source.is_file():
            raise MpcError(
                f"There is no file {str(source)!r}. Give a file written by audit.save()."
            )
        return source.read_bytes()
    except (OSError, RuntimeError) as error:
        raise MpcError(f"{str(source)!r} cannot be read: {error}.") from error


def _check_seal(source: Path, data: bytes) -> bool:
    """Say whether a file has a seal; refuse the file if the seal does not match."""
    found = _SEAL.search(data, max(0, len(data) - _SEAL_LENGTH))
    if found is None:
        return False
    if hashlib.sha256(memoryview(data)[: found.start()]).hexdigest() != found[1].decode():
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: it was damaged or changed since it was "
            "saved. Give the file as audit.save() wrote it."
        )
    return True


def _check_options(attrs: Mapping[Any, Any]) -> None:
    """Refuse options that no audit can have, because what audits say depends on them."""
    from mpc_lab.inference.verdicts import METHODS

    try:
        found = {name: json.loads(str(attrs[name])) for name in _JSON if name in attrs}
        for name, value in found.items():
            if not isinstance(value, _JSON[name]):
                kind = "object" if _JSON[name] is dict else "list"
                raise MpcError(f"{name} must be a JSON {kind}; got {type(value).__name__}.")
        options = found.get("options", {})
        if not all(isinstance(number, int) for number in found.get("left_out_of_sides", [])):
            raise MpcError("left_out_of_sides must hold numbers of queries; got others.")
        if "level" in options:
            check_level(options["level"])
        if options.get("cluster", "query") not in public_variances():
            raise MpcError(f"cluster must be one that mpc_lab has; got {options['cluster']!r}.")
        if options.get("adjust", METHODS[0]) not in METHODS:
            raise MpcError(
                f"adjust must be one of {', '.join(METHODS)}; got {options['adjust']!r}."
            )
        declared(options)
        tolerance = options.get("tolerance")
        if tolerance is not None and not isinstance(tolerance, int | float):
            raise MpcError(f"tolerance must be a number; got {tolerance!r}.")
        for name in _COUNTS:
            if not isinstance(attrs.get(name, 0), int):
                raise MpcError(f"{name} must be a count; got {attrs[name]!r}.")
    except MpcError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise MpcError(f"The options cannot be read: {error}.") from error


def _read(source: Path, data: bytes) -> dict[str, xr.Dataset]:
    try:
        if not data.startswith(SIGNATURE):
            raise ValueError("not an HDF5 file")
        with h5py.File(io.BytesIO(data), "r") as file:
            version = _version(source, file)
            check_file(file, data, str(source), is_old=version < 2)
            if version > 1:
                return _read_parts(source, file)
        return read_old_parts(data, str(source))
    except MpcError:
        raise
    except Exception as error:
        # Third-party readers may raise anything on other people's files.
        raise MpcError(
            f"{str(source)!r} cannot be read as an audit: it is truncated, damaged or of another "
            "kind. Give a file written by audit.save()."
        ) from error


def _read_parts(source: Path, file: h5py.File) -> dict[str, xr.Dataset]:
    try:
        return read_parts(file)
    except MpcError as error:
        raise MpcError(f"{str(source)!r} cannot be read as an audit: {error}") from error


def _version(source: Path, file: h5py.File) -> int:
    """Return the schema that a file was saved with."""
    if "schema_version" not in file.attrs:
        raise MpcError(
            f"{str(source)!r} must be a saved audit; got another kind of file. Give a file "
            "written by audit.save()."
        )
    # A single number or nothing: nothing else is read before the file is checked.
    attribute = file.attrs.get_id("schema_version")
    if attribute.get_type().get_class() != h5py.h5t.INTEGER or attribute.shape not in ((), (1,)):
        raise ValueError("schema_version is not a number")
    version = int(file.attrs["schema_version"].item())
    if version > SCHEMA_VERSION:
        raise MpcError(
            f"{str(source)!r} must have a schema of at most {SCHEMA_VERSION}, the newest that "
            f"this mpc_lab reads; got {version}. Upgrade mpc_lab."
        )
    return version
