"""Intervals for an audit that is repeated as queries come in, labelled."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError, check_flag
from mpc_lab.pairing.terms import SIGN, parse_threshold, terms_of
from mpc_lab.ranking import Ranking
from mpc_lab.results.assemble import headline_moments, infer, mode_rows
from mpc_lab.results.base import refuse_terms, rule_scores, settings
from mpc_lab.results.recipe import columns
from mpc_lab.results.schema import HEADLINE_DIMS, AuditBase
from mpc_lab.vocabulary import Floats, Ints

# Cells of axes (rule, mode, group), the modes that were summed over: low, high, estimate, n_pairs.
Cells = dict[str, NDArray[Any]]

ROWS, SUMS, ASYMPTOTIC = "betting", "betting from sums", "asymptotic"
# Their α is a third of the spread of all scores, which changes from look to look.
_MOVING = ("boosted", "demoted")
_ALIKE = "Its bets are on a mean over pairs that count alike."


def confidence_sequence(audit: AuditBase, planned: int, asymptotic: bool) -> xr.Dataset:
    """Return the interval of each cell; see :meth:`mpc_lab.Audit.confidence_sequence`."""
    options = settings(audit)
    level = float(options["level"])
    if check_flag("asymptotic", asymptotic):
        cells, about = _many_queries(audit, planned, level), {"method": ASYMPTOTIC}
    else:
        cells, about = _bets(audit, planned, level)
    rows = mode_rows(audit)
    variables = {
        name: (HEADLINE_DIMS, np.moveaxis(values[:, rows], (0, 1), (1, 2)))
        for name, values in cells.items()
    }
    labels = {dim: audit.headline[dim] for dim in HEADLINE_DIMS}
    attrs = {"level": level, "planned": planned, "n_queries": int(options["n_units"]), **about}
    return xr.Dataset(variables, labels, attrs)


def intervals(audit: AuditBase, planned: int, level: float) -> tuple[Floats, Floats]:
    """Return both ends for every cell, axes (rule, mode, group), the modes that were summed over.

    Parameters
    ----------
    audit : Audit
        An audit at a threshold that was fixed in advance, whose outcome has bounds.
    planned : int
        See :meth:`mpc_lab.Audit.confidence_sequence`.
    level : float
        The probability that no look ever misses, over all groups of a rule and mode.
    """
    cells, _ = _bets(audit, planned, level)
    return cells["low"], cells["high"]


def _fixed_threshold(audit: AuditBase) -> float:
    threshold = parse_threshold(str(settings(audit)["threshold"]))
    if not isinstance(threshold, float):
        raise MpcError(
            "Repeated looks must have a threshold that was fixed in advance; got "
            f"{settings(audit)['threshold']}. Run the audit with a number as threshold."
        )
    return threshold


def _refuse_weights(audit: AuditBase) -> None:
    """Refuse weighted pairs: bets are on a mean of at most `pairs_cap` equal pairs a query."""
    refuse_terms(audit, "confidence_sequence", {"estimand": _ALIKE})
    if columns(audit).get("weight") is not None:
        raise MpcError(
            "audit.confidence_sequence() must have a log without weight=; got one with "
            f"weights. {_ALIKE} Run the audit without weight=."
        )


def _bets(audit: AuditBase, planned: int, level: float) -> tuple[Cells, dict[str, Any]]:
    """Return the cells by bets on bounded outcomes, and the method that was used."""
    from mpc_lab.results.plan import find_bounds

    _fixed_threshold(audit)
    _refuse_weights(audit)
    given = settings(audit).get("bounds")
    ranking = audit.ranking
    # A walked log uses its sums even if its rows were read for another question, because the method
    # must not change between two looks.
    if ranking is not None and audit._reread is None:
        known = None if given is None else (given[0], given[1])
        sign = terms_of(settings(audit)).contrast == SIGN
        bounds = find_bounds(known, ranking.outcome, sign=sign)
        if bounds is not None:
            cap = int(settings(audit).get("pairs_cap", 10))
            cells = _from_rows(audit, ranking, bounds, cap, planned, level)
            return cells, _about(ROWS, bounds, cap)
    elif audit.moments is not None and "capped" in audit.moments:
        attrs = audit.moments.attrs
        bounds = float(attrs["bounds_low"]), float(attrs["bounds_high"])
        cap = int(attrs["pairs_cap"])
        return _from_sums(audit, bounds, cap, level), _about(SUMS, bounds, cap)
    raise MpcError(
        "Repeated looks must have bounds of the outcome; got an audit without them. Run "
        "mpc.audit(…, bounds=(0, 5)) with the lowest and the highest outcome that can occur."
    )


def _about(method: str, bounds: tuple[float, float], cap: int) -> dict[str, Any]:
    return {
        "method": method,
        "bounds": json.dumps(bounds),
        "pairs_cap": cap,
        "estimand": f"the mean gap over the {cap} closest pairs of each query",
    }


def _from_rows(
    audit: AuditBase,
    ranking: Ranking,
    bounds: tuple[float, float],
    cap: int,
    planned: int,
    level: float,
) -> Cells:
    """Bet on one query after the other."""
    from mpc_lab.inference.sequence import betting_sequence
    from mpc_lab.pairing.log import compare_group
    from mpc_lab.pairing.pairs import capped_by_unit

    epsilon, seed = _fixed_threshold(audit), int(settings(audit).get("seed", 0))
    modes, order = headline_moments(audit)[0].modes, _order(ranking)
    cells = _empty(audit)
    how: dict[str, Any] = {"level": level, "planned": planned, "tests": len(audit.groups)}
    terms, shown = terms_of(settings(audit)), str(audit.headline["pairing_mode"].values[0])
    for r, rule in enumerate(_rules(audit)):
        for g, group in enumerate(audit.groups if _is_fixed(audit, rule) else ()):
            log, _ = compare_group(ranking, group, rule_scores(audit, group, rule, shown), terms)
            member = log.masks[0] != 0
            for m, mode in enumerate(modes):
                if mode.two_sided:  # a mean of two means is not a ratio of sums, which bets need
                    continue
                c, d = capped_by_unit(log, member, mode.side, epsilon, cap, seed)
                totals = np.array([c.sum(), d.sum()])
                _check_counted(totals)
                ends = betting_sequence(
                    c[order], d[order], width=bounds[1] - bounds[0], cap=cap, **how
                )
                _put(cells, (r, m, g), ends, totals)
    return cells


def _order(ranking: Ranking) -> Ints:
    """Return the units in the order of looks: of their earliest time, then of their first row."""
    unit = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    if ranking.time is None:
        return np.arange(ranking.n_units)
    first = np.full(ranking.n_units, np.iinfo(np.int64).max)
    np.minimum.at(first, unit, ranking.time)
    return np.argsort(first, kind="stable")


def _from_sums(audit: AuditBase, bounds: tuple[float, float], cap: int, level: float) -> Cells:
    """Bet on all queries at once, in any order."""
    from mpc_lab.inference.sequence import sequence_from_sums

    assert audit.moments is not None
    capped = audit.moments["capped"].values
    cells = _empty(audit)
    how: dict[str, Any] = {"level": level, "tests": len(audit.groups)}
    fixed = [_is_fixed(audit, rule) for rule in _rules(audit)]
    for cell in np.ndindex(capped.shape[:-1]):
        if fixed[cell[0]]:
            _check_counted(capped[cell])
            ends = sequence_from_sums(capped[cell], width=bounds[1] - bounds[0], cap=cap, **how)
            _put(cells, cell, ends, capped[cell])
    return cells


def _check_counted(totals: Floats) -> None:
    if np.isnan(totals).any():
        raise MpcError(
            "Each query must have few enough pairs to list, so that the closest can be found; got "
            "a query with too many. Choose a smaller fixed threshold."
        )


def _put(cells: Cells, cell: tuple[int, ...], ends: tuple[float, float], totals: Floats) -> None:
    cells["low"][cell], cells["high"][cell] = ends
    pairs, sums = totals[:2]
    cells["n_pairs"][cell] = int(pairs)
    cells["estimate"][cell] = sums / pairs if pairs else np.nan


def _empty(audit: AuditBase) -> Cells:
    own = headline_moments(audit)
    shape = (len(own), *own[0].pairs.shape[:2])
    cells: Cells = {name: np.full(shape, np.nan) for name in ("low", "high", "estimate")}
    return cells | {"n_pairs": np.zeros(shape, dtype=np.int64)}


def _rules(audit: AuditBase) -> list[str]:
    return [str(rule) for rule in audit.headline["scoring_rule"].values]


def _is_fixed(audit: AuditBase, rule: str) -> bool:
    """Whether the scores of a rule are the same at every look; fitted scores are not."""
    fitted = json.loads(str(settings(audit).get("in_sample", "[]")))
    return rule not in fitted and rule not in _MOVING


def _many_queries(audit: AuditBase, planned: int, level: float) -> Cells:
    """Return the sequence that is based on the central limit theorem."""
    from mpc_lab.inference.sequence import confidence_sequence as asymptotic_sequence

    _fixed_threshold(audit)
    own = headline_moments(audit)
    found = [infer(moments, cluster="query", level=level) for moments in own]
    estimate = np.stack([one.estimate[..., 0] for one in found])
    low, high = asymptotic_sequence(
        estimate,
        np.stack([one.variance_by["query"][..., 0] for one in found]),
        np.array(int(settings(audit)["n_units"])),
        np.stack([moments.clusters[..., 0] for moments in own]),
        level=level,
        planned=planned,
        tests=len(audit.groups),
    )
    # The pairs of a single query have a raw variance of 0, which says nothing.
    known = np.stack([one.estimable[..., 0] for one in found])
    return {
        "low": np.where(known, low, np.nan),
        "high": np.where(known, high, np.nan),
        "estimate": estimate,
        "n_pairs": np.stack([moments.pairs[..., 0] for moments in own]),
    }
