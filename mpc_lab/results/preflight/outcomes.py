"""Checks of an audit: what its pairs rest on, and what could have been found.

Each takes a :class:`Look` with an audit, and with rows unless they stayed elsewhere, and returns a
:class:`Finding`, or None where its question does not arise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.pairing.terms import parse_threshold
from mpc_lab.results.preflight.look import (
    CAUTION,
    OK,
    STOP,
    Finding,
    Look,
    and_more,
    close_pairs,
    line_up,
    shown_label,
    shown_share,
)
from mpc_lab.results.recipe import Verbatim
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import listing, noun, number, quoted
from mpc_lab.vocabulary import DIRECTIONS, SYMMETRIC, Floats, Ints

# ---- does a high score go with a high outcome?

AGAINST = -4.0  # standard errors
WEAKEST = -0.02
FEWEST_QUERIES = 5


def check_direction(look: Look) -> Finding | None:
    """Say where the outcome falls as the score rises, within queries."""
    ranking, name = look.need_rows(), "score direction"
    at = look.sample
    outcome = _ranks(ranking.outcome[at.rows], at.query)
    score = _ranks(look.scores, at.query)
    # Every query counts the same, so that one long list does not decide.
    spread = np.sqrt(np.bincount(at.query, score**2) * np.bincount(at.query, outcome**2))
    known = spread > 0
    each = np.bincount(at.query, score * outcome)[known] / spread[known]
    if len(each) < FEWEST_QUERIES:
        return None
    correlation, error = float(each.mean()), float(each.std()) / math.sqrt(len(each))
    z = correlation / error if error > 0 else math.copysign(math.inf, correlation)
    word = outcome_word(look.options)
    shown = f"Within queries the rank correlation of score and {word} is {correlation:.2f}"
    if z < AGAINST and correlation < WEAKEST:
        ascending = bool(ranking.columns.ascending)
        sentence = f"{shown}: the score runs against the outcome, as a distance or a rank does."
        return Finding(name, STOP, sentence, look.again(ascending=not ascending))
    return Finding(name, OK, f"{shown}.")


def _ranks(values: Floats, query: Ints) -> Floats:
    """Return the ranks of values within queries, centred."""
    frame = pd.DataFrame({"query": query, "value": values})
    rank = frame.groupby("query")["value"].rank()
    return np.asarray(rank - rank.groupby(frame["query"]).transform("mean"))


# ---- whose pairs are they?

HEAVY_QUERY = 0.2
HEAVY_OWNER = 0.3
MOST_LISTED = 3_000_000


def check_largest_query(look: Look) -> Finding | None:
    """Name the query, or unit, that holds much of the pairs of a group."""
    name = "largest query"
    shares = {g: v for g, v in look.of_cells("largest_query_share").items() if math.isfinite(v)}
    if not shares:
        return None
    group, share = max(shares.items(), key=lambda entry: entry[1])
    pairs, queries = look.of_cells("n_pairs"), look.of_cells("n_queries")
    if share < HEAVY_QUERY:
        sentence = f"The largest query has {shown_share(share)} of the pairs of {quoted(group)}."
        return Finding(name, OK, sentence)
    heavy = [one for one, value in shares.items() if value >= HEAVY_QUERY]
    group = max(heavy, key=pairs.__getitem__)  # a rare group with one query is not the news
    share = shares[group]
    who, numbered = _largest_query(look, group)
    counted = "of what is counted" if look.options.get("estimand") != "pairs" else "of the pairs"
    said = f"has {shown_share(share)} {counted} of group {quoted(group)}.{and_more(len(heavy) - 1)}"
    remedy = f"Look at its rows; then decide whether it belongs into the log: {_rows_of(look)}."
    if look.options.get("estimand", "pairs") == "pairs" and queries[group] * HEAVY_QUERY > 1:
        remedy = look.again(estimand="queries")
    return Finding(name, CAUTION, f"{who} {said}", remedy, f"{numbered} {said}")


def _rows_of(look: Look) -> str:
    column = None if look.ranking is None else look.ranking.columns.query
    return f"frame[frame[{column!a}] == ...]" if isinstance(column, str) else "those of the query"


def _largest_query(look: Look, group: str) -> tuple[str, str]:
    """Return the name of the query with most pairs, for the screen and for files."""
    unknown = "One query"
    codes = _listed(look, group)
    if codes is None or look.ranking is None:
        return unknown, unknown
    ranking = look.ranking
    unit = ranking.unit_code
    of_row = ranking.query_code if unit is None else unit
    largest = int(np.bincount(of_row[codes["row_i"]]).argmax())
    total = ranking.n_queries if unit is None else ranking.n_units
    word = "query" if unit is None else "unit"
    labels = ranking.query_labels if unit is None else ranking.unit_labels
    label = shown_label(labels([largest])[0])
    return f"{word.capitalize()} {label}", f"{word.capitalize()} {largest + 1:,} of {total:,}"


def _listed(look: Look, group: str) -> dict[str, Any] | None:
    """Return the pairs of a group where they are few enough to list."""
    from mpc_lab.results.questions.pairs import list_cell

    if look.ranking is None or look.audit is None:
        return None
    if look.of_cells("n_pairs")[group] > MOST_LISTED:
        return None
    return list_cell(look.audit, group, look.part.rule, look.part.mode)


def check_largest_item(look: Look) -> Finding | None:
    """Name the item, or producer, that is in much of the pairs of a group."""
    ranking = look.need_rows()
    owner = ranking.owner
    name = f"largest {owner}"
    codes = ranking.owner_code
    bounds = _largest_owner_bounds(look)
    if codes is None or not bounds:
        return None
    suspects = sorted((g for g, v in bounds.items() if v >= HEAVY_OWNER), key=bounds.__getitem__)
    worst: tuple[float, str, int] | None = None
    for group in suspects[::-1][:3]:
        listed = _listed(look, group)
        if listed is None or not len(listed["row_i"]):
            continue
        one, other = codes[listed["row_i"]], codes[listed["row_j"]]
        # A pair of two items of one producer counts once.
        both = np.concatenate([one, other[other != one]])
        counts = np.bincount(both)
        share = float(counts.max()) / len(one)
        if worst is None or share > worst[0]:
            worst = share, group, int(counts.argmax())
    if worst is None or worst[0] < HEAVY_OWNER:
        return Finding(name, OK, f"No {owner} is in {shown_share(HEAVY_OWNER)} of a group's pairs.")
    share, group, code = worst
    labels = ranking.producer_labels if owner == "producer" else ranking.item_labels
    label = labels([code])[0]
    column = getattr(ranking.columns, owner)
    sentence = (
        f"{owner.capitalize()} {shown_label(label)} is in {shown_share(share)} of the pairs of "
        f"group {quoted(group)}: the finding is much about it."
    )
    value = _plain_value(label)
    words = f"Audit again without the rows whose {column} is {value!a}, and compare."
    rows = f"frame[frame[{str(column)!a}] != {value!a}]"
    return Finding(name, CAUTION, sentence, look.again_of(rows, words))


def _plain_value(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _largest_owner_bounds(look: Look) -> dict[str, float]:
    """Return a share that no item, or producer, of a group's pairs exceeds."""
    audit = look.audit
    if audit is None or audit._own is None:
        return {}
    rule = audit.headline["scoring_rule"].values.tolist().index(look.part.rule)
    moments = audit._own[rule]
    squares = moments.by.get("item")
    if squares is None:
        return {}
    modes = [mode.name for mode in moments.modes]
    # Of a mode of two sides the pairs are those below and those above a tie.
    row = modes.index("matched" if look.part.mode == SYMMETRIC.name else look.part.mode)
    pairs = np.maximum(moments.pairs[row, :, 0], 1)
    bounds = np.sqrt(np.maximum(squares.cc[row, :, 0], 0)) / pairs
    return dict(zip(audit.groups, np.minimum(bounds, 1.0).tolist(), strict=True))


# ---- are outcomes complete?

SLICES = 20
YOUNG = 0.8  # of what outcomes were before
MOST_YOUNG = 6


def check_young_outcomes(look: Look) -> Finding | None:
    """Say where the last rows have lower outcomes, as where clicks or orders are still to come."""
    ranking, name = look.need_rows(), "young outcomes"
    if ranking.time is None or ranking.n_rows < 50 * SLICES:
        return None
    order = np.argsort(ranking.time, kind="stable")
    ends = np.linspace(0, ranking.n_rows, SLICES + 1).astype(np.int64)
    outcome = ranking.outcome_given[order]
    sums = np.add.reduceat(outcome, ends[:-1]) / np.diff(ends)
    before = float(np.median(sums[: SLICES // 2]))
    error = outcome.std() / math.sqrt(ranking.n_rows / SLICES)
    is_low = (sums < YOUNG * before) & (sums < before - 4 * error)
    young = SLICES - int(np.flatnonzero(~is_low)[-1]) - 1 if (~is_low).any() else 0
    word = outcome_word(look.options)
    if before <= 0 or not 0 < young <= MOST_YOUNG:
        return Finding(name, OK, f"{word} is not lower in the last rows.")
    # The first young slice begins somewhere inside the one before.
    cut = _time_of(ranking, int(order[ends[SLICES - young - 1]]))
    sentence = (
        f"In the last {shown_share(young / SLICES)} of the rows by time {word} is "
        f"{number(float(sums[-young:].mean()), 3)}, before it was {number(before, 3)}: outcomes "
        "may still be to come."
    )
    rows = f"frame[frame[{ranking.columns.time!a}] < {cut}]"
    words = f"Audit again the rows whose {ranking.columns.time} is before {cut}."
    return Finding(name, CAUTION, sentence, look.again_of(rows, words))


def _time_of(ranking: Any, row: int) -> str:
    value = ranking.column(ranking.columns.time)[row]
    if isinstance(value, np.datetime64 | pd.Timestamp):
        return f"{str(pd.Timestamp(value))!a}"
    return ascii(_plain_value(value))


# ---- could a gap have been found?

FINDABLE = 0.25  # standard deviations of the outcome


def check_enough_pairs(look: Look) -> Finding | None:
    """Say what gap could have been found, where that is large for the outcome's spread."""
    ranking, name = look.need_rows(), "enough pairs"
    least = look.of_cells("mde_adjusted")
    spread = _outcome_spread(look, ranking)
    if not least or spread == 0:
        return None
    known = [value if math.isfinite(value) else math.inf for value in least.values()]
    middle = float(np.median(known))
    weak = sum(value > FINDABLE * spread for value in known)
    word = outcome_word(look.options)
    shown = f"{number(middle, 3)} {word}" if math.isfinite(middle) else "nothing"
    if middle <= FINDABLE * spread:
        relative = f"{middle / spread:.2g} of its standard deviation"
        return Finding(name, OK, f"A gap of {shown} ({relative}) would be found in most groups.")
    limit = f"{FINDABLE:g} standard deviations of {word} ({number(FINDABLE * spread, 3)})"
    lowest = min(known)
    size = f"from {number(lowest, 3)} on" if math.isfinite(lowest) else "of no size"
    sentence = (
        f"In {weak:,} of {len(known):,} {noun(len(known), 'group')} a gap of {limit} would be "
        f"missed; with these pairs gaps {size} would be found."
    )
    return Finding(name, CAUTION, sentence, _more_pairs(look, FINDABLE * spread, middle))


def _outcome_spread(look: Look, ranking: Any) -> float:
    """Return the standard deviation of what pairs compare."""
    if look.options.get("contrast") == "sign":
        return 1.0
    return float(ranking.outcome.std())


def _more_pairs(look: Look, limit: float, least: float) -> str:
    """Return a wider threshold where that is enough, else how many queries are."""
    if not math.isfinite(least):
        return "Audit fewer, larger groups: these have too few pairs for an interval."
    wanted = (least / limit) ** 2
    if wanted * 1.2 < _room(look):
        aim = _two_digits(0.9 * limit / _adjustment(look))
        return look.again(threshold=Verbatim(f"mpc.Powered(effect={aim!r})"), epsilon=None)
    now = int(look.options["n_queries"])
    return f"Log about {wanted * now:,.0f} queries; this log has {now:,}."


def _room(look: Look) -> float:
    """Return how many times as many pairs a threshold has that is just not too far."""
    reach = [v for v in look.of_cells("epsilon").values() if math.isfinite(v) and v > 0]
    if not reach or look.options.get("closeness", "score") != "score":
        return 0.0
    keys = line_up(look.scores, look.sample)
    near = close_pairs(keys, float(np.median(reach)) / look.scale).sum()
    far = close_pairs(keys, FAR * float(look.scores.std())).sum()
    return float(far / near) if near else 0.0


def _adjustment(look: Look) -> float:
    """Return by how much a findable gap is larger because several groups are looked at."""
    alone, adjusted = look.of_cells("mde"), look.of_cells("mde_adjusted")
    known = [adjusted[g] / v for g, v in alone.items() if v > 0 and math.isfinite(adjusted[g])]
    return max(float(np.median(known)), 1.0) if known else 1.0


def _two_digits(value: float) -> float:
    """Return a number above 0, rounded down to two digits."""
    power = 10.0 ** (1 - math.floor(math.log10(value)))
    return math.floor(value * power) / power


FAR = 0.1  # standard deviations of the score


def check_threshold(look: Look) -> Finding | None:
    """Say where the threshold ran out of pairs, or reached scores that are far apart."""
    ranking, name = look.need_rows(), "threshold"
    if ranking.columns.is_rank_only:
        return None
    closeness = look.options.get("closeness", "score")
    spread = float(look.scores.std()) if closeness == "score" else 1.0
    scale = look.scale if closeness == "score" else 1.0
    reach = {g: v / scale for g, v in look.of_cells("epsilon").items() if math.isfinite(v)}
    weak = [group for group, flag in look.of_cells("underpowered").items() if flag]
    far = [group for group, value in reach.items() if value > FAR * spread > 0]
    usual = look.again(threshold=None, epsilon=None)
    if far:
        group = max(far, key=reach.__getitem__)
        unit = "of the score's standard deviation" if closeness == "score" else "on its scale"
        sentence = (
            f"Pairs of {len(far):,} {noun(len(far), 'group')} are up to "
            f"{reach[group] / spread:.2g} {unit} apart ({quoted(group)}): not a tie any more."
        )
        chosen = parse_threshold(str(look.options.get("threshold", "Quantile(p=0.01)")))
        # A rule that went so far did so for want of pairs: a closer threshold has fewer still.
        few = "Log more queries, or audit fewer, larger groups: there are too few close pairs."
        return Finding(name, CAUTION, sentence, usual if isinstance(chosen, float) else few)
    if weak:
        named = listing([quoted(group) for group in weak], 4)
        sentence = f"No threshold has the power that was asked for in {named}."
        return Finding(name, CAUTION, sentence, "Log more queries, or ask for a larger effect.")
    largest = max(reach.values(), default=0.0) / spread if spread else 0.0
    return Finding(name, OK, f"Scores of a pair are at most {largest:.2g} deviations apart.")


# ---- places, tails, complements

CLEAR = 0.01


def check_place_effect(look: Look) -> Finding | None:
    """Say where a higher place raises outcomes and the leading mode carries that along."""
    name = "effect of place"
    p_values = [p for p in look.of_cells("place_effect_p_value").values() if math.isfinite(p)]
    if not p_values or look.ranking is None or look.ranking.position is None:
        return None
    clear = min(p_values) * len(p_values) < CLEAR
    effects = look.of_cells("place_effect")
    largest = max((v for v in effects.values() if math.isfinite(v)), key=abs, default=0.0)
    word = outcome_word(look.options)
    shown = f"Being shown above an equal is worth {number(largest, 3)} {word}"
    examined = look.ranking.columns.examined is not None
    if clear and look.part.mode != SYMMETRIC.name and not examined:
        sentence = f"{shown}, and {look.part.mode} pairs carry it."
        modes = Verbatim("['symmetric', 'matched']")
        return Finding(name, CAUTION, sentence, look.again(pairing_modes=modes))
    return Finding(name, OK, f"{shown}." if clear else "No effect of place is clear.")


def check_other_rules(look: Look) -> Finding | None:
    """Say that outcomes of a log with places belong to the list as it was shown."""
    ranking, name = look.need_rows(), "other rules"
    others = [rule for rule in look.options.get("scoring_rules", []) if rule != "baseline"]
    if ranking.position is None or ranking.columns.examined is not None or not others:
        return None
    sentence = (
        "Outcomes were collected in the list as it was shown: of other scoring rules they say what "
        "items got there, not what they would get."
    )
    return Finding(name, CAUTION, sentence, look.again(scoring_rules=None))


HEAVY_TAIL = 0.2


def check_tails(look: Look) -> Finding | None:
    """Say where one query makes up much of the variance without having many of the pairs."""
    name = "outcome tails"
    heavy = look.of_cells("heavy_share")
    share = look.of_cells("largest_query_share")
    known = {g: v for g, v in heavy.items() if math.isfinite(v)}
    if not known:
        return None
    if look.ranking is not None and len(np.unique(look.ranking.outcome[look.sample.rows])) <= 2:
        return Finding(name, OK, "The outcome has two values, and no tail.")
    tails = [g for g, v in known.items() if v > HEAVY_TAIL and share.get(g, 0.0) < HEAVY_QUERY]
    if not tails:
        return Finding(name, OK, "No single query makes up much of the variance.")
    group = max(tails, key=known.__getitem__)
    sentence = (
        f"One query makes up {shown_share(known[group])} of the variance of group {quoted(group)} "
        f"with {shown_share(share[group])} of its pairs: outcomes have a long tail."
        f"{and_more(len(tails) - 1)}"
    )
    if look.options.get("contrast") == "sign" or look.options.get("outcome_cap") is not None:
        return Finding(name, CAUTION, sentence, "Look at the largest outcomes of that group.")
    return Finding(name, CAUTION, sentence, look.again(contrast="sign", tolerance=None))


def check_complements(look: Look) -> Finding | None:
    """Say where a group and all the others are both flagged, which is one finding."""
    ranking, name = look.need_rows(), "complements"
    flagged = {cell.group: cell.verdict for cell in look.part.having(*DIRECTIONS)}
    members = {group: ranking.member(group) for group in flagged} if len(flagged) > 1 else {}
    for one, inside in members.items():
        for other, also in members.items():
            if one < other and (inside != also).all():
                if flagged[one] == flagged[other]:
                    sentence = (
                        f"Group {quoted(one)} is everything outside {quoted(other)}, and both are "
                        f"{flagged[one]}, which cannot be: their thresholds differ."
                    )
                    return Finding(name, CAUTION, sentence, look.again(groups=[one]))
                said = f"{quoted(one)} and {quoted(other)} are each other's complement"
                return Finding(name, OK, f"{said}: their two findings are one.")
    return Finding(name, OK, "No two flagged groups are each other's complement.")
