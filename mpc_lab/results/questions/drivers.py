"""Which queries, items or producers a finding rests on, labelled."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mpc_lab.results.schema import AuditBase
from mpc_lab.text import labels, percent, quote, with_interval


class DriverQuestions(AuditBase):
    """What a finding rests on; see :class:`mpc_lab.Audit`."""

    def drivers(
        self,
        group: str,
        by: str = "query",
        scoring_rule: str = "baseline",
        pairing_mode: str | None = None,
        *,
        limit: int | None = 10,
    ) -> xr.Dataset:
        r"""Leave out each query, item or producer in turn, and name those that move the gap most.

        :math:`\theta_{(-c)} = (D - D_c) / (P - P_c)` with the pairs of cluster c left out; for the
        mean of two sides this is done inside each side and cell of places, before they are joined.
        Scores, the threshold and all other pairs stay as they are. A finding that one cluster makes
        or breaks is a finding about that cluster.

        Parameters
        ----------
        group : str
            The group.
        by : {"query", "unit", "item", "producer"}
            What is left out, one at a time. Leaving out an item leaves out all pairs it is in.
        scoring_rule : str
            The scores.
        pairing_mode : str, optional
            By default the first of the audit.
        limit : int, optional
            How many to return, the largest change first; None for all that have a pair. The
            interval and the verdict without each are computed exactly, so each takes about as long
            as an audit of this group.

        Returns
        -------
        xarray.Dataset
            Over ``driver`` (its id): ``n_pairs``, ``share`` (of what all pairs count),
            ``mean_difference`` of its own pairs, ``without`` (the estimate without it, NaN where
            too little is left), ``change``, ``without_ci_low``, ``without_ci_high``,
            ``without_verdict`` with its reason, ``verdict_changes``, and ``number``, by which
            charts and reports name queries. For items with a label there is also ``label``, which
            charts and reports show. For the verdict the other groups stay as they are.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
        >>> found = audit.drivers("1", limit=3)
        >>> found.n_pairs.values.tolist(), found.attrs["n_drivers"]
        ([2, 2, 2], 143)
        """
        from mpc_lab.results.questions.left_out import drivers

        return drivers(self, group, by, scoring_rule, pairing_mode, limit)


def driver_names(found: xr.Dataset, *, show_ids: bool) -> list[str]:
    """Return how drivers are called; queries and units by number unless ids are shown."""
    by = str(found.attrs["by"])
    if by in ("query", "unit") and not show_ids:
        return [f"{by} {k:,} of {found.attrs['n_all']:,}" for k in found["number"].values.tolist()]
    own = found["driver"].values.tolist()
    called = found["label"].values.tolist() if "label" in found else own
    # The ids distinguish two items with one label.
    twice = [
        one if called.count(one) == 1 else f"{one} ({k})"
        for one, k in zip(called, own, strict=True)
    ]
    return labels(twice)


def heaviest(audit: AuditBase, group: str, rule: str, mode: str) -> list[xr.Dataset]:
    """Return the query, and where items are known the item, that moves the gap of a cell most."""
    from mpc_lab.results.questions.left_out import drivers

    ranking = audit.ranking
    kinds = ["query", "item"] if ranking is not None and ranking.n_items else ["query"]
    found = [drivers(audit, group, by, rule, mode, 1) for by in kinds]
    return [one for one in found if one.sizes["driver"]]


def heaviest_in_words(found: xr.Dataset, *, show_ids: bool = False) -> str:
    """Return a sentence on the first of some drivers.

    Parameters
    ----------
    found : xarray.Dataset
        What :meth:`mpc_lab.Audit.drivers` returned.
    show_ids : bool
        Whether a query has its id, as on the screen, or is numbered.
    """
    name, one = driver_names(found, show_ids=show_ids)[0], found.isel(driver=0)
    if show_ids or found.attrs["by"] in ("item", "producer"):
        name = f"{found.attrs['by']} {name}"
    share = percent(float(f"{one['share'].item():.2g}"))
    start = f"The gap of {quote(found['group'].item())} changes most without {name}"
    if np.isnan(one["without"].item()):
        return f"{start}, which has {share} of the pairs: there is no gap to estimate without it."
    ends = (one["without_ci_low"].item(), one["without_ci_high"].item())
    gap = with_interval(one["without"].item(), *ends)
    verdict = str(one["without_verdict"].item())
    turned = bool(one["verdict_changes"].item())
    then = f"then {verdict} and not {found.attrs['verdict']}" if turned else f"still {verdict}"
    return f"{start}, which has {share} of the pairs: it would be {gap}, {then}."
