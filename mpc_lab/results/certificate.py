"""The largest boost that an audit can certify, with what was assumed said beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.results.cell_pairs import inference_options, open_cell
from mpc_lab.results.wording import quoted

if TYPE_CHECKING:
    from mpc_lab.inference.certificate import Certified
    from mpc_lab.objective.clustered import Clustered
    from mpc_lab.results.audit import Audit

LARGEST_LIST = 2_000_000


@dataclass(frozen=True, repr=False)
class Certificate:
    """A boost of a group that raises the expected objective, if its assumption holds.

    Attributes
    ----------
    group, scoring_rule : str
    alpha : float
        The largest certified boost, in units of the score; 0 where none is.
    mpc_epsilon : float
        The largest threshold up to which MPC itself has a lower band above 0. For comparison
        only: a mean over gaps up to ε does not give the mean at each gap.
    level : float
    change, change_low, change_high : float
        DCG under a boost by `alpha` less DCG without, measured on the log, with its paired
        interval; NaN where no boost is certified.
    bins : xarray.Dataset
        Over ``bin``: its gaps, its mean with the simultaneous band, and the same for all gaps up
        to its right end (``cumulative_…``).
    """

    group: str
    scoring_rule: str
    alpha: float
    mpc_epsilon: float
    level: float
    change: float
    change_low: float
    change_high: float
    bins: xr.Dataset

    @property
    def sentence(self) -> str:
        """What is certified, what was assumed, and what was measured."""
        level = f"{100 * self.level:g} %"
        if self.alpha == 0:
            who = quoted(self.group)
            return f"No boost of {who} is certified at {level} confidence: {self._why()}."
        return (
            "If outcome differences depend on items only through their score gap, and their mean "
            f"does not change sign inside a bin, a boost of up to {self.alpha:.4g} raises the "
            f"expected objective, at {level} confidence. That assumption is not tested; measured "
            f"directly, the change is {self.change:+.4g} in DCG "
            f"({level} interval {self.change_low:+.4g} to {self.change_high:+.4g})."
        )

    def _why(self) -> str:
        if self.bins.sizes["bin"] == 0:
            return "its pairs come from fewer than 30 effective queries"
        first = self.bins.isel(bin=0)
        return (
            f"the mean outcome difference at gaps up to {float(first.gap_high):.4g} is "
            f"{float(first.estimate):+.4g}, and its band does not lie above 0"
        )

    def __repr__(self) -> str:
        return self.sentence


def certificate(audit: Audit, group: str, scoring_rule: str = "baseline") -> Certificate:
    r"""Find the largest boost of a group that is certified to raise the expected objective.

    The paper's theorem: if outcome differences depend on items only through their score gap, and
    :math:`E[d \mid \Delta] > 0` at every gap :math:`\Delta \le \alpha`, then adding α to the
    scores of the group raises the expected :math:`\sum_k w_k y_k`. The mean is taken in gap bins
    with a band over all of them (`mpc_lab.inference.certificate`). The cumulative MPC does not
    certify: in the paper's own example it is above 0 up to ε = 0.15, and DCG falls from a boost
    of about 0.12 on.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule : str
        The group, and the scores that would be boosted.

    Returns
    -------
    Certificate
        The bins cover all ``matched`` pairs, or the 2,000,000 with the smallest gaps. Its
        `sentence`, which is also what it prints, says what was assumed.

    References
    ----------
    Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.results.nearzero import certificate
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    >>> found = certificate(audit, "1")
    >>> 0 < found.alpha < 0.12
    True
    """
    from mpc_lab.inference.certificate import certify
    from mpc_lab.pairing.reach import nearest_gap

    cell = open_cell(audit, "certificate", group, scoring_rule, "matched")
    cluster, level, seed = inference_options(audit)
    reach = nearest_gap(cell.log, LARGEST_LIST)
    pairs = cell.pairs("matched", 0.0 if math.isnan(reach) else reach)
    found = certify(
        pairs.gap,
        pairs.d,
        pairs.query,
        item_i=pairs.item_i,
        item_j=pairs.item_j,
        cluster=cluster,
        level=level,
        seed=seed,
    )
    change = _measured(audit, group, scoring_rule, found.alpha, level)
    return Certificate(
        group=group,
        scoring_rule=scoring_rule,
        alpha=found.alpha,
        mpc_epsilon=found.mpc_epsilon,
        level=level,
        change=change.estimate if change else math.nan,
        change_low=change.ci_low if change else math.nan,
        change_high=change.ci_high if change else math.nan,
        bins=_bins(found, {"cluster": cluster, "level": level, "group": group}),
    )


def _measured(audit: Audit, group: str, rule: str, alpha: float, level: float) -> Clustered | None:
    """Measure what a boost by α does to DCG on the log; nothing where there is no boost."""
    from mpc_lab.objective.change import paired_change
    from mpc_lab.results.rows import need_rows, rule_scores

    if alpha == 0:
        return None
    ranking = need_rows(audit, "certificate")
    scores = rule_scores(audit, group, rule, "matched")
    before = ranking.score if scores is None else scores
    after = before + alpha * ranking.member(group)
    return paired_change(ranking, after, before, level=level).dcg


def _bins(found: Certified, attrs: dict[str, Any]) -> xr.Dataset:
    variables: dict[str, Any] = {
        "gap_low": ("bin", found.edges[:-1]),
        "gap_high": ("bin", found.edges[1:]),
        "certified": ("bin", found.bins.above),
    }
    names = ("estimate", "std_error", "dof", "n_effective", "n_pairs", "n_queries")
    for prefix, curve in (("", found.bins), ("cumulative_", found.cumulative)):
        for name in (*names, "band_low", "band_high"):
            variables[prefix + name] = ("bin", getattr(curve, name))
    coords = {"bin": np.arange(1, len(found.edges))}
    return xr.Dataset(variables, coords=coords, attrs=attrs)
