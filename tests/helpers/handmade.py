"""Audits made by hand from small arrays, so that results are tested without any other room."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from mpc_lab.results import Audit, curve_dataset, headline_dataset, moments_dataset


class Rows:
    """As much of a Ranking as the results room touches: two queries of three items."""

    query_code = np.array([0, 0, 0, 1, 1, 1])
    unit_code = None
    item_code = np.array([0, 1, 2, 0, 1, 2])
    owner, producer_code = "item", None
    score = np.array([0.3, 0.2, 0.1, 0.5, 0.5, 0.4])
    outcome = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])

    def __init__(self, mark="f00d"):
        self.mark = mark

    def fingerprint(self):
        return self.mark

    def query_labels(self, codes):
        return np.array(["p", "q"], dtype=object)[codes]

    def item_labels(self, codes):
        return np.array(["A", "B", "C"], dtype=object)[codes]


def cell_numbers(shape, seed):
    """Plausible numbers for the variables that headline and curve share."""
    draw = np.random.default_rng(seed)
    estimate, error = draw.normal(0, 0.1, shape), draw.uniform(0.01, 0.1, shape)
    numbers = {"estimate": estimate, "std_error": error, "p_value": draw.uniform(0, 1, shape)}
    numbers |= {"ci_low": estimate - 2 * error, "ci_high": estimate + 2 * error}
    numbers |= {"n_effective": draw.uniform(25, 90, shape), "dof": draw.uniform(24, 89, shape)}
    for name in ("n_pairs", "n_queries", "n_items"):
        numbers[name] = draw.integers(100, 9000, shape)
    return numbers


def headline_numbers(shape, seed):
    numbers = cell_numbers(shape, seed)
    numbers |= {"ci_low_adjusted": numbers["ci_low"], "ci_high_adjusted": numbers["ci_high"]}
    numbers |= {"p_adjusted": numbers["p_value"], "ci_cut": np.zeros(shape, bool)}
    numbers |= {"bracket_low": numbers["ci_low"], "bracket_high": numbers["ci_high"]}
    numbers["bracket_p_adjusted"] = numbers["p_value"]
    numbers |= {"epsilon": np.full(shape, 0.002), "tie_inflation": np.full(shape, 1.0)}
    numbers["verdict"] = np.full(shape, "inconclusive")
    numbers["verdict_reason"] = np.full(shape, "interval covers 0")
    families = ("naive", "query", "item", "union")
    numbers["std_error_by"] = dict.fromkeys(families, numbers["std_error"])
    return numbers


def cell(estimate, low, high, verdict, reason="", **more):
    """Return the variables of one headline cell."""
    numbers = {"estimate": estimate, "ci_low": low, "ci_high": high, "verdict": verdict}
    numbers |= {"ci_low_adjusted": low, "ci_high_adjusted": high, "verdict_reason": reason}
    numbers |= {"bracket_low": low, "bracket_high": high}
    return {**numbers, **more}


EMPTY = cell(
    np.nan,
    np.nan,
    np.nan,
    "not estimable",
    "no pairs",
    **dict.fromkeys(("std_error", "p_value", "p_adjusted", "n_effective", "dof"), np.nan),
    bracket_p_adjusted=np.nan,
    **dict.fromkeys(("tie_inflation", "epsilon"), np.nan),
    **dict.fromkeys(("n_pairs", "n_queries", "n_items"), 0),
)


def build(groups=("1", "2"), rules=("baseline",), modes=("matched",), cells=None, **options):
    """Return an audit; ``cells`` overrides cells, keyed by group or (group, rule, mode)."""
    grid = np.array([0.0, 0.001, 0.002])
    shape = (len(groups), len(rules), len(modes))
    numbers = headline_numbers(shape, 0)
    for name in ("verdict", "verdict_reason"):
        numbers[name] = numbers[name].astype(object)
    for key, values in (cells or {}).items():
        group, rule, mode = (key, rules[0], modes[0]) if isinstance(key, str) else key
        at = groups.index(group), rules.index(rule), modes.index(mode)
        for name, value in values.items():
            numbers[name][at] = value
    settings = {
        "level": 0.95,
        "adjust": "holm",
        "cluster": "union",
        "threshold": "Quantile(p=0.01)",
    }
    attrs = {"options": json.dumps({**settings, **options.pop("settings", {})})}
    attrs["rules_with_ties"] = "[]"
    attrs |= options.pop("attrs", {})
    curve = curve_dataset(
        groups, grid, rules, modes, cell_numbers((shape[0], grid.size, *shape[1:]), 1)
    )
    headline = headline_dataset(groups, rules, modes, numbers)
    return Audit(
        headline,
        options.pop("curve", curve),
        sums(groups, rules, modes),
        attrs,
        saved={"objective": xr.Dataset(attrs={"level": 0.95})},
        **options,
    )


def sums(groups, rules, modes, bins=3):
    shape = (len(rules), len(modes), len(groups), bins)
    counts = np.arange(np.prod(shape)).reshape(shape)
    cells = dict.fromkeys(("pairs", "queries", "clusters", "items"), counts)
    cells |= {"edges": np.zeros((shape[0], shape[2], bins)), "center": np.zeros(shape[::2])}
    cells |= {"grid": np.zeros(1), "all_pairs": np.zeros(shape[::2])}
    cells |= {f"query_{square}": counts / 7 for square in ("cc", "cu", "uu")}
    return moments_dataset(groups, rules, modes, cells)
