"""What an audit could have found, how many queries a gap would need, and what to do next."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError, check_number
from mpc_lab.inference.estimates import NOT_POOLED, owner_variance
from mpc_lab.inference.verdicts import floor_variance, mde, queries_needed
from mpc_lab.pairing.terms import SIGN, Enough, Powered, Threshold, parse_threshold
from mpc_lab.results.assemble import (
    count_sides,
    family_size,
    headline_moments,
    infer,
    mode_rows,
    weakest_sides,
)
from mpc_lab.results.base import correction_of, has_sums, settings
from mpc_lab.results.schema import AuditBase
from mpc_lab.results.wording import columns_of, outcome_word
from mpc_lab.text import between, listing, noun, percent, quote, round_count_up, two_digits
from mpc_lab.vocabulary import AGAINST as RUN_AGAINST
from mpc_lab.vocabulary import (
    CR3,
    INCONCLUSIVE,
    MATCHED,
    NOT_ESTIMABLE,
    VARIANCES,
    Flags,
    Floats,
    verdict_modes,
)

if TYPE_CHECKING:
    from mpc_lab.pairing.measure import Headline
    from mpc_lab.pairing.walk import Source
    from mpc_lab.results.audit import Audit
    from mpc_lab.results.plan import Plan
    from mpc_lab.results.summary import Cell, Slice
    from mpc_lab.scoring import Rule


_MEANING = {
    "mde": ("smallest gap found with the given power", "outcome"),
    "mde_adjusted": ("smallest gap found with the given power, over the family", "outcome"),
    "mde_floor": ("smallest gap that any number of queries of this catalogue finds", "outcome"),
    "queries_needed": ("queries of such a log needed for the effect; inf: none suffice", "1"),
    "queries_needed_adjusted": ("queries needed for the effect, over the family", "1"),
    "n_queries": ("queries, or units, of the log, with a pair or without", "1"),
}


def power(audit: AuditBase, effect: float | None, power: float) -> xr.Dataset:
    """Return the power of every headline cell; see :meth:`mpc_lab.Audit.power`."""
    effect = None if effect is None else check_number("effect", effect)
    power = check_number("power", power)
    options = settings(audit)
    level = float(options["level"])
    own = headline_moments(audit)
    cluster, correction = str(options["cluster"]), correction_of(audit)
    found = [infer(moments, cluster=cluster, level=level, correction=correction) for moments in own]

    def stacked(values: list[Any]) -> Any:
        return np.stack([np.asarray(value)[..., 0] for value in values])

    std_error, dof = stacked([f.std_error for f in found]), stacked([f.dof for f in found])
    floor = stacked([_floor(f) for f in found])
    modes, family = own[0].modes, family_size(found)[..., None]
    how: dict[str, Any] = {"level": level, "power": power, "sides": count_sides(modes)}
    weakest = weakest_sides(modes, std_error, dof)
    cells = {
        "mde": mde(*weakest, **how),
        "mde_adjusted": mde(*weakest, tests=family, **how),
        "mde_floor": mde(*weakest_sides(modes, np.sqrt(floor), dof), **how),
        "n_queries": np.full(std_error.shape, int(options["n_units"])),
    }
    if effect is not None:
        query = stacked([f.variance_by["query"] for f in found])
        how |= {
            "variance_query": np.where(np.isnan(std_error), np.nan, query),
            "queries": cells["n_queries"].astype(float),
            "dof": dof,
            "floor": floor,
        }
        for name, tests in (("queries_needed", 1), ("queries_needed_adjusted", family)):
            # Enough queries for one side of a bracket may be too few for the other.
            of_sides = queries_needed(effect, tests=tests, **how)
            cells[name] = weakest_sides(modes, of_sides)[0]
    return _label(audit, cells, effect, power, level)


def _floor(found: Any) -> Any:
    """Return the variance that more queries of the same items, or producers, cannot lower."""
    over_items = owner_variance(found.variance_by)
    if over_items is None:
        return np.where(np.isnan(found.std_error), np.nan, 0.0)
    floor = floor_variance(over_items, found.variance_by["both"])
    return np.where(np.isnan(found.std_error), np.nan, floor)


def _label(
    audit: AuditBase, cells: dict[str, Any], effect: float | None, power: float, level: float
) -> xr.Dataset:
    rows = mode_rows(audit)
    dims = ("group", "scoring_rule", "pairing_mode")
    variables = {
        name: (
            dims,
            np.moveaxis(values[:, rows], (0, 1), (1, 2)),
            dict(zip(("long_name", "units"), _MEANING[name], strict=True)),
        )
        for name, values in cells.items()
    }
    attrs = {"power": power, "level": level} | ({} if effect is None else {"effect": effect})
    return xr.Dataset(variables, {dim: audit.headline[dim] for dim in dims}, attrs)


# ---- the same in words, for an audit that decides little

POWER = 0.8
# With fewer than these, a threshold that was chosen in another way has too few pairs.
_FEW_PAIRS, _FEW_QUERIES = Enough().pairs, Enough().queries
_FEW_GROUPS = 3


def threshold_of(options: Mapping[str, Any]) -> Threshold | None:
    """Return the threshold of an audit, None where it is not known."""
    try:
        return parse_threshold(str(options["threshold"]))
    except (KeyError, MpcError):
        return None


def gap_that_matters(options: Mapping[str, Any]) -> float | None:
    """Return the gap that an audit was asked to find: its tolerance, or the effect of Powered."""
    if options.get("tolerance"):
        return float(options["tolerance"])
    threshold = threshold_of(options)
    return threshold.effect if isinstance(threshold, Powered) else None


def findable(audit: Audit, part: Slice, options: Mapping[str, Any]) -> Iterator[str]:
    """Say of undecided groups which gap could have been found, and what to do next.

    Parameters
    ----------
    audit : Audit
    part : Slice
        The part whose undecided groups are meant.
    options : mapping
        What :func:`mpc_lab.results.base.settings` gives.
    """
    if options.get("rules"):  # verdicts of version 0.1 are left as they were
        return
    undecided = part.having(INCONCLUSIVE)
    if undecided:
        yield from _least(audit, part, undecided, options)
        yield from _say_needed(audit, part, undecided, options)
    elif part.cells and len(part.having(NOT_ESTIMABLE)) == len(part.cells):
        if {cell.reason for cell in part.cells if cell.pairs} == {NOT_POOLED}:
            yield "Next: audit all rows in one call, which gives the intervals that a pool lacks."
            return
        yield "These pairs could not have found a gap of any size."
        undecided = list(part.cells)
    if undecided:
        yield f"Next: {_next_step(audit, part, undecided, options)}."


def _least(
    audit: Audit, part: Slice, undecided: list[Cell], options: Mapping[str, Any]
) -> Iterator[str]:
    name = "mde_adjusted" if "mde_adjusted" in audit.headline else "mde"
    if name not in audit.headline:
        return
    at = audit.headline[name].sel(scoring_rule=part.rule, pairing_mode=part.mode)
    size = at.to_series()
    known = [(float(size[c.group]), c.group) for c in undecided if math.isfinite(size[c.group])]
    if not known:
        return
    (low, best), (high, worst) = min(known), max(known)
    least, most = two_digits(low), two_digits(high)
    shown = least if len(undecided) == 1 else f"{least} ({quote(best)})"
    if least != most:
        shown += f" to {most} ({quote(worst)})"
    elif len(known) > 1:
        shown = least
    adjusted = ", with the adjustment of the verdicts" if name == "mde_adjusted" else ""
    yield (
        f"The smallest gap in {outcome_word(options)} that these pairs find in {percent(POWER)} of "
        f"such logs{adjusted}: {shown}{_of_spread(audit, low, high)}."
    )


def _of_spread(audit: Audit, low: float, high: float) -> str:
    """Return gaps in standard deviations of the outcome, where rows show them."""
    if audit.ranking is None or settings(audit).get("contrast") == SIGN:
        return ""
    spread = float(audit.ranking.outcome.std())
    if not 0 < spread < math.inf:
        return ""
    shown = _range([low / spread, high / spread])
    return f", which is {shown} standard deviations of the outcome"


def _range(gaps: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(two_digits(end) for end in (min(gaps), max(gaps))))


def _say_needed(
    audit: Audit, part: Slice, undecided: list[Cell], options: Mapping[str, Any]
) -> Iterator[str]:
    """Say how many queries the undecided groups need, with the adjustment of their verdicts."""
    effect = gap_that_matters(options)
    if effect is None or not has_sums(audit):
        return
    found = audit.power(effect, POWER).sel(scoring_rule=part.rule, pairing_mode=part.mode)
    needed = found["queries_needed_adjusted"].to_series()
    known = [round_count_up(n) for cell in undecided if math.isfinite(n := needed[cell.group])]
    hidden = [cell.group for cell in undecided if math.isinf(needed[cell.group])]
    now = int(found["n_queries"][0])
    gap = f"a gap of {effect:g} with a probability of {percent(POWER)}"
    if known:
        yield (
            f"Finding {gap} in these groups takes about {between(known, ',')} queries like the "
            f"{now:,} of this log, with the adjustment of the verdicts."
        )
    if hidden:
        named = (
            f"{len(hidden):,} {noun(len(hidden), 'group')} ({listing(list(map(quote, hidden)))})"
        )
        yield f"No number of queries of this catalogue finds {gap} in {named}."


def _next_step(audit: Audit, part: Slice, undecided: list[Cell], options: Mapping[str, Any]) -> str:
    """Return the one thing that is most likely to help, as a call where it is one."""
    reasons = {cell.reason for cell in undecided}
    threshold = threshold_of(options)
    chosen = isinstance(threshold, Enough | Powered)
    few = any(c.pairs < _FEW_PAIRS or c.effective < _FEW_QUERIES for c in undecided)
    # One source of advice: the preflight has the numbers, and calls made from them.
    advised = [one for one in audit._checked if one.leads_on]
    stops = bool(advised) and advised[0].state == "stop"
    known = any(one.check == "score direction" for one in advised)
    if not stops and not known and RUN_AGAINST in reasons:
        turned = not columns_of(options).get("ascending")
        return f"if the score is upside down, run the audit again with ascending={turned}"
    if advised:
        more = ", then what it notes after that" if len(advised) > 1 else ""
        return f"the remedy of {advised[0].check!r} in the preflight{more}"
    if few and not chosen and threshold is not None:
        return (
            "run the audit again with threshold=mpc.Enough(), which takes more pairs where there "
            "are few, chosen without a look at outcomes"
        )
    if len(verdict_modes(part.mode)) > 1:
        return (
            'run the audit again with pairing_modes=["symmetric", "matched"], whose verdict needs '
            "one interval where this one needs two"
        )
    if gap_that_matters(options) is None:
        return (
            "give the gap that matters to you, audit.power(effect=…), and see how many queries it "
            "takes"
        )
    return "audit a longer stretch of the log: more queries, not a larger threshold"


# ---- thresholds that have a power, and what was tried


def choose_powered(
    plan: Plan, threshold: Powered, source: Source, rule: Rule, candidates: Sequence[Headline]
) -> tuple[Headline, Flags, Floats]:
    """Choose for each group the first of some thresholds that could find the effect.

    Parameters
    ----------
    plan : Plan
    threshold : Powered
    source : Source
    rule : Rule
    candidates : sequence of Headline
        The thresholds of all groups, ascending.

    Returns
    -------
    headline : Headline
        Where none could, the threshold with the smallest standard error.
    lacking : bool array (group,)
        Where none could.
    tried : float64 array (group, candidate, 2)
        Thresholds, and the smallest gap that each would find.
    """
    from mpc_lab.pairing.measure import NO_THRESHOLD, Headline, measure, weigh_headline

    epsilon = np.stack([candidate.epsilon for candidate in candidates], axis=1)
    wanted = np.stack([candidate.wanted for candidate in candidates], axis=1)
    edges = np.nan_to_num(epsilon, nan=NO_THRESHOLD)
    items = VARIANCES[plan.cluster].needs_items
    moments = measure(source, rule, edges, modes=(MATCHED,), items=items)
    if plan.correction == CR3:
        moments, _ = weigh_headline(source, rule, moments)
    found = infer(moments, **plan.inference)
    std_error, dof = found.std_error[0], found.dof[0]
    smallest = mde(std_error, dof, level=plan.level, power=threshold.power)
    enough = smallest <= threshold.effect
    best = np.argmin(np.where(np.isnan(std_error), np.inf, std_error), axis=1)
    pick = np.where(enough.any(axis=1), np.argmax(enough, axis=1), best)
    group = np.arange(len(plan.groups))
    headline = Headline(epsilon[group, pick], wanted[group, pick], candidates[0].all_pairs)
    return headline, np.asarray(~enough.any(axis=1)), np.stack([epsilon, smallest], axis=2)


def tried_attribute(plan: Plan, tried: Sequence[Floats | None]) -> dict[str, int | float | str]:
    """Return the attribute with the thresholds that `Powered` tried, by rule and group.

    Parameters
    ----------
    plan : Plan
    tried : sequence of float64 arrays (group, candidate, 2)
        Under each rule, as :func:`choose_powered` returns it.
    """
    cells = {
        label: dict(zip(plan.groups, [_round(pairs) for pairs in one.tolist()], strict=True))
        for label, one in zip(plan.rule_labels, tried, strict=True)
        if one is not None
    }
    return {"tried": json.dumps(cells)} if cells else {}


def _round(pairs: list[list[float]]) -> list[list[float | None]]:
    return [[float(f"{x:.6g}") if math.isfinite(x) else None for x in pair] for pair in pairs]


def tried(audit: Audit, part: Slice) -> Iterator[str]:
    """Say which thresholds `Powered` tried, and the smallest gap that each would find."""
    cells = _tried_cells(audit, part.rule)
    known = {group: pairs for group, pairs in cells.items() if pairs}
    if not known:
        return
    start = "Powered tried the 0.1, 0.2, 0.5, 1, 2, 5 and 10 % quantiles of the distances"
    what = "the smallest gap that matched pairs find there"
    if len(known) <= _FEW_GROUPS:
        listed = [
            f"{quote(group)} "
            + ", ".join(f"{two_digits(gap)} at {epsilon:.2g}" for epsilon, gap in pairs)
            for group, pairs in known.items()
        ]
        yield f"{start}; {what}, by epsilon: {'; '.join(listed)}."
        return
    least = [pairs[0][1] for pairs in known.values()], [pairs[-1][1] for pairs in known.values()]
    first, last = (_range(gaps) for gaps in least)
    yield f"{start}; {what}: {first} at the smallest that can be estimated, {last} at the largest."


def _tried_cells(audit: Audit, rule: str) -> dict[str, list[tuple[float, float]]]:
    """Return for each group the thresholds that could be estimated, and the gap each would find."""
    try:
        found = json.loads(str(audit.attrs.get("tried", "{}"))).get(rule, {})
        return {
            str(group): [(float(e), float(gap)) for e, gap in pairs if None not in (e, gap)]
            for group, pairs in found.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}  # a file that somebody else has written
