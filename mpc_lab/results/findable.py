"""What an audit that decides little could have found, what it tried, and what to do next."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mpc_lab.errors import MpcError
from mpc_lab.pairing.terms import Enough, Powered, Threshold, parse_threshold
from mpc_lab.results.base import has_sums
from mpc_lab.text import between, listing, noun, percent, quoted
from mpc_lab.vocabulary import INCONCLUSIVE, verdict_modes

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit
    from mpc_lab.results.summary import Cell, Slice

POWER = 0.8
# With fewer than these a threshold that was chosen in another way leaves too little to find.
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
        Of which the undecided groups are meant.
    options : mapping
        What :func:`mpc_lab.results.base.settings` gives.
    """
    undecided = part.having(INCONCLUSIVE)
    if not undecided or options.get("rules"):  # verdicts of 0.1 are left as they were
        return
    yield from _least(audit, part, undecided)
    yield from _needed(audit, part, undecided, options)
    yield f"Next: {_next_step(part, undecided, options)}."


def _least(audit: Audit, part: Slice, undecided: list[Cell]) -> Iterator[str]:
    name = "mde_adjusted" if "mde_adjusted" in audit.headline else "mde"
    if name not in audit.headline:
        return
    at = audit.headline[name].sel(scoring_rule=part.rule, pairing_mode=part.mode)
    size = at.to_series()
    known = [(float(size[c.group]), c.group) for c in undecided if math.isfinite(size[c.group])]
    if not known:
        return
    (low, best), (high, worst) = min(known), max(known)
    shown = f"{low:.2g}" if len(undecided) == 1 else f"{low:.2g} ({quoted(best)})"
    if f"{low:.2g}" != f"{high:.2g}":
        shown += f" to {high:.2g} ({quoted(worst)})"
    elif len(known) > 1:
        shown = f"{low:.2g}"
    adjusted = ", adjusted as the verdicts are" if name == "mde_adjusted" else ""
    yield f"The least gap that these pairs find in {percent(POWER)} of logs{adjusted}: {shown}."


def _needed(
    audit: Audit, part: Slice, undecided: list[Cell], options: Mapping[str, Any]
) -> Iterator[str]:
    """Say how many queries the undecided groups need, by the same adjustment as their verdicts."""
    effect = gap_that_matters(options)
    if effect is None or not has_sums(audit):
        return
    found = audit.power(effect, POWER).sel(scoring_rule=part.rule, pairing_mode=part.mode)
    needed = found["queries_needed_adjusted"].to_series()
    known = [needed[cell.group] for cell in undecided if math.isfinite(needed[cell.group])]
    hidden = [cell.group for cell in undecided if math.isinf(needed[cell.group])]
    now = int(found["n_queries"][0])
    gap = f"a gap of {effect:g} with a probability of {percent(POWER)}"
    if known:
        yield (
            f"Finding {gap} in these groups takes about {between(known, ',.0f')} queries like the "
            f"{now:,} of this log, adjusted as the verdicts are."
        )
    if hidden:
        named = (
            f"{len(hidden):,} {noun(len(hidden), 'group')} ({listing(list(map(quoted, hidden)))})"
        )
        yield f"No number of queries of this catalogue finds {gap} in {named}."


def _next_step(part: Slice, undecided: list[Cell], options: Mapping[str, Any]) -> str:
    """Return the one thing that is most likely to help, as a call where it is one."""
    reasons = {cell.reason for cell in undecided}
    threshold = threshold_of(options)
    chosen = isinstance(threshold, Enough | Powered)
    few = any(c.pairs < _FEW_PAIRS or c.effective < _FEW_QUERIES for c in undecided)
    if "scores run against outcomes" in reasons:
        return "where a smaller score is better, run the audit again with ascending=True"
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


# ---- what was tried


def tried(audit: Audit, part: Slice) -> Iterator[str]:
    """Say which thresholds `Powered` tried, and the least gap that each would find."""
    cells = _tried_cells(audit, part.rule)
    known = {group: pairs for group, pairs in cells.items() if pairs}
    if not known:
        return
    start = "Powered tried the 0.1, 0.2, 0.5, 1, 2, 5 and 10 % quantiles of the distances"
    what = "the least gap that matched pairs find there"
    if len(known) <= _FEW_GROUPS:
        listed = [
            f"{quoted(group)} {', '.join(f'{gap:.2g} at {epsilon:.2g}' for epsilon, gap in pairs)}"
            for group, pairs in known.items()
        ]
        yield f"{start}; {what}, by epsilon: {'; '.join(listed)}."
        return
    least = [pairs[0][1] for pairs in known.values()], [pairs[-1][1] for pairs in known.values()]
    first, last = (between(gaps, ".2g") for gaps in least)
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
