"""What held on queries that were not used before, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.text import listing, minus, number, percent, plural, quote

# What each group gets: see `Guarantee.to_frame`.
JUDGED, TOO_FEW, COLLINEAR = "judged", "too few", "collinear"
_SHOWN = 4
_FRAMES = ("groups", "tried")


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is promised of offsets, what was measured, and why there are none.

    Attributes
    ----------
    holds : bool
        Whether some offsets passed on the second part of the queries.
    share : float
        The t of the offsets β·t that were chosen; NaN where none passed.
    tolerance, ndcg_drop, level : float
        What was asked for; ``ndcg_drop`` is None where NDCG did not count.
    reason : {"", "slope", "groups", "judged"}
        Why nothing is promised: the score does not tell outcomes of close items apart, no group
        has enough effective queries, or offsets of full size failed on the second part.
    failed : tuple of str
        What failed there, in words.
    slope, slope_low, slope_high : float
        κ with its interval: by how much the outcome rises with the score among close items.
    groups : pandas.DataFrame
        As `to_frame` returns.
    tried : pandas.DataFrame
        A row for each t that was judged on the second part, from 1 down: ``passed``, ``farthest``
        (how far from 0 the ends of the gaps' intervals reach), ``of_group`` (whose),
        ``ndcg_change`` and ``ndcg_change_low``, one-sided.
    ndcg_change, ndcg_change_low, ndcg_change_high : float
        On the third part, with a two-sided interval.
    n_queries : tuple of int
        The number of queries in each of the three parts.
    outcome : str
        What the outcome is called.
    caution : str
        What the numbers assume where the log has positions and no ``examined=``; else empty.
    """

    holds: bool
    share: float
    tolerance: float
    ndcg_drop: float | None
    level: float
    reason: str
    failed: tuple[str, ...]
    slope: float
    slope_low: float
    slope_high: float
    groups: pd.DataFrame
    tried: pd.DataFrame
    ndcg_change: float
    ndcg_change_low: float
    ndcg_change_high: float
    n_queries: tuple[int, int, int]
    outcome: str
    caution: str

    def to_frame(self) -> pd.DataFrame:
        """Return one row a group, measured on the third part of the queries.

        ``offset``: what is added to the score, or, where nothing passed, what would be added with
        ``unproven=True``. ``status``: ``judged``; ``too few`` effective
        queries for an offset; or ``collinear``, judged and without an offset of its own because
        other groups say the same. ``n_effective``: effective queries in the first part, which
        decide that. ``gap_before``, ``gap_after`` and their two-sided intervals.
        """
        return self.groups.copy()

    @property
    def mean_gaps(self) -> tuple[float, float]:
        """The mean size of the judged groups' gaps on the third part, before and after."""
        shown = self.groups[self.groups["status"] != TOO_FEW]
        both = shown[["gap_before", "gap_after"]].dropna().abs()
        return float(both["gap_before"].mean()), float(both["gap_after"].mean())

    @property
    def sentence(self) -> str:
        """What is promised and what was measured, or why nothing is promised."""
        said = self._promise() if self.holds else self._refusal()
        parts = (said, self._measure(), self._name_unconfirmed(), self._without())
        return minus(" ".join(part for part in parts if part))

    def __repr__(self) -> str:
        return f"{self.sentence} {self.caution}".rstrip()

    def _terms(self) -> str:
        gap = f"every judged gap of {self.outcome} is within ±{number(self.tolerance, 3)}"
        if self.ndcg_drop is None:
            return gap
        return f"{gap} and NDCG falls by at most {self.ndcg_drop:g}"

    def _promise(self) -> str:
        if self.share == 0:
            start = "Offsets are not needed: with the scores as they are,"
        elif self.share == 1:
            start = "With these offsets"
        else:
            start = f"With {percent(self.share)} of the offsets that were fitted"
        return (
            f"{start} {self._terms()} on new queries of this catalogue, at "
            f"{percent(self.level)} confidence ({plural(self.n_queries[1], 'query')})."
        )

    def _refusal(self) -> str:
        if self.reason == "groups":
            return "No offsets: no group has enough effective queries to be given one."
        if self.reason == "slope":
            if self.slope == 0:
                return f"No offsets: among items with close scores {self.outcome} does not vary."
            if not np.isfinite(self.slope_low):
                return (
                    "No offsets: too few items have close scores that differ to fit how "
                    f"{self.outcome} rises with the score."
                )
            ends = f"{number(self.slope_low, 3)} to {number(self.slope_high, 3)}"
            return (
                f"No offsets: among items with close scores {self.outcome} does not clearly rise "
                f"with the score (slope {number(self.slope, 3)}, {percent(self.level)} interval "
                f"{ends}), so raising a score is not known to change anything for the better."
            )
        return (
            f"No offsets are proven: it cannot be said at {percent(self.level)} confidence that "
            f"{self._terms()}, because {listing(self.failed, _SHOWN)} "
            f"({plural(self.n_queries[1], 'query')}). The scores stay as they are unless "
            "unproven=True is passed."
        )

    def _measure(self) -> str:
        before, after = self.mean_gaps
        tested = (self.groups["offset"] != 0).any()
        if not tested or not np.isfinite([before, after]).all():
            return ""
        start = "On" if self.holds else "With them, on"
        said = (
            f"{start} {plural(self.n_queries[2], 'further query')} the mean size of the gaps goes "
            f"from {number(before, 3)} to {number(after, 3)}"
        )
        if np.isfinite(self.ndcg_change):
            said += f", and NDCG changes by {number(self.ndcg_change, 5)}"
            if np.isfinite([self.ndcg_change_low, self.ndcg_change_high]).all():
                ends = (number(end, 5) for end in (self.ndcg_change_low, self.ndcg_change_high))
                said += f" ({' to '.join(ends)})"
        return f"{said}."

    def _name_unconfirmed(self) -> str:
        """Name the groups that the third part alone does not show to be within the tolerance."""
        shown = self.groups[self.groups["status"] != TOO_FEW]
        if not self.holds or not {"gap_after_low", "gap_after_high"} <= set(shown):
            return ""
        far = shown[["gap_after_low", "gap_after_high"]].abs().max(axis=1, skipna=False)
        names = [quote(name) for name in shown.index[~(far <= self.tolerance)]]
        if not names:
            return ""
        return (
            f"Those queries alone are too few to show it again for {listing(names, _SHOWN)}: the "
            "interval there reaches beyond the tolerance, or there is none."
        )

    def _without(self) -> str:
        few = [quote(name) for name in self.groups.index[self.groups["status"] == TOO_FEW]]
        if not few or self.reason == "groups":
            return ""
        return f"Not judged and without an offset, for lack of data: {listing(few)}."

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers and texts, NaN as None, ready for JSON."""
        made = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _FRAMES:
                value = value.reset_index().to_dict("list")
                value = {name: [_plain(one) for one in column] for name, column in value.items()}
            elif isinstance(value, tuple):
                value = list(value)
            made[field.name] = _plain(value)
        return made

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Guarantee:
        """Return what `to_dict` described."""
        values = dict(given)
        for name in _FRAMES:
            frame = pd.DataFrame(values[name])
            frame = frame.set_index(frame.columns[0])
            numeric = [column for column in frame if column not in _TEXTS]
            values[name] = frame.astype(dict.fromkeys(numeric, "float64"))
        values["tried"] = values["tried"].astype({"passed": "bool"})
        for name in ("failed", "n_queries"):
            values[name] = tuple(values[name])
        for name, value in values.items():
            if value is None and name != "ndcg_drop":
                values[name] = float("nan")
        return cls(**values)


_TEXTS = ("status", "of_group", "passed")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value
