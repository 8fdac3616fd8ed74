"""From sums to estimates, adjusted over their family, and what they say.

Arrays here have the axes (rule, mode, group); the modes are ``matched``, ``mirrored`` and, where it
was asked for, ``adjacent``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.inference.estimates import Estimates, effective_items, estimate
from mpc_lab.inference.multiplicity import adjust
from mpc_lab.inference.verdicts import NOT_ESTIMABLE, verdicts

if TYPE_CHECKING:
    from mpc_lab.pairing.moments import Moments

Array = NDArray[Any]
ITEM_FAMILIES = ("item", "union")


def infer(moments: Moments, *, cluster: str, level: float) -> Estimates:
    """Estimate every cell of axes (mode, group, threshold)."""
    by_item = "item" in moments.by
    items = None
    if by_item:
        items = effective_items(
            moments.pairs, moments.squares["inside"], moments.squares["outside"]
        )
    return estimate(
        moments.pairs,
        moments.center[None, :, None],
        moments.by,
        clusters=moments.clusters,
        cluster=cluster,
        level=level,
        item_effective=items,
        # An item in two units makes the squares of its whole sum larger than those of its parts.
        shared_items=moments.by["item"].cc > moments.by["item_query"].cc if by_item else False,
    )


def judge(
    by_rule: Sequence[Estimates],
    *,
    method: str,
    level: float,
    tolerance: float | None,
    seed: int,
    correlations: Sequence[Array] | None = None,
) -> dict[str, Array]:
    """Adjust the cells of each mode over groups and rules, and give each its verdict.

    Parameters
    ----------
    by_rule : sequence of Estimates
        At one threshold: arrays (mode, group, 1).
    method, level, tolerance, seed
        As of an audit.
    correlations : sequence of float64 arrays (cell, cell), optional
        For each mode, of the cells rule after rule; for ``romano_wolf``.
    """
    stacked = {
        name: np.stack([getattr(found, name)[..., 0] for found in by_rule])
        for name in ("p_value", "estimate", "std_error", "dof", "reason")
    }
    names = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
    n_rules, n_modes, n_groups = stacked["p_value"].shape
    cells: dict[str, Array] = {
        name: np.empty((n_rules, n_modes, n_groups), dtype=bool if name == "ci_cut" else float)
        for name in names
    }
    for mode in range(n_modes):
        found = adjust(
            stacked["p_value"][:, mode].ravel(),
            stacked["estimate"][:, mode].ravel(),
            stacked["std_error"][:, mode].ravel(),
            stacked["dof"][:, mode].ravel(),
            method=method,
            level=level,
            correlation=None if correlations is None else correlations[mode],
            seed=seed,
        )
        for name in names:
            cells[name][:, mode] = getattr(found, name).reshape(n_rules, n_groups)
    return cells | bracketed(cells, stacked["reason"], tolerance)


def bracketed(cells: dict[str, Array], why: Array, tolerance: float | None) -> dict[str, Array]:
    """Judge ``matched`` with its mirror image, and let ``mirrored`` carry the same verdict."""

    def of(mode: int, bracket: int) -> tuple[Array, Array]:
        low, high, cut = (cells[name] for name in ("ci_low_adjusted", "ci_high_adjusted", "ci_cut"))
        verdict, reason = verdicts(
            low[:, mode],
            high[:, mode],
            low[:, bracket],
            high[:, bracket],
            cut=cut[:, mode],
            mirrored_cut=cut[:, bracket],
            tolerance=tolerance,
        )
        return verdict, np.where(verdict == NOT_ESTIMABLE, why[:, mode], reason)

    matched = of(0, 1)
    by_mode = [matched, matched, *(of(mode, mode) for mode in range(2, why.shape[1]))]
    return {
        "verdict": np.stack([verdict for verdict, _ in by_mode], axis=1),
        "verdict_reason": np.stack([reason for _, reason in by_mode], axis=1),
    }


def family_size(by_rule: Sequence[Estimates]) -> Array:
    """Return how many cells of each mode are estimable."""
    estimable = np.stack([found.estimable[..., 0] for found in by_rule])
    return np.asarray(estimable.sum(axis=(0, 2)))
