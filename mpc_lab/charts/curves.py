"""The curve of one cell as a small frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mpc_lab.charts.words import with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_COLUMNS = {
    "gap": "estimate",
    "low": "ci_low",
    "high": "ci_high",
    "std_error": "std_error",
    "dof": "dof",
    "pairs": "n_pairs",
    "queries": "n_queries",
}


def curve_frame(audit: Audit, group: str, rule: str, mode: str) -> pd.DataFrame:
    """Return the curve of a cell, a row for each threshold."""
    curve = audit.curve_of(group, rule, mode)
    columns = {shown: curve[own].values for shown, own in _COLUMNS.items()}
    frame = pd.DataFrame({"epsilon": curve["epsilon"].values, **columns})
    for end in ("band_low", "band_high"):
        frame[end] = curve[end].values if end in curve else np.nan
    frame["interval"] = _words(frame, "low", "high")
    frame["band"] = _words(frame, "band_low", "band_high")
    frame.attrs["rule"] = rule
    return frame


def threshold_range(frame: pd.DataFrame, headline: float) -> tuple[float, float]:
    """Return the largest threshold and the smallest above 0 that has pairs."""
    used = frame.loc[(frame["pairs"] > 0) & (frame["epsilon"] > 0), "epsilon"].tolist()
    used += [headline] if math.isfinite(headline) and headline > 0 else []
    return (max(used), min(used)) if used else (1.0, 0.001)


def _words(frame: pd.DataFrame, low: str, high: str) -> list[str]:
    rows = zip(frame["gap"], frame[low], frame[high], strict=True)
    return [with_interval(*map(float, row)) for row in rows]
