"""A cell without each of its queries, items or producers: estimates, intervals, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError, check_count, near_match
from mpc_lab.inference.drivers import LeaveOneOut, WeighedPairs, leave_one_out
from mpc_lab.inference.verdicts import withhold_directions
from mpc_lab.pairing.close import count_within
from mpc_lab.pairing.log import keep_rows
from mpc_lab.pairing.measure import goes_by_place, measure, measure_items, weigh_headline
from mpc_lab.pairing.measure_sides import compare_sides
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.assemble import headline_moments, infer, judge
from mpc_lab.results.base import cell_epsilon, correction_of, inference_options, settings
from mpc_lab.results.questions.closeness import OneGroup
from mpc_lab.results.questions.pairs import CellRows, open_cell
from mpc_lab.results.schema import AuditBase
from mpc_lab.results.wording import outcome_word
from mpc_lab.vocabulary import MODES, VARIANCES, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.inference.estimates import Estimates
    from mpc_lab.pairing.moments import Moments

BY = ("query", "unit", "item", "producer")
_NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "dof", "reason")


def drivers(
    audit: AuditBase, group: str, by: str, rule: str, mode: str | None, limit: int | None
) -> xr.Dataset:
    """Leave out each cluster in turn; see :meth:`mpc_lab.Audit.drivers`."""
    if limit is not None:
        check_count("limit", limit)
    mode = str(audit.headline["pairing_mode"].values[0]) if mode is None else mode
    cell = open_cell(audit, "drivers", group, rule, mode)
    known = _kinds(cell)
    if by not in known:
        raise MpcError(
            f"by must be a kind of cluster of this log; got {by!r}.{near_match(by, known)}"
        )
    epsilon = cell_epsilon(audit, group, rule)
    n_pairs = count_within(epsilon, cell.log, 0, len(cell.log.units) - 1)
    if n_pairs > MOST_PAIRS:
        raise MpcError(
            f"The log must have at most {MOST_PAIRS:,} pairs within the threshold to leave out "
            f"clusters one by one; got {n_pairs:,}. Audit with a smaller threshold."
        )
    found = _leave_out(cell, mode, epsilon, by, known[by])
    change = found.without - found.estimate
    size = np.where(np.isnan(change), np.inf, np.abs(change))
    some = np.flatnonzero(found.n_pairs > 0)
    # The largest change first; among equal changes, the one with the most pairs.
    order = some[np.lexsort((some, -found.share[some], -size[some]))][:limit]
    judge_again = _Judge(audit, cell, group, rule, mode, epsilon)
    without = [judge_again(known[by] != code) for code in order.tolist()]
    columns: dict[str, Any] = {
        "number": order + 1,
        "n_pairs": found.n_pairs[order],
        "share": found.share[order],
        "mean_difference": found.mean[order],
        "without": found.without[order],
        "change": change[order],
    }
    columns |= {f"without_{name}": _column(without, name) for name in _LEFT}
    whole = judge_again(np.ones(len(cell.log.row), dtype=np.bool_))
    verdict = whole["verdict"]
    columns["verdict_changes"] = columns["without_verdict"] != verdict
    if by == "item" and cell.ranking.item_label is not None:
        columns["label"] = cell.ranking.item_names(order).astype(np.str_)
    labels = np.array([str(label) for label in _labels(cell, by, order)], dtype=np.str_)
    return xr.Dataset(
        {name: ("driver", values) for name, values in columns.items()},
        coords={
            "driver": labels,
            "group": np.str_(group),
            "scoring_rule": np.str_(rule),
            "pairing_mode": np.str_(mode),
        },
        attrs={
            "by": by,
            "outcome": outcome_word(settings(audit)),
            "epsilon": epsilon,
            "estimate": found.estimate,
            "ci_low": whole["ci_low"],
            "ci_high": whole["ci_high"],
            "verdict": verdict,
            "n_drivers": len(some),
            "n_all": len(found.n_pairs),
            "level": float(settings(audit)["level"]),
        },
    )


MOST_PAIRS = 20_000_000  # which are listed
_LEFT = ("ci_low", "ci_high", "verdict", "verdict_reason")


def _column(rows: list[dict[str, Any]], name: str) -> Any:
    kind = np.str_ if name.startswith("verdict") else np.float64
    return np.array([row[name] for row in rows], dtype=kind)


def _kinds(cell: CellRows) -> dict[str, Ints]:
    """Return the cluster of each row of the log, by each kind of cluster that it has."""
    ranking, row = cell.ranking, cell.log.row
    codes = {
        "query": ranking.query_code,
        "unit": ranking.unit_code,
        "item": ranking.item_code,
        "producer": ranking.producer_code,
    }
    return {name: codes[name][row] for name in BY if codes[name] is not None}  # type: ignore[index]


def _leave_out(cell: CellRows, mode: str, epsilon: float, by: str, code: Ints) -> LeaveOneOut:
    pairs = cell.pairs(mode, epsilon)
    n = len(pairs.d)
    plain = WeighedPairs(pairs.d, np.ones((1, n)), np.zeros(n, dtype=np.int64), 1, pairs.weights)
    parts = plain
    if MODES[mode].two_sided:
        sided = cell.sided(pairs, 0.5)
        parts = WeighedPairs(sided.d, sided.weight, sided.cell, sided.n_cells, pairs.weights)
    one = code[pairs.row_i]
    clusters: tuple[Ints, ...] = (one,)
    if by in ("item", "producer"):
        other = code[pairs.row_j]
        # A pair inside one producer counts once.
        clusters = (one, np.where(other == one, -1, other))
    return leave_one_out(parts, clusters, _n_codes(cell, by))


def _n_codes(cell: CellRows, by: str) -> int:
    ranking = cell.ranking
    counts = {"query": ranking.n_queries, "unit": ranking.n_units, "item": ranking.n_items}
    return counts.get(by, ranking.n_producers)


def _labels(cell: CellRows, by: str, codes: Ints) -> Any:
    ranking = cell.ranking
    if by == "producer":
        known = ranking.producer_labels(codes)
        return ["(an item without a producer)" if label is None else label for label in known]
    return getattr(ranking, f"{by}_labels")(codes)


@dataclass(frozen=True)
class _Judge:
    """Estimates a cell, and gives its verdict, from some of the rows of its log.

    Scores, threshold and the other pairs stay as they are, and so do the other groups that the
    verdict is adjusted over.
    """

    audit: AuditBase
    cell: CellRows
    group: str
    rule: str
    mode: str
    epsilon: float

    def __call__(self, keep: Any) -> dict[str, Any]:
        """Return the interval and the verdict from the rows of the log where `keep` is true."""
        cluster, level, seed = inference_options(self.audit)
        options = settings(self.audit)
        rules = self.audit.headline["scoring_rule"].values.tolist()
        whole = headline_moments(self.audit)[rules.index(self.rule)]
        how: dict[str, Any] = {
            "cluster": cluster,
            "level": level,
            "correction": correction_of(self.audit),
        }
        moments, shown = self._measure(keep, whole, items=VARIANCES[cluster].needs_items)
        own = infer(moments, **how)
        method = str(options["adjust"])
        cells = judge(
            whole.modes,
            [_put(infer(whole, **how), own, self.audit.groups.index(self.group))],
            # The joint movement of cells without the cluster is not known.
            method="holm" if method == "romano_wolf" else method,
            level=level,
            tolerance=options.get("tolerance"),
            seed=seed,
        )
        cells |= withhold_directions(cells | self._spread(whole, cells, shown))
        row, at = whole.mode_names.index(self.mode), self.audit.groups.index(self.group)
        found = {name: float(getattr(own, name)[row, 0, 0]) for name in ("ci_low", "ci_high")}
        return found | {
            name: str(cells[name][0, row, at]) for name in ("verdict", "verdict_reason")
        }

    def _measure(
        self, keep: Any, whole: Moments, *, items: bool
    ) -> tuple[Moments, dict[str, float]]:
        log = keep_rows(self.cell.log, keep)
        terms = terms_of(settings(self.audit))
        source: Any = OneGroup(self.cell.ranking, self.group, log, terms)
        moments = measure(source, None, np.array([[self.epsilon]]), modes=whole.modes, items=False)  # type: ignore[arg-type]
        shown = {}
        if goes_by_place(source) or any(mode.two_sided for mode in whole.modes):
            sides = compare_sides(source, None, moments)  # type: ignore[arg-type]
            moments = sides.own
            shown = {
                "place_overlap": float(sides.overlap[0]),
                "shown_above": float(sides.shown_above[0]),
            }
        if items:
            moments = measure_items(source, None, moments)  # type: ignore[arg-type]
        return weigh_headline(source, None, moments)[0], shown  # type: ignore[arg-type]

    def _spread(
        self, whole: Moments, cells: dict[str, Any], shown: dict[str, float]
    ) -> dict[str, Floats]:
        """Return place overlap and shown order of this group, for the modes that they affect."""
        if not shown or np.isnan(shown["place_overlap"]):
            return {}
        two = np.array([mode.two_sided for mode in whole.modes])
        one = np.array([bool(mode.bracket or mode.judged_by) for mode in whole.modes]) & ~two
        by_score = self.rule == "baseline"
        found = {}
        for name, modes in (("place_overlap", two), ("shown_above", one & by_score)):
            found[name] = np.full(cells["verdict"].shape, np.nan)
            found[name][0, modes, self.audit.groups.index(self.group)] = shown[name]
        return found


def _put(every: Estimates, own: Estimates, group: int) -> Estimates:
    """Return the estimates of all groups, with those of one group replaced."""
    changed: dict[str, Any] = {}
    for name in _NUMBERS:
        values = getattr(every, name).astype(object if name == "reason" else np.float64)
        values[:, group] = getattr(own, name)[:, 0]
        changed[name] = values.astype(np.str_) if name == "reason" else values
    return replace(every, **changed)
