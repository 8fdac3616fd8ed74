"""The questions that may be asked of an audit: a method here for each, and a file that answers it.

A new question is a new file in this room and a method of :class:`Questions`, which carries the
docstring that people read. The files take an :class:`~mpc_lab.results.base.AuditBase` and give a
labelled answer; what computes on plain arrays is in ``pairing`` to ``comparators``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from mpc_lab.results.questions import balance as _balance
from mpc_lab.results.questions import bootstrap as _bootstrap
from mpc_lab.results.questions import certificate as _certificate
from mpc_lab.results.questions import compare as _compare
from mpc_lab.results.questions import limit as _limit
from mpc_lab.results.questions import pairs as _pairs
from mpc_lab.results.questions import power as _power
from mpc_lab.results.questions import sequence as _sequence
from mpc_lab.results.questions import slices as _slices
from mpc_lab.results.questions.boosts import BoostQuestions
from mpc_lab.results.questions.certificate import Certificate
from mpc_lab.results.questions.drivers import DriverQuestions
from mpc_lab.results.questions.examination import PlaceQuestions
from mpc_lab.results.questions.partial import WhyQuestions
from mpc_lab.results.questions.tell import StoryQuestions

if TYPE_CHECKING:
    from mpc_lab.results.difference import Difference


class Questions(BoostQuestions, DriverQuestions, PlaceQuestions, StoryQuestions, WhyQuestions):
    """The questions of an audit; see :class:`mpc_lab.Audit`."""

    def pairs(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return the pairs of one cell, the closest scores first.

        Parameters
        ----------
        group, scoring_rule, pairing_mode : str
            The cell.
        epsilon : float, optional
            Largest distance of the two scores; by default the headline's own threshold of the cell.
        limit : int, optional
            At most this many pairs.

        Returns
        -------
        pandas.DataFrame
            ``query``, ``item`` and ``other_item`` (if items are known), ``label`` and
            ``other_label`` (if the log has labels of items), ``score``, ``other_score``,
            ``distance``, ``position``, ``other_position``, ``outcome``, ``other_outcome``,
            ``difference``; with ``examined=`` also ``examined`` and
            ``other_examined``, which outcomes are divided by for the difference. The item is in
            the group, the other item is not.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.pairs("1", limit=2)[["query", "item", "other_item", "difference"]]
          query   item other_item  difference
        0  1110  11105      11103         0.0
        1   413   4139       4135         0.0
        """
        return _pairs.pairs(self, group, scoring_rule, pairing_mode, epsilon, limit)

    def regression(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str = "matched",
        epsilon: float | None = None,
    ) -> Any:
        """Fit the outcome difference of one cell on a constant with statsmodels.

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

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> round(float(audit.regression("1").params["MPC"]), 4)
        0.0132
        """
        return _pairs.regression(self, group, scoring_rule, pairing_mode, epsilon)

    def difference(
        self,
        rule: str | None = None,
        base: str | None = None,
        *,
        groups: tuple[str, str] | None = None,
        modes: tuple[str, str] | None = None,
    ) -> Difference:
        r"""Return the difference of two gaps of this audit, with its own interval.

        Two rules share most of their queries, items and pairs, so the difference is known far
        better than the two gaps are; two intervals side by side do not show it.

        .. math:: \hat\theta_A - \hat\theta_B, \qquad z_p = \frac{w_p (d_p - \hat\theta_A)}{W_A}
                  \;[p \in A] \; - \; \frac{w_p (d_p - \hat\theta_B)}{W_B} \;[p \in B],

        with the variance of the audit over these contributions. Each gap is at its own threshold.
        Needs the rows, or an audit saved with ``queries=True``, which gives query variance.

        Parameters
        ----------
        rule, base : str, optional
            Two scoring rules: by group, the gap under `rule` less that under `base`, which is
            ``baseline`` where it is left out. With `groups` or `modes`, the one rule to look at.
        groups : (str, str), optional
            Two groups: the gap of the first less that of the second. Each is still compared with
            all other items; for one group against the other use ``against=`` of an audit.
        modes : (str, str), optional
            Two pairing modes of the audit.

        Returns
        -------
        Difference

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> ranking = mpc.datasets.synthetic(queries=2_000)
        >>> audit = mpc.audit(ranking, scoring_rules=["baseline", "boosted"], progress=False)
        >>> audit.difference("boosted", "baseline").groups
        ('1', '2')
        >>> audit.difference(groups=("1", "2")).groups
        ('1 − 2',)
        """
        from mpc_lab.results.questions.difference import of_audit

        return of_audit(self, rule, base, groups, modes)

    def limit(
        self,
        group: str,
        scoring_rule: str = "baseline",
        pairing_mode: str | Sequence[str] = "matched",
        bandwidth: float | None = None,
    ) -> xr.Dataset:
        r"""Estimate the gap as the distance between the scores goes to 0.

        .. math:: \lim_{\varepsilon \to 0} \mathrm{MPC}_\varepsilon(g) = E[d \mid \Delta \to 0],

        by the intercept of a regression of the outcome difference d on 1, Δ, Δ² with weights
        1 − Δ/h, where Δ is the distance: the robust bias-corrected local linear estimate [1]_. At
        a threshold ε > 0 the item with the lower score should have a slightly lower outcome,
        whatever its group; in the limit it should not, so ``matched`` and ``mirrored`` close on
        one value. The limit needs data: its interval is several times as wide as that at a
        threshold.

        Parameters
        ----------
        group, scoring_rule : str
            The cell.
        pairing_mode : str or list of str
            With a list the result has the dim ``pairing_mode``.
        bandwidth : float, optional
            h, in units of the score; by default the one with the least expected squared error,
            chosen from the ``matched`` pairs for all modes (`mpc_lab.inference.limit`).

        Returns
        -------
        xarray.Dataset
            ``estimate``, ``std_error``, ``ci_low``, ``ci_high``, ``p_value``, ``dof``,
            ``n_effective``, ``bandwidth``, ``n_pairs``; ``tie_share`` (of the pairs inside the
            bandwidth), ``tie_mean``, ``tie_weight`` (of the kernel weight), ``n_ties``; ``method``
            (local quadratic, mean over ties, not estimable), ``reason``, ``variance_from``;
            ``density_at_zero``, and over ``distance`` the ``distance_density`` and
            ``distance_count`` of untied pairs inside the bandwidth.

        References
        ----------
        .. [1] Calonico, Cattaneo & Titiunik (2014), Robust nonparametric confidence intervals for
           regression-discontinuity designs.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000, seed=1), progress=False)
        >>> found = audit.limit("1")
        >>> bool(found.ci_low < 0.06875 < found.ci_high)
        True
        """
        return _limit.limit(self, group, scoring_rule, pairing_mode, bandwidth)

    def closeness(
        self, group: str, scoring_rule: str = "baseline", pairing_mode: str = "matched"
    ) -> xr.Dataset:
        """Estimate the gap of a group under other definitions of close.

        Each has a threshold of its own, chosen as the audit's is; where that is a number, or by
        power, the one with as many pairs. The four are adjusted for each other, with no verdict.

        Parameters
        ----------
        group, scoring_rule, pairing_mode : str
            The cell.

        Returns
        -------
        xarray.Dataset
            Over ``closeness``: ``score``, ``query_sd`` and ``percentile`` as in
            :func:`mpc_lab.audit`, and ``adjacent``, neighbours at the threshold of ``score``. The
            variables of the headline's cells, ``p_adjusted`` and interval by Holm's method.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
        >>> audit.closeness("1").estimate.values.round(2).tolist()
        [0.05, 0.06, -0.02, 0.07]
        """
        from mpc_lab.results.questions.closeness import closeness

        return closeness(self, group, scoring_rule, pairing_mode)

    def certificate(self, group: str, scoring_rule: str = "baseline") -> Certificate:
        r"""Find the largest boost of a group that is certified to raise the expected objective.

        The paper's theorem: if outcome differences depend on items only through the distance Δ of
        their scores, and :math:`E[d \mid \Delta] > 0` at every :math:`\Delta \le \alpha`, then
        adding α to the scores of the group raises the expected :math:`\sum_k w_k y_k`. The mean is
        taken in bins of the distance with a band over all of them
        (`mpc_lab.inference.certificate`). The cumulative MPC certifies nothing: in the paper's own
        example it is above 0 up to ε = 0.15, and DCG falls from a boost of about 0.12 on.

        Parameters
        ----------
        group, scoring_rule : str
            The group, and the scores that would be boosted.

        Returns
        -------
        Certificate
            The bins cover all ``matched`` pairs, or the 2,000,000 with the closest scores; fewer
            than 4 certify nothing. Its ``sentence``, which is also what it prints, says what was
            assumed, or why no boost is certified.

        References
        ----------
        Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
        >>> 0 < audit.certificate("1").alpha < 0.12
        True
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
        r"""Compare the two sides of the pairs, count how often items recur, and try placebos.

        The standardised difference of a covariate x is
        :math:`\frac{1}{P} \sum_{(i, j)} (x_i - x_j) / s` with s² the mean of its variances over
        the rows in the group and over the others [1]_. A placebo is a group whose labels are
        permuted among items that are shown about as often (quintiles); an item keeps its label in
        every query. Where items are not known, or membership varies for some item, labels are
        permuted among the rows of each query. Pairs are taken in both orders together, because in
        one order alone a group without meaning does not centre on 0. The group itself is ranked
        among its placebos by the size of t with the audit's own variance
        (`mpc_lab.inference.balance` says when that is exact).

        Parameters
        ----------
        covariates : str, list of str, or mapping of str to array
            Columns of the ranking's table, or arrays by row. Text is compared value by value, rows
            without one as a value of their own. Position in the ranked list is always compared.
        group : str or list of str, optional
            By default all groups.
        scoring_rule, pairing_mode : str
            The cell.
        epsilon : float, optional
            Largest distance of the two scores; by default the headline's own threshold of each
            group.
        permutations : int
            How many placebos of each group; 0 for none.

        Returns
        -------
        xarray.Dataset
            Over (group, covariate): ``difference_before`` (all rows) and ``difference`` (inside
            the pairs), with ``std_error``, ``ci_low``, ``ci_high``, ``p_value`` of the latter.
            Over group: ``epsilon``, ``n_pairs``, ``effective_queries``. Over (group, side):
            ``n_items``, ``most_pairs_of_an_item``, ``mean_pairs_of_an_item``, ``effective_items``.
            Over (group, permutation): ``placebo_estimate``, ``placebo_p_value``; over group:
            ``placebo_by`` ("item" or "row"), ``placebo_expected`` (around which they centre),
            ``placebo_rejected`` (share of p-values at most 1 − level by the audit's own variance)
            with its Monte-Carlo interval ``placebo_rejected_low`` and ``placebo_rejected_high``,
            ``placebo_observed`` (the group itself, in both orders) and
            ``placebo_observed_p_value`` (its rank among the placebos).

        References
        ----------
        .. [1] Austin (2009), Balance diagnostics for comparing the distribution of baseline
           covariates between treatment groups in propensity-score matched samples.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.balance("query_type", permutations=20)
        >>> found.covariate.values.tolist()
        ['position', 'query_type=u', 'query_type=v']
        """
        return _balance.balance(
            self, covariates, group, scoring_rule, pairing_mode, epsilon, permutations
        )

    def bootstrap(self, draws: int = 201, seed: int | None = None) -> xr.Dataset:
        r"""Resample queries (or units) and recompute every cell of the headline.

        :math:`\theta^* = \sum_k w_k D_k / \sum_k w_k c_k` over queries with c pairs and the sum D
        of outcome differences, w how often each is drawn, the same draws for all cells. The
        threshold of a cell stays the same.

        Parameters
        ----------
        draws : int
            Number of resamples; the paper used 201.
        seed : int, optional
            By default the audit's own.

        Returns
        -------
        xarray.Dataset
            Dims of the headline: ``percentile_low``, ``percentile_high``, ``studentised_low``,
            ``studentised_high``, ``draws_used``.

        References
        ----------
        Davison & Hinkley (1997), Bootstrap Methods and their Application, chapter 5.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.bootstrap(draws=101).draws_used.sel(group="1").item()
        101
        """
        return _bootstrap.bootstrap(self, draws, seed)

    def confidence_sequence(self, planned: int = 1000, *, asymptotic: bool = False) -> xr.Dataset:
        r"""Return intervals that stay valid however often the audit is repeated on a growing log.

        They cover the gap at all looks together, over all groups of a scoring rule and pairing
        mode, and need the bounds of the outcome (``bounds=(0, 5)`` of :func:`mpc_lab.audit`;
        those of outcomes of 0 and 1 are known). Of each query (or unit) at most ``pairs_cap``
        pairs count, the closest ones, and the estimate is the mean over these. On each query in
        turn a bet is placed that the gap is not θ; the interval holds each θ for which

        .. math:: \tfrac12 \Big(\prod_q (1 + \lambda_q (D_q - \theta c_q))
                  + \prod_q (1 - \lambda_q (D_q - \theta c_q))\Big) < m/a,

        with :math:`c_q` pairs, :math:`D_q` the sum of their differences, and bets λ made from
        earlier queries alone. Queries come in the order of their first rows, or of ``time=``.
        Where rows are not in memory (pools, loaded audits, files and clusters that are walked) the
        bets are fixed in advance and sums are enough; such intervals are wider. Use one
        method for all looks.

        The threshold, ``pairs_cap``, the seed and the groups must have been fixed before the first
        look, and a query must be complete when it is first looked at. Shocks of items are not
        covered. Rules whose scores change with the log (``calibrated``, ``boosted`` and
        ``demoted`` without α) have no interval.

        Parameters
        ----------
        planned : int
            The number of queries at which the intervals should be tightest, fixed before the first
            look.
        asymptotic : bool
            Use the sequence of the central limit theorem instead, which needs no bounds and counts
            all pairs. It is given from 100 queries with a pair, and with skewed outcomes misses
            more often than the level says.

        Returns
        -------
        xarray.Dataset
            Dims of the headline: ``estimate``, ``low``, ``high``, ``n_pairs``; NaN where there is
            no pair. Its attribute ``method`` says which of the three it is.

        References
        ----------
        Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting;
        Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (2024), Time-uniform central limit theory and
        asymptotic confidence sequences.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> ranking = mpc.datasets.synthetic(queries=2_000)
        >>> audit = mpc.audit(ranking, threshold=0.05, pairs_cap=3, progress=False)
        >>> found = audit.confidence_sequence(planned=5_000).sel(group="1")
        >>> bool(found.low < found.estimate < found.high), found.attrs["method"]
        (True, 'betting')
        """
        return _sequence.confidence_sequence(self, planned, asymptotic)

    def compare(
        self, groups: Sequence[str] | None = None, k: int = 10, *, by_rank: bool = False
    ) -> xr.Dataset:
        """Set MPC beside the rival measures on the same log, and say why they disagree.

        Parameters
        ----------
        groups : list of str, optional
            By default all.
        k : int
            Places at the top, for Skew@k.
        by_rank : bool
            Also test the inequalities of neighbours at each of the first ten ranks.

        Returns
        -------
        xarray.Dataset
            Over (group, measure): ``estimate`` with its interval and ``p_value``; the same adjusted
            by Holm over all groups of the audit inside each measure (``p_adjusted``,
            ``ci_low_adjusted``, ``ci_high_adjusted``), ``flagged`` by that, and what the flag
            ``says``; over group the ``explanation`` in one sentence; over measure what it compares.
            ``mpc`` is the first pairing mode of the audit.
            A disagreement is explained only where chance alone would rarely make it, among all
            measures and groups.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.compare("1")
        >>> found.measure.values[:3].tolist()
        ['mpc', 'calibration_gap', 'pairwise_accuracy_overall']
        >>> found.flagged.sel(measure="mpc").item()
        False
        """
        return _compare.compare(self, groups, k, by_rank)

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
            The group, and the scores.
        segment : str, optional
            Only the queries of this segment.
        bins : int
            Bins of equal numbers of rows.

        Returns
        -------
        xarray.Dataset
            Over (side, bin): ``score``, ``outcome`` with its interval and its band, ``n_rows``;
            over (side, point): the ``isotonic`` fit at each ``isotonic_score`` with its interval.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.calibration("1", bins=4).outcome.sel(side="inside").values.round(2)
        array([0.12, 0.37, 0.62, 0.88])
        """
        return _compare.calibration(self, group, scoring_rule, segment, bins)

    def by_segment(
        self, scoring_rule: str = "baseline", pairing_mode: str = "matched"
    ) -> xr.Dataset:
        """Return the headline within each segment, and a test that the segments agree.

        Parameters
        ----------
        scoring_rule, pairing_mode : str
            The cells.

        Returns
        -------
        xarray.Dataset
            Over (group, segment): the gap at the group's threshold with its inference, clustered
            as the audit is, and adjusted by Holm over all groups and segments together
            (``p_adjusted``, ``ci_low_adjusted``, ``ci_high_adjusted``, ``ci_cut``); over group
            ``agree_statistic`` and ``agree_p_value``, which are not adjusted.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.by_segment().n_pairs.sel(group="1").values
        array([56, 95])
        """
        return _slices.by_segment(self, scoring_rule, pairing_mode)

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
            Over ``position`` the gap with its inference, clustered as the audit is, and adjusted by
            Holm over the positions of all groups (``p_adjusted``, ``ci_low_adjusted``,
            ``ci_high_adjusted``, ``ci_cut``); ``weighted_estimate`` and its interval;
            ``gamma_flip``, the γ in (−1, 4] nearest 0 at which the verdict changes if the
            outcome of the lower of two items is multiplied by 1 + γ, to undo what its position
            cost it, in the pairs of all groups (NaN: it never flips).

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> audit.by_position("1").position.values
        array([ 2,  3,  4,  5,  6,  7,  8,  9, 10])
        """
        return _slices.by_position(self, group, scoring_rule, pairing_mode, epsilon, weights)

    def power(self, effect: float | None = None, power: float = 0.8) -> xr.Dataset:
        r"""Return what could be detected, and how many queries a gap of `effect` needs.

        The smallest detectable gap is :math:`(t_{1-a/2} + t_{power}) \, SE`. With Q′ queries of
        the same kind from the same catalogue the variance is
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
            without) and, for an effect, how many such ``queries_needed`` for one group alone, and
            ``queries_needed_adjusted`` with a/m over the family of m cells, as the verdicts are
            (infinite where the floor hides the effect).

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.power(effect=0.05).sel(group="1")
        >>> round(found.mde.item(), 2), round(found.queries_needed.item(), -3)
        (0.15, 18000.0)
        """
        return _power.power(self, effect, power)
