"""Whether the pairs of an audit compare like with like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mpc_lab.errors import MpcError, check_epsilon, check_whole
from mpc_lab.results.base import (
    chosen_groups,
    inference_options,
    names_in,
    need_one_side,
    need_rows,
)
from mpc_lab.results.questions.pairs import CellRows, open_cell
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import ITEM, Floats

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


Covariates = str | Sequence[str] | Mapping[str, ArrayLike]

SIDES = ("group", "others")
_MOST_VALUES = 30
# What pandas calls numbers that are stored as objects, for example beside None.
_NUMBERS = ("integer", "floating", "mixed-integer-float")
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
    audit: AuditBase,
    covariates: Covariates = (),
    group: str | Sequence[str] | None = None,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    epsilon: float | None = None,
    permutations: int = 200,
    done: Callable[[], None] | None = None,
) -> xr.Dataset:
    """Compare the two sides of the pairs; see :meth:`mpc_lab.Audit.balance`.

    ``done`` is called after each placebo, to show the progress of many.
    """
    need_one_side("balance", pairing_mode)
    ranking = need_rows(audit, "balance")
    permutations = _placebos(permutations)
    epsilon = None if epsilon is None else check_epsilon(epsilon, unlimited=True)
    names = audit.groups if group is None else chosen_groups(audit, "balance", group)
    values = read_covariates(ranking, covariates)
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
    audit: AuditBase,
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

    cell = open_cell(audit, "balance", group, rule, mode)
    threshold = _threshold(audit, group, rule) if epsilon is None else epsilon
    pairs = cell.pairs(mode, threshold)
    codes = pairs.codes()
    cluster, level, seed = inference_options(audit)
    place = cell.rank.astype(np.float64)
    columns = [place, *(column[cell.log.row] for column in values.values())]
    differences = [
        standardised_difference(
            x, cell.member, pairs.row_i, pairs.row_j, codes, cluster=cluster, level=level
        )
        for x in columns
    ]
    reuse = item_reuse(codes if pairs.owner == ITEM else pairs.item_codes())
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


def _threshold(audit: AuditBase, group: str, rule: str) -> float:
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
    from mpc_lab.inference.balance import placebo

    found = placebo(
        cell.log,
        cell.member,
        cell.cluster_code(),
        epsilon=epsilon,
        item=cell.item_code,
        owner=cell.log.owner if len(cell.log.owner) else None,
        cluster=cluster,
        level=level,
        permutations=permutations,
        seed=seed,
        done=done,
    )
    return {
        "placebo_estimate": (("permutation",), found.estimate),
        "placebo_p_value": (("permutation",), found.p_value),
        "placebo_by": ((), found.by),
        "placebo_expected": ((), found.expected),
        "placebo_rejected": ((), found.rejected),
        "placebo_rejected_low": ((), found.rejected_low),
        "placebo_rejected_high": ((), found.rejected_high),
        "placebo_observed": ((), found.observed),
        "placebo_observed_p_value": ((), found.observed_p_value),
    }


def _placebos(permutations: Any) -> int:
    return check_whole("permutations", permutations, at_most=_MOST_PLACEBOS, remedy="Try 200.")


def read_covariates(ranking: Ranking, covariates: Covariates) -> dict[str, Floats]:
    """Return an array of numbers by row for each covariate, and for each value of a text."""
    if isinstance(covariates, Mapping):
        given = {str(name): np.asarray(values) for name, values in covariates.items()}
    else:
        given = {str(name): ranking.column(name) for name in names_in(covariates)}
    found: dict[str, Floats] = {}
    for name, values in given.items():
        if values.shape != (ranking.n_rows,):
            raise MpcError(
                f"Covariate {name!r} must have one value for each of {ranking.n_rows:,} rows; "
                f"got an array of shape {values.shape}."
            )
        found |= _numbers(name, values)
    return found


def _numbers(name: str, values: NDArray[Any]) -> dict[str, Floats]:
    """Return numbers as they are, and text as one column for each value; missing is a value too."""
    if values.dtype.kind in "biuf":
        return {name: values.astype(np.float64)}
    missing = np.asarray(pd.isna(values), dtype=np.bool_)
    if pd.api.types.infer_dtype(values[~missing]) in _NUMBERS:
        return {name: np.where(missing, np.nan, values).astype(np.float64)}
    text = values.astype(str)
    distinct = np.unique(text[~missing])
    if len(distinct) > _MOST_VALUES:
        raise MpcError(
            f"Covariate {name!r} must have at most {_MOST_VALUES} different texts; got "
            f"{len(distinct):,}. Give numbers, or fewer values."
        )
    levels = {f"{name}={value}": (text == value) & ~missing for value in distinct}
    if missing.any():
        levels[f"{name} is missing"] = missing
    return {level: rows.astype(np.float64) for level, rows in levels.items()}
