"""Packages that an engine needs and an install may lack."""

from __future__ import annotations

from importlib.util import find_spec

from mpc_lab.errors import MpcError

_NEEDED = {
    "duckdb": ("duckdb",),
    "dask": ("dask", "distributed"),
    "spark": ("pyspark",),
}


def need_extra(extra: str, purpose: str) -> None:
    """Raise if the packages of an extra are not installed; the error names the extra."""
    absent = [name for name in _NEEDED[extra] if find_spec(name) is None]
    if absent:
        raise MpcError(
            f"{purpose} needs {' and '.join(absent)}, which is not installed: run "
            f'pip install "mpc-lab[{extra}]".'
        )
