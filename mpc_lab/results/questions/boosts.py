"""What lists are worth, and what a boost of a group would do, labelled; then the questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.results.base import check_label, need_rows, refuse_rank_only, refuse_terms, settings
from mpc_lab.results.questions.pairs import sort_once
from mpc_lab.results.schema import AuditBase
from mpc_lab.text import minus, number, percent, quote

if TYPE_CHECKING:
    from mpc_lab.objective.boosts import Boosts
    from mpc_lab.objective.offsets import ChosenBoost
    from mpc_lab.ranking import Ranking


# Why a boost is not defined on other terms.
_NO_BOOST = {
    "closeness": "A boost is in units of the score, and so must be the distances it is held to.",
    "contrast": "A boost is judged by the mean of outcomes, which the sign of differences hides.",
    "against": "A boost moves the items of a group past all others, not past some of them.",
    "estimand": "A boost is judged by the sum of outcomes over all lists, to which every pair that "
    "turns round adds alike.",
}
_OF_GAP = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective")


def refuse_boost(audit: AuditBase, method: str) -> None:
    """Refuse to boost where there are no scores, or on terms for which a boost is not defined."""
    refuse_rank_only(audit, method)
    refuse_terms(audit, method, _NO_BOOST)


def shown_order_caution(ranking: Ranking) -> str:
    """Say what a boost assumes where places are known and their effect is not undone."""
    if not ranking.columns.sides_by_place:
        return ""
    return (
        "Outcomes are as logged, in the list as it was shown; the pairs that a boost is about were "
        "hardly ever shown the other way round. Give examined=, such as audit.examination(), to "
        "allow for that."
    )


def prepare_boosts(audit: AuditBase, group: str) -> Boosts:
    """Return a group of an audit ready to be boosted, from rows that are sorted once."""
    from mpc_lab.objective.boosts import Boosts

    refuse_boost(audit, "fair_boost")
    ranking = need_rows(audit, "fair_boost")
    return Boosts(ranking, group, log=sort_once(audit, ranking))


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
    width = threshold(audit, group, epsilon)
    found = follow(
        ready or prepare_boosts(audit, group),
        group,
        width,
        alphas,
        cluster=str(options["cluster"]),
        level=float(options["level"]),
    )
    variables = _gap_variables(found.gaps) | {"fit": ("alpha", found.fit)}
    variables |= {name: ("alpha", values) for name, values in found.objective.items()}
    variables["share_changed"] = ("alpha", found.share_changed)
    attrs: dict[str, Any] = {"group": group, "epsilon": width}
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
        raise MpcError(
            "A boost must start from rule 'baseline'; got an audit without it. Give epsilon."
        )
    own = float(audit.headline["epsilon"].sel(group=group, scoring_rule="baseline").values[0])
    if np.isnan(own):
        raise MpcError(
            f"Group {group!r} must have pairs to choose a threshold from; got none. Give epsilon."
        )
    return own


@dataclass(frozen=True, repr=False)
class FairBoost:
    """The boost at which a group's mean outcome difference is 0, how sure it is, what it does.

    Attributes
    ----------
    group : str
    alpha : float
        The root of the antitonic fit; NaN where there is none.
    resolution : float
        0 where α* is the root of the fit to all pairs; in a log with very many, 1/800 of the
        scores' standard deviation.
    confidence_set : tuple of (low, high)
        The hull of all boosts that no test rejects: one interval, or nothing.
    unbounded_low, unbounded_high : bool
        Whether the set reaches the end of the range that was tried.
    fit : xarray.Dataset
        The antitonic fit over its ``step``: ``estimate`` from ``distance_low`` to
        ``distance_high``, made from ``weight`` pairs, or their weights.
    held_out : dict of float
        Each half of the queries chooses a boost for the other, ``alpha_first`` and
        ``alpha_second``: ``gap_before``, ``gap_after`` and their ends, ``dcg`` and ``ndcg`` before
        and after, their change with its paired interval, and the ``share_changed`` of positions,
        over all queries. Empty where the log or one of its halves has no root.
    level : float
    note : str
    caution : str
        What the numbers assume where the log has positions and no ``examined=``; else empty.
    """

    group: str
    alpha: float
    resolution: float
    confidence_set: tuple[tuple[float, float], ...]
    unbounded_low: bool
    unbounded_high: bool
    fit: xr.Dataset
    held_out: dict[str, float]
    level: float
    note: str
    caution: str
    _follow: Callable[[], xr.Dataset]

    @cached_property
    def curve(self) -> xr.Dataset:
        """The gap of pairs with distances from α to α + ε along 201 boosts, and the ``fit`` at α.

        Made when first asked for; α* does not depend on it.
        """
        return self._follow()

    @property
    def n_crossings(self) -> int:
        """How often the fit crosses 0: once, or never."""
        return int(not np.isnan(self.alpha))

    @property
    def settled(self) -> bool:
        """Whether the log determines the boost: a root, and a set bounded on both sides."""
        bounded = not (self.unbounded_low or self.unbounded_high)
        return bool(self.n_crossings and self.confidence_set and bounded)

    @property
    def sentence(self) -> str:
        """What was found and measured, in words."""
        who, level = quote(self.group), percent(self.level)
        reach = describe_set(self)
        if np.isnan(self.alpha):
            return minus(f"No boost of group {who} is found: {self.note} ({level} set {reach}).")
        said = (
            f"The fitted outcome difference of group {who} is 0 at a boost of "
            f"{number(self.alpha, 4)} ({level} set {reach})."
        )
        measured = f" {describe_held_out(self)}" if self.held_out else ""
        note = f" {self.note[:1].upper()}{self.note[1:]}." if self.note else ""
        return minus(f"{said}{measured}{note}")

    def __repr__(self) -> str:
        return f"{self.sentence} {self.caution}".rstrip()


def describe_held_out(found: FairBoost) -> str:
    """Say what boosts did on queries they were not chosen on."""
    held = found.held_out
    alphas = sorted(held[f"alpha_{name}"] for name in ("first", "second"))
    words = " and ".join(number(alpha, 4) for alpha in alphas)
    start = f"On queries they were not chosen on, boosts of {words}"
    before, after, low, high = (
        held[name] for name in ("gap_before", "gap_after", "gap_after_low", "gap_after_high")
    )
    if not np.isfinite([before, after]).all():
        gap = f"{start} leave too few pairs to measure the gap"
    else:
        gap = f"{start} take the gap from {number(before, 4)} to {number(after, 4)}"
        if np.isfinite([low, high]).all():
            gap += f" ({number(low, 4)} to {number(high, 4)})"
            gap += ", an interval that excludes 0" if low > 0 or high < 0 else ""
    name = "ndcg" if np.isfinite(held["ndcg_change"]) else "dcg"
    middle, low, high = (held[f"{name}_change{end}"] for end in ("", "_low", "_high"))
    change = f"{name.upper()} changes by {number(middle, 5)}"
    change += f" ({number(low, 5)} to {number(high, 5)})"
    return (
        f"{gap}; {change}, and {percent(round(held['share_changed'], 3))} of the positions change."
    )


def describe_set(found: FairBoost) -> str:
    """Say which boosts are in the confidence set; the end of the range does not count as an end."""
    if not found.confidence_set:
        return "empty"
    ((low, high),) = found.confidence_set
    if found.unbounded_low and found.unbounded_high:
        return "unbounded on both sides"
    if found.unbounded_low:
        return f"up to {number(high, 4)}, unbounded below"
    if found.unbounded_high:
        return f"from {number(low, 4)}, unbounded above"
    return f"{number(low, 4)} to {number(high, 4)}"


def fair_boost(
    audit: AuditBase, group: str, epsilon: float | None, ready: Boosts | None = None
) -> FairBoost:
    """Find the boost at which a group's difference is 0; see :meth:`mpc_lab.Audit.fair_boost`."""
    from mpc_lab.objective.offsets import fair_boost as find

    refuse_boost(audit, "fair_boost")
    options = settings(audit)
    level, cluster = float(options["level"]), str(options["cluster"])
    ranking = need_rows(audit, "fair_boost")
    width = threshold(audit, group, epsilon)
    ready = prepare_boosts(audit, group) if ready is None else ready
    seed = int(options.get("seed", 0))
    found = find(ready, group, width, cluster=cluster, level=level, seed=seed)
    steps = {
        "estimate": ("step", found.fit.value),
        "distance_low": ("step", found.fit.start),
        "distance_high": ("step", found.fit.end),
        "weight": ("step", found.fit.count),
    }
    return FairBoost(
        group=group,
        alpha=found.alpha,
        resolution=found.resolution,
        confidence_set=found.confidence_set,
        unbounded_low=found.unbounded_low,
        unbounded_high=found.unbounded_high,
        fit=xr.Dataset(steps, attrs={"group": group}),
        held_out=_held_out(found),
        level=level,
        note=found.note,
        caution=shown_order_caution(ranking),
        _follow=partial(_follow, ready, width, cluster, level),
    )


def _follow(ready: Boosts, epsilon: float, cluster: str, level: float) -> xr.Dataset:
    from mpc_lab.objective.antitonic import default_steps

    steps = default_steps(ready.ranking.score_std)
    gaps = ready.gap(steps, epsilon, cluster=cluster, level=level)
    variables = _gap_variables(gaps) | {"fit": ("alpha", ready.fit.at(steps))}
    return xr.Dataset(variables, {"alpha": steps}, {"epsilon": epsilon, "level": level})


def _held_out(found: ChosenBoost) -> dict[str, float]:
    held = found.held_out
    if held is None:
        return {}
    numbers = {"n_queries": float(held.n_queries), "share_changed": held.share_changed}
    numbers |= dict(zip(("alpha_first", "alpha_second"), held.alphas, strict=True))
    for when in ("before", "after"):
        gap = getattr(held, when).estimates
        numbers[f"gap_{when}"] = float(gap.estimate[0])
        numbers[f"gap_{when}_low"] = float(gap.ci_low[0])
        numbers[f"gap_{when}_high"] = float(gap.ci_high[0])
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
            Over ``alpha``: the gap with its inference, the antitonic ``fit`` of the outcome
            difference at the distance α, ``dcg`` and ``ndcg`` with their changes against no boost,
            and the ``share_changed`` of list positions.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.boost_curve("1", alphas=[0, 0.05]).estimate.values.round(3)
        array([0.013, 0.049])
        """
        return boost_curve(self, group, alphas, epsilon)

    def fair_boost(self, group: str, epsilon: float | None = None) -> FairBoost:
        r"""Find the boost α* at which a group's mean outcome difference is 0, and what it does.

        With :math:`D = s_j - s_i` the signed distance of a pair, i in the group and j not, α* is
        the root of the antitonic (non-increasing isotonic) regression of the outcome difference on
        D over all pairs with :math:`|D| \le \sigma`, σ the standard deviation of the scores. Its
        confidence set is the hull of the boosts, 201 over ±σ, that no monotone test rejects: on
        the right of α the mean must not be above 0, on the left not below, over six widths,
        one-sided at a/12 each and clustered by query. What a boost does is measured by two-fold
        cross-fitting: each half of the queries chooses for the other. It assumes that the
        difference falls with the distance; where outcomes do not rise with the score, there may be
        no root.

        Parameters
        ----------
        group : str
            The group whose scores are boosted.
        epsilon : float, optional
            The threshold of the gap before and after; by default the baseline's own. α* and its
            set do not depend on it.

        Returns
        -------
        FairBoost
            ``alpha`` with its ``confidence_set``, the ``fit`` it is the root of, the window
            ``curve``, and what was measured on ``held_out`` queries; it prints a sentence that
            says so.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.fair_boost("1")
        >>> round(found.alpha, 2), found.settled
        (0.06, True)
        """
        return fair_boost(self, group, epsilon)
