"""Checks of an audit: what its outcomes are like, and what its pairs rest on.

Each takes a :class:`Look` with an audit (and with rows, unless they stayed elsewhere) and returns a
:class:`Finding`, or None where its question does not arise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from mpc_lab.results.base import read_complements
from mpc_lab.results.preflight.look import (
    CAUTION,
    DIRECTION,
    FEWEST_PAIRS,
    HEAVY_QUERY,
    OK,
    STOP,
    Finding,
    Look,
    and_more,
    shown_label,
    shown_share,
)
from mpc_lab.results.recipe import Verbatim
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import listing, number, plural, quote
from mpc_lab.vocabulary import AGAINST as RUN_AGAINST
from mpc_lab.vocabulary import COMPLEMENT, DIRECTIONS, SYMMETRIC, Floats, Ints

# ---- do high scores go with high outcomes?

AGAINST = -4.0  # standard errors
WEAKEST = -0.02
FEWEST_QUERIES = 5
_FALLS = "the outcome falls as the score rises, as it would if the score were a distance or a rank"


def check_direction(look: Look) -> Finding | None:
    """Say where the outcome falls as the score rises, within queries or among close items."""
    name, ranking = DIRECTION, look.ranking
    if ranking is None:
        return _direction_of_close(look)
    at = look.sample
    outcome = _ranks(ranking.outcome[at.rows], at.query)
    score = _ranks(look.scores, at.query)
    # Every query counts the same, so that one long list does not decide.
    spread = np.sqrt(np.bincount(at.query, score**2) * np.bincount(at.query, outcome**2))
    known = spread > 0
    each = np.bincount(at.query, score * outcome)[known] / spread[known]
    if len(each) < FEWEST_QUERIES:
        return _direction_of_close(look)
    correlation, error = float(each.mean()), float(each.std()) / math.sqrt(len(each))
    z = correlation / error if error > 0 else math.copysign(math.inf, correlation)
    word = outcome_word(look.options)
    shown = f"Within queries the rank correlation of score and {word} is {correlation:.2f}"
    if z < AGAINST and correlation < WEAKEST:
        ascending = bool(ranking.columns.ascending)
        sentence = f"{shown}: {_FALLS}."
        return Finding(name, STOP, sentence, look.again(ascending=not ascending))
    if z >= -AGAINST:
        return _reversed_among_close(look, shown) or Finding(name, OK, f"{shown}.")
    return _direction_of_close(look) or Finding(name, OK, f"{shown}.")


def _run_against(look: Look) -> list[str]:
    """Return groups with higher outcomes than items just above, and lower than just below."""
    reasons = look.of_cells("verdict_reason")
    return [group for group, reason in reasons.items() if str(reason) == RUN_AGAINST]


def _reversed_among_close(look: Look, shown: str) -> Finding | None:
    """Say where close pairs contradict a score that is the right way up over whole queries."""
    against = _run_against(look)
    if not against:
        return None
    sentence = (
        f"{shown}, but between close items of group {quote(against[0])} and others the outcome "
        f"falls as the score rises.{and_more(len(against) - 1)}"
    )
    remedy = "See what orders items whose scores are nearly equal: it may be a rank or an id."
    return Finding(DIRECTION, CAUTION, sentence, remedy)


def _direction_of_close(look: Look) -> Finding | None:
    """Say where items do not get what their scores promise on either side of a tie."""
    against = _run_against(look)
    if not against:  # close pairs would show this from a steep slope alone
        return None
    sentence = f"In group {quote(against[0])} {_FALLS}.{and_more(len(against) - 1)}"
    ascending = bool(look.columns.get("ascending"))
    return Finding(DIRECTION, STOP, sentence, look.again(ascending=not ascending))


def _ranks(values: Floats, query: Ints) -> Floats:
    """Return the ranks of values within queries, centred."""
    frame = pd.DataFrame({"query": query, "value": values})
    rank = frame.groupby("query")["value"].rank()
    return np.asarray(rank - rank.groupby(frame["query"]).transform("mean"))


# ---- whose pairs are they?

HEAVY_OWNER = 0.3
MOST_LISTED = 3_000_000


def check_largest_query(look: Look) -> Finding | None:
    """Name the query, or unit, that holds much of the pairs of a group."""
    name = "largest query"
    if look.n_queries == 1:
        return Finding(name, STOP, *_only_query(look))
    pairs, queries = look.of_cells("n_pairs"), look.of_cells("n_queries")
    word = _word_of_clusters(look)
    shares = {
        group: share
        for group, share in look.of_cells("largest_query_share").items()
        if math.isfinite(share) and pairs[group] >= FEWEST_PAIRS
    }
    if not shares:
        return None
    group, share = max(shares.items(), key=lambda entry: entry[1])
    if share < HEAVY_QUERY:
        sentence = f"The largest {word} has {shown_share(share)} of the pairs of {quote(group)}."
        return Finding(name, OK, sentence)
    heavy = [one for one, value in shares.items() if value >= HEAVY_QUERY]
    group = max(heavy, key=pairs.__getitem__)  # a rare group in one query is no news
    share = shares[group]
    counted = "of what is counted" if look.options.get("estimand") != "pairs" else "of the pairs"
    more = ""
    if len(heavy) > 1:
        others = plural(len(heavy) - 1, "other group")
        more = f" One {word} has {shown_share(HEAVY_QUERY)} or more in {others} too."
    said = f"has {shown_share(share)} {counted} of group {quote(group)}.{more}"
    who = _largest_query(look, group)
    if (remedy := _share_units(look)) is not None:
        return Finding(name, CAUTION, f"{who.named} {said}", remedy, f"{who.numbered} {said}")
    if look.options.get("estimand", "pairs") == "pairs" and queries[group] * HEAVY_QUERY > 1:
        remedy = look.again(estimand="queries")
        return Finding(name, CAUTION, f"{who.named} {said}", remedy, f"{who.numbered} {said}")
    remedy = f"Look at the rows of that {word}; then decide whether they belong in the log"
    return Finding(
        name,
        CAUTION,
        f"{who.named} {said}",
        f"{remedy}{f': {who.rows}' if who.rows else ''}.",
        f"{who.numbered} {said}",
        f"{remedy}.",
    )


def _word_of_clusters(look: Look) -> str:
    return "query" if look.columns.get("unit") is None else "unit"


def _share_units(look: Look) -> str | None:
    """Return how to make units with many queries count like others; None where that does not help.

    The estimand ``queries`` does not do it: a unit then counts as many times as it has queries.
    """
    query, unit, weight = (look.columns.get(name) for name in ("query", "unit", "weight"))
    few = look.ranking is not None and look.ranking.n_units * HEAVY_QUERY <= 1
    if unit is None or weight is not None or few:
        return None
    words = (
        "Give weight=, for each query 1 over the number of queries of its unit, so that every "
        "unit counts alike."
    )
    if not (isinstance(query, str) and isinstance(unit, str)):
        return words
    share = f"1 / frame.groupby({unit!a})[{query!a}].transform('nunique')"
    return look.again_of(f"frame.assign(unit_share={share})", words, weight="unit_share")


def _only_query(look: Look) -> tuple[str, str]:
    """Say that the log has a single query, and what to do."""
    column = look.columns.get("query")
    sentence = (
        "The log has one query, so it cannot show how much gaps differ between queries, which is "
        "what an interval measures."
    )
    return sentence, f"Name a column with several values as query; got query={column!a}."


@dataclass(frozen=True)
class _Heavy:
    """A query, or unit, with many pairs.

    Attributes
    ----------
    named, numbered : str
        By its id, for the screen, and by its place in the log, for files.
    rows : str
        Python for its rows; empty where the log is not a pandas frame.
    """

    named: str = "One query"
    numbered: str = "One query"
    rows: str = ""


def _largest_query(look: Look, group: str) -> _Heavy:
    """Find the query, or unit, with most pairs of a group."""
    codes = _list(look, group)
    if codes is None or look.ranking is None:
        one = f"One {_word_of_clusters(look)}"
        return _Heavy(one, one)
    ranking = look.ranking
    unit = ranking.unit_code
    of_row = ranking.query_code if unit is None else unit
    largest = int(np.bincount(of_row[codes["row_i"]]).argmax())
    total = ranking.n_queries if unit is None else ranking.n_units
    word = "query" if unit is None else "unit"
    labels = ranking.query_labels if unit is None else ranking.unit_labels
    label = labels([largest])[0]
    column = ranking.columns.query if unit is None else ranking.columns.unit
    is_one = isinstance(column, str) and ranking.is_pandas
    return _Heavy(
        f"{word.capitalize()} {shown_label(label)}",
        f"{word.capitalize()} {largest + 1:,} of {total:,}",
        f"frame[frame[{column!a}] == {_plain_value(label)!a}]" if is_one else "",
    )


def _list(look: Look, group: str) -> dict[str, Any] | None:
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
    pairs = look.of_cells("n_pairs")
    suspects = sorted(
        (g for g, v in bounds.items() if v >= HEAVY_OWNER and pairs[g] >= FEWEST_PAIRS),
        key=bounds.__getitem__,
    )
    worst: tuple[float, str, int] | None = None
    for group in suspects[::-1][:3]:
        listed = _list(look, group)
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
    shown = label if owner == "producer" else ranking.item_names([code])[0]
    sentence = (
        f"{owner.capitalize()} {shown_label(shown)} is in {shown_share(share)} of the pairs of "
        f"group {quote(group)}: the finding is largely about it."
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
    # The pairs of a mode of two sides are those below and those above a tie.
    row = modes.index("matched" if look.part.mode == SYMMETRIC.name else look.part.mode)
    pairs = np.maximum(moments.pairs[row, :, 0], 1)
    bounds = np.sqrt(np.maximum(squares.cc[row, :, 0], 0)) / pairs
    return dict(zip(audit.groups, np.minimum(bounds, 1.0).tolist(), strict=True))


# ---- are outcomes complete?

SLICES = 20
YOUNG = 0.8  # share of the earlier mean outcome
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
        f"{number(float(sums[-young:].mean()), 3)}; before that it was {number(before, 3)}. Some "
        "outcomes may not have arrived yet."
    )
    rows = f"frame[frame[{ranking.columns.time!a}] < {cut}]"
    words = f"Audit again the rows whose {ranking.columns.time} is before {cut}."
    return Finding(name, CAUTION, sentence, look.again_of(rows, words))


def _time_of(ranking: Any, row: int) -> str:
    value = ranking.column(ranking.columns.time)[row]
    if isinstance(value, np.datetime64 | pd.Timestamp):
        return f"{str(pd.Timestamp(value))!a}"
    return ascii(_plain_value(value))


# ---- places, tails, complements

CLEAR = 0.01


def check_place_effect(look: Look) -> Finding | None:
    """Say where a higher place raises outcomes and the gap of the leading mode includes that."""
    name = "effect of place"
    p_values = [p for p in look.of_cells("place_effect_p_value").values() if math.isfinite(p)]
    if not p_values or look.columns.get("position") is None:
        return None
    clear = min(p_values) * len(p_values) < CLEAR
    effects = look.of_cells("place_effect")
    largest = max((v for v in effects.values() if math.isfinite(v)), key=abs, default=0.0)
    word = outcome_word(look.options)
    side = "higher" if largest > 0 else "lower"
    shown = f"{word} is {number(abs(largest), 3)} {side} for a tied item shown above the other"
    examined = look.columns.get("examined") is not None
    if clear and look.part.mode != SYMMETRIC.name and not examined:
        sentence = (
            f"{shown}, and the gap of {look.part.mode} pairs includes this effect. That of "
            "symmetric pairs does not; nor does any gap with examined=, where it is known how "
            "often each place is looked at."
        )
        modes = Verbatim("['symmetric', 'matched']")
        return Finding(name, CAUTION, sentence, look.again(pairing_modes=modes))
    return Finding(name, OK, f"{shown}." if clear else "No effect of place is clear.")


def check_other_rules(look: Look) -> Finding | None:
    """Say that outcomes of a log with places belong to the list as it was shown."""
    name, columns = "other rules", look.columns
    others = [rule for rule in look.options.get("scoring_rules", []) if rule != "baseline"]
    if columns.get("position") is None or columns.get("examined") is not None or not others:
        return None
    sentence = (
        "Outcomes were collected in the list as it was shown, not in the order of "
        f"{listing([quote(rule) for rule in others], 4)}."
    )
    return Finding(name, CAUTION, sentence, look.again(scoring_rules=None))


HEAVY_TAIL = 0.2
TAIL_BY_CHANCE = 0.001  # the largest share of logs without a tail in which this may happen


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
    limits = _heaviest_by_chance(look, len(known))
    tails = [
        g
        for g, v in known.items()
        if v > max(HEAVY_TAIL, limits[g]) and share.get(g, 0.0) < HEAVY_QUERY
    ]
    if not tails:
        return Finding(name, OK, "No single query makes up more of the variance than by chance.")
    group = max(tails, key=known.__getitem__)
    sentence = (
        f"One query makes up {shown_share(known[group])} of the variance of group {quote(group)} "
        f"with {shown_share(share[group])} of its pairs: outcomes have a long tail."
        f"{and_more(len(tails) - 1)} Signs do not see it, and outcome_cap= cuts it."
    )
    if look.options.get("contrast") == "sign" or look.options.get("outcome_cap") is not None:
        return Finding(name, CAUTION, sentence, "Look at the largest outcomes of that group.")
    return Finding(name, CAUTION, sentence, look.again(contrast="sign", tolerance=None))


def _heaviest_by_chance(look: Look, n_groups: int) -> dict[str, float]:
    """Return, for each group, the share of variance that the largest of few queries seldom exceeds.

    For n normal sums, less their mean, the probability that the largest square is more than the
    share c of all squares is at most n times that of a Beta(1/2, n/2 - 1) above c n/(n - 1)
    (Grubbs). Among a dozen pairs, one always has a large share.
    """
    queries = look.of_cells("n_queries")
    if look.options.get("cluster") == "query":
        of_pairs = look.of_cells("n_effective")
        queries = {g: min(n, of_pairs.get(g, n)) for g, n in queries.items()}
    n = np.maximum(np.nan_to_num(list(queries.values()), nan=1.0), 2.5)
    beyond = np.minimum(TAIL_BY_CHANCE / (n * n_groups), 1.0)
    limits = (n - 1) / n * betaincinv(0.5, n / 2 - 1, 1 - beyond)
    return dict(zip(queries, limits.tolist(), strict=True))


def check_complements(look: Look) -> Finding | None:
    """Say where a group and all other items are both flagged, which is one finding, not two."""
    if look.audit is None:
        return None
    name, reasons = "complements", look.of_cells("verdict_reason")
    directions = {cell.group: cell.verdict for cell in look.part.having(*DIRECTIONS)}
    groups = look.audit.groups
    for one, other in [(groups[a], groups[b]) for a, b in read_complements(look.audit)[0]]:
        if {str(reasons[one]), str(reasons[other])} == {COMPLEMENT}:
            sentence = (
                f"Group {quote(one)} is everything outside {quote(other)}, and both would get "
                "the same direction, which cannot be true of both: their thresholds differ."
            )
            return Finding(name, CAUTION, sentence, look.again(groups=[one]))
        if one in directions and other in directions:
            said = f"{quote(one)} and {quote(other)} are each other's complement"
            return Finding(name, OK, f"{said}: their two findings are one.")
    return Finding(name, OK, "No two groups contradict each other as complements.")
