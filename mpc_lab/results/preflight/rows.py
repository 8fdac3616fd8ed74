"""Checks of the rows alone: labels, ids, scores, lists and places, never outcomes.

Each takes a :class:`Look` with rows and returns a :class:`Finding`, or None where its question does
not arise. Thresholds are beside the check that uses them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mpc_lab.ranking.columns import open_table, pandas_frame
from mpc_lab.ranking.names import guess_columns
from mpc_lab.results.preflight.look import (
    CAUTION,
    OK,
    STOP,
    Finding,
    Look,
    Sample,
    and_more,
    close_pairs,
    line_up,
    shown_share,
)
from mpc_lab.results.questions.power import threshold_of
from mpc_lab.results.recipe import Verbatim
from mpc_lab.results.wording import missing_rows
from mpc_lab.text import between, listing, plural, quote, two_digits
from mpc_lab.vocabulary import SYMMETRIC, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

# ---- labels

SEPARATORS = ("|", ";", ",", "/")
JOINED_SHARE = 0.2  # share of the labels that hold a separator
FEWEST_LABELS = 5
NUMBERS_SHARE = 0.9  # share of the labels that are numbers, most of them with decimals
ROWS_A_LABEL = 3.0


def check_labels(look: Look) -> Finding:
    """Look for labels that are several in one, numbers, unique, or spelt in two ways."""
    name, groups, column = "labels", look.groups, look.columns.get("group")
    fine = f"Names of groups look like labels ({plural(len(groups), 'group')})."
    if whole := _whole_groups(look):
        return Finding(name, STOP, *whole)
    if not isinstance(column, str):
        return Finding(name, OK, fine)
    said, words, rows = [], [], "frame"
    changes: dict[str, Any] = {"groups": None}
    labels, state = groups, CAUTION
    separator, joined = (None, 0) if look.columns.get("group_sep") else _separator(groups)
    if separator:
        said.append(
            f"{joined:,} of {len(groups):,} groups have {quote(separator)} in their name: they "
            "are probably several labels each."
        )
        changes["group_sep"] = separator
        labels = tuple({part.strip() for label in groups for part in label.split(separator)})
    measured = _numbers_with_decimals(groups)
    if len(groups) >= FEWEST_LABELS and len(measured) >= NUMBERS_SHARE * len(groups):
        said.append(
            f"{len(measured):,} of {len(groups):,} groups are numbers such as {measured[0]}."
        )
        # Texts that are not numbers, and missing values, get no band.
        values = f"pd.to_numeric(frame[{column!a}], errors='coerce')"
        bands = f"pd.qcut({values}, 4, duplicates='drop').astype('string')"
        rows = f"frame.assign(group_in_four={bands})"
        words.append(f"Cut {column} into a few bands before the audit.")
        changes["group"] = "group_in_four"
    if len(labels) >= FEWEST_LABELS and look.n_rows < ROWS_A_LABEL * len(labels):
        said.append(
            f"{look.n_rows:,} rows have {len(labels):,} different labels: this column is "
            "probably an id, which leaves nothing to compare."
        )
        # Bands of numbers are labels that many rows share.
        state = CAUTION if "group" in changes else STOP
    alike = _spelt_twice(labels)
    if alike:
        shown = listing([" and ".join(map(repr, pair)) for pair in alike], 3)
        said.append(f"Some labels differ only in case or in blanks: {shown}.")
        tidy = f"frame[{column!a}].str.lower().str.split().str.join(' ')"
        rows = f"frame.assign(**{{{column!a}: {tidy}}})"
        words.append(f"Strip the blanks of {column}, and write it in small letters.")
    if not said:
        return Finding(name, OK, fine)
    if state == STOP:
        remedy = "Name a column of labels that many rows share."
    elif words:
        words += [f"Give group_sep={separator!r}."] if separator else []
        remedy = look.again_of(rows, " ".join(words), **changes)
    else:
        remedy = look.again(**changes)
    return Finding(name, state, " ".join(said), remedy)


def _whole_groups(look: Look) -> tuple[str, str] | None:
    """Report groups that hold every row, which leaves nothing outside to compare with."""
    whole = look.whole_groups
    if not whole:
        return None
    asked = look.groups if look.audit is None else tuple(look.audit.groups)
    named = listing([quote(group) for group in whole], 4)
    verb = "Group" if len(whole) == 1 else "Groups"
    has = "has" if len(whole) == 1 else "have"
    rest = [group for group in asked if group not in whole]
    sentence = f"{verb} {named} {has} every row: no item is outside to compare with."
    if rest and look.audit is not None:
        return sentence, look.again(groups=rest)
    return sentence, "Give a group column with other values too."


def _separator(groups: tuple[str, ...]) -> tuple[str | None, int]:
    """Return what joins labels in many names of groups, and in how many."""
    for mark in SEPARATORS:
        joined = [label for label in groups if mark in label.strip(mark)]
        parts = Counter(part.strip() for label in joined for part in label.split(mark))
        recur = len(parts) < sum(parts.values())  # parts that occur only once make up a name
        if joined and max(parts.values()) == len(groups) > 1:
            continue  # and a part of every label would be a group of all rows
        if mark == "," and not _are_lists(groups, joined):
            continue
        often = recur and len(joined) >= JOINED_SHARE * len(groups)
        known = set(parts) <= {label.strip() for label in groups}  # parts that are groups too
        if joined and (often or known):
            return mark, len(joined)
    return None, 0


def _are_lists(groups: tuple[str, ...], joined: list[str]) -> bool:
    """Whether most names have two parts that others share; "Shoes, black" may share one."""
    split = {label: {part.strip() for part in label.split(",")} for label in groups}
    known = Counter(part for found in split.values() for part in found)
    lists = [label for label in joined if sum(known[part] > 1 for part in split[label]) > 1]
    return 2 * len(lists) >= len(joined)


def _numbers_with_decimals(groups: tuple[str, ...]) -> list[str]:
    """Return the labels that are numbers, those with decimals first; none if these are few."""
    known = [(label, value) for label in groups if (value := _as_number(label)) is not None]
    decimals = [label for label, value in known if value != math.floor(value)]
    if 2 * len(decimals) <= len(known):  # years and stars are sometimes written like this
        return []
    return [*decimals, *(label for label, value in known if value == math.floor(value))]


def _as_number(label: str) -> float | None:
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _spelt_twice(groups: tuple[str, ...]) -> list[list[str]]:
    by_letters: dict[str, list[str]] = {}
    for label in groups:
        by_letters.setdefault(" ".join(label.lower().split()), []).append(label)
    return [labels for labels in by_letters.values() if len(labels) > 1]


# ---- ids


def check_item(look: Look) -> Finding:
    """Say whether items can be recognised in several queries."""
    name, ranking = "items", look.ranking
    if ranking is None:
        return _item_of_walked(look)
    if ranking.item_code is not None:
        times = ranking.n_rows / ranking.n_items
        shown = "once" if times == 1 else f"{times:.3g} times on average"
        return Finding(name, OK, f"{plural(ranking.n_items, 'item')}, shown {shown}.")
    column = _guess(ranking, "item")
    if column is None:
        return _no_item()
    sentence = f"{_NO_ITEM}; column {quote(str(column))} looks like it."
    return Finding(name, CAUTION, sentence, look.again(item=column, cluster=None))


_NO_ITEM = "No column says which rows are the same item, so that intervals ignore what items share"


def _no_item() -> Finding:
    return Finding("items", OK, f"{_NO_ITEM}; this is right only where no item is shown twice.")


def _item_of_walked(look: Look) -> Finding:
    if look.columns.get("item") is None:
        return _no_item()
    return Finding("items", OK, f"Items are known by column {quote(str(look.columns['item']))}.")


OWNED_ITEMS = 2.0  # items of an owner, on average
FEWEST_OWNERS = 10
FEWEST_EFFECTIVE = 3.0


def check_producers(look: Look) -> Finding | None:
    """Look for a column of owners: constant for an item, and with one group for each owner."""
    ranking, name = look.need_rows(), "producers"
    if ranking.item_code is None:
        return None
    if ranking.producer_code is not None:
        return Finding(name, OK, f"{ranking.n_producers:,} producers are taken into account.")
    first = np.full(ranking.n_items, -1, dtype=np.int64)
    first[ranking.item_code[::-1]] = np.arange(ranking.n_rows)[::-1]
    for column in _free_columns(ranking):
        found = _owners(ranking, column, first)
        if found is not None:
            owners, items = found
            sentence = (
                f"Column {quote(str(column))} looks like the owner of the items: {owners:,} of "
                f"them have {items:.3g} items each, all in the same groups. What an owner's items "
                "share is not in the intervals."
            )
            return Finding(name, CAUTION, sentence, look.again(producer=column, cluster=None))
    return Finding(name, OK, "No other column looks like the owner of the items.")


def _owners(ranking: Ranking, column: Hashable, first: Ints) -> tuple[int, float] | None:
    """Return the number of owners in a column, and of their items, if it looks like owners."""
    values = pd.Series(ranking.column(column))
    if not (pd.api.types.is_integer_dtype(values) or pd.api.types.is_string_dtype(values)):
        return None
    of_item, owners = pd.factorize(values.iloc[first], use_na_sentinel=True)
    n_owners = len(owners)
    if n_owners < FEWEST_OWNERS or (of_item < 0).any() or len(of_item) < OWNED_ITEMS * n_owners:
        return None
    item = ranking.item_code
    if item is None or (owners[of_item[item]] != values.to_numpy()).any():
        return None
    masks = ranking.masks[:, first]
    of_owner = np.zeros((len(masks), n_owners), dtype=masks.dtype)
    of_owner[:, of_item] = masks
    if (of_owner[:, of_item] != masks).any():
        return None
    sizes = np.bincount(of_item, minlength=n_owners).astype(float)
    for group in range(len(ranking.groups)):
        bit = of_owner[group // 64] >> np.uint64(group % 64) & np.uint64(1)
        own = sizes[bit == 1]
        if own.sum() ** 2 < FEWEST_EFFECTIVE * (own**2).sum() or not len(own):
            return None
    return n_owners, len(of_item) / n_owners


def _free_columns(ranking: Ranking) -> list[Hashable]:
    """Return the columns that were read and play no role."""
    taken = _taken(ranking)
    return [name for name in ranking.table_columns if name not in taken]


def _taken(ranking: Ranking) -> set[Any]:
    taken: set[Any] = set()
    for value in ranking.columns.given().values():
        taken.update(value if isinstance(value, tuple | list) else [value])
    return taken


def _guess(ranking: Ranking, role: str) -> Hashable | None:
    """Return the free column whose name and first rows suggest a role."""
    found = guess_columns(ranking.glimpse()).get(role)
    return None if found in _taken(ranking) else found


# ---- lists

CUT_SHARE = 0.2  # share of the lists that have the longest length
FEWEST_LENGTHS = 5
SPIKE = 4.0  # times as many lists as at the next lengths


def check_cut_lists(look: Look) -> Finding:
    """Look for an excess of lists at the longest length of all: they were probably cut there."""
    ranking, name = look.need_rows(), "list lengths"
    # Rows that were left out would turn lists that all had one length into such an excess.
    left_out = look.left_out
    query = ranking.query_code if left_out is None else left_out.query
    sizes = np.bincount(query)
    counts = np.bincount(sizes[sizes > 0])
    lengths = np.flatnonzero(counts)
    longest, at_longest = int(lengths[-1]), int(counts[lengths[-1]])
    share = at_longest / int(counts.sum())
    others = float(counts[lengths[:-1]].mean()) if len(lengths) > 1 else math.inf
    if len(lengths) >= FEWEST_LENGTHS and share >= CUT_SHARE and at_longest >= SPIKE * others:
        sentence = (
            f"{shown_share(share)} of the lists have exactly {longest:,} rows, the longest there "
            "is: they were probably cut there, and what was cut off is not compared."
        )
        remedy = "Log the whole lists; or say in the report that the audit is about their tops."
        return Finding(name, CAUTION, sentence, remedy)
    return Finding(name, OK, f"Lists have {between([int(lengths[0]), longest], ',')} rows.")


REPEATED_SHARE = 0.02
BEYOND_ALIKE = 2.0  # times the share of equal lists when rows are assigned at random


def check_repeated_lists(look: Look) -> Finding:
    """Look for lists that were logged twice under different query ids."""
    ranking, name = look.need_rows(), "repeated lists"
    rng = np.random.default_rng(0)
    if ranking.item_code is not None:
        mark = rng.random(ranking.n_items)[ranking.item_code]
    else:
        mark = rng.random(1 << 16)[ranking.masks[0] & np.uint64(0xFFFF)]
    crossed = mark * (1.0 + ranking.score / look.scale)
    share = _repeated_share(ranking.query_code, mark, crossed)
    if share >= REPEATED_SHARE:
        # With few grades and no ids, unrelated lists can be equal.
        order = rng.permutation(ranking.n_rows)
        chance = _repeated_share(ranking.query_code, mark[order], crossed[order])
        share = share if share >= REPEATED_SHARE + BEYOND_ALIKE * chance else 0.0
    if share >= REPEATED_SHARE:
        sentence = (
            f"{shown_share(share)} of the lists repeat an earlier one item by item and score by "
            "score, as where a page is reloaded or a day is logged twice."
        )
        remedy = "Leave out the copies, or give unit= a column that copies share."
        return Finding(name, CAUTION, sentence, remedy)
    return Finding(name, OK, "Lists differ from each other.")


def _repeated_share(query: Ints, mark: Floats, crossed: Floats) -> float:
    """Return the share of lists with 3 rows or more that have the sums of an earlier list."""
    size = np.bincount(query)
    long = size >= 3
    sums = {"a": np.bincount(query, mark), "b": np.bincount(query, crossed), "n": size}
    seen = pd.DataFrame({name: values[long] for name, values in sums.items()})
    return float(seen.duplicated().mean()) if long.any() else 0.0


# ---- scores

TIED_SHARE = 0.5
FEWEST_VALUES = 50


def check_coarse_scores(look: Look) -> Finding | None:
    """Say where most close pairs are exact ties, because scores were rounded or are classes."""
    name, ranking = "score steps", look.ranking
    if ranking is None:
        return _steps_of_walked(look)
    if ranking.columns.is_rank_only:
        return None
    keys = line_up(look.scores, look.sample)
    ties, close = int(close_pairs(keys, 0.0).sum()), int(close_pairs(keys, _near(look, keys)).sum())
    values = len(np.unique(look.scores))
    if values == 1:
        sentence = "All scores are the same: nothing is ranked by them, and every pair is a tie."
        return Finding(name, STOP, sentence, "Check the column of the score.")
    share = ties / close if close else 0.0
    if share >= TIED_SHARE and values < FEWEST_VALUES:
        sentence = (
            f"Scores have {values:,} different values, and {shown_share(share)} of the close pairs "
            "are exact ties: a smaller threshold cannot bring pairs closer together."
        )
        return Finding(name, CAUTION, sentence, "Log the score before it is rounded.")
    return _split_step(look) or Finding(
        name, OK, f"{shown_share(share)} of the close pairs are exact ties."
    )


SPLIT_SHARE = 0.03
_LAST_BITS = 1e-9  # of a distance: more than the error of a float64 subtraction, less than a step


def _split_step(look: Look) -> Finding | None:
    """Say where scores that are epsilon apart as written are more than that as float64.

    0.53 - 0.5 is a little more than 0.03, and so is 0.33 - 0.3: with scores in hundredths, some
    pairs that are exactly as far apart as the threshold are left out because of their last bits.
    """
    options = look.options
    if options.get("closeness", "score") != "score" or look.audit is None:
        return None
    epsilon = threshold_of(options)
    if not isinstance(epsilon, float) or epsilon <= 0 or look.part.rule != "baseline":
        return None
    values, count = np.unique(look.need_rows().score[look.sample.rows], return_counts=True)
    first = np.searchsorted(values, values + epsilon * (1 - _LAST_BITS))
    at = np.flatnonzero(first < len(values))
    far = values[first[at]] - values[at]
    over = at[(far > epsilon) & (far <= epsilon * (1 + _LAST_BITS))]
    below = np.concatenate([[0], np.cumsum(count)])
    close = count * (below[first] - below[np.arange(len(values))])
    lost = float((count[over] * count[first[over]]).sum())
    if not lost or lost < SPLIT_SHARE * (lost + float(close.sum())):
        return None
    low = over[np.argmax(count[over] * count[first[over]])]
    steps = np.diff(values)
    step = float(steps[steps > epsilon * _LAST_BITS].min())
    sentence = (
        f"Scores {epsilon:g} apart are at the threshold, and some count as further apart, for "
        f"the last bits of their difference: {values[first[low]]:g} less {values[low]:g} is "
        f"{values[first[low]] - values[low]:.17g}."
    )
    beyond = float(f"{epsilon + step / 2:.6g}")
    return Finding("score steps", CAUTION, sentence, look.again(threshold=beyond))


def _steps_of_walked(look: Look) -> Finding | None:
    """Say how many pairs are within a threshold for each one that was wanted there."""
    known = {g: v for g, v in look.of_cells("tie_inflation").items() if math.isfinite(v)}
    if not known or look.columns.get("score") is None:
        return None
    group, times = max(known.items(), key=lambda entry: entry[1])
    said = f"The threshold has {two_digits(times)} times the pairs that were wanted in group"
    if times * (1 - TIED_SHARE) >= 1:
        sentence = f"{said} {quote(group)}, because so many scores are exact ties."
        return Finding("score steps", CAUTION, sentence, "Log the score before it is rounded.")
    return Finding("score steps", OK, f"{said} {quote(group)}.")


def _near(look: Look, keys: Floats) -> float:
    """Return the distance that counts as close: the audit's, or one that holds 1 % of the pairs."""
    known = [v for v in look.of_cells("epsilon").values() if math.isfinite(v)]
    if known and look.options.get("closeness", "score") == "score":
        return float(np.median(known)) / look.scale
    sizes = look.sample.sizes
    wanted = 0.01 * float((sizes * (sizes - 1) / 2).sum())
    low, high = 0.0, float(np.ptp(keys)) if len(keys) else 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if close_pairs(keys, middle).sum() >= wanted else (middle, high)
    return high


BEYOND_CHANCE = 1.25  # times the ratio that mixed queries show
ERRORS_BEYOND = 1.0  # standard errors above that: few queries may show it by chance
SPREAD_RATIO = 1.5  # ratio of the close pairs of the tightest queries to those of all


def check_spread(look: Look) -> Finding | None:
    """Say where the queries whose scores are closest together give most of the close pairs."""
    ranking, name = look.need_rows(), "score scale"
    closeness = look.options.get("closeness", "score")
    if ranking.columns.is_rank_only or closeness == "percentile":
        return None
    at = look.sample
    rest, deviation = _centre(look.scores, at)
    if ((deviation > 0) & (at.sizes > 1)).sum() < 8:
        return None
    if closeness == "query_sd":
        rest = rest / np.where(deviation > 0, deviation, 1.0)[at.query]
    epsilon = _near_on(look, line_up(rest, at), closeness)
    ratio, error = _tight_ratio(rest, deviation, at, epsilon)
    said = (
        "The quarter of the queries with the least spread of scores has "
        f"{ratio:.1f} times as many close pairs as an average query"
    )
    # In short lists the least spread is small by chance, even where all lists have one scale.
    one_scale = rest / np.where(deviation > 0, deviation, 1.0)[at.query]
    mixed = float(np.sqrt((rest**2).mean())) * np.random.default_rng(0).permutation(one_scale)
    mixed = mixed[np.lexsort((mixed, at.query))]
    chance, _ = _tight_ratio(mixed, _centre(mixed, at)[1], at, epsilon)
    if ratio < max(SPREAD_RATIO, BEYOND_CHANCE * chance + ERRORS_BEYOND * error):
        return Finding(name, OK, f"{said}.")
    sentence = f"{said}: scores are not on one scale, and the audit is mostly about these."
    if look.audit is None:
        return Finding(name, CAUTION, sentence, 'Audit with closeness="query_sd".')
    remedy = look.again(closeness="query_sd", epsilon=None, threshold=None)
    return Finding(name, CAUTION, sentence, remedy)


def _centre(score: Floats, at: Sample) -> tuple[Floats, Floats]:
    """Return scores less the mean of their query, and the standard deviation of each query."""
    rest = score - (np.bincount(at.query, score) / at.sizes)[at.query]
    return rest, np.sqrt(np.bincount(at.query, rest**2) / at.sizes)


def _tight_ratio(
    score: Floats, deviation: Floats, at: Sample, epsilon: float
) -> tuple[float, float]:
    """Return the close share in the quarter with the least spread over that of all, and its error.

    Shares of the pairs of each query, so that a long list counts as much as a short one.
    """
    usable = (deviation > 0) & (at.sizes > 1)
    near = np.bincount(at.query, close_pairs(line_up(score, at), epsilon), minlength=len(at.sizes))
    share = near[usable] / (at.sizes * (at.sizes - 1) / 2.0)[usable]
    tight = share[deviation[usable] <= np.quantile(deviation[usable], 0.25)]
    if not share.any():
        return 1.0, 0.0
    error = tight.std() / math.sqrt(len(tight))
    return float(tight.mean() / share.mean()), float(error / share.mean())


def _near_on(look: Look, keys: Floats, closeness: str) -> float:
    known = [v for v in look.of_cells("epsilon").values() if math.isfinite(v)]
    return float(np.median(known)) if known and closeness == "query_sd" else _near(look, keys)


# ---- places

MOVED_SHARE = 0.05
UNRELATED_SHARE = 0.45


def check_places(look: Look) -> Finding:
    """Say whether places are known, and whether the list was shown in the order of its scores."""
    ranking, name = look.need_rows(), "places"
    if ranking.position is None:
        column = _guess(ranking, "position")
        if column is None or not _are_places(ranking, column):
            sentence = "No column has the place of each row; where outcomes depend on it, give one."
            return Finding(name, OK, sentence)
        sentence = (
            f"Column {quote(str(column))} looks like the place of each row, and is not used: "
            "clicks and views depend on the place."
        )
        changes: dict[str, Any] = {"position": column}
        if look.audit is not None:
            changes["pairing_modes"] = None
        return Finding(name, CAUTION, sentence, look.again(**changes))
    share = _moved_share(look, ranking.position)
    moved = (
        f"Of neighbours in the lists {shown_share(share)} were shown against the order of their "
        "scores"
    )
    if share >= UNRELATED_SHARE:
        sentence = f"{moved}: this score did not rank these lists, or place 1 is not their top."
        return Finding(name, CAUTION, sentence, "Check the columns of score and position.")
    leads = SYMMETRIC.name if look.audit is None else look.part.mode
    if share >= MOVED_SHARE and leads != SYMMETRIC.name and ranking.columns.examined is None:
        sentence = f"{moved}: a later rule moved items, and {leads} pairs read it as a gap."
        modes = Verbatim("['symmetric', 'matched']")
        return Finding(name, CAUTION, sentence, look.again(pairing_modes=modes))
    return Finding(name, OK, f"{moved}.")


def _are_places(ranking: Ranking, column: Hashable) -> bool:
    """Whether the first rows of a column hold whole numbers from 1, each once in a query."""
    query = ranking.columns.query
    named = [*(query if isinstance(query, tuple) else [query]), column]
    head = pandas_frame(open_table(ranking.glimpse()))[named]
    place = pd.to_numeric(head[column], errors="coerce")
    whole = bool(((place >= 1) & (place % 1 == 0)).all())
    return whole and not head.duplicated().any()


def _moved_share(look: Look, position: Ints) -> float:
    """Return the share of neighbours, by place, in which the lower one has the higher score."""
    at = look.sample
    order = np.lexsort((position[at.rows], at.query))
    query, score = at.query[order], look.scores[order]
    together = query[1:] == query[:-1]
    if not together.any():
        return 0.0
    return float((score[1:] > score[:-1])[together].mean())


# ---- rows that were left out

POINTS_APART = 0.02
CHANCE = 0.01


def check_dropped(look: Look) -> Finding | None:
    """Say where rows with a missing value are more common in a group than outside it."""
    name, ranking = "rows left out", look.ranking
    if ranking is None:
        return _left_out_of_walked(look)
    left_out = look.left_out
    if left_out is None:
        return None
    found = list(left_out.compare())
    worst = [
        (abs(inside - outside), group, inside, outside)
        for group, inside, outside, p in found
        if abs(inside - outside) > POINTS_APART and p * len(found) < CHANCE
    ]
    if not worst:
        sentence = (
            f"{missing_rows(ranking.dropped)} left out; no group clearly lost a larger share than "
            "the others."
        )
        return Finding(name, OK, sentence)
    _, group, inside, outside = max(worst)
    sentence = (
        f"Rows with a missing value were left out: {100 * inside:.1f} % of group {quote(group)} "
        f"and {100 * outside:.1f} % of the others. The rows that are left may not be like all rows."
        f"{and_more(len(worst) - 1)}"
    )
    return Finding(name, CAUTION, sentence, "Fill in what is missing, or say why it is missing.")


def _left_out_of_walked(look: Look) -> Finding | None:
    count = int(look.options.get("n_dropped", 0))
    if not count:
        return None
    sentence = f"{missing_rows(count)} left out, not counted by group."
    return Finding("rows left out", OK, sentence)
