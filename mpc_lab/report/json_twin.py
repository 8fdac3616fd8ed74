"""The numbers of an audit as JSON, by a published schema."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.report.facts import data_facts, options_of, versions
from mpc_lab.results.gate import decide
from mpc_lab.results.summary import reading

if TYPE_CHECKING:
    from mpc_lab.results import Audit

FORMAT_VERSION = 1
_DIMS = ("group", "scoring_rule", "pairing_mode")


def schema() -> dict[str, Any]:
    """Return the JSON Schema that :meth:`mpc_lab.Audit.to_json` keeps to."""
    text = files("mpc_lab.report").joinpath("audit.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_json(audit: Audit, curve: bool = True, planned: int | None = None) -> str:
    """Return the numbers of an audit as one JSON text; see :meth:`mpc_lab.Audit.to_json`."""
    words = reading(audit)
    whole: dict[str, Any] = {
        "format": "mpc_lab audit",
        "format_version": FORMAT_VERSION,
        "reading": {
            "findings": words.findings,
            "others": [*words.others, *words.more],
            "compared": words.compared,
            "cautions": words.cautions,
        },
        "gate": _gate(audit, planned),
        "settings": options_of(audit),
        "data": data_facts(audit),
        "versions": versions(audit),
        "cells": list(_cells(audit.headline)),
    }
    if curve:
        whole["curve"] = {
            "epsilon": _plain(audit.curve["epsilon"].values),
            "cells": list(_cells(audit.curve)),
        }
    return json.dumps(_safe(whole), allow_nan=False)


def _gate(audit: Audit, planned: int | None) -> dict[str, Any] | None:
    """Return what the gate says; nothing for an audit that holds no sums to ask."""
    try:
        found = decide(audit, planned=planned)
    except MpcError:
        # Whoever asks for a confidence sequence is told why there is none.
        if planned is not None:
            raise
        return None
    return {
        "answer": found.answer,
        "failed": list(found.failed),
        "undecided": list(found.undecided),
        "tolerance": found.tolerance,
        "intervals": "fixed" if found.planned is None else "anytime",
        "planned": found.planned,
    }


def _cells(dataset: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yield one object for each cell: numbers for a headline, arrays over ε for a curve."""
    ordered = dataset.transpose(*_DIMS, ...)
    labels = [ordered[dim].values.tolist() for dim in _DIMS]
    families = ordered["variance"].values.tolist() if "variance" in ordered.coords else []
    values = {str(name): ordered[name].values for name in ordered.data_vars}
    for at in np.ndindex(*(len(names) for names in labels)):
        cell = {dim: names[k] for dim, names, k in zip(_DIMS, labels, at, strict=True)}
        for name, array in values.items():
            if name == "std_error_by":
                cell[name] = dict(zip(families, _plain(array[at]), strict=True))
            else:
                cell[name] = _plain(array[at])
        yield cell


def _plain(values: Any) -> Any:
    return np.asarray(values).tolist()


def _safe(value: Any) -> Any:
    """Return null for what JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): _safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
