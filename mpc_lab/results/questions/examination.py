"""How often each place of a list is looked at, labelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError, check_epsilon, check_flag, check_whole
from mpc_lab.results.base import inference_options, need_rows, refuse_rank_only
from mpc_lab.results.schema import AuditBase

if TYPE_CHECKING:
    from mpc_lab.inference.examination import Neighbours
    from mpc_lab.ranking import Ranking


_SHARE = 0.05
_METHOD = (
    "neighbours in the list with scores at most epsilon apart: the ratio of their outcomes, place "
    "by place; intervals on the logarithm, clustered by query, by the delta method"
)
_NOTES = {
    "long_name": {
        "examined": "how often the place is looked at, relative to place 1",
        "low": "lower end of its interval",
        "high": "upper end of its interval",
        "std_error": "standard error of its logarithm",
        "n_pairs": "near-tied neighbours at this place and the one before",
        "n_effective": "effective number of queries among them",
    }
}


def examination(
    audit: AuditBase, epsilon: float | None = None, places: int = 20, limit: bool = False
) -> xr.Dataset:
    """Estimate how often places are looked at; see :meth:`mpc_lab.Audit.examination`."""
    from mpc_lab.inference.examination import estimate_examination

    refuse_rank_only(audit, "examination")
    places = check_whole("places", places, at_least=2)
    check_flag("limit", limit)
    if epsilon is not None:
        epsilon = check_epsilon(epsilon, unlimited=True)
    ranking = need_rows(audit, "examination")
    every = _neighbours(ranking, places)
    if epsilon is None:
        epsilon = _near(every.distance)
    _, level, _ = inference_options(audit)
    near = every.take(every.distance <= epsilon)
    found = estimate_examination(near, places=places, limit=limit, level=level)
    names = ("examined", "low", "high", "std_error", "n_pairs", "n_effective")
    variables: dict[str, Any] = {
        name: ("place", getattr(found, name), {"long_name": _NOTES["long_name"][name]})
        for name in names
    }
    attrs = {
        "method": _METHOD + ("; at distance 0, by lines in the distance" if limit else ""),
        "epsilon": epsilon,
        "limit": int(limit),
        "level": level,
        "n_neighbours": len(every.place),
        "weighted": int(every.weight is not None),
        "ended": found.ended,
    }
    return xr.Dataset(variables, {"place": found.place}, attrs)


def _neighbours(ranking: Ranking, places: int) -> Neighbours:
    """Return the items that were shown one place apart, down to the last place that counts."""
    from mpc_lab.inference.examination import Neighbours

    if ranking.position is None:
        raise MpcError(
            "audit.examination() must have a log with positions; got none. Give position=."
        )
    outcome = ranking.outcome_given
    if outcome.min() < 0:
        raise MpcError(
            f"Outcomes must be at least 0 for audit.examination(), which compares their ratios; "
            f"got {outcome.min():g}."
        )
    query, place = ranking.query_code, ranking.position
    order = np.lexsort((place, query))
    upper, lower = order[:-1], order[1:]
    wanted = (query[upper] == query[lower]) & (place[lower] - place[upper] == 1)
    wanted &= place[lower] <= places
    upper, lower = upper[wanted], lower[wanted]
    cluster = query if ranking.unit_code is None else ranking.unit_code
    with np.errstate(over="ignore"):
        distance = np.abs(ranking.score[upper] - ranking.score[lower])
    weight = None if ranking.weight is None else ranking.weight[upper]
    values = (place[upper], outcome[upper], outcome[lower], distance, cluster[upper])
    return Neighbours(*values, weight)


def _near(distance: Any) -> float:
    """Return the distance that holds one pair of neighbours in twenty."""
    if not len(distance):
        return 0.0
    k = max(1, int(np.ceil(_SHARE * len(distance))))
    return float(np.partition(distance, k - 1)[k - 1])


class PlaceQuestions(AuditBase):
    """What being shown higher in a list does; see :class:`mpc_lab.Audit`."""

    def examination(
        self, epsilon: float | None = None, places: int = 20, limit: bool = False
    ) -> xr.Dataset:
        r"""Estimate how often each place is looked at, from neighbours with nearly equal scores.

        If two items at places k and k + 1 have nearly the same score, the surplus of the upper
        one's outcomes is due to its place. Over all such neighbours, of any group,
        :math:`R_k = \sum y_{upper} / \sum y_{lower}`, :math:`e_1 = 1` and
        :math:`e_{k+1} = e_k / R_k`. No experiment is needed. What is returned can be given to
        ``examined=``: outcomes are then divided by it. Intervals of an audit made so do not allow
        for the uncertainty of the curve. Where people stop at the first item they like (a cascade),
        there is no single number a place, and the estimate is high at later places. Where the log
        has weights, a pair of neighbours counts the weight of its query; ``estimand=`` makes no
        difference, because a query has one pair at each place.

        Parameters
        ----------
        epsilon : float, optional
            The largest distance of two neighbours' scores; by default the distance that holds 5 %
            of neighbours.
        places : int
            The last place to estimate. A place with fewer than 20 effective queries, or
            without any outcome on a side, ends it (attribute ``ended``).
        limit : bool
            Take outcomes at distance 0, by lines in the distance: a larger `epsilon` then does no
            harm, as long as outcomes are about linear in the distance.

        Returns
        -------
        xarray.Dataset
            Over ``place``: ``examined`` with its interval ``low`` to ``high``, by the delta method
            on the logarithm and clustered by query; its ``std_error``; ``n_pairs`` and
            ``n_effective`` of the neighbours that it adds.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.clicks(20_000, eta=1.0), progress=False)
        >>> found = audit.examination(places=4)
        >>> found.examined.values.round(2)
        array([1.  , 0.48, 0.31, 0.24])
        >>> again = mpc.audit(
        ...     mpc.datasets.clicks(2_000, eta=1.0).to_frame(), query="query", score="score",
        ...     outcome="clicks", group="group", position="place", examined=found, missing="drop",
        ...     progress=False)
        >>> again.ranking.dropped
        32000
        """
        return examination(self, epsilon, places, limit)
