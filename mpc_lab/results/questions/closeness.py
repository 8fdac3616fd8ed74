"""Whether a finding survives other definitions of close, labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.pairing.clusters import ItemSums
from mpc_lab.pairing.items import sum_items
from mpc_lab.pairing.log import Log, PlainWalk, compare_group
from mpc_lab.pairing.measure import choose_thresholds, measure, weigh_headline
from mpc_lab.pairing.pairs import count_matched
from mpc_lab.pairing.terms import (
    CLOSENESS,
    PERCENTILE,
    SCORE,
    Quantile,
    Smallest,
    Terms,
    parse_threshold,
    round_up,
    terms_of,
)
from mpc_lab.results.assemble import infer
from mpc_lab.results.base import (
    cell_epsilon,
    correction_of,
    inference_options,
    need_rows,
    refuse_rank_only,
    rule_scores,
    settings,
)
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import ADJACENT, MODES, VARIANCES, Floats, Mode

if TYPE_CHECKING:
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.ranking import LogFacts
    from mpc_lab.scoring import Rule

_NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")
_ADJUSTED = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted")


class _GroupWalk(PlainWalk):
    """A walk over the log of one group, that can also sum over items."""

    def item_sums(self, moments: Moments) -> list[list[ItemSums]]:
        return [sum_items(self.log, 0, moments)]


class OneGroup:
    """A `Source` of one group under one rule, whichever is asked for."""

    counts_items = True

    def __init__(self, facts: LogFacts, group: str, log: Log, terms: Terms) -> None:
        self.facts, self.groups, self.log, self.terms = facts, (group,), log, terms

    def walks(self, rule: Rule | None = None) -> Iterator[tuple[Any, PlainWalk]]:
        """Yield the one walk that there is."""
        yield np.array([0]), _GroupWalk(self.log)

    def each_walk(
        self, rule: Rule | None, task: Callable[[Any, Any], Any], label: str, takes: Any = None
    ) -> Iterator[Any]:
        """Yield what a task finds on that walk."""
        return (task(groups, walk) for groups, walk in self.walks(rule))


def closeness(audit: AuditBase, group: str, rule: str, mode: str) -> xr.Dataset:
    """Estimate the gap on every scale; see :meth:`mpc_lab.Audit.closeness`."""
    from mpc_lab.inference.verdicts import adjust

    refuse_rank_only(audit, "closeness")
    ranking = need_rows(audit, "closeness")
    scores = rule_scores(audit, group, rule, mode)
    cluster, level, _ = inference_options(audit)
    options = settings(audit)
    terms = terms_of(options)
    own_log = compare_group(ranking, group, scores, terms)[0]
    threshold = _threshold(options, own_log, cell_epsilon(audit, group, rule))
    kinds = [(name, MODES[mode]) for name in CLOSENESS] + [(SCORE, ADJACENT)]
    rows, found_at = [], {}
    for name, how in kinds:
        on_scale = replace(terms, closeness=name)
        log = compare_group(ranking, group, scores, on_scale)[0]
        source = OneGroup(ranking, group, log, on_scale)
        if name not in found_at:
            found_at[name] = _epsilon(source, threshold, name)
        rows.append(
            _estimates(
                source,
                how,
                found_at[name],
                cluster=cluster,
                level=level,
                correction=correction_of(audit),
            )
        )
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    family = adjust(
        columns["p_value"],
        columns["estimate"],
        columns["std_error"],
        columns["dof"],
        method="holm",
        level=level,
    )
    columns |= {name: getattr(family, name) for name in _ADJUSTED}
    return xr.Dataset(
        {name: ("closeness", values) for name, values in columns.items()},
        coords={
            "closeness": np.array([*CLOSENESS, ADJACENT.name]),
            "group": np.str_(group),
            "scoring_rule": np.str_(rule),
            "pairing_mode": np.str_(mode),
        },
        attrs={
            "level": level,
            "cluster": cluster,
            "threshold": repr(threshold),
            "adjust": "holm over the four definitions",
        },
    )


def _threshold(options: dict[str, Any], log: Log, epsilon: float) -> Quantile | Smallest:
    """Return the audit's threshold; a number, which fits one scale only, becomes as many pairs."""
    written = parse_threshold(str(options["threshold"]))
    if isinstance(written, Quantile | Smallest):
        return written
    return Smallest(max(1, count_matched(log, epsilon)))


def _epsilon(source: OneGroup, threshold: Quantile | Smallest, name: str) -> Floats:
    found = choose_thresholds(source, None, (threshold,))[0].epsilon  # type: ignore[arg-type]
    return round_up(found) if name == PERCENTILE else found


def _estimates(
    source: OneGroup, mode: Mode, epsilon: Floats, *, cluster: str, level: float, correction: str
) -> dict[str, float | int]:
    edges = np.nan_to_num(epsilon, nan=-1.0)[:, None]
    items = VARIANCES[cluster].needs_items
    moments = measure(source, None, edges, modes=(mode,), items=items)  # type: ignore[arg-type]
    moments, _ = weigh_headline(source, None, moments)  # type: ignore[arg-type]
    found = infer(moments, cluster=cluster, level=level, correction=correction)
    row: dict[str, float | int] = {"epsilon": float(epsilon[0])}
    row |= {name: float(getattr(found, name)[0, 0, 0]) for name in _NUMBERS}
    for name in ("pairs", "queries", "items"):
        row[f"n_{name}"] = int(getattr(moments, name)[0, 0, 0])
    return row
