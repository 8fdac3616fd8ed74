"""Whether the pairs of an audit compare like with like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mpc_lab.arguments import as_whole
from mpc_lab.errors import MpcError
from mpc_lab.results import rows as _rows
from mpc_lab.results.cell_pairs import CellRows, inference_options, open_cell

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

Floats = NDArray[np.float64]
Covariates = str | Sequence[str] | Mapping[str, ArrayLike]

SIDES = ("group", "others")
_MOST_VALUES = 30
_MOST_PLACEBOS = 100_000
_DIFFERENCES = {
    "difference_before": "before",
    "difference": "within",
    "std_error": "std_error",
    "ci_low": "ci_low",
    "ci_high": "ci_high",
    "p_value": "p_value",
}


def balance(
    audit: Audit,
    covariates: Covariates = (),
    group: str | Sequence[str] | None = None,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    epsilon: float | None = None,
    permutations: int = 200,
    done: Callable[[], None] | None = None,
) -> xr.Dataset:
    r"""Compare the two sides of the pairs, count how often items recur, and try placebos.

    The standardised difference of a covariate x is
    :math:`\frac{1}{P} \sum_{(i, j)} (x_i - x_j) / s` with s² the mean of its variances over the
    rows in the group and over the others [1]_. A placebo is the same group with its members dealt
    out anew inside each query; its pairs are taken in both orders together, because in one order
    alone a group without meaning does not centre on 0. A placebo's own test compares its sum with
    those of random signs, one a query: it is exact where a query's sum is symmetric about 0 and
    needs no variance (`mpc_lab.inference.placebo` says why it and no other). What the audit's own
    variance and the variance over queries make of the same placebos stands beside it.

    Parameters
    ----------
    audit : Audit
        With its rows.
    covariates : str, list of str, or mapping of str to array
        Columns of the table the ranking came from, or arrays by row. Text is compared value by
        value. Position in the ranked list is always compared.
    group : str or list of str, optional
        By default all groups.
    scoring_rule, pairing_mode : str
        The cell.
    epsilon : float, optional
        Largest score gap; by default the headline's own threshold of each group.
    permutations : int
        How many placebos of each group; 0 for none.
    done : callable, optional
        Called after each placebo, to show the progress of many.

    Returns
    -------
    xarray.Dataset
        Over (group, covariate): ``difference_before`` (all rows) and ``difference`` (inside the
        pairs), with ``std_error``, ``ci_low``, ``ci_high``, ``p_value`` of the latter. Over group:
        ``epsilon``, ``n_pairs``, ``effective_queries``. Over (group, side): ``n_items``,
        ``most_pairs_of_an_item``, ``mean_pairs_of_an_item``, ``effective_items``. Over (group,
        permutation): ``placebo_estimate``, ``placebo_p_value``; over group: ``placebo_mean``,
        ``placebo_rejected`` (share of p-values at most 1 − level, to be near 1 − level),
        ``placebo_rejected_as_audited`` and ``placebo_rejected_by_query`` (the same by the audit's
        own variance, and by the variance over queries),
        ``placebo_observed`` (the group itself, in both orders) and ``placebo_observed_p_value``
        (its rank among the placebos).

    References
    ----------
    .. [1] Austin (2009), Balance diagnostics for comparing the distribution of baseline
       covariates between treatment groups in propensity-score matched samples.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.results.nearzero import balance
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
    >>> found = balance(audit, "query_type", permutations=20)
    >>> found.covariate.values.tolist()
    ['position', 'query_type=u', 'query_type=v']
    """
    ranking = _rows.need_rows(audit, "balance")
    permutations = _placebos(permutations)
    epsilon = None if epsilon is None else _rows.checked_epsilon(epsilon)
    names = audit.groups if group is None else _rows.chosen_groups(audit, "balance", group)
    values = _covariates(ranking, covariates)
    found = [
        _of_group(audit, name, scoring_rule, pairing_mode, epsilon, values, permutations, done)
        for name in names
    ]
    variables: dict[str, Any] = {
        key: (("group", *found[0][key][0]), np.stack([one[key][1] for one in found]))
        for key in found[0]
    }
    cluster, level, seed = inference_options(audit)
    return xr.Dataset(
        variables,
        coords={
            "group": np.array(names),
            "covariate": np.array(["position", *values]),
            "side": np.array(SIDES),
            "scoring_rule": np.str_(scoring_rule),
            "pairing_mode": np.str_(pairing_mode),
        },
        attrs={"cluster": cluster, "level": level, "seed": seed},
    )


def _of_group(
    audit: Audit,
    group: str,
    rule: str,
    mode: str,
    epsilon: float | None,
    values: Mapping[str, Floats],
    permutations: int,
    done: Callable[[], None] | None,
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return the variables of one group, each with its dims after ``group``."""
    from mpc_lab.inference.balance import item_reuse, standardised_difference
    from mpc_lab.pairing.listing import ranks

    cell = open_cell(audit, "balance", group, rule, mode)
    threshold = _threshold(audit, group, rule) if epsilon is None else epsilon
    pairs = cell.pairs(mode, threshold)
    codes = pairs.codes()
    cluster, level, seed = inference_options(audit)
    place = ranks(cell.log, cell.ranking, logged=cell.logged).astype(np.float64)
    columns = [place, *(column[cell.log.row] for column in values.values())]
    differences = [
        standardised_difference(
            x, cell.member, pairs.row_i, pairs.row_j, codes, cluster=cluster, level=level
        )
        for x in columns
    ]
    reuse = item_reuse(codes)
    found: dict[str, tuple[tuple[str, ...], Any]] = {
        name: (("covariate",), [asdict(one)[field] for one in differences])
        for name, field in _DIFFERENCES.items()
    }
    found |= {
        "epsilon": ((), threshold),
        "n_pairs": ((), codes.pairs),
        "effective_queries": ((), reuse.effective_queries),
        "n_items": (("side",), [reuse.items_inside, reuse.items_outside]),
        "most_pairs_of_an_item": (("side",), [reuse.most_inside, reuse.most_outside]),
        "mean_pairs_of_an_item": (("side",), [reuse.mean_inside, reuse.mean_outside]),
        "effective_items": (("side",), [reuse.effective_inside, reuse.effective_outside]),
    }
    if permutations:
        found |= _placebo(cell, threshold, cluster, level, seed, permutations, done)
    return found


def _threshold(audit: Audit, group: str, rule: str) -> float:
    """Return the headline's own threshold; 0 for a group that has no pair to choose it by."""
    own = float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])
    return 0.0 if np.isnan(own) else own


def _placebo(
    cell: CellRows,
    epsilon: float,
    cluster: str,
    level: float,
    seed: int,
    permutations: int,
    done: Callable[[], None] | None,
) -> dict[str, tuple[tuple[str, ...], Any]]:
    from mpc_lab.inference.placebo import placebo

    found = placebo(
        cell.log,
        cell.member,
        cell.cluster_code,
        epsilon=epsilon,
        item=cell.item_code,
        cluster=cluster,
        level=level,
        permutations=permutations,
        seed=seed,
        done=done,
    )
    known = found.estimate[np.isfinite(found.estimate)]
    return {
        "placebo_estimate": (("permutation",), found.estimate),
        "placebo_p_value": (("permutation",), found.p_value),
        "placebo_mean": ((), known.mean() if len(known) else np.nan),
        "placebo_rejected": ((), found.rejected),
        "placebo_rejected_as_audited": ((), found.audited_rejected),
        "placebo_rejected_by_query": ((), found.query_rejected),
        "placebo_observed": ((), found.observed),
        "placebo_observed_p_value": ((), found.observed_p_value),
    }


def _placebos(permutations: Any) -> int:
    found = as_whole(permutations)
    if found is None or not 0 <= found <= _MOST_PLACEBOS:
        raise MpcError(
            f"permutations must be a whole number from 0 to {_MOST_PLACEBOS:,}, got "
            f"{permutations!r}; try 200."
        )
    return found


def _covariates(ranking: Ranking, covariates: Covariates) -> dict[str, Floats]:
    """Return one array of numbers by row for each covariate, and for each value of a text."""
    if isinstance(covariates, Mapping):
        given = {str(name): np.asarray(values) for name, values in covariates.items()}
    else:
        given = {str(name): ranking.column(name) for name in _rows.names_in(covariates)}
    found: dict[str, Floats] = {}
    for name, values in given.items():
        if values.shape != (ranking.n_rows,):
            raise MpcError(
                f"Covariate {name!r} must have one value for each of {ranking.n_rows:,} rows, "
                f"but an array of shape {values.shape} came."
            )
        found |= _numbers(name, values)
    return found


def _numbers(name: str, values: NDArray[Any]) -> dict[str, Floats]:
    if values.dtype.kind in "biuf":
        return {name: values.astype(np.float64)}
    text = values.astype(str)
    distinct = np.unique(text)
    if len(distinct) > _MOST_VALUES:
        raise MpcError(
            f"Covariate {name!r} has {len(distinct):,} different texts, and at most "
            f"{_MOST_VALUES} can be compared one by one; give numbers, or fewer values."
        )
    return {f"{name}={value}": (text == value).astype(np.float64) for value in distinct}
