"""All rival measures of a group beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.comparators.exposure import exposure_ratios
from mpc_lab.comparators.inequalities import inequalities
from mpc_lab.comparators.measure import FAVOURED, UNDERVALUED, Conditions, Measure
from mpc_lab.comparators.pairwise_accuracy import pairwise_accuracy
from mpc_lab.comparators.skew import skews
from mpc_lab.inference.arrays import FloatArray
from mpc_lab.pairing.log import Log, sort_rows

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

MPC_CONDITIONS = Conditions(scores="close", queries="same", looks_at="outcomes")


def compare(
    ranking: Ranking,
    group: str,
    *,
    scores: FloatArray | None = None,
    k: int = 10,
    level: float = 0.95,
    seed: int = 0,
    log: Log | None = None,
) -> list[Measure]:
    """Return the rival measures of one group, from one sort of the rows.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array, optional
        Those of another rule than the logged ones.
    k : int
        Places at the top, for Skew@k.
    level : float
    seed : int
        Of the joint test of the inequalities.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.

    Returns
    -------
    list of Measure
        ``calibration_gap``; ``pairwise_accuracy_overall``, ``_inter``, ``_intra``;
        ``inequality_group_above``, ``inequality_group_below``, ``inequalities_joint``;
        ``exposure_ratio``, ``treatment_ratio``, ``impact_ratio``; ``skew@k``, ``min_skew@k``,
        ``max_skew@k``, ``ndkl``.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = compare(mpc.datasets.synthetic(queries=500), "1")
    >>> found[0].name, found[0].flagged
    ('calibration_gap', False)
    """
    log = sort_rows(ranking, scores) if log is None else log
    return [
        calibration_gap(ranking, group, scores=scores, level=level),
        *pairwise_accuracy(ranking, group, scores=scores, level=level, log=log),
        *inequalities(ranking, group, scores=scores, level=level, seed=seed, log=log),
        *exposure_ratios(ranking, group, scores=scores, level=level, log=log),
        *skews(ranking, group, k=k, scores=scores, level=level, log=log),
    ]


def mpc_measure(
    estimate: float,
    std_error: float,
    ci_low: float,
    ci_high: float,
    p_value: float,
    n_effective: float,
    verdict: str,
) -> Measure:
    """Return the headline cell of an audit as a measure, flagged by its verdict.

    A verdict of ``overvalued`` says that the group is favoured.
    """
    says = {"undervalued": UNDERVALUED, "overvalued": FAVOURED}.get(verdict, "")
    return Measure(
        name="mpc",
        estimate=estimate,
        conditions=MPC_CONDITIONS,
        std_error=std_error,
        ci_low=ci_low,
        ci_high=ci_high,
        p_value=p_value,
        high_is=UNDERVALUED,
        flagged=says != "",
        says=says,
        n_effective=n_effective,
        reason="" if ci_low == ci_low else verdict,
    )
