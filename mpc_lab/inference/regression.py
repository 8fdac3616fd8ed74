"""One cell as a regression, for the summary table that statsmodels prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import FEWEST_CLUSTERS, effective_clusters, enough_clusters
from mpc_lab.vocabulary import Floats, Ints


def fit(d: Floats, query_codes: Ints, weight: Floats | None = None) -> Any:
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
    weight : array, optional
        What each pair counts; by default 1.

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
    _check(d, query_codes, weight)
    import pandas as pd
    import statsmodels.api as sm

    outcome = pd.Series(np.asarray(d, dtype=np.float64), name="d")
    constant = pd.DataFrame({"MPC": np.ones(len(outcome))})
    groups = np.asarray(query_codes)
    alike = weight is None or np.ptp(weight) == 0
    model = sm.OLS(outcome, constant) if alike else sm.WLS(outcome, constant, weights=weight)
    return model.fit(cov_type="cluster", cov_kwds={"groups": groups})


def fit_sides(d: Floats, direction: Floats, query_codes: Ints, weight: Floats | None = None) -> Any:
    """Regress the outcome differences of a cell of two sides on a constant and the side.

    d_p = MPC ± place + u_p, + where the item of the group is the upper one; a tied pair is in
    twice, with half its weight on either side. The constant is the mean of the two sides.

    Parameters
    ----------
    d : array
        Outcome differences, one for each pair.
    direction : array
        Above 0 where the item of the group is the lower one, below 0 where it is the upper one.
    query_codes : array of int64
        The query (or unit) of each pair.
    weight : array, optional
        What each pair counts; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> result = fit_sides(np.array([1.0, 0.0, 2.0, 1.0]), np.array([1, -1, 1, -1]),
    ...                    np.array([0, 1, 2, 3]))
    >>> result.model.exog_names, round(float(result.params["MPC"]), 3)
    (['MPC', 'place'], 1.0)
    """
    _check(d, query_codes, weight)
    import pandas as pd
    import statsmodels.api as sm

    tied = np.flatnonzero(direction == 0)
    row = np.concatenate([np.arange(len(d)), tied])
    above = np.where(direction > 0, -1.0, 1.0)
    above = np.concatenate([above, np.full(len(tied), -1.0)])
    if np.ptp(above) == 0:
        raise MpcError(
            "A regression of both sides needs pairs on each of them, but all "
            f"{len(d):,} pairs are on one; choose a larger epsilon or another group."
        )
    outcome = pd.Series(np.asarray(d, dtype=np.float64)[row], name="d")
    columns = pd.DataFrame({"MPC": np.ones(len(row)), "place": above})
    weights = np.where(np.asarray(direction)[row] == 0, 0.5, 1.0)
    weights = weights if weight is None else weights * weight[row]
    groups = np.asarray(query_codes)[row]
    model = sm.WLS(outcome, columns, weights=weights)
    return model.fit(cov_type="cluster", cov_kwds={"groups": groups})


def _check(d: Floats, query_codes: Ints, weight: Floats | None) -> None:
    """Refuse pairs that no regression can be made of."""
    at = np.unique(query_codes, return_inverse=True)[1]
    counts = np.bincount(at, weight).astype(np.float64)
    effective = effective_clusters(np.asarray(counts.sum()), np.asarray(counts @ counts))
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
