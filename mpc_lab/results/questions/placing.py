"""The questions about what a place does: one method here, one file that answers each."""

from __future__ import annotations

import xarray as xr

from mpc_lab.results.questions import examination as _examination
from mpc_lab.results.schema import AuditBase


class PlaceQuestions(AuditBase):
    """What being shown higher in a list does; see :class:`mpc_lab.Audit`."""

    def examination(
        self, epsilon: float | None = None, places: int = 20, limit: bool = False
    ) -> xr.Dataset:
        r"""Estimate how often each place is looked at, from neighbours with nearly equal scores.

        Of two items shown at places k and k + 1 with nearly the same score, what the upper one has
        more is due to the place. Over all such neighbours, of any group,
        :math:`R_k = \sum y_{upper} / \sum y_{lower}`, :math:`e_1 = 1` and
        :math:`e_{k+1} = e_k / R_k`. No experiment is needed. What is returned can be given to
        ``examined=``: outcomes are then divided by it. Intervals of an audit made so do not allow
        for the uncertainty of the curve. Where people stop at the first item they like (a
        cascade), there is no single number a place, and the estimate is high at later places.
        Where the log has weights, a neighbour counts that of its query; ``estimand=`` has no say,
        because a query has one pair a place.

        Parameters
        ----------
        epsilon : float, optional
            The largest distance of two neighbours' scores; by default what one neighbour in twenty
            is within.
        places : int
            The last place that is asked for. A place with fewer than 20 effective queries, or
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
        return _examination.examination(self, epsilon, places, limit)
