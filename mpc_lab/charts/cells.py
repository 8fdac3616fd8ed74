"""What charts take from an audit: one cell of its headline, its curve, and their words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mpc_lab.results.base import check_label, settings
from mpc_lab.results.summary import Cell, slices
from mpc_lab.text import guarded, percent, quoted, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_COLUMNS = {
    "gap": "estimate",
    "low": "ci_low",
    "high": "ci_high",
    "std_error": "std_error",
    "dof": "dof",
    "pairs": "n_pairs",
}


def find_cell(audit: Audit, group: str, rule: str, mode: str) -> Cell:
    """Return one cell of the headline, or say which names there are."""
    check_label("group", group, audit.groups)
    check_label("scoring_rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing_mode", mode, audit.headline["pairing_mode"].values.tolist())
    part = next(one for one in slices(audit) if (one.rule, one.mode) == (rule, mode))
    return next(cell for cell in part.cells if cell.group == group)


def curve_frame(audit: Audit, group: str, rule: str, mode: str) -> pd.DataFrame:
    """Return the curve of a cell, a row for each threshold."""
    curve = audit.curve_of(group, rule, mode)
    columns = {shown: curve[own].values for shown, own in _COLUMNS.items()}
    frame = pd.DataFrame({"epsilon": curve["epsilon"].values, **columns})
    # A picture leaves the screen, and what its tooltips say goes with it.
    frame["queries"] = [guarded(count) for count in curve["n_queries"].values.tolist()]
    for end in ("band_low", "band_high"):
        frame[end] = curve[end].values if end in curve else np.nan
    frame["interval"] = intervals(frame, "gap", "low", "high")
    frame["band"] = intervals(frame, "gap", "band_low", "band_high")
    frame.attrs["rule"] = rule
    return frame


def intervals(frame: pd.DataFrame, *columns: str) -> list[str]:
    """Return, for each row, a number with its interval: the columns of its value and ends."""
    rows = frame[list(columns)].itertuples(index=False)
    return [with_interval(*map(float, row)) for row in rows]


def threshold_range(frame: pd.DataFrame, headline: float) -> tuple[float, float]:
    """Return the largest threshold and the smallest above 0 that has pairs."""
    used = frame.loc[(frame["pairs"] > 0) & (frame["epsilon"] > 0), "epsilon"].tolist()
    used += [headline] if math.isfinite(headline) and headline > 0 else []
    return (max(used), min(used)) if used else (1.0, 0.001)


def level_of(audit: Audit) -> str:
    """Return the level of an audit's intervals, as a percentage."""
    return percent(float(settings(audit).get("level", 0.95)))


def of_rule(rule: str, mode: str) -> str:
    """Return which pairs a chart shows, unless they are the usual ones."""
    under = "" if rule == "baseline" else f", scores of rule {quoted(rule)}"
    return f"{mode} pairs{under}"
