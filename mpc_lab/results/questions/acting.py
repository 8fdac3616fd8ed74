"""The questions about what a boost would do: one method here, one file that answers each."""

from __future__ import annotations

from functools import cached_property

import xarray as xr
from numpy.typing import ArrayLike

from mpc_lab.results.base import AuditBase
from mpc_lab.results.questions import boosts as _boosts
from mpc_lab.results.questions import objective as _objective
from mpc_lab.results.questions.boosts import FairBoost


class BoostQuestions(AuditBase):
    """What lists are worth, and what a boost would do; see :class:`mpc_lab.Audit`."""

    @cached_property
    def objective(self) -> xr.Dataset:
        """What the lists are worth: dims (group, scoring_rule), made when first asked for.

        ``dcg`` and ``ndcg`` with ``_std_error``, and ``dcg_change``, ``ndcg_change`` against the
        logged scores, paired query by query, with ``_low`` and ``_high``.
        """
        saved = self._saved.get("objective")
        return _objective.objective(self) if saved is None else saved

    def boost_curve(
        self, group: str, alphas: ArrayLike | None = None, epsilon: float | None = None
    ) -> xr.Dataset:
        """Follow a group's gap and the objective along boosts of its scores.

        Parameters
        ----------
        group : str
            The group whose scores are boosted.
        alphas : array, optional
            The boosts; by default 201 steps over ± the standard deviation of all scores.
        epsilon : float, optional
            The threshold, the same for every boost; by default the baseline's own.

        Returns
        -------
        xarray.Dataset
            Over ``alpha``: the gap with its inference, ``dcg`` and ``ndcg`` with their changes
            against no boost, and the ``share_changed`` of list positions.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.boost_curve("1", alphas=[0, 0.05]).estimate.values.round(3)
        array([0.013, 0.049])
        """
        return _boosts.boost_curve(self, group, alphas, epsilon)

    def fair_boost(self, group: str, epsilon: float | None = None) -> FairBoost:
        r"""Find the boost α* that closes a group's gap, and what it costs.

        :math:`\mathrm{MPC}(\alpha)` is the mean difference over cross-group pairs with
        :math:`\alpha \le s_j - s_i \le \alpha + \varepsilon`; α* is its crossing from + to −
        nearest 0. It is chosen, with its confidence set, on one half of the queries and measured
        on the other.

        Parameters
        ----------
        group : str
            The group whose scores are boosted.
        epsilon : float, optional
            The threshold; by default the baseline's own.

        Returns
        -------
        FairBoost
            ``alpha`` with its ``confidence_set``, the ``curve`` it was read from, and what was
            measured on the ``held_out`` queries; it prints a sentence that says so.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.fair_boost("1", epsilon=0.05)
        >>> found.settled
        False
        """
        return _boosts.fair_boost(self, group, epsilon)
