"""On what terms two rows are compared: how closeness is measured, by what contrast, with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCORE, QUERY_SD, PERCENTILE = "score", "query_sd", "percentile"
CLOSENESS = (SCORE, QUERY_SD, PERCENTILE)
DIFFERENCE, SIGN = "difference", "sign"
CONTRASTS = (DIFFERENCE, SIGN)


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

    Examples
    --------
    >>> Terms(closeness="query_sd").are_default
    False
    """

    closeness: str = SCORE
    contrast: str = DIFFERENCE
    against: str | None = None

    @property
    def are_default(self) -> bool:
        """Whether scores, outcomes and partners are taken as they are."""
        return self == AS_LOGGED


AS_LOGGED = Terms()


def terms_of(options: Mapping[str, Any]) -> Terms:
    """Return the terms that the options of an audit name; those of older audits name none."""
    known = {name: options[name] for name in Terms.__dataclass_fields__ if name in options}
    return Terms(**known)
