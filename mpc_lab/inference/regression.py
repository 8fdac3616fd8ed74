"""One cell as a regression, for the summary table that statsmodels prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import FEWEST_CLUSTERS, effective_clusters, enough_clusters
from mpc_lab.vocabulary import Floats, Ints


def fit(d: Floats, query_codes: Ints) -> Any:
    """Regress the outcome differences of a cell on a constant, clustered by query.

    d_p = MPC + u_p. The standard error equals that of ``cluster="query"``; the interval does
    not, because statsmodels takes the normal distribution and not t with the effective number
    of queries.

    Parameters
    ----------
    d : array
        Outcome differences, one for each pair.
    query_codes : array of int64
        The query (or unit) of each pair.

    Returns
    -------
    statsmodels.regression.linear_model.RegressionResultsWrapper

    Examples
    --------
    >>> import numpy as np
    >>> result = fit(np.array([1.0, 0.0, 2.0]), np.array([0, 1, 2]))
    >>> result.model.exog_names
    ['MPC']
    """
    counts = np.unique(query_codes, return_counts=True)[1].astype(np.float64)
    effective = effective_clusters(np.asarray(len(d)), np.asarray(counts @ counts))
    if not enough_clusters(effective):
        raise MpcError(
            f"A clustered regression needs pairs from at least {FEWEST_CLUSTERS} effective "
            f"queries; got {float(effective):.3g}. Choose a larger epsilon or another group."
        )
    if np.ptp(d) == 0:
        raise MpcError(
            f"A regression needs outcomes that differ, but all {len(d):,} pairs have the same "
            "difference; choose a larger epsilon or another group."
        )
    import pandas as pd
    import statsmodels.api as sm

    outcome = pd.Series(np.asarray(d, dtype=np.float64), name="d")
    constant = pd.DataFrame({"MPC": np.ones(len(outcome))})
    groups = np.asarray(query_codes)
    return sm.OLS(outcome, constant).fit(cov_type="cluster", cov_kwds={"groups": groups})
