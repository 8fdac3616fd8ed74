"""The result of an audit: labelled numbers and the questions one may ask of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.results import frame as _frame
from mpc_lab.results import gate as _gate
from mpc_lab.results import power as _power
from mpc_lab.results import rows as _rows
from mpc_lab.results import schema as _schema
from mpc_lab.results import storage as _storage
from mpc_lab.results import summary as _summary
from mpc_lab.results import tree as _tree
from mpc_lab.results import view as _view
from mpc_lab.results.variables import SCHEMA_VERSION

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

Scores = Callable[[str, str], NDArray[np.float64] | None]


class Audit:
    """The gap of each group, with its inference and its reading.

    Made by :func:`mpc_lab.audit` and :func:`mpc_lab.load`.

    Parameters
    ----------
    headline : xarray.Dataset
        Dims (group, scoring_rule, pairing_mode), each cell at its own threshold.
    curve : xarray.Dataset or callable
        Dims (group, epsilon, scoring_rule, pairing_mode), or a function of no argument that makes
        it when it is first asked for.
    moments : xarray.Dataset, optional
        The sums behind both; they are saved along.
    attrs : mapping, optional
        Numbers and texts that make the audit reproducible; ``options``, ``versions`` and
        ``family`` are one JSON text each.
    ranking : Ranking, optional
        The rows, for the methods that need them. Never saved.
    scores : callable, optional
        (rule label, group) to the float64 scores of that rule, or None for the scores as logged.

    cross : callable, optional
        From the number of a rule to how its thresholds move together over queries.
    extras : mapping of xarray.Dataset, optional
        What was saved beside the audit for pooling: ``items``, ``dyads``, ``cross``, ``ids``.

    Attributes
    ----------
    headline, moments, attrs, ranking, scores, cross, extras
        As given.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    >>> audit.groups
    ('1', '2')
    >>> audit.headline["verdict"].sel(group="1").item()
    'undervalued'
    >>> audit.pairs("1", limit=2).columns[:3].tolist()
    ['query', 'item', 'other_item']
    """

    def __init__(
        self,
        headline: xr.Dataset,
        curve: xr.Dataset | Callable[[], xr.Dataset],
        moments: xr.Dataset | None = None,
        attrs: Mapping[str, object] | None = None,
        *,
        ranking: Ranking | None = None,
        scores: Scores | None = None,
        cross: Callable[[int], Any] | None = None,
        extras: Mapping[str, xr.Dataset] | None = None,
    ) -> None:
        self.headline = _schema.check_headline(headline)
        self._curve = curve
        self.moments = None if moments is None else _schema.check_moments(moments)
        self.attrs = {"schema_version": SCHEMA_VERSION, **_schema.clean_attrs(attrs)}
        self.ranking = ranking
        self.scores = scores
        self.cross = cross
        self.extras = dict(extras or {})

    @cached_property
    def curve(self) -> xr.Dataset:
        """The gap at every threshold of the grid; made when first asked for."""
        made = self._curve() if callable(self._curve) else self._curve
        return _schema.check_same_cells(self.headline, _schema.check_curve(made))

    @property
    def tree(self) -> xr.DataTree:
        """Headline, curve and moments in one tree, with the attributes at its root."""
        return _tree.tree(self)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in the order of the headline."""
        return tuple(self.headline["group"].values.tolist())

    def to_frame(self) -> pd.DataFrame:
        """Return the headline as a tidy frame, one row for each cell."""
        return _frame.to_frame(self)

    def summary(self) -> str:
        """Return a short reading in plain words."""
        return _summary.summary(self)

    def pairs(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return the pairs of one cell, smallest score gap first.

        Parameters
        ----------
        group, scoring_rule, pairing_mode : str
            The cell.
        epsilon : float, optional
            Largest score gap; by default the headline's own threshold of the cell.
        limit : int, optional
            At most this many pairs.

        Returns
        -------
        pandas.DataFrame
            ``query``, ``item`` and ``other_item`` (if items are known), ``score``,
            ``other_score``, ``gap``, ``position``, ``other_position``, ``outcome``,
            ``other_outcome``, ``difference``. The item is in the group, the other item is not.
        """
        return _rows.pairs(self, group, scoring_rule, pairing_mode, epsilon, limit)

    def regression(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
    ) -> Any:
        """Return a fitted statsmodels result for one cell: outcome difference on a constant.

        The constant is the estimate of the headline, and its standard error, clustered by query,
        is the one of ``cluster="query"``. The interval of statsmodels differs from ours: it takes
        the normal or the plain number of queries as degrees of freedom, we take t with the
        effective number of queries less one.

        Parameters
        ----------
        group, scoring_rule, pairing_mode, epsilon
            As in :meth:`pairs`.

        Returns
        -------
        statsmodels results
            With ``.summary()``.
        """
        return _rows.regression(self, group, scoring_rule, pairing_mode, epsilon)

    def power(self, effect: float | None = None, power: float = 0.8) -> xr.Dataset:
        r"""Return what could be detected, and how many queries a gap of `effect` needs.

        The smallest detectable gap is :math:`(t_{1-a/2} + t_{power}) \, SE`. With Q′ queries of the
        same kind from the same catalogue the variance is
        :math:`V_{query} \, Q/Q' + \max(0, V_{item} - V_{both})`: the second term is a floor that
        more queries cannot pass.

        Parameters
        ----------
        effect : float, optional
            A gap in units of the outcome, above 0.
        power : float
            Probability of finding it.

        Returns
        -------
        xarray.Dataset
            ``mde``, ``mde_adjusted``, ``mde_floor``, ``n_queries`` and, for an effect,
            ``queries_needed`` (infinite where the floor hides the effect).
        """
        return _power.power(self, effect, power)

    def check(
        self,
        tolerance: float | None = None,
        level: float | None = None,
        inconclusive: str = "warn",
    ) -> None:
        """Raise :class:`mpc_lab.AuditFailed` where a group lies outside the tolerance.

        With a tolerance, the audit passes if every adjusted interval lies inside ± the tolerance,
        and fails if one lies wholly outside it with a direction verdict; otherwise it is
        inconclusive. Without a tolerance it fails on any direction verdict, and else passes.

        Parameters
        ----------
        tolerance, level : float, optional
            By default those of the audit.
        inconclusive : {"warn", "raise", "pass"}
            What to do where the audit cannot tell.
        """
        _gate.check(self, tolerance, level, inconclusive)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        items: bool = False,
        ids: bool = False,
        key: str | None = None,
    ) -> None:
        """Write the audit, aggregates only and never rows, to a netCDF file.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        items : bool
            Also write the sums of every item, so that :func:`mpc_lab.pool` can add up item and
            union variance and the band.
        ids : bool
            Also write a hash of every query id, so that a pool can tell whether a query occurs in
            two audits.
        key : str
            The secret that the hashes of `ids` are made with; the same for all audits of a pool.
        """
        _storage.save(self, path, items=items, ids=ids, key=key)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return _view.html_view(self)
