"""Checks of an audit: which gap could have been found, and how far the threshold reaches.

As in ``outcomes``, each takes a :class:`Look` with an audit, and with rows unless they stayed
elsewhere, and returns a :class:`Finding`, or None where its question does not arise.
"""

from __future__ import annotations

import math

import numpy as np

from mpc_lab.inference.estimates import NEVER_ALIKE, NEVER_TURNED
from mpc_lab.pairing.terms import Enough, Powered, Quantile, Smallest, Threshold, parse_threshold
from mpc_lab.results.preflight.look import (
    CAUTION,
    ENOUGH,
    FEWEST_PAIRS,
    HEAVY_QUERY,
    OK,
    STOP,
    Finding,
    Look,
    close_pairs,
    line_up,
)
from mpc_lab.results.recipe import Verbatim
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import listing, noun, number, quote, round_count_up, two_digits
from mpc_lab.vocabulary import MATCHED, SYMMETRIC

# ---- could a gap have been found?

# A gap of this many standard errors is found at the 5 % level in 80 % of logs.
_ERRORS_FOUND = 2.8
FINDABLE = 0.25  # standard deviations of the outcome
# One interval of the pairs of both sides finds what two intervals find with twice the pairs.
_BOTH_SIDES = 2.0


def check_enough_pairs(look: Look) -> Finding | None:
    """Say what gap could have been found, where that is large for the outcome's spread."""
    name, least = ENOUGH, look.of_cells("mde_adjusted")
    word = outcome_word(look.options)
    if look.ranking is not None and float(np.ptp(look.ranking.outcome)) == 0:
        sentence = f"{word} is {look.ranking.outcome[0]:g} in every row: nothing to compare."
        return Finding(name, STOP, sentence, "Check the column of the outcome.")
    spread, pairs = _outcome_spread(look), look.of_cells("n_pairs")
    if least and set(least) == set(look.whole_groups):
        return None  # the check 'labels' says it
    if least and not max(pairs.values()):
        sentence = "No query has items inside and outside a group with scores close enough."
        return Finding(name, STOP, sentence, "Check the columns of query and group.")
    if not least or not spread > 0:
        return None
    known = [value if math.isfinite(value) else math.inf for value in least.values()]
    limit = FINDABLE * spread
    weak = [value for value in known if value > limit]
    # The median group; with an even number, the better of the two in the middle.
    middle = sorted(known)[(len(known) - 1) // 2]
    if middle <= limit:
        relative = f"{two_digits(middle / spread)} of its standard deviation"
        sentence = (
            f"A gap of {number(middle, 3)} in {word}, {relative}, would be found in most groups."
        )
        return Finding(name, OK, sentence)
    # Without rows, the spread is known only for items in close pairs.
    among = "" if look.ranking is not None else " among close items"
    lowest, unable = min(weak), sum(map(math.isinf, known))
    of_groups = f"{len(weak):,} of {len(known):,} groups" if len(known) > 1 else "the group"
    if math.isinf(lowest):
        sentence = f"In {of_groups} a gap of any size would be missed: there is no interval."
    else:
        none = f", and in {unable:,} none" if unable else ""
        sentence = (
            f"In {of_groups} a gap of {FINDABLE:g} standard deviations of {word}{among} "
            f"({number(limit, 3)}) would be missed; gaps from {_of_all(weak)} would be "
            f"found{none}."
        )
    return Finding(name, CAUTION, sentence, _more_pairs(look, limit, middle))


def _of_all(sizes: list[float]) -> str:
    """Return the smallest size, and the largest beside it where groups differ."""
    ends = [size for size in sizes if math.isfinite(size)]
    low, high = number(min(ends), 3), number(max(ends), 3)
    return f"{low} on" if low == high else f"{low} to {high} on, by group,"


def _outcome_spread(look: Look) -> float:
    """Return the standard deviation of what pairs compare; without rows, by their differences."""
    if look.options.get("contrast") == "sign":
        return 1.0
    if look.ranking is not None:
        return float(look.ranking.outcome.std())
    if look.audit is None or "std_error_by" not in look.audit.headline:
        return math.nan
    at = look.audit.headline.sel(scoring_rule=look.part.rule, pairing_mode=look.part.mode)
    each = at["std_error_by"].sel(variance="naive").values * np.sqrt(at["n_pairs"].values / 2)
    known = each[np.isfinite(each)]
    return float(np.median(known)) if len(known) else math.nan


def _more_pairs(look: Look, limit: float, least: float) -> str:
    """Return a wider threshold if that is enough, else how many queries would be."""
    chosen = parse_threshold(str(look.options.get("threshold", "Quantile(p=0.01)")))
    few = any(count < Enough().pairs for count in look.of_cells("n_pairs").values())
    enough = few and not isinstance(chosen, Enough | Powered)
    if not math.isfinite(least):
        return _first_interval(look, enough)
    wanted, room = (least / limit) ** 2, _room(look)
    if wanted * 1.2 < room:
        return look.again(threshold=_powered(look, limit), epsilon=None)
    if wanted * 1.2 < _BOTH_SIDES * room and look.part.mode == MATCHED.name:
        return look.again(
            threshold=_powered(look, math.sqrt(_BOTH_SIDES) * limit),
            pairing_modes=[SYMMETRIC.name, MATCHED.name],
            epsilon=None,
        )
    now = int(look.options["n_queries"])
    needed = max(round_count_up(wanted * now), now + 1)
    more = f"with pairs like these it takes about {needed:,}, and this log has {now:,}."
    if enough:
        return f"Give threshold=mpc.Enough(), which takes more pairs, and log more queries: {more}"
    return f"Log more queries: {more}"


def _first_interval(look: Look, enough: bool) -> str:
    """Return what gives an interval to groups without one; `enough`, whether Enough may."""
    pairs = look.of_cells("n_pairs")
    if _most_are_never_turned(look):
        return (
            "More queries like these would not help: audit a log that shows such pairs in both "
            "orders, such as one with near-ties shuffled or from before a later rule moved items, "
            "or give examined=, with which the sides are those of the score."
        )
    # Only with as many pairs as 'largest query' asks for; with fewer it has no remedy to take.
    shares = look.of_cells("largest_query_share").items()
    heavy = any(share >= HEAVY_QUERY and pairs[g] >= FEWEST_PAIRS for g, share in shares)
    if look.n_queries > 1 and heavy:
        return "Few queries have most of the pairs: take the remedy of 'largest query' first."
    if max(pairs.values()) >= Enough().pairs:
        return "Log more queries: the pairs of these are in too few for an interval."
    if enough:
        return "Give threshold=mpc.Enough(), which takes more pairs where there are few."
    fewer = "Log more queries" + (", or audit larger groups" if len(pairs) > 2 else "")
    return f"{fewer}: there are too few close pairs for an interval."


def _most_are_never_turned(look: Look) -> bool:
    """Whether most groups without an interval have pairs that are all shown in one order."""
    reasons = look.of_cells("verdict_reason")
    least = look.of_cells("mde_adjusted")
    unable = [str(reasons[g]) for g, value in least.items() if not math.isfinite(value)]
    return 2 * sum(map(unable.count, (NEVER_ALIKE, NEVER_TURNED))) > len(unable)


def _powered(look: Look, effect: float) -> Verbatim:
    """Return the threshold that finds an effect, with a tenth to spare."""
    return Verbatim(f"mpc.Powered(effect={_two_digits(0.9 * effect / _adjustment(look))!r})")


def _room(look: Look) -> float:
    """Return how many times as many pairs the largest threshold that is not too far has."""
    reach = [v for v in look.of_cells("epsilon").values() if math.isfinite(v) and v > 0]
    if not reach or look.options.get("closeness", "score") != "score":
        return 0.0
    if look.ranking is None:
        return _room_of_walked(look)
    keys = line_up(look.scores, look.sample)
    near = close_pairs(keys, float(np.median(reach)) / look.scale).sum()
    far = close_pairs(keys, FAR * float(look.scores.std())).sum()
    return float(far / near) if near else 0.0


def _room_of_walked(look: Look) -> float:
    """Return that factor for the largest threshold `Powered` tries, a tenth of all distances."""
    audit = look.audit
    if audit is None or audit.moments is None or look.part.mode == SYMMETRIC.name:
        return 0.0
    every = audit.moments["all_pairs"].sel(scoring_rule=look.part.rule).values
    now = np.array(list(look.of_cells("n_pairs").values()), dtype=float)
    return float(np.median(0.1 * every[now > 0] / now[now > 0])) if (now > 0).any() else 0.0


def _adjustment(look: Look) -> float:
    """Return how many times `Powered`, which looks at one side, underrates a findable gap."""
    error, adjusted = look.of_cells("std_error"), look.of_cells("mde_adjusted")
    alone = {group: _ERRORS_FOUND * value for group, value in error.items()}
    known = [adjusted[g] / v for g, v in alone.items() if v > 0 and math.isfinite(adjusted[g])]
    return max(float(np.median(known)), 1.0) if known else 1.0


def _two_digits(value: float) -> float:
    """Return a number above 0, rounded down to two digits."""
    power = 10.0 ** (1 - math.floor(math.log10(value)))
    return math.floor(value * power) / power


FAR = 0.1  # standard deviations of the score


def check_threshold(look: Look) -> Finding | None:
    """Say where the threshold ran out of pairs, or reached scores that are far apart."""
    name, ranking = "threshold", look.ranking
    if ranking is None:
        return _threshold_of_walked(look)
    if ranking.columns.is_rank_only:
        return None
    closeness = look.options.get("closeness", "score")
    spread = float(look.scores.std()) if closeness == "score" else 1.0
    scale = look.scale if closeness == "score" else 1.0
    reach = {g: v / scale for g, v in look.of_cells("epsilon").items() if math.isfinite(v)}
    far = [group for group, value in reach.items() if value > FAR * spread > 0]
    if far:
        group = max(far, key=reach.__getitem__)
        unit = "of the score's standard deviation" if closeness == "score" else "on its scale"
        sentence = (
            f"Pairs of {len(far):,} {noun(len(far), 'group')} are up to "
            f"{two_digits(reach[group] / spread)} {unit} apart ({quote(group)}): too far for a tie."
        )
        chosen = parse_threshold(str(look.options.get("threshold", "Quantile(p=0.01)")))
        if closeness == "score" and (step := _step(look)) > FAR * spread:
            sentence += (
                f" Different scores of a query differ by {two_digits(step / spread)} of it or more."
            )
            whole = "Give the score as it was before it was rounded or turned into a rank."
            return Finding(name, CAUTION, sentence, whole)
        return Finding(name, CAUTION, sentence, _nearer(look, chosen))
    if found := _lacking(look):
        return found
    largest = max(reach.values(), default=0.0) / spread if spread else 0.0
    return Finding(
        name, OK, f"Scores of a pair are at most {two_digits(largest)} standard deviations apart."
    )


def _nearer(look: Look, chosen: Threshold) -> str:
    """Return a smaller threshold, or what is missing where a rule lacks close pairs."""
    is_wide = isinstance(chosen, Quantile) and chosen.p > Quantile().p
    if isinstance(chosen, float) or is_wide:
        return look.again(threshold=None, epsilon=None)
    groups = ", or audit larger groups" if len(look.of_cells("epsilon")) > 2 else ""
    few = f"Log more queries{groups}: there are too few close pairs."
    if not isinstance(chosen, Smallest | Powered):
        return few
    if _has_enough_near(look):
        return look.again(threshold=Verbatim(f"mpc.{Enough()!r}"), epsilon=None)
    return f"{few} Fewer are asked for by {_MODEST[type(chosen)]}."


_MODEST = {Smallest: "a smaller k", Powered: "a larger effect"}
_SPARE = 1.2  # times what is asked for: a sample pairs items of any groups


def _has_enough_near(look: Look) -> bool:
    """Whether `Enough` would find its pairs, and their queries, in each group."""
    if look.options.get("closeness", "score") != "score":
        return False
    at, wanted, pairs = look.sample, Enough(), look.of_cells("n_pairs")
    keys = line_up(look.scores, at)
    each = np.bincount(at.query, close_pairs(keys, FAR * float(look.scores.std())))
    if not each.any():
        return False
    queries = each.sum() ** 2 / (each**2).sum() * look.n_queries / len(at.sizes)
    for group, epsilon in look.of_cells("epsilon").items():
        if not pairs[group]:
            continue
        now = max(int(close_pairs(keys, epsilon / look.scale).sum()), 1)
        near = pairs[group] * each.sum() / now
        # A group has few pairs in each query, so that its pairs are worth nearly as many queries.
        worth = near / (1 + near / queries)
        if near < _SPARE * wanted.pairs or worth < _SPARE * wanted.queries:
            return False
    return True


def _step(look: Look) -> float:
    """Return the least distance above 0 of two scores in one query of the sample."""
    apart = np.diff(look.scores)[np.diff(look.sample.query) == 0]
    return float(apart[apart > 0].min(initial=math.inf))


def _lacking(look: Look) -> Finding | None:
    """Say where a threshold has not the power, or the pairs, that were asked for."""

    def flagged(name: str) -> str:
        return listing([quote(group) for group, flag in look.of_cells(name).items() if flag], 4)

    if weak := flagged("underpowered"):
        sentence = f"No threshold has the power that was asked for in {weak}."
        remedy = "Log more queries, or ask for a larger effect."
    elif short := flagged("short_of_pairs"):
        sentence = f"No threshold that is close enough has the pairs asked for in {short}."
        remedy = "Log more queries, or ask for fewer pairs."
    else:
        return None
    return Finding("threshold", CAUTION, sentence, remedy)


def _threshold_of_walked(look: Look) -> Finding:
    """Say where a rule found too few pairs; the spread of scores is not known without rows."""
    fine = "The threshold found the pairs that were asked for."
    return _lacking(look) or Finding("threshold", OK, fine)
