"""A log with the troubles of real ones, each of them known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mpc_lab.errors import check_whole
from mpc_lab.vocabulary import Floats, Ints

USERS, ROWS_A_LIST, ROWS_OF_HEAVY = 5000, 12, 1000
ITEMS, SELLERS = 6000, 300
LOWEST, HIGHEST = 0.1, 0.6
BIAS, ETA, SHOCK = 0.15, 0.5, 0.02
WIDE, NARROW = 1.0, 0.1
MISSING_INSIDE, MISSING_OUTSIDE = 0.10, 0.03
HEAVY_USER = "u0007"
COMMON = {"local": 0.35, "new": 0.3}
RARE = ("fragile", "refurbished", "vintage")
SELLERS_OF_RARE = 8


def messy(seed: int = 0) -> pd.DataFrame:
    """Draw a log of a small shop with the troubles of real logs: a table, as it would be exported.

    5,000 users see a list of products each, ranked by a score; the outcome is a click. Products
    labelled "local" are worth 0.15 more than their score says, all others what it says. In
    addition:

    - one user, a program, has so many rows that about 70 % of the close pairs are theirs;
    - a seller has 20 products, which share their labels and an appeal that no score knows;
    - an item must be looked at to be clicked, which lower places are less often;
    - labels are joined by ``|``, and three of them are rare;
    - half of the lists come from another app, whose scores are ten times as small;
    - clicks were lost, of local products three times as often.

    Parameters
    ----------
    seed : int
        Seed of the generator, at least 0; the same seed gives the same log.

    Returns
    -------
    pandas.DataFrame
        Columns ``user``, ``product``, ``seller``, ``labels``, ``score``, ``place``, ``clicks``.

    See Also
    --------
    messy_truth : what an audit of such a log should find.

    Examples
    --------
    >>> frame = messy()
    >>> frame.columns.tolist()
    ['user', 'product', 'seller', 'labels', 'score', 'place', 'clicks']
    >>> int(frame["user"].value_counts().max())
    1000
    """
    rng = np.random.default_rng(check_whole("seed", seed))
    sizes = np.full(USERS, ROWS_A_LIST)
    heavy = int(HEAVY_USER[1:])
    sizes[heavy] = ROWS_OF_HEAVY
    user = np.repeat(np.arange(USERS), sizes)
    item = _draw_items(rng, sizes)
    seller = item % SELLERS
    labels = _labels_of_sellers(rng)
    is_local = np.array(["local" in own for own in labels])[seller]
    shock = SHOCK * rng.standard_normal(SELLERS)
    worth = LOWEST + (HIGHEST - LOWEST) * rng.random(len(user))
    # Half of the users have the app whose scores are small; the program has it too.
    narrow = np.arange(USERS) % 2 == heavy % 2
    place = _places(user, worth, sizes)
    chance = place**-ETA * np.clip(worth + BIAS * is_local + shock[seller], 0, 1)
    clicks = (rng.random(len(user)) < chance).astype(np.float64)
    lost = rng.random(len(user)) < np.where(is_local, MISSING_INSIDE, MISSING_OUTSIDE)
    return pd.DataFrame(
        {
            "user": [f"u{number:04d}" for number in user],
            "product": [f"p{number:04d}" for number in item],
            "seller": [f"s{number:03d}" for number in seller],
            "labels": np.array(["|".join(own) for own in labels], dtype=object)[seller],
            "score": worth * np.where(narrow, NARROW, WIDE)[user],
            "place": place,
            "clicks": np.where(lost, np.nan, clicks),
        }
    )


def _draw_items(rng: np.random.Generator, sizes: Ints) -> Ints:
    """Return items for every list, none twice in one."""
    # A random start and a stride without a common factor visit every item once.
    starts = rng.integers(0, ITEMS, len(sizes))
    strides = rng.choice([s for s in range(1, ITEMS) if np.gcd(s, ITEMS) == 1], len(sizes))
    number = np.concatenate([np.arange(size) for size in sizes])
    return np.asarray((np.repeat(starts, sizes) + np.repeat(strides, sizes) * number) % ITEMS)


def _labels_of_sellers(rng: np.random.Generator) -> list[list[str]]:
    labels: list[list[str]] = [[] for _ in range(SELLERS)]
    for label, share in COMMON.items():
        for seller in np.flatnonzero(rng.random(SELLERS) < share).tolist():
            labels[seller].append(label)
    for label in RARE:
        for seller in rng.choice(SELLERS, SELLERS_OF_RARE, replace=False).tolist():
            labels[seller].append(label)
    return labels


def _places(user: Ints, worth: Floats, sizes: Ints) -> Ints:
    """Return the place of every row in the list of its user, 1 = top."""
    order = np.lexsort((-worth, user))
    place = np.empty(len(user), dtype=np.int64)
    place[order] = np.concatenate([np.arange(1, size + 1) for size in sizes])
    return place


@dataclass(frozen=True)
class MessyTruth:
    """The troubles in the log of :func:`mpc_lab.datasets.messy`, and the truth behind them.

    Attributes
    ----------
    undervalued : str
        The one label whose products are worth more than their score.
    bias : float
        By how much, where everything is looked at.
    gap_at_tie : float
        That bias in clicks at a tie: two tied products of a list are at places k and k + 1, each k
        from 1 to 11 equally often, so the bias is multiplied by how often these places are looked
        at.
    heavy_user : str
        The program.
    eta : float
        Place k is looked at with a probability of k to the power of -eta.
    separator : str
        What joins labels.
    rare : tuple of str
        Labels that few sellers have.
    producer : str
        The column with what products share.
    shock : float
        Standard deviation of the appeal of the sellers.
    scales : tuple of float
        What scores are multiplied by in the two halves of the lists.
    missing : tuple of float
        The share of lost clicks inside and outside the undervalued label.
    """

    undervalued: str = "local"
    bias: float = BIAS
    gap_at_tie: float = 0.0
    heavy_user: str = HEAVY_USER
    eta: float = ETA
    separator: str = "|"
    rare: tuple[str, ...] = RARE
    producer: str = "seller"
    shock: float = SHOCK
    scales: tuple[float, float] = (WIDE, NARROW)
    missing: tuple[float, float] = (MISSING_INSIDE, MISSING_OUTSIDE)


def messy_truth() -> MessyTruth:
    """Return the truth behind :func:`mpc_lab.datasets.messy`, the same for every seed.

    Examples
    --------
    >>> messy_truth().undervalued, messy_truth().bias
    ('local', 0.15)
    """
    place = np.arange(1.0, ROWS_A_LIST)
    look = (place**-ETA + (place + 1) ** -ETA) / 2
    return MessyTruth(gap_at_tie=float(BIAS * look.mean()))
