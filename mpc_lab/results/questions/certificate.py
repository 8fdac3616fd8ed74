"""The largest boost that an audit can certify, with what was assumed said beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.results.base import headline_epsilon, inference_options, need_rows
from mpc_lab.results.questions.boosts import refuse_boost
from mpc_lab.results.questions.pairs import CellRows, open_cell
from mpc_lab.results.schema import AuditBase
from mpc_lab.text import minus, p_value, plural, quote

if TYPE_CHECKING:
    from mpc_lab.inference.certificate import Certified
    from mpc_lab.inference.clustered import Clustered
    from mpc_lab.inference.partial import Assumption

LARGEST_LIST = 2_000_000


@dataclass(frozen=True, repr=False)
class Certificate:
    """A boost of a group that raises the expected objective, if its assumption holds.

    Attributes
    ----------
    group, scoring_rule : str
    alpha : float
        The largest certified boost, in units of the score; 0 where none is certified, such as when
        the pairs fill fewer than 4 bins. `sentence` gives the reason.
    mpc_epsilon : float
        The largest threshold up to which MPC itself has a lower band above 0. For comparison
        only: a mean over distances up to ε does not give the mean at each distance.
    level : float
    change, change_low, change_high : float
        DCG under a boost by `alpha` less DCG without, measured on the log, with its paired
        interval; NaN where no boost is certified.
    bins : xarray.Dataset
        Over ``bin``: its distances, its mean with the simultaneous band, and the same for all
        distances up to its right end (``cumulative_…``).
    assumption_p_value : float
        The p-value of a Wald test of the assumption: whether the gap of the group at a tie is the
        same in all quintiles of the pair's mean score and in all segments; NaN where it cannot be
        tested.
    assumption_terms : int
        How many differences are tested at once.
    """

    group: str
    scoring_rule: str
    alpha: float
    mpc_epsilon: float
    level: float
    change: float
    change_low: float
    change_high: float
    bins: xr.Dataset
    assumption_p_value: float = math.nan
    assumption_terms: int = 0

    @property
    def sentence(self) -> str:
        """What is certified, what was assumed, and what was measured."""
        level = f"{100 * self.level:g} %"
        if self.alpha == 0:
            who = quote(self.group)
            return minus(f"No boost of {who} is certified at {level} confidence: {self._why()}.")
        return minus(
            "If outcome differences depend on items only through the distance of their scores, "
            "and their mean does not change sign inside a bin, a boost of up to "
            f"{self.alpha:.4g} raises the expected objective, at {level} confidence. "
            f"{self._say_assumed()} Measured directly, the change is "
            f"{self.change:+.4g} in DCG "
            f"({level} interval {self.change_low:+.4g} to {self.change_high:+.4g})."
        )

    def _say_assumed(self) -> str:
        """Say what a test of the assumption shows."""
        if math.isnan(self.assumption_p_value):
            return "That assumption is not tested: too few queries have close pairs."
        a = 1 - self.level
        p = p_value(self.assumption_p_value)
        p = p if p.startswith("<") else f"= {p}"
        if self.assumption_p_value < a:
            return (
                "That assumption fails: the gap at a tie differs between levels of the score or "
                f"between segments (Wald test, p {p})."
            )
        return (
            "A test finds no difference of the gap at a tie between levels of the score or "
            f"between segments (Wald test, p {p}), which does not prove the assumption."
        )

    def _why(self) -> str:
        from mpc_lab.inference.certificate import FEWEST_BINS, FEWEST_QUERIES

        bins = self.bins.sizes["bin"]
        if bins == 0:
            return f"its pairs come from fewer than {FEWEST_QUERIES} effective queries"
        if bins < FEWEST_BINS:
            return (
                f"its pairs fill only {plural(bins, 'bin')} of score distance with at least "
                f"{FEWEST_QUERIES} effective queries each, and a certificate needs at least "
                f"{FEWEST_BINS}, because the mean may change sign inside a wide bin"
            )
        first = self.bins.isel(bin=0)
        return (
            "the mean outcome difference at distances up to "
            f"{float(first.distance_high):.4g} is {float(first.estimate):+.4g}, and "
            "its band is not above 0"
        )

    def __repr__(self) -> str:
        return self.sentence


def certificate(audit: AuditBase, group: str, scoring_rule: str = "baseline") -> Certificate:
    """Find the largest certified boost of a group; see :meth:`mpc_lab.Audit.certificate`."""
    from mpc_lab.inference.certificate import certify
    from mpc_lab.pairing.pairs import nearest_distance

    refuse_boost(audit, "certificate")
    cell = open_cell(audit, "certificate", group, scoring_rule, "matched")
    cluster, level, seed = inference_options(audit)
    reach = nearest_distance(cell.log, LARGEST_LIST)
    pairs = cell.pairs("matched", 0.0 if math.isnan(reach) else reach, LARGEST_LIST)
    found = certify(
        pairs.distance,
        pairs.d,
        pairs.query,
        item_i=pairs.owner_i,
        item_j=pairs.owner_j,
        owner=pairs.owner,
        weight=pairs.weight,
        cluster=cluster,
        level=level,
        seed=seed,
    )
    change = _measure(audit, group, scoring_rule, found.alpha, level)
    assumed = _assumption(audit, cell, group, scoring_rule)
    return Certificate(
        group=group,
        scoring_rule=scoring_rule,
        alpha=found.alpha,
        mpc_epsilon=found.mpc_epsilon,
        level=level,
        change=change.estimate if change else math.nan,
        change_low=change.ci_low if change else math.nan,
        change_high=change.ci_high if change else math.nan,
        bins=_bins(found, {"cluster": cluster, "level": level, "group": group}),
        assumption_p_value=assumed.p_value,
        assumption_terms=assumed.n_terms,
    )


def _assumption(audit: AuditBase, cell: CellRows, group: str, rule: str) -> Assumption:
    """Test that the gap does not depend on the level of the score, nor on the segment."""
    from mpc_lab.inference.partial import (
        BINS,
        Assumption,
        check_assumption,
        choose_width,
        count_close,
    )
    from mpc_lab.pairing.close import Design
    from mpc_lab.pairing.threads import ThreadedWalk

    ranking = need_rows(audit, "certificate")
    walk, n_segments = ThreadedWalk(cell.log), len(ranking.segments)
    columns = 3 + BINS - 1 + max(n_segments - 1, 0)
    width = choose_width(walk, headline_epsilon(audit, group, rule), columns)
    if count_close(walk, width) > LARGEST_LIST * 10:
        return Assumption(math.nan, math.nan, 0, math.nan)
    by_place = rule == "baseline" and ranking.columns.sides_by_place
    segment = None
    if ranking.segment_code is not None:
        # A query that has lost all its rows has no pairs, so its segment does not matter.
        first = np.minimum(cell.log.starts[:-1], max(len(cell.log.row) - 1, 0))
        segment = ranking.segment_code[cell.log.row[first]] if len(cell.log.row) else None
    return check_assumption(walk, Design(1, width, by_place), segment, n_segments)


def _measure(
    audit: AuditBase, group: str, rule: str, alpha: float, level: float
) -> Clustered | None:
    """Measure what a boost by α does to DCG on the log; nothing where there is no boost."""
    from mpc_lab.objective.ndcg import paired_change
    from mpc_lab.results.base import rule_scores

    if alpha == 0:
        return None
    ranking = need_rows(audit, "certificate")
    scores = rule_scores(audit, group, rule, "matched")
    before = ranking.score if scores is None else scores
    after = before + alpha * ranking.member(group)
    return paired_change(ranking, after, before, level=level).dcg


def _bins(found: Certified, attrs: dict[str, Any]) -> xr.Dataset:
    variables: dict[str, Any] = {
        "distance_low": ("bin", found.edges[:-1]),
        "distance_high": ("bin", found.edges[1:]),
        "certified": ("bin", found.bins.above),
    }
    names = ("estimate", "std_error", "dof", "n_effective", "n_pairs", "n_queries")
    for prefix, curve in (("", found.bins), ("cumulative_", found.cumulative)):
        for name in (*names, "band_low", "band_high"):
            variables[prefix + name] = ("bin", getattr(curve, name))
    coords = {"bin": np.arange(1, len(found.edges))}
    return xr.Dataset(variables, coords=coords, attrs=attrs)
