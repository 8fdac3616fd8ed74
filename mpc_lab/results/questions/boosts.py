"""What lists are worth, and what a boost of a group would do, labelled; then the questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.results.base import check_label, need_rows, refuse_rank_only, refuse_terms, settings
from mpc_lab.results.schema import AuditBase
from mpc_lab.text import number, percent, quoted

if TYPE_CHECKING:
    from mpc_lab.objective.boosts import Boosts
    from mpc_lab.objective.fair_boost import ChosenBoost
    from mpc_lab.ranking import Ranking


# Why a boost has no answer on other terms.
_NO_BOOST = {
    "closeness": "A boost is in units of the score, and so must be the distances it is held to.",
    "contrast": "A boost is judged by the mean of outcomes, which the sign of differences hides.",
    "against": "A boost moves the items of a group past all others, not past some of them.",
    "estimand": "A boost is judged by the sum of outcomes over all lists, to which every pair that "
    "turns round adds alike.",
}
_OF_GAP = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective")


def refuse_boost(audit: AuditBase, method: str) -> None:
    """Refuse to boost scores that there are not, or on terms that a boost has no answer on."""
    refuse_rank_only(audit, method)
    refuse_terms(audit, method, _NO_BOOST)


def shown_order_caution(ranking: Ranking) -> str:
    """Say what a boost rests on where places are known and nothing undoes what they do."""
    if not ranking.columns.sides_by_place:
        return ""
    return (
        "Outcomes are as logged, in the list as it was shown; the pairs that a boost is about were "
        "hardly ever shown the other way round. Give examined=, such as audit.examination(), to "
        "allow for that."
    )


def boost_curve(
    audit: AuditBase,
    group: str,
    alphas: ArrayLike | None,
    epsilon: float | None,
    ready: Boosts | None = None,
) -> xr.Dataset:
    """Follow a group along boosts; see :meth:`mpc_lab.Audit.boost_curve`.

    ``ready``: the group prepared before, where several boosts are tried one after the other.
    """
    from mpc_lab.objective.boosts import boost_curve as follow

    refuse_boost(audit, "boost_curve")
    ranking = need_rows(audit, "boost_curve")
    options = settings(audit)
    found = follow(
        ready or ranking,
        group,
        threshold(audit, group, epsilon),
        alphas,
        cluster=str(options["cluster"]),
        level=float(options["level"]),
    )
    variables = _gap_variables(found.gaps)
    variables |= {name: ("alpha", values) for name, values in found.objective.items()}
    variables["share_changed"] = ("alpha", found.share_changed)
    attrs = {"group": group, "epsilon": threshold(audit, group, epsilon)}
    attrs |= {"level": options["level"], "caution": shown_order_caution(ranking)}
    return xr.Dataset(variables, {"alpha": found.gaps.alpha}, attrs)


def _gap_variables(gaps: Any) -> dict[str, Any]:
    variables = {name: ("alpha", getattr(gaps.estimates, name)) for name in _OF_GAP}
    variables["n_pairs"] = ("alpha", np.asarray(gaps.pairs))
    return variables


def threshold(audit: AuditBase, group: str, epsilon: float | None) -> float:
    """Return the threshold of a boost: the one given, or the baseline's own."""
    check_label("group", group, audit.groups)
    if epsilon is not None:
        return check_epsilon(epsilon, remedy="Leave it out for the threshold of the headline.")
    if "baseline" not in audit.headline["scoring_rule"].values:
        raise MpcError("A boost starts from the baseline, which this audit lacks; give epsilon.")
    own = float(audit.headline["epsilon"].sel(group=group, scoring_rule="baseline").values[0])
    if np.isnan(own):
        raise MpcError(f"Group {group!r} has no pair to choose a threshold from; give epsilon.")
    return own


@dataclass(frozen=True, repr=False)
class FairBoost:
    """The boost that closes a group's gap, how sure it is, and what it costs.

    Attributes
    ----------
    group : str
    alpha : float
        The boost at which the gap crosses 0; NaN where it does not.
    resolution : float
        Half the threshold: the boost is known no finer than this.
    n_crossings : int
        How often the gap crosses 0 from above.
    confidence_set : tuple of (low, high)
        All boosts at which a gap of 0 is not rejected.
    unbounded_low, unbounded_high : bool
        Whether the set reaches the end of the range that was tried.
    curve : xarray.Dataset
        The gap along boosts, on the half of the queries that the boost was chosen on.
    held_out : dict of float
        On the other half: ``gap_before``, ``gap_after`` and their ends, ``dcg`` and ``ndcg`` before
        and after, their change with its paired interval, and the ``share_changed`` of positions.
        Empty where there is no boost.
    level : float
    note : str
    caution : str
        What the numbers rest on where the log has positions and no ``examined=``; else empty.
    """

    group: str
    alpha: float
    resolution: float
    n_crossings: int
    confidence_set: tuple[tuple[float, float], ...]
    unbounded_low: bool
    unbounded_high: bool
    curve: xr.Dataset
    held_out: dict[str, float]
    level: float
    note: str
    caution: str = ""

    @property
    def settled(self) -> bool:
        """Whether the log tells one boost: one crossing, one interval, a smaller gap held out."""
        held = self.held_out
        smaller = bool(held) and abs(held["gap_after"]) < abs(held["gap_before"])
        return self.n_crossings == 1 and len(self.confidence_set) == 1 and smaller

    def __repr__(self) -> str:
        who, level = quoted(self.group), percent(self.level)
        reach = _reach(self)
        caution = f" {self.caution}" if self.caution else ""
        if np.isnan(self.alpha):
            said = f"No boost of group {who} closes its gap: {self.note}; {level} set {reach}."
            return f"{said}{caution}"
        held = self.held_out
        start = "A boost" if self.settled else "The log does not settle it, but a boost"
        return (
            f"{start} of {number(self.alpha, 4)} closes the gap of group {who} ({level} set "
            f"{reach}; known to within {number(self.resolution, 4)}). On held-out queries the gap "
            f"goes from {number(held['gap_before'], 4)} to {number(held['gap_after'], 4)}, NDCG "
            f"changes by {number(held['ndcg_change'], 5)} ({number(held['ndcg_change_low'], 5)} to "
            f"{number(held['ndcg_change_high'], 5)}), and {percent(held['share_changed'])} of the "
            f"positions change. {self.note}".rstrip()
            + caution
        )


def _reach(found: FairBoost) -> str:
    if not found.confidence_set:
        return "empty"
    parts = [f"{number(low, 4)} to {number(high, 4)}" for low, high in found.confidence_set]
    ends = [" (unbounded below)"] if found.unbounded_low else []
    ends += [" (unbounded above)"] if found.unbounded_high else []
    return " and ".join(parts) + "".join(ends)


def fair_boost(
    audit: AuditBase, group: str, epsilon: float | None, ready: Boosts | None = None
) -> FairBoost:
    """Find the boost that closes a group's gap; see :meth:`mpc_lab.Audit.fair_boost`."""
    from mpc_lab.objective.fair_boost import fair_boost as find

    refuse_boost(audit, "fair_boost")
    options = settings(audit)
    level = float(options["level"])
    ranking = need_rows(audit, "fair_boost")
    found = find(
        ready or ranking,
        group,
        threshold(audit, group, epsilon),
        cluster=str(options["cluster"]),
        level=level,
        seed=int(options.get("seed", 0)),
    )
    return FairBoost(
        group=group,
        alpha=found.alpha,
        resolution=found.resolution,
        n_crossings=found.n_crossings,
        confidence_set=found.confidence_set,
        unbounded_low=found.unbounded_low,
        unbounded_high=found.unbounded_high,
        curve=xr.Dataset(_gap_variables(found.curve), {"alpha": found.curve.alpha}),
        held_out=_held_out(found),
        level=level,
        note=found.note,
        caution=shown_order_caution(ranking),
    )


def _held_out(found: ChosenBoost) -> dict[str, float]:
    held = found.held_out
    if held is None:
        return {}
    gaps = held.gaps.estimates
    numbers = {"n_queries": float(held.n_queries), "share_changed": held.share_changed}
    for k, when in enumerate(("before", "after")):
        numbers[f"gap_{when}"] = float(gaps.estimate[k])
        numbers[f"gap_{when}_low"] = float(gaps.ci_low[k])
        numbers[f"gap_{when}_high"] = float(gaps.ci_high[k])
    for name in ("dcg", "ndcg"):
        numbers[f"{name}_before"] = held.change.before[name].estimate
    return numbers | held.change.flat()


# ---- what the lists are worth under each scoring rule

_NAMES = {
    "dcg": "mean discounted cumulative gain over queries",
    "ndcg": "mean normalised discounted cumulative gain over queries",
}
_PARTS = {
    "": "{}",
    "_std_error": "standard error, clustered by query: {}",
    "_change": "paired change against the logged scores: {}",
    "_change_low": "lower end of the interval of the change: {}",
    "_change_high": "upper end of the interval of the change: {}",
}


def objective(audit: AuditBase) -> xr.Dataset:
    """Return DCG and NDCG under each rule; see :attr:`mpc_lab.Audit.objective`."""
    from mpc_lab.objective.ndcg import change_between, query_objective

    ranking = need_rows(audit, "objective")
    level = float(settings(audit)["level"])
    before = query_objective(ranking)
    rules = audit.headline["scoring_rule"].values.tolist()
    found: dict[str, Any] = {
        f"{name}{part}": np.empty((len(audit.groups), len(rules)))
        for name in _NAMES
        for part in _PARTS
    }
    unchanged = change_between(ranking, before, before, level=level).flat()
    for r, rule in enumerate(rules):
        for g, group in enumerate(audit.groups):
            scores = None if audit._scores is None else audit._scores(rule, group)
            cell = unchanged
            if scores is not None:
                after = query_objective(ranking, scores)
                cell = change_between(ranking, before, after, level=level).flat()
            for name, values in found.items():
                values[g, r] = cell[name]
    dims = ("group", "scoring_rule")
    variables = {
        f"{name}{part}": (dims, found[f"{name}{part}"], {"long_name": words.format(meaning)})
        for name, meaning in _NAMES.items()
        for part, words in _PARTS.items()
    }
    attrs = {
        "level": level,
        "n_queries": ranking.n_queries,
        "n_without_ideal": before.n_without_ideal,
        "n_single": before.n_single,
    }
    return xr.Dataset(variables, {dim: audit.headline[dim] for dim in dims}, attrs)


class BoostQuestions(AuditBase):
    """What lists are worth, and what a boost would do; see :class:`mpc_lab.Audit`."""

    @cached_property
    def objective(self) -> xr.Dataset:
        """What the lists are worth: dims (group, scoring_rule), made when first asked for.

        ``dcg`` and ``ndcg`` with ``_std_error``, and ``dcg_change``, ``ndcg_change`` against the
        logged scores, paired query by query, with ``_low`` and ``_high``.
        """
        saved = self._saved.get("objective")
        return objective(self) if saved is None else saved

    def boost_curve(
        self, group: str, alphas: ArrayLike | None = None, epsilon: float | None = None
    ) -> xr.Dataset:
        """Follow a group's gap and the objective along boosts of its scores.

        Parameters
        ----------
        group : str
            The group whose scores are boosted.
        alphas : array, optional
            The boosts; by default 201 steps over ± the standard deviation of all scores.
        epsilon : float, optional
            The threshold, the same for every boost; by default the baseline's own.

        Returns
        -------
        xarray.Dataset
            Over ``alpha``: the gap with its inference, ``dcg`` and ``ndcg`` with their changes
            against no boost, and the ``share_changed`` of list positions.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.boost_curve("1", alphas=[0, 0.05]).estimate.values.round(3)
        array([0.013, 0.049])
        """
        return boost_curve(self, group, alphas, epsilon)

    def fair_boost(self, group: str, epsilon: float | None = None) -> FairBoost:
        r"""Find the boost α* that closes a group's gap, and what it costs.

        :math:`\mathrm{MPC}(\alpha)` is the mean difference over cross-group pairs with
        :math:`\alpha \le s_j - s_i \le \alpha + \varepsilon`; α* is its crossing from + to −
        nearest 0. It is chosen, with its confidence set, on one half of the queries and measured
        on the other.

        Parameters
        ----------
        group : str
            The group whose scores are boosted.
        epsilon : float, optional
            The threshold; by default the baseline's own.

        Returns
        -------
        FairBoost
            ``alpha`` with its ``confidence_set``, the ``curve`` it was read from, and what was
            measured on the ``held_out`` queries; it prints a sentence that says so.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.fair_boost("1", epsilon=0.05)
        >>> found.settled
        False
        """
        return fair_boost(self, group, epsilon)
