"""Logs whose audits are looked at: many groups, two, and names that are long."""

from __future__ import annotations

import numpy as np
import pandas as pd

GENRES = (
    *("Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller"),
    *("War", "Western"),
)
_KINDS = ("dresses and skirts", "shoes for the rain", "coats without a lining", "hats, plain")
_MAKERS = ("Bergmann & Söhne", "Northern Textile Cooperative", "O'Hara", "Société Générale de Soie")
_PLACES = ("Lisbon", "Trondheim", "Thessaloniki", "Kuala Lumpur")
LONG = tuple(
    f"{maker} in {place}: {kind}" for maker in _MAKERS for place in _PLACES for kind in _KINDS
)[:60]
# The groups of each, and its number of queries.
LOGS = {
    "eighteen": (GENRES, 2_000),
    "two": (("new sellers", "others"), 2_000),
    "sixty": (LONG, 8_000),
}


def picture_log(groups: tuple[str, ...], queries: int, seed: int = 0) -> pd.DataFrame:
    """Return a log in which a third of the groups is undervalued or overvalued."""
    draw = np.random.default_rng(seed)
    n = queries * 20
    score = draw.uniform(size=n)
    group = draw.integers(0, len(groups), n)
    wave = np.arange(len(groups)) % 6
    lift = np.select([wave == 0, wave == 3], [0.25, -0.2], 0.0)
    truth = np.clip(0.15 + 0.7 * score + lift[group], 0, 1)
    item = np.tile(np.arange(20), queries) + 20 * draw.integers(0, 40, n)
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), 20),
            "item": item,
            "title": [f"Title {number:03d}" for number in item],
            "score": score,
            "clicks": (draw.uniform(size=n) < truth).astype(float),
            "group": np.array(groups, dtype=object)[group],
        }
    )
