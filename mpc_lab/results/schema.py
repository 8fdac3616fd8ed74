"""The schema of an audit, builders that label plain arrays by it, checks, and the base class.

Every variable is listed with its dims, kind, meaning and units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mpc_lab.errors import MpcError, near_match
from mpc_lab.vocabulary import (
    ITEM_SUMS,
    MODES,
    QUERY_SUMS,
    VERDICTS,
    WEIGHED_SUMS,
    Floats,
    listed_variances,
)

if TYPE_CHECKING:
    from mpc_lab.pairing.log import Log
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.pairing.walk import Rewalk, Walk
    from mpc_lab.ranking import LogFacts, Ranking

SCHEMA_VERSION = 2

HEADLINE_DIMS = ("group", "scoring_rule", "pairing_mode")
CURVE_DIMS = ("group", "epsilon", "scoring_rule", "pairing_mode")
MOMENT_DIMS = ("scoring_rule", "pairing_mode", "group", "bin")
KINDS = {"f": "float64", "i": "int64", "b": "bool", "U": "text (<U)"}


@dataclass(frozen=True)
class Variable:
    """One line of the schema.

    ``kind`` is numpy's letter: f for float64, i for int64 (a count), b for bool, U for text.
    """

    dims: tuple[str, ...]
    kind: str
    meaning: str
    units: str = ""
    optional: bool = False


def _shared(dims: tuple[str, ...]) -> dict[str, Variable]:
    return {
        "estimate": Variable(dims, "f", "mean outcome difference over the pairs", "outcome"),
        "std_error": Variable(dims, "f", "standard error of the estimate", "outcome"),
        "ci_low": Variable(dims, "f", "lower end of the pointwise interval", "outcome"),
        "ci_high": Variable(dims, "f", "upper end of the pointwise interval", "outcome"),
        "p_value": Variable(dims, "f", "two-sided p-value for a gap of 0", "1"),
        "n_pairs": Variable(dims, "i", "number of pairs", "1"),
        "n_queries": Variable(dims, "i", "number of queries with a pair", "1"),
        "n_items": Variable(dims, "i", "number of items in a pair; 0 without items", "1"),
        "n_effective": Variable(dims, "f", "effective number of clusters", "1"),
        "dof": Variable(dims, "f", "degrees of freedom of the interval", "1"),
    }


HEADLINE: dict[str, Variable] = {
    **_shared(HEADLINE_DIMS),
    "epsilon": Variable(HEADLINE_DIMS, "f", "largest distance of the scores of a pair", "score"),
    "p_adjusted": Variable(HEADLINE_DIMS, "f", "p-value adjusted over the family", "1"),
    "ci_low_adjusted": Variable(HEADLINE_DIMS, "f", "lower end, adjusted interval", "outcome"),
    "ci_high_adjusted": Variable(HEADLINE_DIMS, "f", "upper end, adjusted interval", "outcome"),
    "ci_cut": Variable(HEADLINE_DIMS, "b", "whether the adjusted interval was cut at 0", "1"),
    "bracket_low": Variable(
        HEADLINE_DIMS, "f", "lower end of the bracket that the verdict rests on", "outcome"
    ),
    "bracket_high": Variable(
        HEADLINE_DIMS, "f", "upper end of the bracket that the verdict rests on", "outcome"
    ),
    "bracket_p_adjusted": Variable(
        HEADLINE_DIMS, "f", "adjusted p-value of the bracket, which goes with the verdict", "1"
    ),
    "verdict": Variable(HEADLINE_DIMS, "U", "what the cell shows", ""),
    "verdict_reason": Variable(HEADLINE_DIMS, "U", "why there is no direction; else empty", ""),
    "tie_inflation": Variable(HEADLINE_DIMS, "f", "pairs found / pairs asked for", "1"),
    "std_error_by": Variable(
        (*HEADLINE_DIMS, "variance"), "f", "standard error by variance family", "outcome"
    ),
    "mde": Variable(HEADLINE_DIMS, "f", "smallest detectable gap", "outcome", optional=True),
    "mde_adjusted": Variable(
        HEADLINE_DIMS, "f", "smallest detectable gap, adjusted", "outcome", optional=True
    ),
    "variance_from": Variable(
        HEADLINE_DIMS, "U", "variance family that was largest", "", optional=True
    ),
    "share_items": Variable(
        HEADLINE_DIMS, "f", "share of the variance that comes from items", "1", optional=True
    ),
    "largest_query_share": Variable(
        HEADLINE_DIMS, "f", "largest share of the pairs in one query", "1", optional=True
    ),
    "heavy_share": Variable(
        HEADLINE_DIMS, "f", "share of the query variance in one query", "1", optional=True
    ),
    **{
        f"bootstrap_{name}": Variable(
            HEADLINE_DIMS, "f", f"{meaning} of the bootstrap interval", "outcome", optional=True
        )
        for name, meaning in (
            ("low", "lower percentile end"),
            ("high", "upper percentile end"),
            ("t_low", "lower studentised end"),
            ("t_high", "upper studentised end"),
        )
    },
    "exploratory": Variable(
        HEADLINE_DIMS,
        "b",
        "whether the cell is not the one declared before the run; only where one was declared",
        "1",
        optional=True,
    ),
    **{
        name: Variable(HEADLINE_DIMS, "f", meaning, units, optional=True)
        for name, meaning, units in (
            ("place_effect", "half the jump of the gap between both sides of a tie", "outcome"),
            ("place_effect_low", "lower end of the interval of the place effect", "outcome"),
            ("place_effect_high", "upper end of the interval of the place effect", "outcome"),
            ("place_effect_p_value", "two-sided p-value for a place effect of 0", "1"),
            ("place_overlap", "share of symmetric pairs that both sides were shown at", "1"),
            ("shown_above", "share of matched pairs shown in the other order", "1"),
        )
    },
    "underpowered": Variable(
        HEADLINE_DIMS, "b", "whether no threshold had the power asked for", "1", optional=True
    ),
    "short_of_pairs": Variable(
        HEADLINE_DIMS,
        "b",
        "whether the largest threshold allowed had too few pairs, or pairs of too few queries",
        "1",
        optional=True,
    ),
}

CURVE: dict[str, Variable] = {
    **_shared(CURVE_DIMS),
    "band_low": Variable(
        CURVE_DIMS, "f", "lower end of the band over epsilon", "outcome", optional=True
    ),
    "band_high": Variable(
        CURVE_DIMS, "f", "upper end of the band over epsilon", "outcome", optional=True
    ),
}

SUM_FAMILIES = (*QUERY_SUMS, *ITEM_SUMS)
SQUARES = {
    "cc": ("sum of squared pair counts", "1"),
    "cu": ("sum of pair count times centred sum", "outcome"),
    "uu": ("sum of squared centred sums", "outcome^2"),
}


def _side_schema(prefix: str, *bins: str) -> dict[str, Variable]:
    """Return the variables of a mode of two sides, with `bins` on all thresholds."""
    cell = ("group", *bins)
    found = {
        f"{prefix}{name}": Variable(
            ("scoring_rule", "side", *cell), "f", f"{meaning} of either side", units, True
        )
        for name, meaning, units in (
            ("side_weight", "weight of the pairs", "1"),
            ("side_sum", "centred sum", "outcome"),
        )
    }
    products = "products of the weights and centred sums of two sides over"
    for family in SUM_FAMILIES:
        dims = ("scoring_rule", "sides", "product", *cell)
        found[f"{prefix}sides_{family}"] = Variable(
            dims, "f", f"{products} {family} clusters", "", True
        )
    for which in ("inside", "outside"):
        meaning = f"products of the weights of two sides over items {which} the group"
        found[f"{prefix}sides_{which}"] = Variable(
            ("scoring_rule", "sides", *cell), "f", meaning, "1", True
        )
    return found


MOMENTS: dict[str, Variable] = {
    "pairs": Variable(MOMENT_DIMS, "i", "pairs up to the bin", "1"),
    "queries": Variable(MOMENT_DIMS, "i", "queries with a pair up to the bin", "1"),
    "clusters": Variable(MOMENT_DIMS, "i", "units with a pair up to the bin", "1"),
    "items": Variable(MOMENT_DIMS, "i", "items in a pair up to the bin", "1"),
    "grid": Variable(("grid_point",), "f", "thresholds of the curve", "score"),
    "all_pairs": Variable(("scoring_rule", "group"), "f", "matched pairs at any distance", "1"),
    "edges": Variable(("scoring_rule", "group", "bin"), "f", "right end of the bin", "score"),
    "center": Variable(("scoring_rule", "group"), "f", "number the sums are centred at", "outcome"),
    **{
        f"{family}_{square}": Variable(
            MOMENT_DIMS, "f", f"{meaning} over {family} clusters", units, optional=True
        )
        for family in SUM_FAMILIES
        for square, (meaning, units) in SQUARES.items()
    },
    "inside_cc": Variable(
        MOMENT_DIMS, "f", "sum of squared pair counts over items of the group", "1", optional=True
    ),
    "outside_cc": Variable(
        MOMENT_DIMS, "f", "sum of squared pair counts over the other items", "1", optional=True
    ),
    **{
        f"pair_{name}": Variable(
            MOMENT_DIMS, "f", f"{meaning}, where pairs do not count alike", units, optional=True
        )
        for name, meaning, units in (
            ("weight", "weight of the pairs", "1"),
            ("total", "centred sum of weighted differences", "outcome"),
            ("cc", "sum of squared weights", "1"),
            ("cu", "sum of squared weights times centred differences", "outcome"),
            ("uu", "sum of squared weighted centred differences", "outcome^2"),
        )
    },
    **{
        f"{family}_cr3": Variable(
            MOMENT_DIMS,
            "f",
            f"sum over {family} clusters of (S/(1 - s))^2, S the sum about the estimate and s the "
            "share of the pairs",
            "outcome^2",
            optional=True,
        )
        for family in WEIGHED_SUMS
    },
    **{
        f"headline_{family}_cr3": Variable(
            ("scoring_rule", "group"),
            "f",
            f"the same over {family} clusters for symmetric pairs inside cells of places, at the "
            "headline's threshold",
            "outcome^2",
            optional=True,
        )
        for family in WEIGHED_SUMS
    },
    "query_powers": Variable(
        ("scoring_rule", "power", *MOMENT_DIMS[1:]),
        "f",
        "over queries with at most 1/32 of the pairs, sums of c^3, c^2 U, c U^2, c^4, c^3 U and "
        "c^2 U^2, c their pairs and U their centred sum",
        optional=True,
    ),
    "query_heavy": Variable(
        ("scoring_rule", "pairs_or_sum", "heavy", *MOMENT_DIMS[1:]),
        "f",
        "pairs and centred sum of the other queries; 0 beyond the last",
        optional=True,
    ),
    "sided_powers": Variable(
        ("scoring_rule", "side_power", "group", "bin"),
        "f",
        "the same powers of either side of symmetric pairs, and products of both",
        optional=True,
    ),
    "sided_heavy": Variable(
        ("scoring_rule", "side_value", "side_heavy", "group", "bin"),
        "f",
        "of queries with more than 1/32 of a side, pairs and centred sum below, and above",
        optional=True,
    ),
    **_side_schema("", "bin"),
    **_side_schema("headline_"),
    "cells": Variable(
        ("scoring_rule", "weight_or_sum", "part", "group", "bin"),
        "f",
        "pairs and centred sums of either side in each cell of places",
        optional=True,
    ),
    "correlation": Variable(
        ("pairing_mode", "cell", "other_cell"),
        "f",
        "correlation of headline cells, rule after rule, over queries",
        "1",
        optional=True,
    ),
    "capped": Variable(
        ("scoring_rule", "pairing_mode", "group", "capped_sum"),
        "f",
        "at most pairs_cap pairs of a query at the headline's threshold: their number c and the "
        "sum D of their differences over queries, then sums of c^2, cD and D^2",
        "1",
        optional=True,
    ),
}

SCHEMAS = {"headline": HEADLINE, "curve": CURVE, "moments": MOMENTS}
Attribute = int | float | str
Cells = Mapping[str, ArrayLike | Mapping[str, ArrayLike]]


def headline_dataset(
    groups: Sequence[str],
    rules: Sequence[str],
    modes: Sequence[str],
    cells: Cells,
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Label the headline.

    Parameters
    ----------
    groups, rules, modes : sequence of str
        The labels of the three dims.
    cells : mapping of str to array
        Variable name to an array of shape (group, rule, mode). ``std_error_by`` is a mapping of
        variance family to such an array.
    attrs : mapping, optional
        Numbers and texts.

    Returns
    -------
    xarray.Dataset
    """
    labels: dict[str, NDArray[Any]] = {
        "group": text(groups),
        "scoring_rule": text(rules),
        "pairing_mode": text(modes),
    }
    arrays: dict[str, ArrayLike] = {}
    for name, value in cells.items():
        if isinstance(value, Mapping):
            known = listed_variances()
            families = [family for family in known if family in value]
            _refuse_unknown(name, value, known)
            labels["variance"] = text(families)
            arrays[name] = np.stack([np.asarray(value[f], float) for f in families], axis=-1)
        else:
            arrays[name] = value
    return check_headline(_build("headline", HEADLINE, labels, arrays, attrs))


def curve_dataset(
    groups: Sequence[str],
    epsilon: ArrayLike,
    rules: Sequence[str],
    modes: Sequence[str],
    cells: Mapping[str, ArrayLike],
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Label the curve; each array of ``cells`` has shape (group, epsilon, rule, mode)."""
    labels = {
        "group": text(groups),
        "epsilon": np.asarray(epsilon, dtype=np.float64),
        "scoring_rule": text(rules),
        "pairing_mode": text(modes),
    }
    return check_curve(_build("curve", CURVE, labels, cells, attrs))


def moments_dataset(
    groups: Sequence[str],
    rules: Sequence[str],
    modes: Sequence[str],
    cells: Mapping[str, ArrayLike],
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Label the sums an audit is made from; arrays of ``cells`` have the dims of ``MOMENTS``."""
    labels = {"scoring_rule": text(rules), "pairing_mode": text(modes), "group": text(groups)}
    return check_moments(_build("moments", MOMENTS, labels, cells, attrs))


def check_headline(ds: xr.Dataset) -> xr.Dataset:
    """Return ``ds`` if it keeps to ``HEADLINE``; otherwise raise an error naming the variable."""
    _check("headline", HEADLINE, ds)
    _check_modes("headline", ds)
    _refuse_unknown("headline.variance", ds["variance"].values.tolist(), listed_variances())
    _refuse_unknown("headline.verdict", np.unique(ds["verdict"].values).tolist(), tuple(VERDICTS))
    _check_empty_cells("headline", ds)
    return ds


def check_curve(ds: xr.Dataset) -> xr.Dataset:
    """Return ``ds`` if it keeps to ``CURVE``; otherwise raise an error naming the variable."""
    _check("curve", CURVE, ds)
    _check_modes("curve", ds)
    grid = ds["epsilon"].values
    if grid.dtype != np.float64 or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise MpcError(
            "curve.epsilon must be finite float64 numbers in ascending order; got others."
        )
    _check_empty_cells("curve", ds)
    return ds


def check_moments(ds: xr.Dataset) -> xr.Dataset:
    """Return ``ds`` if it keeps to ``MOMENTS``; otherwise raise an error naming the variable."""
    _check("moments", MOMENTS, ds)
    _check_modes("moments", ds)
    return ds


def check_same_cells(headline: xr.Dataset, curve: xr.Dataset) -> xr.Dataset:
    """Return ``curve`` if its labels are those of ``headline``; otherwise raise an error."""
    for dim in HEADLINE_DIMS:
        if headline[dim].values.tolist() != curve[dim].values.tolist():
            raise MpcError(
                f"curve.{dim} must hold the labels of headline.{dim} in their order; got others."
            )
    return curve


def text(values: ArrayLike) -> NDArray[np.str_]:
    """Return values as numpy text of the smallest width, the one form that files give back."""
    array = np.asarray(values)
    flat = np.array([str(value) for value in array.ravel().tolist()], dtype=np.str_)
    return flat.reshape(array.shape)


def clean_attrs(attrs: Mapping[Any, object] | None) -> dict[str, Attribute]:
    """Return attributes as plain numbers and texts, the only kinds that netCDF keeps."""
    return {str(name): _clean(str(name), value) for name, value in (attrs or {}).items()}


def _clean(name: str, value: object) -> Attribute:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float | str):
        raise MpcError(
            f"Attribute {name!r} must be a number or text; got {type(plain).__name__}. Write "
            "options as one JSON text."
        )
    return plain


def _build(
    part: str,
    schema: Mapping[str, Variable],
    labels: Mapping[str, NDArray[Any]],
    cells: Mapping[str, ArrayLike],
    attrs: Mapping[str, object] | None,
) -> xr.Dataset:
    _refuse_unknown(part, cells, schema)
    data = {
        name: (
            variable.dims,
            _cast(f"{part}.{name}", variable, cells[name], labels),
            noted(variable),
        )
        for name, variable in schema.items()
        if name in cells
    }
    return xr.Dataset(data, coords=dict(labels), attrs=clean_attrs(attrs))


def noted(variable: Variable) -> dict[str, str]:
    """Return the attributes that a variable of the schema carries."""
    return {"long_name": variable.meaning, "units": variable.units}


def _cast(
    name: str, variable: Variable, value: ArrayLike, labels: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    array = text(value) if variable.kind == "U" else np.asarray(value)
    allowed = {"f": "fiu", "i": "iu", "b": "b", "U": "U"}[variable.kind]
    if array.dtype.kind not in allowed:
        raise MpcError(f"{name} must be {KINDS[variable.kind]}; got {array.dtype}.")
    shape = tuple(labels[dim].size if dim in labels else -1 for dim in variable.dims)
    if array.ndim != len(shape) or any(
        want not in (-1, got) for want, got in zip(shape, array.shape, strict=True)
    ):
        raise MpcError(
            f"{name} must have dims ({', '.join(variable.dims)}) of sizes {shape}; got an array "
            f"of shape {array.shape}."
        )
    if variable.kind == "U":
        return array
    return np.ascontiguousarray(array, dtype=KINDS[variable.kind]).reshape(array.shape)


def _check(part: str, schema: Mapping[str, Variable], ds: xr.Dataset) -> None:
    _refuse_unknown(part, [str(name) for name in ds.data_vars], schema)
    for name, variable in schema.items():
        if name in ds.data_vars:
            _check_variable(f"{part}.{name}", variable, ds[name])
        elif not variable.optional:
            raise MpcError(
                f"{part}.{name} must be present, with dims {variable.dims}; got no such variable."
            )
    for dim in ("group", "scoring_rule", "pairing_mode"):
        _check_labels(f"{part}.{dim}", ds, dim)
    clean_attrs(ds.attrs)


def _check_variable(name: str, variable: Variable, array: xr.DataArray) -> None:
    if array.dims != variable.dims:
        raise MpcError(f"{name} must have dims {variable.dims}; got {array.dims}.")
    wanted = KINDS[variable.kind]
    if array.dtype.kind != "U" if variable.kind == "U" else array.dtype != np.dtype(wanted):
        raise MpcError(f"{name} must be {wanted}; got {array.dtype}.")
    if variable.kind == "i" and (array.values < 0).any():
        raise MpcError(f"{name} must be a count of at least 0; got {array.values.min()}.")


def _check_labels(name: str, ds: xr.Dataset, dim: str) -> None:
    if dim not in ds.coords or ds[dim].dtype.kind != "U":
        raise MpcError(f"{name} must be a coordinate of numpy text (<U); got another kind.")
    labels = ds[dim].values
    if np.unique(labels).size != labels.size:
        raise MpcError(f"{name} must hold each label once; got one twice.")


def _check_modes(part: str, ds: xr.Dataset) -> None:
    _refuse_unknown(f"{part}.pairing_mode", ds["pairing_mode"].values.tolist(), tuple(MODES))


def _check_empty_cells(part: str, ds: xr.Dataset) -> None:
    empty = ds["n_pairs"].values == 0
    for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value"):
        if not np.isnan(ds[name].values[empty]).all():
            raise MpcError(f"{part}.{name} must be NaN where there is no pair; got a number.")


def _refuse_unknown(part: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = tuple(known)
    for name in names:
        if name not in known:
            raise MpcError(f"{part} has no {name!r}.{near_match(name, known)}")


# ---- what holds the datasets

Scores = Callable[[str, str], Floats | None]
# Walks a log once more, with the columns that are named.
WalkWith = Callable[[Sequence[str]], AbstractContextManager["tuple[Walk, LogFacts]"]]


class AuditBase:
    """The numbers of an audit and the way to its rows; see :class:`mpc_lab.Audit`."""

    def __init__(
        self,
        headline: xr.Dataset,
        curve: xr.Dataset | Callable[[], xr.Dataset],
        moments: xr.Dataset | Callable[[], xr.Dataset] | None = None,
        attrs: Mapping[str, object] | None = None,
        *,
        ranking: Ranking | None = None,
        scores: Scores | None = None,
        cross: Callable[[int], Any] | None = None,
        saved: Mapping[str, xr.Dataset] | None = None,
        own: Sequence[Moments] | None = None,
        grid: Floats | None = None,
        curve_part: Callable[[str, str], xr.Dataset] | None = None,
        curve_parts: Callable[[Sequence[str], str], None] | None = None,
        reread: Callable[[], Ranking] | None = None,
        walk: Rewalk | None = None,
        walk_with: WalkWith | None = None,
    ) -> None:
        self.headline = check_headline(headline)
        self.attrs = {"schema_version": SCHEMA_VERSION, **clean_attrs(attrs)}
        self.ranking = ranking
        self._curve = curve
        self._moments = moments
        self._scores = scores
        self._cross = cross
        self._saved = dict(saved or {})
        self._own = own
        self._grid = grid
        self._curve_part = curve_part
        self._curve_parts = curve_parts
        self._reread = reread
        self._walk = walk
        self._walk_with = walk_with
        self._looks: tuple[dict[str, Any], ...] = ()
        self._rivals: dict[Any, Any] = {}
        self._sorted: tuple[Ranking, Log] | None = None

    @cached_property
    def curve(self) -> xr.Dataset:
        """The gap at every threshold of the grid; made when first asked for.

        Dims (group, epsilon, scoring_rule, pairing_mode).
        """
        made = self._curve() if callable(self._curve) else self._curve
        return check_same_cells(self.headline, check_curve(made))

    @property
    def grid(self) -> Floats:
        """The thresholds of the curve, ascending; known before the curve is made."""
        return np.array(self.curve["epsilon"].values if self._grid is None else self._grid)

    @cached_property
    def moments(self) -> xr.Dataset | None:
        """The sums behind headline and curve; made when first asked for."""
        if self._moments is None:
            return None
        return check_moments(self._moments() if callable(self._moments) else self._moments)

    @property
    def looks(self) -> tuple[dict[str, Any], ...]:
        """The options of all audits of this log that the process had made so far, this one last.

        Empty for a pool and for a frame on a cluster (Dask, Spark), whose audits are not counted.
        Not part of comparisons between audits.
        """
        return self._looks

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in the order of the headline."""
        return tuple(self.headline["group"].values.tolist())
