"""MPC beside the rival measures, labelled, and why they disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import check_flag
from mpc_lab.results.base import (
    chosen_groups,
    inference_options,
    is_rank_only,
    need_rows,
    refuse_terms,
    rule_scores,
    settings,
)
from mpc_lab.results.questions.pairs import shown_scores, sort_once
from mpc_lab.results.schema import AuditBase, text

if TYPE_CHECKING:
    from mpc_lab.comparators.base import Case, Comparison

_PLAIN = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "null", "n_effective")
_ADJUSTED = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted")
_DIMS = ("group", "measure")


def compare(
    audit: AuditBase, groups: Sequence[str] | None, k: int, by_rank: bool = False
) -> xr.Dataset:
    """Return all measures of each group; see :meth:`mpc_lab.Audit.compare`."""
    from mpc_lab.comparators.registry import explain

    refuse_terms(audit, "compare", {"against": "The rival measures know all others only."})
    need_rows(audit, "compare")
    chosen = audit.groups if groups is None else chosen_groups(audit, "compare", groups)
    level = float(settings(audit)["level"])
    rivals = _rivals(audit, k)
    ranks = _ranks(audit) if check_flag("by_rank", by_rank) else {}
    rows, sentences = [], []
    for group in chosen:
        mpc = _mpc(audit, group)
        rows.append([mpc, *rivals[group], *ranks.get(group, ())])
        sentences.append(explain(group, mpc, rivals[group], level).sentence)
    return _label(chosen, rows, sentences, level)


def _rivals(audit: AuditBase, k: int) -> dict[str, list[Comparison]]:
    """Return the rivals of every group, adjusted over all groups whichever are asked for.

    They are kept with the audit, because a question about one group needs all of them.
    """
    from mpc_lab.comparators.registry import COMPARATORS
    from mpc_lab.comparators.registry import compare as rivals_of

    return _of_every_group(audit, (k, tuple(COMPARATORS)), rivals_of, k)


def _ranks(audit: AuditBase) -> dict[str, list[Comparison]]:
    """Return the inequalities at each rank, a family of their own that changes no rival's flag."""
    from mpc_lab.comparators.inequalities import inequalities

    return _of_every_group(audit, ("by rank",), partial(inequalities, by_rank=True))


def _of_every_group(
    audit: AuditBase,
    name: tuple[Any, ...],
    measure: Callable[[Case], list[Comparison]],
    k: int = 10,
) -> dict[str, list[Comparison]]:
    from mpc_lab.comparators.base import Case
    from mpc_lab.comparators.registry import adjust
    from mpc_lab.pairing.kernels import FEW_ROWS
    from mpc_lab.pairing.threads import in_order

    ranking = need_rows(audit, "compare")
    key = (id(ranking), *name)
    known: dict[str, list[Comparison]] | None = audit._rivals.get(key)
    if known is not None:
        return known
    _, level, seed = inference_options(audit)
    how: dict[str, Any] = {"k": k, "level": level, "seed": seed}
    first = Case(ranking, audit.groups[0], **how, log=sort_once(audit, ranking))
    # What all groups share is made with the first group, before threads could make it twice.
    found = [measure(first)]
    found += in_order(
        lambda group: measure(Case(ranking, group, **how, like=first)),
        audit.groups[1:],
        here=ranking.n_rows < FEW_ROWS,
    )
    made = dict(zip(audit.groups, adjust(found, level), strict=True))
    audit._rivals[key] = made
    return made


def _mpc(audit: AuditBase, group: str) -> Comparison:
    from mpc_lab.comparators.registry import compare_mpc

    rule = audit.headline["scoring_rule"].values.tolist()
    # The mode that the summary leads with; its sentence is about close scores, as in every mode.
    cell = audit.headline.sel(
        group=group,
        scoring_rule="baseline" if "baseline" in rule else rule[0],
        pairing_mode=audit.headline["pairing_mode"].values[0],
    )
    names = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective")
    return compare_mpc(
        **{name: float(cell[name]) for name in names},
        verdict=str(cell.verdict.item()),
        p_adjusted=float(cell.bracket_p_adjusted),
        ci_low_adjusted=float(cell.bracket_low),
        ci_high_adjusted=float(cell.bracket_high),
        rank_only=is_rank_only(audit),
    )


def _label(
    groups: Sequence[str], rows: list[list[Comparison]], sentences: list[str], level: float
) -> xr.Dataset:
    def column(pick: Any) -> np.ndarray[Any, Any]:
        return np.array([[pick(one) for one in row] for row in rows])

    variables: dict[str, Any] = {
        name: (_DIMS, column(lambda one, name=name: float(getattr(one, name))))
        for name in (*_PLAIN, *_ADJUSTED)
    }
    variables["flagged"] = (_DIMS, column(lambda one: one.flagged))
    for name in ("says", "reason"):
        variables[name] = (_DIMS, text(column(lambda one, name=name: getattr(one, name))))
    for name in ("scores", "queries", "looks_at"):
        variables[f"compares_{name}"] = (
            "measure",
            text([getattr(one.conditions, name) for one in rows[0]]),
        )
    variables["explanation"] = ("group", text(sentences))
    labels = {"group": text(groups), "measure": text([one.name for one in rows[0]])}
    return xr.Dataset(variables, labels, {"level": level})


def calibration(
    audit: AuditBase,
    group: str,
    scoring_rule: str,
    segment: str | None,
    bins: int,
    draws: int = 200,
) -> xr.Dataset:
    """Return outcome against score on both sides; see :meth:`mpc_lab.Audit.calibration`.

    Without `draws` the isotonic fit has no interval, which takes most of the time.
    """
    from mpc_lab.comparators.calibration import calibration_curves

    ranking = need_rows(audit, "calibration")
    scores = rule_scores(audit, group, scoring_rule, "matched")
    options = settings(audit)
    found = calibration_curves(
        ranking,
        group,
        segment=segment,
        scores=scores,
        bins=bins,
        level=float(options["level"]),
        draws=draws,
        seed=int(options.get("seed", 0)),
    )
    sides = tuple(found)

    def as_given(name: str, values: Any) -> Any:
        return shown_scores(ranking, scoring_rule, values) if name.endswith("score") else values

    binned = ("score", "outcome", "ci_low", "ci_high", "band_low", "band_high", "n_rows")
    variables: dict[str, Any] = {
        name: (
            ("side", "bin"),
            as_given(name, np.stack([getattr(found[side], name) for side in sides])),
        )
        for name in binned
    }
    widest = max(len(found[side].isotonic) for side in sides)
    for name in ("isotonic_score", "isotonic", "isotonic_low", "isotonic_high"):
        padded = np.full((len(sides), widest), np.nan)
        for k, side in enumerate(sides):
            values = getattr(found[side], name)
            padded[k, : len(values)] = values
        variables[name] = (("side", "point"), as_given(name, padded))
    attrs = {"group": group, "scoring_rule": scoring_rule, "segment": segment or ""}
    return xr.Dataset(variables, {"side": text(sides)}, attrs)
