"""Lists of clicks whose gap, effect of place and examination are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import check_count, check_number, check_whole
from mpc_lab.ranking import Ranking
from mpc_lab.vocabulary import Floats

ITEMS_PER_LIST = 20
SHARE_IN_GROUP = 0.4
LOWEST, HIGHEST = 0.1, 0.6
LIFT = 0.15
# The first place, and the first distance in places, of each class of a cell.
PLACES, APART = (1, 2, 3, 4, 6, 10, 20), (1, 2, 3, 5, 9)
# The distance that 1 % of the matched pairs are within: their density falls as a triangle does.
FIRST_PERCENTILE = (HIGHEST - LOWEST) * (1 - 0.99**0.5)

_MOST_QUERIES = 10**7
# Pieces of the integrals are polynomials of at most degree 20, which 12 nodes integrate exactly.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
_OTHERS = ITEMS_PER_LIST - 2


def clicks(
    queries: int = 4000,
    seed: int = 0,
    bias: float = 0.05,
    eta: float = 0.7,
    lifted: float = 0.0,
    swapped: float = 0.0,
) -> Ranking:
    r"""Draw lists whose clicks depend on the place, and in which group "a" is undervalued.

    A list has 20 items, each in group "a" with probability 0.4. Its score s is uniform on
    [0.1, 0.6], and it is worth r = s + `bias` in the group and r = s outside. The list is shown in
    the order of the scores; the item at place k is clicked with probability :math:`k^{-\eta} r`.

    Parameters
    ----------
    queries : int
        How many lists to draw.
    seed : int
        Seed of the generator, at least 0; the same seed gives the same log.
    bias : float
        What an item of the group is worth beyond its score, from -0.1 to 0.4.
    eta : float
        How fast attention falls with the place; 0: clicks do not depend on it.
    lifted : float
        The share of the group's items that a later rule lifts by 0.15 before the list is shown.
        The logged score is the one before.
    swapped : float
        The share of neighbours that are flipped at random just before the list is shown. Lists are
        cut into pairs of neighbours, from place 1 or from place 2 on by a coin, and each pair is
        flipped with this probability; column ``block`` numbers the pairs of a list from 1, 0 is a
        row without a partner.

    Returns
    -------
    Ranking
        With positions (column ``place``), the outcome ``clicks`` and the group "a" (column
        ``group``). Every row has an item of its own: lists share no catalogue.

    See Also
    --------
    clicks_truth : what an audit of such a log should find.

    Examples
    --------
    >>> ranking = clicks(queries=100)
    >>> ranking.groups, ranking.n_rows, ranking.columns.position
    (('a',), 2000, 'place')
    """
    n_lists = check_count("queries", queries, at_most=_MOST_QUERIES)
    rng = np.random.default_rng(check_whole("seed", seed))
    columns = draw_lists(n_lists, rng, *_check(bias, eta, lifted, swapped))
    return Ranking(
        {name: values.ravel() for name, values in columns.items()},
        query="query",
        item="item",
        score="score",
        outcome="clicks",
        group="group",
        position="place",
    )


def draw_lists(
    n_lists: int,
    rng: np.random.Generator,
    bias: float,
    eta: float,
    lifted: float,
    swapped: float,
) -> dict[str, NDArray[Any]]:
    """Return the columns of a log as arrays (list, item)."""
    shape = (n_lists, ITEMS_PER_LIST)
    member = rng.random(shape) < SHARE_IN_GROUP
    score = LOWEST + (HIGHEST - LOWEST) * rng.random(shape)
    shown = score + LIFT * (member & (rng.random(shape) < lifted)) if lifted else score
    order = np.argsort(-shown, axis=1)
    place = np.empty(shape, dtype=np.int64)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(1, ITEMS_PER_LIST + 1), shape), 1)
    block = np.zeros(shape, dtype=np.int64)
    if swapped:
        place, block = _swap(place, rng, swapped)
    attention = np.arange(1.0, ITEMS_PER_LIST + 1) ** -eta
    chance = attention[place - 1] * (score + bias * member)
    return {
        "query": np.repeat(np.arange(n_lists), ITEMS_PER_LIST).reshape(shape),
        "item": np.arange(n_lists * ITEMS_PER_LIST).reshape(shape),
        "score": score,
        "place": place,
        "clicks": (rng.random(shape) < chance).astype(np.float64),
        "group": np.where(member, "a", ""),
        "block": block,
    }


def _swap(
    place: NDArray[np.int64], rng: np.random.Generator, swapped: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut lists into pairs of neighbours, and flip a share of the pairs."""
    start = rng.integers(0, 2, size=(len(place), 1))
    block = (place - 1 - start) // 2 + 1
    alone = (start == 1) & ((place == 1) | (place == ITEMS_PER_LIST))
    block = np.where(alone, 0, block)
    flips = rng.random((len(place), ITEMS_PER_LIST // 2 + 1)) < swapped
    flipped = np.take_along_axis(flips, block, axis=1) & (block > 0)
    is_upper = (place - start) % 2 == 1
    return place + flipped * np.where(is_upper, 1, -1), block


@dataclass(frozen=True)
class ClicksTruth:
    """What an audit of :func:`mpc_lab.datasets.clicks` should find, for group "a".

    Attributes
    ----------
    gap_at_tie : float
        The symmetric gap as ε goes to 0: what the group is undervalued by, in clicks.
    place_effect : float
        The effect of place at this ε, as the headline defines it.
    symmetric, matched, mirrored : float
        The gaps at this ε.
    place_overlap, shown_above : float
        As in the headline.
    examined : dict of int to float
        The probability that a place is looked at; it can be given to ``examined=``.
    epsilon : float
    """

    gap_at_tie: float
    place_effect: float
    symmetric: float
    matched: float
    mirrored: float
    place_overlap: float
    shown_above: float
    examined: dict[int, float]
    epsilon: float


def clicks_truth(
    bias: float = 0.05,
    eta: float = 0.7,
    lifted: float = 0.0,
    swapped: float = 0.0,
    epsilon: float | None = None,
) -> ClicksTruth:
    r"""Return the population values of :func:`mpc_lab.datasets.clicks`, exact up to rounding.

    Two scores of a list are given, one of the group; the places of both follow from how many of
    the 18 others are above, between and below, which is multinomial. Means over both scores are
    integrals of polynomials, taken piece by piece by Gauss-Legendre nodes that are exact for them;
    flips of neighbours are a table from places to places.

    Parameters
    ----------
    bias, eta, lifted, swapped : float
        As given to :func:`clicks`.
    epsilon : float, optional
        The threshold, from 0 to 0.5; by default the first percentile of the distances of matched
        pairs, 0.0025.

    Returns
    -------
    ClicksTruth

    Examples
    --------
    >>> truth = clicks_truth(bias=0.05, eta=0.7)
    >>> round(truth.gap_at_tie, 4), round(truth.place_effect, 4), round(truth.matched, 4)
    (0.0129, 0.0249, -0.013)
    >>> round(clicks_truth(bias=0.0).gap_at_tie, 12)
    0.0
    """
    bias, eta, lifted, swapped = _check(bias, eta, lifted, swapped)
    if epsilon is None:
        epsilon = FIRST_PERCENTILE
    check_number("epsilon", epsilon, at_least=0, at_most=HIGHEST - LOWEST)
    flips = _flips(swapped)
    attention = np.arange(1.0, ITEMS_PER_LIST + 1) ** -eta

    def sums(reach: float) -> Floats:
        """Sum over pairs by sign of the distance and places: 1, Δ, Δ², d, dΔ."""
        found = np.stack([_integrate(sign, reach, lifted) for sign in (-1.0, 1.0)])
        found = np.einsum("smij,ijkl->smkl", found, flips)
        weight, near, square, own, own_near, other, other_near = np.moveaxis(found, 1, 0)
        at, beside = attention[:, None], attention[None, :]
        d = at * (own + bias * weight) - beside * other
        d_near = at * (own_near + bias * near) - beside * other_near
        return np.stack([weight, near, square, d, d_near])

    pairs, tied = sums(float(epsilon)), sums(0.0)
    by_score = pairs.sum(axis=(2, 3))
    matched, mirrored = by_score[3] / by_score[0]
    symmetric, effect, overlap = _two_sides(pairs.sum(axis=1))
    above = np.triu(np.ones((ITEMS_PER_LIST, ITEMS_PER_LIST)), 1)
    return ClicksTruth(
        gap_at_tie=_two_sides(tied.sum(axis=1))[0],
        place_effect=effect,
        symmetric=symmetric,
        matched=float(matched),
        mirrored=float(mirrored),
        place_overlap=overlap,
        shown_above=float((pairs[0, 0] * above).sum() / pairs[0, 0].sum()),
        examined={k + 1: float(value) for k, value in enumerate(attention)},
        epsilon=float(epsilon),
    )


def _check(
    bias: float, eta: float, lifted: float, swapped: float
) -> tuple[float, float, float, float]:
    """Return the options as floats, once it is clear that they make probabilities."""
    return (
        check_number("bias", bias, at_least=-LOWEST, at_most=1 - HIGHEST),
        check_number("eta", eta, at_least=0),
        check_number("lifted", lifted, at_least=0, at_most=1),
        check_number("swapped", swapped, at_least=0, at_most=1),
    )


# ---- integrals over the two scores of a pair


def _integrate(sign: float, reach: float, lifted: float) -> Floats:
    """Integrate over pairs whose signed distance t = s(i) - s(j) has a sign and is within reach.

    Returns an array (7, place of i, place of j): 1, Δ, Δ², s(i), s(i)Δ, s(j), s(j)Δ, before flips.
    A reach of 0 is the limit.
    """
    total = np.zeros((7, ITEMS_PER_LIST, ITEMS_PER_LIST))
    for t, weight in _distances(sign, reach, lifted):
        other, share = _scores(t, lifted)
        own, delta = other + t, abs(t)
        for lift, chance in ((0.0, 1 - lifted), (LIFT, lifted)):
            if not chance:
                continue
            mass = chance * weight * share
            by_distance = np.array([np.full(len(other), delta**power) for power in range(3)])
            columns = mass * np.stack([*by_distance, own, own * delta, other, other * delta])
            ahead = t + lift
            is_above = ahead > 0 or (ahead == 0 and sign > 0)
            chances = _places(own + lift, other, is_above, lifted)
            total += np.einsum("mn,nij->mij", columns, chances)
    return total


def _kinks(lifted: float) -> Floats:
    """Return where the distribution of shown scores bends."""
    ends = np.array([LOWEST, HIGHEST])
    return np.concatenate([ends, ends + LIFT]) if lifted else ends


def _pieces(low: float, high: float, cuts: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield nodes and weights of each piece between two ends."""
    inside = np.unique(cuts[(cuts > low) & (cuts < high)])
    bounds = np.concatenate([[low], inside, [high]])
    for start, end in itertools.pairwise(bounds):
        half = (end - start) / 2
        yield start + half * (_NODES + 1), half * _NODE_WEIGHTS


def _distances(sign: float, reach: float, lifted: float) -> Iterator[tuple[float, float]]:
    """Yield nodes of the signed distance, and their weights."""
    if reach == 0:
        yield 0.0, 1.0
        return
    kinks = _kinks(lifted)
    cuts = (kinks[:, None] - kinks[None, :]).ravel()
    cuts = np.abs(np.concatenate([cuts, cuts - LIFT, cuts + LIFT]))
    for nodes, weights in _pieces(0.0, reach, cuts):
        yield from zip(sign * nodes, weights, strict=True)


def _scores(t: float, lifted: float) -> tuple[Floats, Floats]:
    """Return nodes of the other's score where the group's item is t above it, and weights."""
    low, high = max(LOWEST, LOWEST - t), min(HIGHEST, HIGHEST - t)
    kinks = _kinks(lifted)
    cuts = np.concatenate([kinks, kinks - t, kinks - t - LIFT])
    nodes, weights = zip(*_pieces(low, high, cuts), strict=True)
    return np.concatenate(nodes), np.concatenate(weights)


def _share_above(x: Floats, lifted: float) -> Floats:
    """Return the probability that another item is shown above a score."""
    raised = SHARE_IN_GROUP * lifted

    def above(ends: Floats) -> Floats:
        return np.clip((HIGHEST - ends) / (HIGHEST - LOWEST), 0, 1)

    return (1 - raised) * above(x) + raised * above(x - LIFT)


def _places(own: Floats, other: Floats, is_above: bool, lifted: float) -> Floats:
    """Return the chance (node, place of i, place of j) of two places, given shown scores."""
    upper, lower = (own, other) if is_above else (other, own)
    above = _share_above(upper, lifted)
    between = np.maximum(_share_above(lower, lifted) - above, 0)
    below = np.maximum(1 - above - between, 0)
    found = np.zeros((len(own), ITEMS_PER_LIST, ITEMS_PER_LIST))
    powers = [share[:, None] ** np.arange(_OTHERS + 1) for share in (above, between, below)]
    for a in range(_OTHERS + 1):
        for b in range(_OTHERS + 1 - a):
            c = _OTHERS - a - b
            ways = np.exp(lgamma(_OTHERS + 1) - lgamma(a + 1) - lgamma(b + 1) - lgamma(c + 1))
            at = (a, a + b + 1) if is_above else (a + b + 1, a)
            found[:, at[0], at[1]] = ways * powers[0][:, a] * powers[1][:, b] * powers[2][:, c]
    return found


def _flips(swapped: float) -> Floats:
    """Return the chance of two places (after) for two places (before) by flips of neighbours."""
    n = ITEMS_PER_LIST
    table = np.zeros((n, n, n, n))
    for start in (0, 1):
        moved, chance = [], []
        for place in range(n):
            partner = place + 1 if (place - start) % 2 == 0 else place - 1
            is_alone = place < start or partner >= n
            moved.append(place if is_alone else partner)
            chance.append(0.0 if is_alone else swapped)
        for i in range(n):
            for j in range(n):
                if i == j:
                    continue
                if moved[i] == j:  # one coin decides for both places of a pair
                    ways = [(i, j, 1 - swapped), (j, i, swapped)]
                else:
                    ways = [
                        (moved[i] if a else i, moved[j] if b else j,
                         (chance[i] if a else 1 - chance[i]) * (chance[j] if b else 1 - chance[j]))
                        for a in (0, 1) for b in (0, 1)
                    ]  # fmt: skip
                for to_i, to_j, share in ways:
                    table[i, j, to_i, to_j] += 0.5 * share
    return table


# ---- both sides of a tie, inside cells of places


def _two_sides(sums: Floats) -> tuple[float, float, float]:
    """Return the symmetric gap, the effect of place and the overlap of sums (5, place, place)."""
    n = ITEMS_PER_LIST
    i, j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), indexing="ij")
    upper, apart = np.minimum(i, j), np.abs(i - j)
    cell = (np.searchsorted(PLACES, upper, side="right") - 1) * len(APART)
    cell = np.where(i == j, -1, cell + np.searchsorted(APART, apart, side="right") - 1)
    n_cells = len(PLACES) * len(APART)
    parts = np.zeros((5, 2, n_cells))
    for side, here in enumerate((i > j, i < j)):
        for number in range(5):
            parts[number, side] = np.bincount(cell[here], sums[number][here], minlength=n_cells)
    weight = parts[0]
    both = (weight > 0).all(axis=0)
    parts, weight = parts[:, :, both], weight[:, both]
    omega = weight[0] * weight[1] / weight.sum(axis=0)
    share = omega / omega.sum()
    one, near, square, d, d_near = (parts / weight * share).sum(axis=2)
    spread = one * square - near**2
    # If all distances are 0 there is no slope, and the mean is the intercept.
    sloped = spread > 1e-12 * square
    ends = np.where(sloped, (square * d - near * d_near) / np.where(sloped, spread, 1.0), d / one)
    overlap = 4 * omega.sum() / sums[0].sum()
    return float(d.mean()), float((ends[1] - ends[0]) / 2), float(overlap)
