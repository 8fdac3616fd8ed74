"""Gaps net of other groups and of covariates, labelled, and what each gap alone is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.errors import MpcError, check_number
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.base import (
    inference_options,
    names_in,
    need_rows,
    refuse_rank_only,
    refuse_terms,
    settings,
)
from mpc_lab.results.questions.balance import Covariates, read_covariates
from mpc_lab.results.questions.pairs import sort_once
from mpc_lab.results.schema import AuditBase, text
from mpc_lab.results.wording import columns_of, outcome_word
from mpc_lab.text import listing, minus, number, quote
from mpc_lab.vocabulary import ITEM, Floats

if TYPE_CHECKING:
    from mpc_lab.inference.partial import Partial
    from mpc_lab.pairing.walk import Walk
    from mpc_lab.ranking import ColumnNames, Ranking

_NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")
_ADJUSTED = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
MOST_PAIRS = 20_000_000  # each pair is visited twice
_KINDS = ("alone", "net")
_METHOD = (
    "weighted least squares over all pairs of a query at most `width` apart, weights falling to 0 "
    "there; on the difference of membership in every group, of the score, of covariates, and a "
    "constant; alone: one group, score and constant"
)
_SENTENCES = 3
_FEW = 8
COLLINEAR, ALIKE = "collinear", "alike"
_WHY = {
    COLLINEAR: "the columns before them say the same",
    ALIKE: "both items of every close pair are alike in them",
}


def close_scores(width: float) -> str:
    """Return in words how close the scores of the pairs are."""
    return f"scores less than {width:.3g} apart" if width > 0 else "the same score"


@dataclass(frozen=True, repr=False)
class PartialGaps:
    """Gaps of all groups, alone and net of each other.

    Attributes
    ----------
    data : xarray.Dataset
        Over (group, kind), kind being ``alone`` or ``net``: ``estimate``, ``std_error``,
        ``ci_low``, ``ci_high``, ``p_value``, ``n_effective``, ``dof``, and adjusted by Holm over
        groups ``p_adjusted``, ``ci_low_adjusted``, ``ci_high_adjusted``, ``ci_cut``; ``reason``
        where there is no interval. Over (group, part): ``explained``, what each group and
        covariate adds to the gap of a group alone; a group's own part is its gap net of others.
        Over covariate: ``covariate_estimate`` and its interval. ``slope_…``, of the score, and
        ``constant_…``, what being the upper one is worth. ``left_out``: columns that
        are not in the regression, with ``left_out_reason``: ``collinear``, or ``alike`` where both
        items of every pair have the same value. Over group: ``against``, the left-out group whose
        items the net gap is relative to, or empty. Attributes: ``width``, ``n_pairs`` and more.
    """

    data: xr.Dataset

    def to_frame(self) -> pd.DataFrame:
        """Return one row a group, its numbers alone and net."""
        columns = {
            f"{name}_{kind}": self.data[name].sel(kind=kind).values
            for kind in _KINDS
            for name in (*_NUMBERS, *_ADJUSTED)
        }
        return pd.DataFrame(columns, index=pd.Index(self.data["group"].values, name="group"))

    def decomposition(self) -> pd.DataFrame:
        """Return what each gap alone is made of: a row a group, columns that add up to it."""
        return pd.DataFrame(self.data["explained"].to_pandas())

    @property
    def sentence(self) -> str:
        """What changes when the other groups are held fixed, the largest changes first."""
        alone, net = (self.data["estimate"].sel(kind=kind).values for kind in _KINDS)
        change = np.abs(net - alone)
        order = [k for k in np.argsort(-np.nan_to_num(change, nan=-1.0)) if np.isfinite(change[k])]
        if not order:
            return "No group has enough close pairs for a gap net of the others."
        names = self.data["group"].values
        low, high = (self.data[f"ci_{end}_adjusted"].sel(kind="net").values for end in _ENDS)
        found = [names[k] for k in range(len(names)) if low[k] > 0 or high[k] < 0]
        more = "".join(self._left_out(why) for why in (COLLINEAR, ALIKE))
        more += "".join(f" {words}." for words in self.references)
        if not self.held:
            does = "excludes" if found else "does not exclude"
            return minus(
                f"The gap of {quote(names[0])} is {_sign(alone[0])}, and its interval {does} 0: "
                f"there is no other group and no covariate to hold fixed.{more}"
            )
        said = [
            f"the gap of {quote(names[k])} is {_sign(alone[k])} alone and {_sign(net[k])} net"
            for k in order[:_SENTENCES]
        ]
        clear = (
            f" Net of them, the adjusted interval excludes 0 for {_some(found)}."
            if found
            else " Net of them, no adjusted interval excludes 0."
        )
        return minus(f"With {self.held} held fixed, {'; '.join(said)}.{clear}{more}")

    @property
    def held(self) -> str:
        """What is held fixed, in words; empty where there is one group and no covariate."""
        some = {"the other groups": self.data.sizes["group"] > 1}
        some["the covariates"] = self.data.sizes["covariate"] > 0
        return " and ".join(what for what, there in some.items() if there)

    @property
    def references(self) -> list[str]:
        """Which net gaps are relative to one left-out group, not to all other items, in words."""
        pairs = zip(self.data["group"].values, self.data["against"].values, strict=True)
        found: dict[str, list[str]] = {}
        for group, against in pairs:
            if against:
                found.setdefault(str(against), []).append(group)
        return [
            f"The net {'gaps' if len(of) > 1 else 'gap'} of {_some(of)} "
            f"{'are' if len(of) > 1 else 'is'} against the items of {quote(name)}"
            for name, of in found.items()
        ]

    def _left_out(self, why: str) -> str:
        """Say which columns were left out for a reason."""
        left = self.data["left_out"].values[self.data["left_out_reason"].values == why]
        names = listing([quote(str(name)) for name in left])
        return f" Left out, because {_WHY[why]}: {names}." if len(left) else ""

    def __repr__(self) -> str:
        return self.sentence


_ENDS = ("low", "high")


def _some(names: Sequence[str]) -> str:
    """Return names in one line, or how many groups they are where that would be a long one."""
    few = len(names) <= _FEW
    return listing([quote(name) for name in names]) if few else f"{len(names):,} groups"


def _sign(value: float) -> str:
    return f"{'+' if value >= 0 else ''}{number(float(value), 3)}"


def partial(
    audit: AuditBase, covariates: Covariates = (), width: float | None = None
) -> PartialGaps:
    """Hold other groups and covariates fixed; see :meth:`mpc_lab.Audit.partial`."""
    from mpc_lab.inference.partial import choose_width, count_close, fit_partial
    from mpc_lab.pairing.close import Design

    refuse_rank_only(audit, "partial")
    refuse_terms(
        audit, "partial", {"against": "Every group is in one regression over all close pairs."}
    )
    if width is not None:
        width = check_number("width", width, above=0.0)
    cluster, level, _ = inference_options(audit)
    owner = str(settings(audit).get("owner", ITEM))
    with _walk(audit, covariates) as (walk, columns, names):
        n_columns = len(audit.groups) + 2 + len(names)
        if width is None:
            epsilon = audit.headline["epsilon"].sel(scoring_rule="baseline").values
            largest = float(np.nanmax(epsilon)) if np.isfinite(epsilon).any() else 0.0
            width = choose_width(walk, largest, n_columns)
        n_pairs = count_close(walk, width)
        if n_pairs > MOST_PAIRS:
            raise MpcError(
                f"There must be at most {MOST_PAIRS:,} pairs within the width; got {n_pairs:,} "
                f"within {width:.3g}. Pass a smaller width=."
            )
        design = Design(len(audit.groups), width, columns.sides_by_place, len(names))
        found = fit_partial(walk, design, cluster=cluster, level=level, owner=owner)
    made = _dataset(found, audit.groups, names, cluster, level)
    return PartialGaps(made.assign_attrs(outcome=outcome_word(settings(audit))))


@contextmanager
def _walk(
    audit: AuditBase, covariates: Covariates
) -> Iterator[tuple[Walk, ColumnNames, list[str]]]:
    """Walk the log under its logged scores, on the terms of an audit; name the covariates."""
    from mpc_lab.pairing.log import apply_terms, select_groups, sort_rows, with_groups
    from mpc_lab.pairing.threads import ThreadedWalk

    # Covariates that are given as arrays by row need the rows in memory.
    again = None if isinstance(covariates, Mapping) else audit._walk_with
    if audit.ranking is None and again is not None:
        names = list(dict.fromkeys(str(name) for name in names_in(covariates)))
        _refuse_roles(audit, names)
        with again(names) as (walk, facts):
            yield walk, facts.columns, names
        return
    ranking = need_rows(audit, "partial")
    names, x = _columns(ranking, covariates)
    _refuse_roles(audit, names)
    chosen = np.array([ranking.group_index(group) for group in audit.groups], dtype=np.int64)
    masks, logged = select_groups(ranking.masks, chosen), sort_once(audit, ranking)
    log = sort_rows(ranking, masks=masks) if logged is None else with_groups(logged, masks)
    log = apply_terms(terms_of(settings(audit)), log, log)
    yield ThreadedWalk(replace(log, extra=x)), ranking.columns, names


def _refuse_roles(audit: AuditBase, names: list[str]) -> None:
    """Refuse a covariate that is a group, is held fixed already, or is the outcome itself."""
    both = [name for name in names if name in audit.groups]
    if both:
        raise MpcError(
            f"A covariate must not be a group of the audit; got {quote(both[0])}. Leave it out: "
            "every group is in the regression."
        )
    outcome = str(columns_of(settings(audit)).get("outcome"))
    if outcome in names:
        raise MpcError(
            f"A covariate must not be the outcome; got {quote(outcome)}. Name columns that say "
            "what an item or a query is."
        )


def _columns(ranking: Ranking, covariates: Covariates) -> tuple[list[str], Floats]:
    values = read_covariates(ranking, covariates)
    for name, column in values.items():
        if not np.isfinite(column).all():
            missing = int((~np.isfinite(column)).sum())
            raise MpcError(
                f"Covariate {name!r} must be a finite number in every row; got {missing:,} "
                "missing or infinite. Fill them, or leave these rows out."
            )
    x = np.column_stack(list(values.values())) if values else np.empty((ranking.n_rows, 0))
    return list(values), np.ascontiguousarray(x)


def _dataset(
    found: Partial, groups: tuple[str, ...], covariates: list[str], cluster: str, level: float
) -> xr.Dataset:
    from mpc_lab.inference.verdicts import adjust

    n = len(groups)
    variables: dict[str, Any] = {}
    for name in (*_NUMBERS, "reason"):
        both = [getattr(found.alone, name), getattr(found.net, name)[:n]]
        variables[name] = (("group", "kind"), np.stack(both, axis=1))
    family = [
        adjust(
            *(variables[name][1][:, k] for name in ("p_value", "estimate", "std_error", "dof")),
            method="holm",
            level=level,
        )
        for k in range(len(_KINDS))
    ]
    for name in _ADJUSTED:
        variables[name] = (("group", "kind"), np.stack([getattr(f, name) for f in family], axis=1))
    net = found.net
    columns = np.r_[0:n, n + 2 : n + 2 + len(covariates)]
    variables["explained"] = (("group", "part"), found.parts[:, columns])
    for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value"):
        variables[f"covariate_{name}"] = ("covariate", getattr(net, name)[n + 2 :])
        variables[f"slope_{name}"] = ((), getattr(net, name)[n])
        variables[f"constant_{name}"] = ((), getattr(net, name)[n + 1])
    every = [*groups, "score", "constant", *covariates]
    left = np.flatnonzero(~found.kept)
    why = [ALIKE if not found.varies[k] else COLLINEAR for k in left]
    variables["against"] = ("group", text([every[c] if c >= 0 else "" for c in found.against]))
    variables["left_out_reason"] = ("left_out", text(why))
    coords = {
        "group": text(groups),
        "kind": text(_KINDS),
        "covariate": text(covariates),
        "part": text([*groups, *covariates]),
        "left_out": text([every[k] for k in left]),
    }
    attrs = {
        "method": _METHOD,
        "cluster": cluster,
        "level": level,
        "adjust": "holm",
        "width": found.width,
        "n_pairs": found.n_pairs,
        "n_ties": found.n_ties,
        "n_queries": found.n_queries,
    }
    return xr.Dataset(variables, coords, attrs)


class WhyQuestions(AuditBase):
    """Why there is a gap; see :class:`mpc_lab.Audit`."""

    def partial(self, covariates: Covariates = (), width: float | None = None) -> PartialGaps:
        r"""Return the gap of each group net of the other groups, of place and of covariates.

        Over all pairs of a query at most h apart, whatever their groups, from the lower to the
        upper one of the list, by weighted least squares with weights :math:`1 - |\Delta s|/h`:

        .. math:: y_{upper} - y_{lower} = \sum_g \theta_g \Delta m_g + \kappa \Delta s + \pi
                  + \gamma' \Delta x.

        :math:`\theta_g` is the gap of g at a tie, net of the other groups. *Alone* is the same
        with one group and no covariates; it is not the headline. What other groups and covariates
        explain of it adds up to it exactly (Gelbach's decomposition). Clustered as the audit is,
        with the plain correction. Under the logged scores.

        Parameters
        ----------
        covariates : str, list of str, or mapping of str to array
            Columns of the log, or values by row; a text becomes a column for each of its values,
            and one for rows without a value. Where rows are not in memory, columns of numbers.
        width : float, optional
            h; by default twice the largest headline threshold, and at least what gives 20 pairs a
            coefficient.

        Returns
        -------
        PartialGaps
            Prints a sentence; has ``data``, an xarray.Dataset, ``to_frame()`` and
            ``decomposition()``.

        References
        ----------
        Gelbach (2016), When do covariates matter? And which ones, and how much?

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
        >>> found = audit.partial()
        >>> found.data["left_out"].values.tolist()
        ['2']
        >>> parts = found.decomposition().sum(axis=1)
        >>> bool(abs(parts["1"] - found.to_frame().loc["1", "estimate_alone"]) < 1e-10)
        True
        """
        return partial(self, covariates, width)
