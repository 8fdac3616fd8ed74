"""The headline as a tidy pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def to_frame(audit: Audit) -> pd.DataFrame:
    """Return one row for each cell; standard errors by family become ``std_error_<family>``."""
    headline = audit.headline
    flat = headline.drop_vars(["std_error_by", "variance"])
    for family in headline["variance"].values.tolist():
        flat[f"std_error_{family}"] = headline["std_error_by"].sel(variance=family, drop=True)
    order = ["group", "scoring_rule", "pairing_mode"]
    return flat.to_dataframe(dim_order=order).reset_index()
