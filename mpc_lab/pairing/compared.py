"""A log on the terms of an audit: scores on the scale of distances, the contrast, the partners.

A scoring rule comes first and makes a log; terms are applied to that log, and what they return is
a log again, so that every sum, list and question is about the same pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.pairing.kernels import kernel
from mpc_lab.pairing.log import Log, keep_rows, sort_rows
from mpc_lab.pairing.terms import PERCENTILE, QUERY_SD, SIGN, Terms
from mpc_lab.vocabulary import Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


def apply_terms(terms: Terms, log: Log, logged: Log) -> Log:
    """Return the log of a rule with its scores on the scale of distances, and the contrast.

    The order of rows does not change. Whom a group is compared with is up to `only_against`.

    Parameters
    ----------
    terms : Terms
    log : Log
        Under the scores of a rule.
    logged : Log
        The same queries under the logged scores.
    """
    if terms.closeness == QUERY_SD:
        log = _divide(log, spread_of_queries(logged.starts, logged.score))
    elif terms.closeness == PERCENTILE:
        log = replace(log, score=percentiles(log.starts, log.score))
    return replace(log, sign=terms.contrast == SIGN, estimand=terms.estimand)


def compare_group(
    ranking: Ranking, group: str, scores: Floats | None, terms: Terms
) -> tuple[Log, Log]:
    """Return the log of one group under a rule on some terms, and the whole log before them.

    Parameters
    ----------
    ranking : Ranking
    group : str
        The only group of the logs.
    scores : float64 array or None
        Scores of a rule; None for the logged scores.
    terms : Terms
    """
    masks = ranking.member(group).astype(np.uint64)[None]
    whole = sort_rows(ranking, scores, masks)
    if terms.are_default:
        return whole, whole
    by_logged = terms.closeness == QUERY_SD and scores is not None
    log = apply_terms(terms, whole, sort_rows(ranking, masks=masks) if by_logged else whole)
    if terms.against is not None:
        # Rows of queries without any spread are gone already.
        log = only_against(log, 0, ranking.member(terms.against)[log.row])
    return log, whole


def only_against(log: Log, group: int, other: Flags) -> Log:
    """Return a log with one group and only those other rows that it is compared with.

    Parameters
    ----------
    log : Log
    group : int
        Where the group is in the masks; it is the only group of the new log.
    other : bool array (row of the log,)
        The members of the group that it is compared with.
    """
    member = (log.masks[group // 64] >> np.uint64(group % 64)) & np.uint64(1)
    return keep_rows(replace(log, masks=member[None]), (member != 0) | other)


def spread_of_queries(starts: Ints, score: Floats) -> Floats:
    """Return the population standard deviation of the scores of each query.

    Every engine sums in the order of the sorted rows, so that all find the same number.
    """
    found = np.zeros(len(starts) - 1)
    _spread(starts, score, found)
    return found


def percentiles(starts: Ints, score: Floats) -> Floats:
    """Return (rank − ½)/n of each row in its query, 1 being the lowest; ties share their mean rank.

    The number of half ranks is exact, and 1/(2n) is cut to so many bits that each of its multiples
    is exact too: two rows that are as many ranks apart as two others have the same distance.
    """
    size = np.maximum(np.diff(starts), 1)
    fraction, exponent = np.frexp(1.0 / (2.0 * size))
    bits = 53 - np.ceil(np.log2(2.0 * size)).astype(np.int64)
    step = np.ldexp(np.floor(np.ldexp(fraction, bits)), exponent - bits)
    found = np.empty(len(score))
    _half_ranks(starts, score, found)
    return np.asarray(found * np.repeat(step, np.diff(starts)))


def _divide(log: Log, spread: Floats) -> Log:
    """Divide scores by the spread of their query, and leave queries without any out."""
    size = np.diff(log.starts)
    apart = np.repeat(spread > 0, size)
    log = log if apart.all() else keep_rows(log, apart)
    return replace(log, score=log.score / np.repeat(spread, np.diff(log.starts)))


@kernel
def _spread(starts: Ints, score: Floats, found: Floats) -> None:
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        if end - start < 2 or score[start] == score[end - 1]:
            continue
        # Taken from the lowest and in units of the range: nothing overflows or vanishes.
        low, n = score[start], end - start
        width = score[end - 1] - low
        total = 0.0
        for row in range(start, end):
            total += (score[row] - low) / width
        squares = 0.0
        for row in range(start, end):
            apart = (score[row] - low) / width - total / n
            squares += apart * apart
        found[q] = width * np.sqrt(squares / n)


@kernel
def _half_ranks(starts: Ints, score: Floats, found: Floats) -> None:
    """Write twice the rank less 1: how many rows are below, twice, and how many are tied."""
    for q in range(len(starts) - 1):
        first = starts[q]
        while first < starts[q + 1]:
            last = first + 1
            while last < starts[q + 1] and score[last] == score[first]:
                last += 1
            for row in range(first, last):
                found[row] = (first - starts[q]) + (last - starts[q])
            first = last
