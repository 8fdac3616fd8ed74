"""One audit made from the sums of several audits that share no query."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.inference.verdicts import mde
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.pairing.terms import (
    DIFFERENCE,
    PAIRS,
    SCORE,
    Enough,
    Quantile,
    Smallest,
    parse_threshold,
)
from mpc_lab.results import assemble
from mpc_lab.results.assemble import infer
from mpc_lab.results.audit import Audit
from mpc_lab.results.base import (
    correction_of,
    has_tied_pairs,
    is_rank_only,
    names_in,
    read_complements,
    settings,
)
from mpc_lab.results.plan import Plan, complements_attribute, plan_attributes
from mpc_lab.results.pooled_places import (
    NOT_KEPT,
    PooledProducts,
    compare_pooled,
    goes_by_place,
    label_pooled,
    pooled_products,
)
from mpc_lab.results.pooling import (
    Share,
    item_tables,
    most_pairs,
    pooled_capped,
    pooled_cross,
    pooled_pairs,
    sum_rule,
    sums_of,
    with_items,
)
from mpc_lab.results.recipe import fingerprints
from mpc_lab.results.sums import label_sums, moments_by_rule
from mpc_lab.results.wording import columns_of, declared
from mpc_lab.text import listing, quote
from mpc_lab.vocabulary import CR3, ITEM, MODES, PLAIN, VARIANCES, Flags, Floats, Ints, swept_modes

_MUST_AGREE = ("threshold", "level", "adjust", "tolerance", "seed", "cluster", "primary")
_BY_QUERY = "the effect of place: sums inside cells of places are over queries alone"
# Older audits do not name these options, and used their defaults.
_TERMS = {
    "closeness": SCORE,
    "contrast": DIFFERENCE,
    "against": None,
    "outcome_cap": None,
    "owner": ITEM,
    "estimand": PAIRS,
}


@dataclass(frozen=True)
class _Named:
    """A scoring rule of which only the name is known."""

    label: str


def pool(audits: Sequence[Audit]) -> Audit:
    """Add up audits of logs that share no query.

    The result equals one audit of all rows together, at the thresholds that all grids share. The
    headline is at the smallest of them with as many pairs as the threshold asks for. ``boosted``
    and ``demoted`` are pooled where all audits moved the scores by the same α; ``calibrated`` is
    not pooled, because it is fitted to each log. Item and union variance need the sums of items:
    audits that keep their rows, or were saved with ``items=True``; otherwise the pool clusters by
    query. Symmetric pairs of logs with positions, and the effect of place, are clustered by query
    with the plain correction. What could not be pooled is said in a warning and in the attribute
    ``not_pooled``.

    Parameters
    ----------
    audits : sequence of Audit
        With the same groups and options. Where all were saved with ``ids=True`` and one key, a
        query that occurs in two of them is an error; otherwise the attribute ``assumes`` says
        ``distinct queries``. One audit alone is returned as it is.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> days = [mpc.audit(mpc.datasets.synthetic(2000, seed=k), progress=False) for k in (1, 2)]
    >>> mpc.pool(days).attrs["n_queries"]
    4000
    """
    audits = list(names_in(audits))
    if not audits or not all(isinstance(audit, Audit) for audit in audits):
        kinds = ", ".join(sorted({type(audit).__name__ for audit in audits})) or "an empty list"
        raise MpcError(f"audits must be a list of audits; got {kinds}. Give mpc.pool([a, b]).")
    if len(audits) == 1:
        return audits[0]
    _check_rows(audits)
    _check_columns(audits)
    options = _common_options(audits)
    known_distinct = _check_ids(audits)
    lost: list[str] = []
    modes = _common_modes(audits, lost)
    shares, groups, rules = _align(audits, modes, lost)
    grid, edges = _shared_thresholds(audits)
    summed = [sum_rule(shares, k, edges) for k in range(len(rules))]
    plan = _plan(options, groups, rules, modes, grid)
    if plan.primary is not None and plan.primary.cell not in product(rules, modes):
        lost.append("what was declared before the runs: its rule or mode is not pooled")
        plan = replace(plan, primary=None)
    if VARIANCES[plan.cluster].needs_items:
        tables = _item_tables(audits)
        if tables is None:
            lost.append(f"{plan.cluster} variance: not all audits have their item tables")
            plan = replace(plan, cluster="query")
        else:
            summed = [
                with_items(shares, tables, k, moments, edges) for k, moments in enumerate(summed)
            ]
    plan = _with_correction(plan, audits, summed, lost)
    if plan.owner != ITEM and any(bool(audit.headline["n_items"].any()) for audit in audits):
        lost.append("the number of items: sums by producer do not hold it, and it is given as 0")
    if plan.adjust == "romano_wolf":
        lost.append("romano_wolf: it needs the sums of single queries; holm is used")
        plan = replace(plan, adjust="holm")
    cross = pooled_cross(shares, edges, len(rules))
    if cross is None:
        lost.append("the band of the curve: not all audits have kept what it needs")
    capped = pooled_capped(shares, len(rules), lost)
    chosen = _choose(plan, audits, shares, summed)
    products = _products(plan, audits, shares, chosen, lost)
    if lost:
        warnings.warn(f"Not pooled: {'; '.join(lost)}.", UserWarning, stacklevel=2)
    return _audit(plan, audits, chosen, products, summed, grid, cross, capped, lost, known_distinct)


def _with_correction(
    plan: Plan, audits: list[Audit], summed: list[Moments], lost: list[str]
) -> Plan:
    """Return the plan with the correction that all audits allow."""
    corrections = {correction_of(audit) for audit in audits}
    if corrections == {PLAIN}:
        return replace(plan, correction=PLAIN)
    if corrections != {CR3} or any("query" not in moments.cr3 for moments in summed):
        lost.append("the correction cr3: not all audits have it; plain is used")
        return replace(plan, correction=PLAIN)
    return plan


def _check_rows(audits: list[Audit]) -> None:
    prints = [found for audit in audits for found in fingerprints(audit) if found]
    if len(set(prints)) < len(prints):
        raise MpcError(
            "audits must be of different logs; got two of the same rows. Pool each log once."
        )


def _check_columns(audits: list[Audit]) -> None:
    """Refuse scores of two directions, and places among scores."""
    every = [columns_of(audit.attrs) for audit in audits]
    if len({bool(columns.get("ascending")) for columns in every}) > 1:
        raise MpcError(
            "audits must have one direction of scores; got some with ascending= and some "
            "without. Run them alike."
        )
    for name in ("examined", "examined_floor"):
        if len({json.dumps(columns.get(name), sort_keys=True) for columns in every}) > 1:
            raise MpcError(f"audits must all have the same {name}=; got several. Run them alike.")
    if len({is_rank_only(audit) for audit in audits}) > 1:
        raise MpcError(
            "Either all audits must have scores, or none of them; got some of each kind. Pool each "
            "kind on its own."
        )


def _common_options(audits: list[Audit]) -> dict[str, Any]:
    every = [{**_TERMS, **settings(audit)} for audit in audits]
    for name in (*_MUST_AGREE, *_TERMS):
        values = {json.dumps(options.get(name)) for options in every}
        if len(values) > 1:
            raise MpcError(
                f"audits must have one {name}; got {' and '.join(sorted(values))}. Run them alike."
            )
    return every[0]


def _check_ids(audits: list[Audit]) -> bool:
    """Raise where a query occurs twice; return whether it is known that none does."""
    ids = [audit._saved.get("ids") for audit in audits]
    if any(found is None for found in ids):
        return False
    if len({found.attrs["key"] for found in ids if found is not None}) > 1:
        return False
    every = np.concatenate([found["id"].values for found in ids if found is not None])
    twice = len(every) - len(np.unique(every))
    if twice:
        raise MpcError(
            f"Each query must be in one of the audits; got {twice:,} in more than one, so that "
            "their sums do not add up to one audit. Audit the rows together, or cut the logs at "
            "whole queries."
        )
    return True


def _common_modes(audits: list[Audit], lost: list[str]) -> tuple[str, ...]:
    # The first mode decides a gate, so keep the order of the first audit.
    each = [audit.headline["pairing_mode"].values.tolist() for audit in audits]
    every = list(dict.fromkeys(mode for modes in each for mode in modes))
    modes = [mode for mode in every if all(mode in of_audit for of_audit in each)]
    if not modes:
        raise MpcError("audits must have a pairing mode in common; got none. Run them alike.")
    lost += [f"{mode} pairs: not all audits have them" for mode in every if mode not in modes]
    placed = [columns_of(audit.attrs).get("position") is not None for audit in audits]
    by_place = [mode for mode in modes if MODES[mode].two_sided or MODES[mode].side.neighbours]
    if by_place and any(placed) and not all(placed):
        raise MpcError(
            f"Either all audits of {listing(by_place)} pairs must have positions, or none of them; "
            "got some of each kind. Run them alike."
        )
    return tuple(modes)


def _align(
    audits: list[Audit], modes: tuple[str, ...], lost: list[str]
) -> tuple[list[Share], tuple[str, ...], tuple[str, ...]]:
    groups = _common_groups(audits, lost)
    rules = _common_rules(audits, lost)
    swept = [mode.name for mode in swept_modes(modes)]
    shares = []
    for audit in audits:
        moments = moments_by_rule(audit)
        labels = audit.headline["scoring_rule"].values.tolist()
        own = {group: k for k, group in enumerate(audit.groups)}
        shares.append(
            Share(
                audit,
                [of_rule.of_modes(swept) for of_rule in moments],
                [own.get(group) for group in groups],
                [labels.index(rule) for rule in rules],
                [moments[0].mode_names.index(mode) for mode in swept],
            )
        )
    return shares, groups, rules


def _common_groups(audits: list[Audit], lost: list[str]) -> tuple[str, ...]:
    """Return the groups that every audit has, or could have had: an absent group has no pair."""
    every = sorted({group for audit in audits for group in audit.groups})
    kept = []
    for group in every:
        if all(group in audit.groups or audit.attrs.get("all_groups") for audit in audits):
            kept.append(group)
        else:
            lost.append(f"group {group!r}: not asked for in every audit")
    if not kept:
        raise MpcError("audits must have a group in common; got none. Run them alike.")
    return tuple(kept)


def _common_rules(audits: list[Audit], lost: list[str]) -> tuple[str, ...]:
    kept = []
    for rule in audits[0].headline["scoring_rule"].values.tolist():
        why = _why_not(rule, audits)
        if why:
            lost.append(f"rule {rule!r}: {why}")
        else:
            kept.append(rule)
    if not kept:
        raise MpcError(
            f"audits must have a scoring rule that can be pooled; got none ({'; '.join(lost)}). "
            "Run them alike."
        )
    return tuple(kept)


def _why_not(rule: str, audits: list[Audit]) -> str:
    if any(rule not in audit.headline["scoring_rule"].values for audit in audits):
        return "not asked for in every audit"
    if any(rule in json.loads(str(audit.attrs.get("in_sample", "[]"))) for audit in audits):
        return "fitted to each log by itself"
    alphas = {json.loads(str(audit.attrs.get("alpha", "{}"))).get(rule) for audit in audits}
    return "" if len(alphas) == 1 else "moved the scores by another α in each audit"


def _shared_thresholds(audits: list[Audit]) -> tuple[Floats, Floats]:
    """Return the grid that all audits share, and all thresholds: a number given is one too."""
    grid = reduce(np.intersect1d, [sums_of(audit)["grid"].values for audit in audits])
    if not len(grid):
        raise MpcError(
            "audits must have a threshold of their grids in common; got none. Run them with the "
            "same epsilon=[…]."
        )
    threshold = parse_threshold(str(settings(audits[0])["threshold"]))
    own = [threshold] if isinstance(threshold, float) else []
    return np.asarray(grid, dtype=np.float64), np.union1d(grid, own)


def _item_tables(audits: list[Audit]) -> list[dict[str, xr.Dataset]] | None:
    found = []
    for audit in audits:
        if {"items", "dyads"} <= set(audit._saved):
            found.append(dict(audit._saved))
        elif _items_can_be_kept(audit):
            found.append(item_tables(audit))
        else:
            return None
    return found


def _items_can_be_kept(audit: Audit) -> bool:
    from mpc_lab.pairing.items import MOST_KEPT

    known = audit.ranking is not None and audit.ranking.item_code is not None
    return known and most_pairs(audit) <= MOST_KEPT


def _plan(
    options: dict[str, Any],
    groups: tuple[str, ...],
    rules: tuple[str, ...],
    modes: tuple[str, ...],
    grid: Floats,
) -> Plan:
    bounds = options.get("bounds")
    return Plan(
        groups=groups,
        scoring_rules=tuple(_Named(rule) for rule in rules),  # type: ignore[misc]
        pairing_modes=modes,
        threshold=parse_threshold(str(options["threshold"])),
        epsilon=tuple(grid.tolist()),
        cluster=str(options["cluster"]),
        level=float(options["level"]),
        adjust=str(options["adjust"]),
        tolerance=options.get("tolerance"),
        bootstrap=0,
        seed=int(options.get("seed", 0)),
        primary=declared(options),
        bounds=None if bounds is None else (bounds[0], bounds[1]),
        pairs_cap=int(options.get("pairs_cap", 10)),
        **{name: options[name] for name in _TERMS},
    )


@dataclass(frozen=True)
class _Headlines:
    """The headlines of a pool: arrays (rule, group), and the moments of each rule.

    Attributes
    ----------
    all_pairs : float64 array
        Matched pairs with no limit on the distance.
    epsilon, wanted : float64 arrays
        Thresholds, and the pairs asked for.
    short : bool array or None
        Where too few pairs are close.
    own : list of Moments
        At the one threshold of each group.
    """

    all_pairs: Floats
    epsilon: Floats
    wanted: Floats
    short: Flags | None
    own: list[Moments]


def _choose(
    plan: Plan, audits: list[Audit], shares: list[Share], summed: list[Moments]
) -> _Headlines:
    """Choose the threshold of each group."""
    all_pairs = np.stack(
        [pooled_pairs(shares, rule, len(plan.groups)) for rule in range(len(summed))]
    )
    reach = _reach(plan, audits)
    chosen = [_own(plan, *one) for one in zip(summed, all_pairs, reach, strict=True)]
    short = [enough for _, _, enough in chosen if enough is not None]
    edges = summed[0].edges[0]
    return _Headlines(
        all_pairs,
        np.where(all_pairs == 0, np.nan, [edges[index[:, 0]] for index, _, _ in chosen]),
        np.stack([wanted for _, wanted, _ in chosen]),
        np.stack(short) & (all_pairs > 0) if short else None,
        [
            _without(moments.at(index), n == 0)
            for moments, (index, _, _), n in zip(summed, chosen, all_pairs, strict=True)
        ],
    )


def _products(
    plan: Plan, audits: list[Audit], shares: list[Share], chosen: _Headlines, lost: list[str]
) -> PooledProducts:
    """Add up what compares both sides of a tie inside cells of places, for logs with positions."""
    if not all(map(goes_by_place, audits)):
        return []
    centers = [own.center for own in chosen.own]
    products = pooled_products(shares, centers, list(chosen.epsilon))
    missing = {
        group
        for of_rule, epsilon in zip(products, chosen.epsilon, strict=True)
        for group, one, e in zip(plan.groups, of_rule, epsilon, strict=True)
        if one is None and not np.isnan(e)
    }
    if missing:
        lost.append(NOT_KEPT.format(groups=listing([quote(group) for group in sorted(missing)])))
    symmetric = any(MODES[mode].two_sided for mode in plan.pairing_modes)
    what = f"{'symmetric pairs and of ' if symmetric else ''}{_BY_QUERY}"
    if len(missing) < len(plan.groups):
        if VARIANCES[plan.cluster].needs_items:
            lost.append(f"{plan.cluster} variance of {what}")
        if plan.correction == CR3:
            lost.append(f"the correction cr3 of {what}, with the plain correction")
    return products


def _audit(
    plan: Plan,
    audits: list[Audit],
    chosen: _Headlines,
    products: PooledProducts,
    summed: list[Moments],
    grid: Floats,
    cross: assemble.Cross | None,
    capped: tuple[Floats, tuple[float, float]] | None,
    lost: list[str],
    known_distinct: bool,
) -> Audit:
    complements = _complements(plan, audits)
    # Without places there are no products.
    compared = [compare_pooled(*one) for one in zip(chosen.own, products, strict=False)]
    own = [one.own for one in compared] if compared else chosen.own
    in_grid = np.tile(np.searchsorted(summed[0].edges[0], grid), (len(plan.groups), 1))
    return Audit(
        assemble.headline(
            plan,
            own,
            chosen.epsilon,
            chosen.wanted,
            flags=None if chosen.short is None else {"short_of_pairs": chosen.short},
            sides=compared,
            complements=complements,
        ),
        assemble.curve(
            plan, [moments.at(in_grid) for moments in summed], grid, [in_grid] * len(summed), cross
        ),
        label_sums(
            plan, summed, grid, chosen.all_pairs, capped=capped, own=own if compared else ()
        ),
        _attributes(plan, audits, lost, known_distinct) | complements_attribute(plan, *complements),
        saved=label_pooled(products, chosen.epsilon),
    )


def _complements(plan: Plan, audits: list[Audit]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the groups that are complements in every log, and the rules that this binds."""
    every, bound = [], []
    for audit in audits:
        pairs, rules = read_complements(audit)
        every.append({frozenset((audit.groups[one], audit.groups[other])) for one, other in pairs})
        bound.append({audit.headline["scoring_rule"].values[k].item() for k in rules})
    common = [sorted(map(plan.groups.index, pair)) for pair in set.intersection(*every)]
    rules = [plan.rule_labels.index(rule) for rule in set.intersection(*bound)]
    return sorted((one, other) for one, other in common), sorted(rules)


def _without(moments: Moments, empty: Flags) -> Moments:
    """Give a group without a threshold no pairs, in any mode."""
    kept = np.where(empty, 0, 1)[None, :, None]
    return replace(
        moments,
        pairs=moments.pairs * kept,
        queries=moments.queries * kept,
        clusters=moments.clusters * kept,
        items=moments.items * kept,
        by={
            name: Quadratic(sums.cc * kept, sums.cu * kept, sums.uu * kept)
            for name, sums in moments.by.items()
        },
        squares={side: sums * kept for side, sums in moments.squares.items()},
        sides=moments.sides and moments.sides.take(lambda values: values * kept[0]),
        cells=None if moments.cells is None else moments.cells * kept[0],
        weights=moments.weights and moments.weights.take(lambda values: values * kept),
        cr3={name: np.where(kept > 0, sums, np.nan) for name, sums in moments.cr3.items()},
        series=moments.series and moments.series.take(lambda values: values * kept),
    )


def _reach(plan: Plan, audits: list[Audit]) -> Floats:
    """Return the largest headline threshold of the audits, for each rule and group."""
    cells = {"group": list(plan.groups), "scoring_rule": list(plan.rule_labels)}
    every = [
        audit.headline["epsilon"].isel(pairing_mode=0).reindex(cells).transpose("scoring_rule", ...)
        for audit in audits
    ]
    return np.asarray(np.fmax.reduce([one.values for one in every]))


def _own(
    plan: Plan, moments: Moments, all_pairs: Floats, reach: Floats
) -> tuple[Ints, Floats, Flags | None]:
    """Return each group's headline threshold, the pairs asked for, and whether these are short."""
    pairs = moments.pairs[0]
    threshold = plan.threshold
    wanted = np.full(len(pairs), np.nan)
    if isinstance(threshold, float):
        index = np.full(len(pairs), int(np.searchsorted(moments.edges[0], threshold)))
        return index[:, None], wanted, None
    if isinstance(threshold, Quantile | Smallest):
        wanted = np.array([float(threshold.rank(int(n))) for n in all_pairs])
        enough = pairs >= wanted[:, None]
    elif isinstance(threshold, Enough):
        return _enough(plan, threshold, moments, reach, wanted)
    else:
        found = infer(moments, **plan.inference)
        smallest = mde(found.std_error[0], found.dof[0], level=plan.level, power=threshold.power)
        enough = smallest <= threshold.effect
    last = np.full(len(pairs), pairs.shape[1] - 1)
    return np.where(enough.any(axis=1), np.argmax(enough, axis=1), last)[:, None], wanted, None


def _enough(
    plan: Plan, threshold: Enough, moments: Moments, reach: Floats, wanted: Floats
) -> tuple[Ints, Floats, Flags]:
    """Choose as `Enough` does, not beyond the thresholds of the audits; else the last of these."""
    pairs = moments.pairs[0]
    found = infer(moments, cluster="query", level=plan.level, correction=PLAIN)
    near = moments.edges <= np.nan_to_num(reach, nan=-1.0)[:, None]
    enough = (pairs >= threshold.pairs) & (found.n_effective[0] >= threshold.queries) & near
    last = np.maximum(near.sum(axis=1) - 1, 0)
    chosen = np.where(enough.any(axis=1), np.argmax(enough, axis=1), last)
    return chosen[:, None], wanted, ~enough.any(axis=1)


def _rules_with_ties(plan: Plan, audits: list[Audit]) -> list[str]:
    return [
        rule for rule in plan.rule_labels if any(has_tied_pairs(audit, rule) for audit in audits)
    ]


def _attributes(
    plan: Plan, audits: list[Audit], lost: list[str], known_distinct: bool
) -> dict[str, int | float | str]:
    first = audits[0].attrs
    added = ("n_rows", "n_queries", "n_units", "n_dropped", "n_capped", "n_floored")
    attrs: dict[str, Any] = {
        name: first[name] for name in ("versions", "columns", "alpha", "in_sample") if name in first
    }
    for name, widest in (("outcome_low", min), ("outcome_high", max)):
        if all(name in audit.attrs for audit in audits):
            attrs[name] = widest(float(audit.attrs[name]) for audit in audits)
    attrs |= {name: int(sum(int(audit.attrs.get(name, 0)) for audit in audits)) for name in added}
    left_out = sum(int(audit.attrs.get("n_left_out_of_sides", 0)) for audit in audits)
    attrs |= {"n_left_out_of_sides": left_out} if left_out else {}
    return attrs | {
        **plan_attributes(plan),
        "all_groups": int(all(audit.attrs.get("all_groups") for audit in audits)),
        "pooled": json.dumps([one for audit in audits for one in fingerprints(audit)]),
        "not_pooled": json.dumps(lost),
        "rules_with_ties": json.dumps(_rules_with_ties(plan, audits)),
        "assumes": "" if known_distinct else "distinct queries",
    }
