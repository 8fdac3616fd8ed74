"""One group under boosts, prepared once and asked many times."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.errors import MpcError
from mpc_lab.objective.boosting import Boosts
from mpc_lab.objective.clustered import query_clusters
from mpc_lab.results.boosts import FairBoost, boost_curve, fair_boost
from mpc_lab.results.reading import settings
from mpc_lab.results.rows import need_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_lab.results import Audit

_STEPS_A_SIDE, _FEWEST_A_SIDE = 20, 6
_ROWS_FOR_ALL_STEPS = 300_000


def needs_two_queries(audit: Audit) -> None:
    """Refuse, in words for a panel, a log that cannot be halved."""
    ranking = need_rows(audit, "boost_curve")
    if query_clusters(ranking)[1] < 2:
        one = "query" if ranking.n_queries < 2 else "unit"
        raise MpcError(
            f"This log has one {one}, and the Boost tab needs at least two: it chooses a boost on "
            "half of them and tries it on the rest."
        )


class Boosted:
    """A group of an audit at one threshold, ready to be boosted by any α.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group : str
    epsilon : float
    ready : Boosts, optional
        The group prepared before, at whichever threshold.
    """

    def __init__(
        self, audit: Audit, group: str, epsilon: float, ready: Boosts | None = None
    ) -> None:
        self.audit, self.group, self.epsilon = audit, group, epsilon
        self.ranking = need_rows(audit, "boost_curve")
        self.ready = Boosts(self.ranking, group) if ready is None else ready
        self._tried: dict[float, xr.Dataset] = {}

    @property
    def reach(self) -> float:
        """The largest boost of the curve: the standard deviation of all scores."""
        return self.ranking.score_std

    @cached_property
    def curve(self) -> xr.Dataset:
        """Gap and objective along the range; fewer steps on a long log."""
        share = _ROWS_FOR_ALL_STEPS / max(self.ranking.n_rows, 1)
        half = int(np.clip(_STEPS_A_SIDE * share, _FEWEST_A_SIDE, _STEPS_A_SIDE))
        alphas = self.reach * np.arange(-half, half + 1) / half
        return boost_curve(self.audit, self.group, alphas, self.epsilon, self.ready)

    @cached_property
    def fair(self) -> FairBoost:
        """The boost that closes the gap, chosen on half of the queries."""
        return fair_boost(self.audit, self.group, self.epsilon, self.ready)

    def at(self, alpha: float) -> xr.Dataset:
        """Return gap, objective, calibration and what moves, at one boost."""
        if alpha not in self._tried:
            self._tried[alpha] = self._measured(alpha)
        return self._tried[alpha]

    @property
    def tried(self) -> xr.Dataset:
        """Every boost that was asked for, along ``alpha`` in ascending order."""
        return xr.concat([self._tried[alpha] for alpha in sorted(self._tried)], "alpha")

    def _measured(self, alpha: float) -> xr.Dataset:
        found = boost_curve(self.audit, self.group, [alpha], self.epsilon, self.ready)
        level = float(settings(self.audit)["level"])
        measure = calibration_gap(self.ranking, self.group, scores=self._scores(alpha), level=level)
        _, moved = self.ready.objective(alpha)
        more = {
            "calibration_gap": measure.estimate,
            "calibration_gap_low": measure.ci_low,
            "calibration_gap_high": measure.ci_high,
            "places_changed": float(moved.mean()),
            "share_lists_changed": float((moved > 0).mean()),
        }
        return found.assign({name: ("alpha", [value]) for name, value in more.items()})

    def _scores(self, alpha: float) -> NDArray[np.float64]:
        member = self.ranking.member(self.group)
        return np.asarray(self.ranking.score + np.where(member, alpha, 0.0))
