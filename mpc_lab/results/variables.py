"""The written schema: every variable of an audit, with its dims, kind, meaning and units."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 2
PAIRING_MODES = ("matched", "mirrored", "adjacent")
VARIANCES = ("naive", "query", "item", "union")
VERDICTS = ("undervalued", "overvalued", "within tolerance", "inconclusive", "not estimable")

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
    units: str
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
    "epsilon": Variable(HEADLINE_DIMS, "f", "largest score gap of a pair", "score"),
    "p_adjusted": Variable(HEADLINE_DIMS, "f", "p-value adjusted over the family", "1"),
    "ci_low_adjusted": Variable(HEADLINE_DIMS, "f", "lower end, adjusted interval", "outcome"),
    "ci_high_adjusted": Variable(HEADLINE_DIMS, "f", "upper end, adjusted interval", "outcome"),
    "ci_cut": Variable(HEADLINE_DIMS, "b", "whether the adjusted interval was cut at 0", "1"),
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
    "underpowered": Variable(
        HEADLINE_DIMS, "b", "whether no threshold had the power asked for", "1", optional=True
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

SUM_FAMILIES = ("naive", "query", "item", "dyad", "item_query", "dyad_query")
SQUARES = {
    "cc": ("sum of squared pair counts", "1"),
    "cu": ("sum of pair count times centred sum", "outcome"),
    "uu": ("sum of squared centred sums", "outcome^2"),
}

MOMENTS: dict[str, Variable] = {
    "pairs": Variable(MOMENT_DIMS, "i", "pairs up to the bin", "1"),
    "queries": Variable(MOMENT_DIMS, "i", "queries with a pair up to the bin", "1"),
    "clusters": Variable(MOMENT_DIMS, "i", "units with a pair up to the bin", "1"),
    "items": Variable(MOMENT_DIMS, "i", "items in a pair up to the bin", "1"),
    "grid": Variable(("grid_point",), "f", "thresholds of the curve", "score"),
    "all_pairs": Variable(
        ("scoring_rule", "group"), "f", "matched pairs with no limit on the gap", "1"
    ),
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
    "correlation": Variable(
        ("pairing_mode", "cell", "other_cell"),
        "f",
        "correlation of headline cells, rule after rule, over queries",
        "1",
        optional=True,
    ),
}
