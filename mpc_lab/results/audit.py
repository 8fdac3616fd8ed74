"""The result of an audit: labelled numbers and the questions one may ask of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mpc_lab.arguments import as_flag
from mpc_lab.results import balance as _balance
from mpc_lab.results import boosts as _boosts
from mpc_lab.results import bootstrapping as _bootstrapping
from mpc_lab.results import certificate as _certificate
from mpc_lab.results import curves as _curves
from mpc_lab.results import frame as _frame
from mpc_lab.results import gate as _gate
from mpc_lab.results import inside as _inside
from mpc_lab.results import looks as _looks
from mpc_lab.results import nearzero as _nearzero
from mpc_lab.results import objective as _objective
from mpc_lab.results import power as _power
from mpc_lab.results import rivals as _rivals
from mpc_lab.results import rows as _rows
from mpc_lab.results import schema as _schema
from mpc_lab.results import storage as _storage
from mpc_lab.results import summary as _summary
from mpc_lab.results import tree as _tree
from mpc_lab.results import view as _view
from mpc_lab.results.boosts import FairBoost
from mpc_lab.results.certificate import Certificate
from mpc_lab.results.variables import SCHEMA_VERSION

if TYPE_CHECKING:
    from mpc_lab.pairing.moments import Moments
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
    moments : xarray.Dataset or callable, optional
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
        What was saved beside the audit: ``objective``, and for pooling ``items``, ``dyads``,
        ``cross``, ``ids``.
    own : sequence of Moments, optional
        The plain sums behind the headline, for each rule; otherwise taken from `moments`.
    grid : array, optional
        The thresholds of the curve, known before it is made.
    curve_part : callable, optional
        (group, rule label) to the curve of these two alone, in the form of `curve`.
    reread : callable, optional
        Reads the rows again, for the first method that needs them.

    Attributes
    ----------
    headline, attrs, ranking, scores, cross, extras, own, curve_part, reread
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
        moments: xr.Dataset | Callable[[], xr.Dataset] | None = None,
        attrs: Mapping[str, object] | None = None,
        *,
        ranking: Ranking | None = None,
        scores: Scores | None = None,
        cross: Callable[[int], Any] | None = None,
        extras: Mapping[str, xr.Dataset] | None = None,
        own: Sequence[Moments] | None = None,
        grid: NDArray[np.float64] | None = None,
        curve_part: Callable[[str, str], xr.Dataset] | None = None,
        reread: Callable[[], Ranking] | None = None,
    ) -> None:
        self.headline = _schema.check_headline(headline)
        self._curve = curve
        self._moments = moments
        self.attrs = {"schema_version": SCHEMA_VERSION, **_schema.clean_attrs(attrs)}
        self.ranking = ranking
        self.scores = scores
        self.cross = cross
        self.extras = dict(extras or {})
        self.own = own
        self._grid = grid
        self.curve_part = curve_part
        self.reread = reread

    @cached_property
    def curve(self) -> xr.Dataset:
        """The gap at every threshold of the grid; made when first asked for."""
        made = self._curve() if callable(self._curve) else self._curve
        return _schema.check_same_cells(self.headline, _schema.check_curve(made))

    @property
    def grid(self) -> NDArray[np.float64]:
        """The thresholds of the curve, ascending; known before the curve is made."""
        return np.array(self.curve["epsilon"].values if self._grid is None else self._grid)

    def curve_of(
        self, group: str, scoring_rule: str = "baseline", pairing_mode: str = "matched"
    ) -> xr.Dataset:
        """Return the curve of one cell, without waiting for those of all others.

        The numbers are those of ``curve`` at this cell. On a log in memory they take as long as
        one group under one scoring rule does, and are kept.

        Parameters
        ----------
        group, scoring_rule, pairing_mode : str
            The cell.

        Returns
        -------
        xarray.Dataset
            Along ``epsilon``, with the variables of ``curve``.
        """
        return _curves.curve_of(self, group, scoring_rule, pairing_mode)

    @cached_property
    def moments(self) -> xr.Dataset | None:
        """The sums behind headline and curve; made when first asked for."""
        if self._moments is None:
            return None
        return _schema.check_moments(self._moments() if callable(self._moments) else self._moments)

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

    def limit(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str | Sequence[str] = "matched",
        bandwidth: float | None = None,
    ) -> xr.Dataset:
        """Estimate the gap as the difference in scores goes to 0.

        See :func:`mpc_lab.results.nearzero.limit` for the estimator, its options and its variables.
        """
        return _nearzero.limit(self, group, scoring_rule, pairing_mode, bandwidth)

    def certificate(self, group: str, scoring_rule: str = "baseline") -> Certificate:
        """Find the largest boost of a group that is certified to raise the expected objective.

        See :func:`mpc_lab.results.certificate.certificate` for what is assumed.
        """
        return _certificate.certificate(self, group, scoring_rule)

    def balance(
        self,
        covariates: Any = (),
        group: str | Sequence[str] | None = None,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
        permutations: int = 200,
    ) -> xr.Dataset:
        """Compare the two sides of the pairs, count how often items recur, and try placebos.

        See :func:`mpc_lab.results.balance.balance` for the options and variables.
        """
        return _balance.balance(
            self, covariates, group, scoring_rule, pairing_mode, epsilon, permutations
        )

    def bootstrap(self, draws: int = 201, seed: int | None = None) -> xr.Dataset:
        """Resample queries (or units) and recompute every cell of the headline.

        See :func:`mpc_lab.results.bootstrapping.bootstrap` for the intervals it gives.
        """
        return _bootstrapping.bootstrap(self, draws, seed)

    def confidence_sequence(self, planned: int = 1000) -> xr.Dataset:
        """Return intervals that stay valid however often the audit is repeated on a growing log.

        They cover the gap at all looks together, over all cells of a pairing mode; the threshold
        must be a number that was fixed before the first look. They cover no shocks of items.

        Parameters
        ----------
        planned : int
            The number of queries at which the intervals should be tightest, fixed before the first
            look.

        Returns
        -------
        xarray.Dataset
            Dims of the headline: ``estimate``, ``low``, ``high``; NaN before 100 queries.

        References
        ----------
        Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (2024), Time-uniform central limit theory and
        asymptotic confidence sequences.
        """
        return _looks.confidence_sequence(self, planned)

    @cached_property
    def objective(self) -> xr.Dataset:
        """What the lists are worth: dims (group, scoring_rule), made when first asked for.

        ``dcg`` and ``ndcg`` with ``_std_error``, and ``dcg_change``, ``ndcg_change`` against the
        logged scores, paired query by query, with ``_low`` and ``_high``.
        """
        saved = self.extras.get("objective")
        return _objective.objective(self) if saved is None else saved

    def boost_curve(
        self, group: str, alphas: ArrayLike | None = None, epsilon: float | None = None
    ) -> xr.Dataset:
        """Follow a group's gap and the objective along boosts of its scores.

        Parameters
        ----------
        group : str
        alphas : array, optional
            The boosts; by default 201 steps over ± the standard deviation of all scores.
        epsilon : float, optional
            The threshold, the same for every boost; by default the baseline's own.

        Returns
        -------
        xarray.Dataset
            Over ``alpha``: the gap with its inference, ``dcg`` and ``ndcg`` with their changes
            against no boost, and the ``share_changed`` of list positions.
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
        epsilon : float, optional
            By default the baseline's own threshold.
        """
        return _boosts.fair_boost(self, group, epsilon)

    def compare(self, groups: Sequence[str] | None = None, k: int = 10) -> xr.Dataset:
        """Set MPC beside the rival measures on the same log, and say why they disagree.

        Parameters
        ----------
        groups : list of str, optional
            By default all.
        k : int
            Places at the top, for Skew@k.

        Returns
        -------
        xarray.Dataset
            Over (group, measure): ``estimate`` with its interval, ``flagged`` and what the flag
            ``says``; over group the ``explanation`` in one sentence; over measure what it compares.
        """
        return _rivals.compare(self, groups, k)

    def calibration(
        self,
        group: str,
        scoring_rule: str = "baseline",
        segment: str | None = None,
        bins: int = 20,
    ) -> xr.Dataset:
        """Return mean outcome against score inside and outside a group, binned and isotonic.

        Parameters
        ----------
        group, scoring_rule : str
        segment : str, optional
            Only the queries of this segment.
        bins : int
            Bins of equal numbers of rows.
        """
        return _rivals.calibration(self, group, scoring_rule, segment, bins)

    def by_segment(
        self, scoring_rule: str = "baseline", pairing_mode: str = "matched"
    ) -> xr.Dataset:
        """Return the headline within each segment, and a test that the segments agree.

        Returns
        -------
        xarray.Dataset
            Over (group, segment): the gap at the group's threshold with its inference, clustered
            by query; over group ``agree_statistic`` and ``agree_p_value``.
        """
        return _inside.by_segment(self, scoring_rule, pairing_mode)

    def by_position(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
        weights: Any = None,
    ) -> xr.Dataset:
        """Return the gap by position of the group's item, its weighted mean, and its robustness.

        Parameters
        ----------
        group, scoring_rule, pairing_mode, epsilon
            As in :meth:`pairs`.
        weights : array or callable, optional
            Strictly decreasing weights of positions; by default those of DCG.

        Returns
        -------
        xarray.Dataset
            Over ``position`` the gap with its inference; ``weighted_estimate`` and its interval;
            ``gamma_flip``, the γ nearest 0 at which the verdict flips if the outcome of the lower
            of two items is multiplied by 1 + γ, to undo what its position cost it (NaN: none).
        """
        return _inside.by_position(self, group, scoring_rule, pairing_mode, epsilon, weights)

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
            ``mde``, ``mde_adjusted``, ``mde_floor``, ``n_queries`` (of the log, with a pair or
            without) and, for an effect, how many such ``queries_needed`` (infinite where the floor
            hides the effect).
        """
        return _power.power(self, effect, power)

    def check(
        self,
        tolerance: float | None = None,
        level: float | None = None,
        inconclusive: str = "warn",
        *,
        anytime: bool = False,
        planned: int = 1000,
    ) -> None:
        """Raise :class:`mpc_lab.AuditFailed` where a group lies outside the tolerance.

        With a tolerance, the audit passes if every adjusted interval lies inside ± the tolerance,
        and fails if one lies wholly outside it with a direction verdict; otherwise it is
        inconclusive. Without a tolerance it fails on any direction verdict, is inconclusive where
        no group could be estimated, and else passes.

        Parameters
        ----------
        tolerance, level : float, optional
            By default those of the audit.
        inconclusive : {"warn", "raise", "pass"}
            What to do where the audit cannot tell.
        anytime : bool
            Decide by :meth:`confidence_sequence` instead, for an audit that is run again as its log
            grows: over all runs together the gate fails without a reason at most as often as the
            level says. Needs a number as threshold, fixed before the first run.
        planned : int
            The number of queries at which those intervals should be tightest.
        """
        looks = planned if as_flag("anytime", anytime) else None
        _gate.check(self, tolerance, level, inconclusive, looks)

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

    def report(
        self,
        path: str | os.PathLike[str],
        pairs: int = 0,
        covariates: Any = (),
        progress: bool | None = None,
        *,
        planned: int | None = None,
    ) -> Path:
        """Write one self-contained page, which needs no network and can be printed.

        The finding in words, every group with its verdict, curves of flagged groups with their
        limit and certificate, what the inference rests on, the rivals and why they disagree, the
        boost that would close a gap and its cost, the method with its equations, and every setting.
        What needs the rows of the log is left out, and named, where the audit has none.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        pairs : int
            Show so many pairs of each flagged group, with the ids of queries and items as they
            stand in the log. By default the page holds aggregates only.
        covariates
            Columns whose balance is shown, as of :meth:`balance`.
        progress : bool, optional
            Whether to show a progress bar; by default in a terminal or notebook when the work is
            long.
        planned : int, optional
            Also say how the gate decides by :meth:`confidence_sequence`, tightest at so many
            queries, as :meth:`check` does with ``anytime=True``. The verdicts stay as they are.

        Returns
        -------
        pathlib.Path
            The file.
        """
        from mpc_lab.report import write

        return write(self, path, pairs, covariates, progress, planned)

    def to_json(self, curve: bool = True, *, planned: int | None = None) -> str:
        """Return the numbers of the audit as one JSON text.

        ``mpc_lab.report.schema()`` is the JSON Schema that it keeps to.

        Parameters
        ----------
        curve : bool
            Whether to put in the curve over ε.
        planned : int, optional
            Decide ``gate`` by :meth:`confidence_sequence`, tightest at so many queries, as
            :meth:`check` does with ``anytime=True``. The cells stay as they are.
        """
        from mpc_lab.report import to_json

        return to_json(self, as_flag("curve", curve), planned)

    def model_card(self, *, planned: int | None = None) -> str:
        """Return a section for a model card, in Markdown.

        Parameters
        ----------
        planned : int, optional
            Also say how the gate decides by :meth:`confidence_sequence`, tightest at so many
            queries, as :meth:`check` does with ``anytime=True``. The verdicts stay as they are.
        """
        from mpc_lab.report import model_card

        return model_card(self, planned)

    def explore(self, **start: Any) -> Any:
        """Explore the audit in a notebook: sliders, charts and the pairs themselves.

        Parameters
        ----------
        **start
            Where to start: ``group``, ``scoring_rule``, ``pairing_mode``, ``epsilon``, ``tab``.

        Returns
        -------
        mpc_lab.explorers.AuditExplorer
        """
        from mpc_lab.explorers import AuditExplorer

        return AuditExplorer(self, **start)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return _view.html_view(self)
