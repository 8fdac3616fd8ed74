"""On what terms rows are compared: how close, by what contrast, with whom, and what pairs count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCORE, QUERY_SD, PERCENTILE = "score", "query_sd", "percentile"
CLOSENESS = (SCORE, QUERY_SD, PERCENTILE)
DIFFERENCE, SIGN = "difference", "sign"
CONTRASTS = (DIFFERENCE, SIGN)
PAIRS, QUERIES, ROOT = "pairs", "queries", "root"
ESTIMANDS = (PAIRS, QUERIES, ROOT)
# Pairs of one query that are looked at one by one, where windows cannot sum over them.
MOST_VISITED = 20_000_000


@dataclass(frozen=True)
class Terms:
    r"""How the rows of a log are compared.

    Attributes
    ----------
    closeness : {"score", "query_sd", "percentile"}
        ``score``: the scores as they are. ``query_sd``: divided by the population standard
        deviation of the logged scores of their query; a query with one distinct score has no
        pairs. ``percentile``: replaced by (rank − ½)/n within their query, ties shared.
    contrast : {"difference", "sign"}
        What a pair counts: :math:`d = y_i - y_j`, or its sign.
    against : str, optional
        The group that the other item of a pair is in; without it, any item outside the group.
    estimand : {"pairs", "queries", "root"}
        What the gap is a mean over. With P the pairs of a query and w its weight, by default 1, a
        pair counts w (``pairs``), w/P (``queries``: every query with a pair counts alike) or w/√P
        (``root``: between the two).

    Examples
    --------
    >>> Terms(closeness="query_sd").are_default
    False
    """

    closeness: str = SCORE
    contrast: str = DIFFERENCE
    against: str | None = None
    estimand: str = PAIRS

    @property
    def are_default(self) -> bool:
        """Whether scores, outcomes and partners are taken as they are."""
        return self == AS_LOGGED


AS_LOGGED = Terms()


def terms_of(options: Mapping[str, Any]) -> Terms:
    """Return the terms that the options of an audit name; those of older audits name none."""
    known = {name: options[name] for name in Terms.__dataclass_fields__ if name in options}
    return Terms(**known)
