"""Inside an aggregate, labelled: the gap by segment of queries and by position in the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import check_epsilon
from mpc_lab.pairing.terms import SIGN, terms_of
from mpc_lab.results.base import (
    cell_epsilon,
    headline_epsilon,
    inference_options,
    need_one_side,
    need_rows,
    rule_scores,
    settings,
)
from mpc_lab.results.schema import AuditBase, text
from mpc_lab.vocabulary import verdict_modes

if TYPE_CHECKING:
    from mpc_lab.inference.slices import ByPosition, Sensitivity

_ADJUSTED = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
_NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")


def by_segment(audit: AuditBase, scoring_rule: str, pairing_mode: str) -> xr.Dataset:
    """Return the headline within each segment; see :meth:`mpc_lab.Audit.by_segment`."""
    from mpc_lab.inference.slices import by_segment as within

    need_one_side("by_segment", pairing_mode)
    ranking = need_rows(audit, "by_segment")
    cluster, level, _ = inference_options(audit)
    # Scores first, which checks that there is such a rule. Without a threshold there is no pair.
    cells = [
        (
            group,
            rule_scores(audit, group, scoring_rule, pairing_mode),
            np.nan_to_num(headline_epsilon(audit, group, scoring_rule), nan=-1.0),
        )
        for group in audit.groups
    ]
    how: dict[str, Any] = {
        "mode": pairing_mode,
        "cluster": cluster,
        "level": level,
        "terms": terms_of(settings(audit)),
    }
    found = [
        within(ranking, group, epsilon, scores=scores, **how) for group, scores, epsilon in cells
    ]
    dims = ("group", "segment")
    numbers = {name: np.stack([getattr(one.estimates, name) for one in found]) for name in _NUMBERS}
    for name in ("n_pairs", "n_queries"):
        numbers[name] = np.stack([getattr(one, name) for one in found])
    numbers |= _holm(numbers, level)
    variables: dict[str, Any] = {name: (dims, values) for name, values in numbers.items()}
    variables["agree_statistic"] = ("group", np.array([one.statistic for one in found]))
    variables["agree_p_value"] = ("group", np.array([one.p_value for one in found]))
    labels = {"group": text(audit.groups), "segment": text(ranking.segments)}
    cells_of = {"scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
    return xr.Dataset(variables, labels, {**cells_of, **_attrs(numbers, cluster, level)})


def _attrs(numbers: Mapping[str, Any], cluster: str, level: float) -> dict[str, Any]:
    """Return how cells were clustered and adjusted, and how many there are in the family."""
    family = int(np.isfinite(numbers["p_value"]).sum())
    return {"level": level, "cluster": cluster, "adjust": "holm", "family": family}


def _holm(numbers: Mapping[str, Any], level: float) -> dict[str, Any]:
    """Adjust the cells of all groups together by Holm, whatever the headline's method."""
    from mpc_lab.inference.verdicts import adjust

    names = ("p_value", "estimate", "std_error", "dof")
    made = adjust(*(numbers[name].ravel() for name in names), method="holm", level=level)
    shape = numbers["p_value"].shape
    return {name: getattr(made, name).reshape(shape) for name in _ADJUSTED}


def by_position(
    audit: AuditBase,
    group: str,
    scoring_rule: str,
    pairing_mode: str,
    epsilon: float | None,
    weights: Any,
) -> xr.Dataset:
    """Return the gap by position; see :meth:`mpc_lab.Audit.by_position`."""
    from mpc_lab.inference import slices
    from mpc_lab.inference.slices import gamma_flip, position_sensitivity
    from mpc_lab.objective.ndcg import position_weights

    need_one_side("by_position", pairing_mode)
    cluster, level, _ = inference_options(audit)
    ranking = need_rows(audit, "by_position")
    rule_scores(audit, group, scoring_rule, pairing_mode)
    if epsilon is None:
        used = cell_epsilon(audit, group, scoring_rule)
    else:
        used = check_epsilon(epsilon, unlimited=True)

    terms = terms_of(settings(audit))

    def pairs_of(name: str, mode: str) -> slices.PairTable:
        own = headline_epsilon(audit, name, scoring_rule) if epsilon is None else used
        scores = rule_scores(audit, name, scoring_rule, pairing_mode)
        # Without a threshold there is no pair.
        reach = np.nan_to_num(own, nan=-1.0)
        return slices.pair_table(ranking, name, reach, scores=scores, mode=mode, terms=terms)

    how: dict[str, Any] = {"cluster": cluster, "level": level}
    rests_on = verdict_modes(pairing_mode)
    every: dict[str, ByPosition] = {}
    moved: dict[str, list[Sensitivity]] = {mode: [] for mode in rests_on}
    # One table of pairs at a time: those of all groups together may be large.
    for name in audit.groups:
        for mode in dict.fromkeys((pairing_mode, *rests_on)):
            table = pairs_of(name, mode)
            if mode in moved:
                moved[mode].append(position_sensitivity(table, cluster=cluster))
            if mode == pairing_mode:
                every[name] = slices.by_position(table, **how)
                if name == group:
                    pairs = table
    found = every[group]
    worth = position_weights(weights, int(pairs.position.max(initial=1)))
    weighted = slices.position_weighted(pairs, weights=worth, **how)
    numbers = {name: getattr(found.estimates, name) for name in _NUMBERS}
    numbers |= {"n_pairs": found.n_pairs, "n_queries": found.n_queries}
    family, own = _family(every, group)
    numbers |= {name: values[own] for name, values in _holm(family, level).items()}
    variables: dict[str, Any] = {name: ("position", values) for name, values in numbers.items()}
    for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value"):
        variables[f"weighted_{name}"] = ((), float(getattr(weighted.estimates, name)))
    variables["positions_left_out"] = ((), weighted.n_left_out)
    at = audit.groups.index(group)
    sides = list(moved.values())
    # Changing an outcome by a share says nothing about the sign of a difference.
    by_sign = terms.contrast == SIGN
    flip = np.nan if by_sign else gamma_flip(sides, at, **_verdict_options(audit))
    variables["gamma_flip"] = ((), flip)
    variables["gamma_slope"] = ((), np.nan if by_sign else moved[pairing_mode][at].slope)
    attrs = {"group": group, "scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
    how_made = {"epsilon": used, **_attrs(family, cluster, level)}
    return xr.Dataset(variables, {"position": found.position}, {**attrs, **how_made})


def _verdict_options(audit: AuditBase) -> dict[str, Any]:
    """Return the options of an audit's verdicts; Holm takes the place of Romano–Wolf at other γ."""
    options = settings(audit)
    method = str(options["adjust"])
    return {
        "method": "holm" if method == "romano_wolf" else method,
        "level": float(options["level"]),
        "tolerance": options.get("tolerance"),
    }


def _family(every: Mapping[str, ByPosition], group: str) -> tuple[dict[str, Any], slice]:
    """Return the positions of all groups in one row, and which of them are the group's own."""
    names = ("p_value", "estimate", "std_error", "dof")
    family = {
        name: np.concatenate([getattr(one.estimates, name) for one in every.values()])
        for name in names
    }
    before = list(every)[: list(every).index(group)]
    start = sum(len(every[name].position) for name in before)
    return family, slice(start, start + len(every[group].position))
