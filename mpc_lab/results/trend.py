"""Audits of one period after another: gaps over time, their changes, and an alarm."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.html import Head, label, paragraphs, table
from mpc_lab.inference.sequence import change_evidence
from mpc_lab.results.audit import Audit
from mpc_lab.results.base import correction_of, settings
from mpc_lab.results.difference import Difference
from mpc_lab.results.earlier import (
    Ids,
    against_all_before,
    by_place,
    choose_source,
    known_ids,
)
from mpc_lab.results.gate import Decision, decide, explain
from mpc_lab.results.pool import pool
from mpc_lab.results.pooling import item_tables
from mpc_lab.results.schema import text
from mpc_lab.results.sums import moments_by_rule
from mpc_lab.results.two_audits import difference, identify_logs, say_left_out
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import entry, listing, plain, plural, quote, with_interval
from mpc_lab.vocabulary import VARIANCES

_GAPS = ("estimate", "std_error", "ci_low", "ci_high", "n_pairs")
_DISTINCT = (
    "It assumes that no query is in two periods: save all with ids=True and one key to prove it."
)
_NOT_FOLLOWED = "Not followed, since not all periods have"
# Notes of the differences between two periods that are printed once for all of them.
_SAID_ONCE = ("matched by", "no query is in both", "Not compared")
_CHANGES = ("difference", "std_error", "ci_low", "ci_high", "p_value")


def trend(audits: Sequence[Audit], labels: Sequence[Any] | None = None) -> Trend:
    r"""Follow the gaps of groups over periods, and raise an alarm where one changes.

    Every period is compared with the one before, by :func:`mpc_lab.difference`, and with all before
    together. With :math:`z_t` the second change in standard errors, evidence for a change grows as
    :math:`E_t = (E_{t-1} + 1/(t(t+1))) \exp(\pm\lambda z_t - \lambda^2/2)`, the mean over λ in
    {½, 1, 2} and both signs. The alarm rings at :math:`E_t \ge m/a` for m groups: it may be asked
    after every period, for as long as one likes.

    All periods before are one pool (:func:`mpc_lab.pool`), whose standard error is that of one
    audit of all their rows. Two things a pool cannot do: compare inside cells of places
    (``symmetric`` pairs of a log with ``position=``), and match queries that several periods share.
    There all before are the mean of their gaps, weighted by pairs, each period about its own mean;
    with rows the variance is that of the stacked pairs of all periods, queries and items matched,
    and from sums that of distinct queries. Weights are taken as given, and a period in which a
    group has no variance of its own is left out of its mean. What was assumed, and for which
    groups the data cannot tell, is in :meth:`Trend.summary`.

    Parameters
    ----------
    audits : list of Audit
        In the order of time, at one threshold fixed in advance (``threshold=0.05``). Where queries
        are known to be in several periods, all audits must have their rows, or be saved with
        ``queries=True`` and one key. Union variance needs audits with their rows, or saved with
        ``items=True``.
    labels : list, optional
        What the periods are called; by default they are numbered.

    Returns
    -------
    Trend

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> weeks = [mpc.audit(mpc.datasets.synthetic(800, seed=k), threshold=0.05, progress=False)
    ...          for k in range(3)]
    >>> mpc.trend(weeks, ["w1", "w2", "w3"]).alarms
    ()
    """
    audits = _check(audits)
    names = _names(labels, len(audits))
    rule, mode, groups = _common(audits)
    at = {"scoring_rule": rule, "pairing_mode": mode}
    gaps = [audit.headline.sel(at).sel(group=groups) for audit in audits]
    _check_epsilon(gaps, names, groups)
    _check_logs(audits, names)
    ids = known_ids(audits)
    notes = [*_say_groups(audits), *_say_ids(ids)]
    if by_place(audits, mode) or ids.shared:
        source = choose_source(audits, rule, mode, groups, ids)
        whole, said = against_all_before(source, audits, groups, names)
    else:
        whole, said = _against_pool(audits, mode, groups)
    before = list[xr.Dataset]()
    for new, old in zip(audits[1:], audits, strict=False):
        change = difference(new, old)
        before.append(change.data.sel(pairing_mode=mode, group=groups))
        notes += [f"Against the period before: {line}" for line in _notes(change)]
    gates = [decide(audit) for audit in audits]
    data = _label(groups, names, gaps, before, whole, gates)
    options = settings(audits[-1])
    evidence = change_evidence(data["total_z"].transpose("period", "group").values)
    limit = len(groups) / (1 - float(options["level"]))
    data["evidence"] = (("period", "group"), evidence)
    data["alarm"] = (("period", "group"), np.maximum.accumulate(evidence, axis=0) >= limit)
    data.attrs = {
        "scoring_rule": rule,
        "pairing_mode": mode,
        "outcome": outcome_word(options),
        "level": float(options["level"]),
        "alarm_at": limit,
        "gate": gates[-1].answer,
        "gate_says": explain(audits[-1], gates[-1]),
        "notes": "\n".join(dict.fromkeys(notes + said)),
    }
    return Trend(data)


class Trend:
    """Gaps of groups over periods, with their changes and alarms.

    Made by :func:`mpc_lab.trend`.

    Parameters
    ----------
    data : xarray.Dataset
        Dims (period, group): ``estimate`` with ``std_error``, ``ci_low``, ``ci_high`` and
        ``n_pairs``; ``change`` (against the period before) and ``total`` (against all before), each
        with ``_std_error``, ``_ci_low``, ``_ci_high``, ``_p_value``; ``total_z``, ``evidence``,
        ``alarm`` (true from the period in which it rang) and ``fails`` (the group fails the gate of
        its period, as in :meth:`mpc_lab.Audit.check`: the gap is outside the tolerance, or without
        a tolerance has a direction). ``total_z`` is NaN where the data cannot tell.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> weeks = [mpc.audit(mpc.datasets.synthetic(800, seed=k), threshold=0.05, progress=False)
    ...          for k in range(2)]
    >>> mpc.trend(weeks).data.sizes["period"]
    2
    """

    def __init__(self, data: xr.Dataset) -> None:
        self.data = data

    @property
    def alarms(self) -> tuple[str, ...]:
        """The groups whose alarm for a change has rung."""
        rung = self.data["alarm"].any("period").values
        return tuple(np.asarray(self.data["group"].values)[rung].tolist())

    @property
    def untold(self) -> tuple[str, ...]:
        """The groups for which the last period cannot tell whether the gap has changed."""
        unknown = np.isnan(self.data["total_z"].isel(period=-1).values)
        return tuple(np.asarray(self.data["group"].values)[unknown].tolist())

    @property
    def answer(self) -> int:
        """Return 1 where an alarm has rung or the last period fails its gate, else 0 or 2.

        2 where the gate of the last period cannot decide, or the last period cannot tell of some
        group whether it has changed.
        """
        if self.alarms or self.data.attrs["gate"] == 1:
            return 1
        return 2 if self.untold else int(self.data.attrs["gate"])

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each period and group."""
        return self.data.to_dataframe(dim_order=["period", "group"]).reset_index()

    def to_dict(self) -> dict[str, Any]:
        """Return what a scheduler needs: the answer, the alarms, and the last period."""
        last = self.data.isel(period=-1)
        fails = np.asarray(last["group"].values)[last["fails"].values].tolist()
        return {
            "answer": self.answer,
            "periods": self.data.sizes["period"],
            "last": str(last["period"].item()),
            "alarms": {group: self._rang(group) for group in self.alarms},
            "untold": list(self.untold),
            "fails": fails,
            "estimate": dict(
                zip(
                    last["group"].values.tolist(),
                    map(_finite, last["estimate"].values),
                    strict=True,
                )
            ),
        }

    def _rang(self, group: str) -> str:
        at = self.data["alarm"].sel(group=group).values.argmax()
        return str(self.data["period"].values[at])

    def summary(self) -> str:
        """Say in plain words which gaps changed, and what was compared."""
        data, attrs = self.data, self.data.attrs
        first, last = (str(name) for name in data["period"].values[[0, -1]])
        said = [
            f"{plural(data.sizes['period'], 'period')} from {quote(first)} to {quote(last)}, "
            f"{plural(data.sizes['group'], 'group')}."
        ]
        said += [self._sentence(group) for group in self.alarms]
        if self.untold:
            named = listing([quote(group) for group in self.untold])
            said.append(
                f"The last period has too few pairs or clusters to tell of a change: {named}."
            )
        if not self.alarms:
            of_others = " for other groups" if self.untold else ""
            if len(self.untold) < data.sizes["group"]:
                said.append(f"No alarm for a change has rung{of_others}.")
        says = str(attrs["gate_says"])
        said.append(f"In the last period {says[0].lower()}{says[1:]}")
        said += str(attrs["notes"]).splitlines()
        return "\n".join(said)

    def _sentence(self, group: str) -> str:
        one = self.data.sel(group=group, period=self._rang(group))
        ends = (one["total_ci_low"].item(), one["total_ci_high"].item())
        change = with_interval(one["total"].item(), *ends)
        return (
            f"Alarm: the gap of {quote(group)} has changed; it rang in "
            f"{quote(self._rang(group))}, when the change against all periods before was {change}."
        )

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        heads = [Head("Group", True), Head("Gap"), Head("Change"), Head("Against all before")]
        heads += [Head("Evidence"), Head("Alarm", True)]
        last = self.data.isel(period=-1)
        rows = []
        for group in last["group"].values.tolist():
            one = last.sel(group=group)
            numbers = [entry(float(one[name]), 3) for name in ("estimate", "change", "total")]
            rung = plain(self._rang(group)) if group in self.alarms else ""
            rows.append([label(group), *numbers, entry(float(one["evidence"]), ".3g"), label(rung)])
        return paragraphs(self.summary().splitlines(), "") + table(heads, rows)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _check(audits: Any) -> list[Audit]:
    found = list(audits) if isinstance(audits, list | tuple) else []
    if len(found) < 2 or not all(isinstance(audit, Audit) for audit in found):
        strange = [type(one).__name__ for one in found if not isinstance(one, Audit)]
        got = f"a {strange[0]} in it" if strange else f"{len(found)}"
        if not isinstance(audits, list | tuple):
            got = type(audits).__name__
        raise MpcError(
            f"audits must be a list of at least two audits; got {got}. Give "
            "mpc.trend([monday, tuesday])."
        )
    return found


def _names(labels: Any, count: int) -> list[str]:
    if isinstance(labels, str):
        raise MpcError(
            f"labels must be a list of names, one for each audit; got the text {labels!r}. Give "
            'labels=["monday", "tuesday"].'
        )
    names = [str(k + 1) for k in range(count)] if labels is None else [str(one) for one in labels]
    if len(names) != count or len(set(names)) < count:
        raise MpcError(
            f"labels must be {count} different names, one for each audit; got {len(names)}, "
            f"{len(set(names))} of them different."
        )
    return names


def _common(audits: list[Audit]) -> tuple[str, str, list[str]]:
    first = audits[-1]
    groups = [g for g in first.groups if all(g in audit.groups for audit in audits)]
    rule, mode = (str(first.headline[dim].values[0]) for dim in ("scoring_rule", "pairing_mode"))
    for audit in audits:
        if rule != audit.headline["scoring_rule"].values[0]:
            groups = []
        if mode not in audit.headline["pairing_mode"].values:
            groups = []
    if not groups:
        raise MpcError(
            "audits must have a group, the first scoring rule and the first pairing mode in "
            "common; got audits that do not. Run them alike."
        )
    return rule, mode, groups


def _say_groups(audits: Sequence[Audit]) -> list[str]:
    said = say_left_out(_NOT_FOLLOWED, *audits)
    return [said] if said else []


def _say_ids(ids: Ids) -> list[str]:
    """Say how many queries are in several periods, or that none is taken to be."""
    if not ids.known:
        return [_DISTINCT]
    are = "is" if ids.shared == 1 else "are"
    return [
        f"Queries are matched by their ids: {plural(ids.shared, 'query')} {are} in more than one "
        "period."
    ]


def _check_logs(audits: Sequence[Audit], names: Sequence[str]) -> None:
    """Refuse the same log twice: its queries would count as those of two periods."""
    seen: dict[str, str] = {}
    for audit, name in zip(audits, names, strict=True):
        for known in identify_logs(audit) or {str(id(audit))}:
            if known in seen:
                raise MpcError(
                    f"audits must be of different logs; got the same rows in {seen[known]!r} and "
                    f"{name!r}. Leave one out."
                )
            seen[known] = name


def _check_epsilon(gaps: list[xr.Dataset], names: list[str], groups: list[str]) -> None:
    every = np.array([gap["epsilon"].values for gap in gaps])
    known = np.where(np.isnan(every), np.fmax.reduce(every), every)
    for k, group in enumerate(groups):
        other = np.flatnonzero(known[:, k] != known[0, k])
        if len(other) and np.isfinite(known[0, k]):
            raise MpcError(
                f"audits must have one threshold for all periods; got {known[0, k]:.4g} and "
                f"{known[other[0], k]:.4g} for group {group!r} in {names[other[0]]!r}. Run each "
                "with a number, such as threshold=0.05."
            )


def _notes(found: Difference) -> list[str]:
    said = str(found.attrs["notes"]).splitlines()
    return [line for line in said if not any(words in line for words in _SAID_ONCE)]


# ---- all periods before as one pool

_LOWER = {
    "cluster": "Clustered by query against all periods before: {0} variance needs the items of all "
    "periods (their rows, or audits saved with items=True). Shocks of items that periods share are "
    "not allowed for, so the alarm may ring too soon.",
    "correction": "The plain correction is used against all periods before: not all have what {0} "
    "needs.",
}


def _against_pool(
    audits: Sequence[Audit], mode: str, groups: list[str]
) -> tuple[list[xr.Dataset], list[str]]:
    """Return the change of each period against the pool of all before."""
    found, notes = [], list[str]()
    pooled = audits[0]
    for k in range(1, len(audits)):
        new, said = _as(pooled, audits[k])
        change = difference(new, pooled)
        found.append(change.data.sel(pairing_mode=mode, group=groups))
        # With two periods, "the one before" and "all before" are the same.
        notes += said + (_notes(change) if k > 1 else [])
        if k + 1 < len(audits):
            pooled = _pool(pooled, new)
    return found, notes


def _as(pooled: Audit, audit: Audit) -> tuple[Audit, list[str]]:
    """Return an audit with the variance that the pool was reduced to, and what is lost by that.

    A pool clusters by query where it has no items, adjusts by Holm in place of Romano–Wolf, and
    has the plain correction where not all audits have the sums of CR3; audits are only compared
    and pooled where they agree.
    """
    own = _kind(audit)
    changed = {name: value for name, value in _kind(pooled).items() if value != own[name]}
    if not changed:
        return audit, []
    options = {**json.loads(str(audit.attrs["options"])), **changed}
    plain = {name: value for name, value in changed.items() if name != "correction"}
    lowered = Audit(
        audit.headline,
        audit._curve,
        audit._moments,
        {**audit.attrs, **plain, "options": json.dumps(options)},
        ranking=audit.ranking,
        scores=audit._scores,
        cross=audit._cross,
        saved=audit._saved,
        own=audit._own,
        grid=audit._grid,
    )
    return lowered, [text.format(own[name]) for name, text in _LOWER.items() if name in changed]


def _kind(audit: Audit) -> Mapping[str, str]:
    options = settings(audit)
    return {
        "cluster": str(options["cluster"]),
        "adjust": str(options["adjust"]),
        "correction": correction_of(audit),
    }


def _pool(before: Audit, audit: Audit) -> Audit:
    """Pool two audits, and keep the sums of single items where both have them."""
    with warnings.catch_warnings():
        # A trend itself says what its pools lack.
        warnings.simplefilter("ignore", UserWarning)
        made = pool([before, audit])
    parts = (before, audit)
    needs = VARIANCES[str(settings(made)["cluster"])].needs_items
    if needs and all(_has_tables(part) for part in parts) and _same_rows_of_sums(made, parts):
        tables = [_tables(part) for part in parts]
        for kind in ("items", "dyads"):
            made._saved[kind] = _join(made, parts, [found[kind] for found in tables])
    return made


def _has_tables(audit: Audit) -> bool:
    if {"items", "dyads"} <= set(audit._saved):
        return True
    return audit.ranking is not None and audit.ranking.item_code is not None


def _tables(audit: Audit) -> dict[str, xr.Dataset]:
    if {"items", "dyads"} <= set(audit._saved):
        return {kind: audit._saved[kind] for kind in ("items", "dyads")}
    return item_tables(audit)


def _same_rows_of_sums(made: Audit, parts: Sequence[Audit]) -> bool:
    """Whether the sums of all audits are of the same modes, in the same order."""
    own = moments_by_rule(made)[0].mode_names
    return all(moments_by_rule(part)[0].mode_names == own for part in parts)


def _join(made: Audit, parts: Sequence[Audit], tables: Sequence[xr.Dataset]) -> xr.Dataset:
    """Concatenate tables of items, at the thresholds and the centre of a pool."""
    target = moments_by_rule(made)
    rows: dict[str, list[NDArray[Any]]] = {}
    names, first = [], 0
    for part, found in zip(parts, tables, strict=True):
        source = moments_by_rule(part)
        columns = {str(name): found[name].values.copy() for name in found if name != "name"}
        rule, group, number = (columns[name] for name in ("rule", "group", "bin"))
        kept = np.zeros(len(rule), dtype=np.bool_)
        moved = {"rule": rule.copy(), "group": group.copy(), "bin": number.copy()}
        for r, g in {(int(r), int(g)) for r, g in zip(rule, group, strict=True)}:
            there = _place(made, part, r, g)
            if there is None:
                continue
            here = (rule == r) & (group == g)
            to = target[there[0]]
            edges = to.edges[there[1]]
            moved["rule"][here], moved["group"][here] = there
            moved["bin"][here] = np.searchsorted(edges, source[r].edges[g][number[here]])
            kept[here] = moved["bin"][here] < len(edges)
            shift = float(source[r].center[g] - to.center[there[1]])
            columns["sums"][here] += shift * columns["pairs"][here]
        columns |= moved
        for name in ("one", "other"):
            columns[name] = columns[name] + first
        for name, values in columns.items():
            rows.setdefault(name, []).append(values[kept])
        names.append(found["name"].values)
        first += len(names[-1])
    joined = {name: ("row", np.concatenate(values)) for name, values in rows.items()}
    return xr.Dataset({**joined, "name": ("item", np.concatenate(names))})


def _place(made: Audit, part: Audit, rule: int, group: int) -> tuple[int, int] | None:
    """Return the indices of an audit's rule and group in a pool; None if it lacks them."""
    label = part.headline["scoring_rule"].values[rule]
    rules = made.headline["scoring_rule"].values.tolist()
    if label not in rules or part.groups[group] not in made.groups:
        return None
    return rules.index(label), made.groups.index(part.groups[group])


def _label(
    groups: list[str],
    names: list[str],
    gaps: list[xr.Dataset],
    before: list[xr.Dataset],
    whole: list[xr.Dataset],
    gates: list[Decision],
) -> xr.Dataset:
    dims = ("period", "group")
    data: dict[str, Any] = {
        name: (dims, np.array([gap[name].values for gap in gaps])) for name in _GAPS
    }
    nothing = np.full((1, len(groups)), np.nan)
    for prefix, changes in (("change", before), ("total", whole)):
        for name in _CHANGES:
            key = prefix if name == "difference" else f"{prefix}_{name}"
            values = np.array([change[name].values for change in changes])
            data[key] = (dims, np.concatenate([nothing, values]))
    error = data["total_std_error"][1]
    data["total_z"] = (dims, data["total"][1] / np.where(error > 0, error, np.nan))
    data["fails"] = (dims, np.array([[g in gate.failed for g in groups] for gate in gates]))
    return xr.Dataset(data, {"period": text(names), "group": text(groups)})
