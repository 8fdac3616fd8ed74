"""What the place in the list does: both sides of a tie, examination, and later rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import numpy as np
import xarray as xr

from mpc_lab.explorers.controls import Note, beside, column, plain_table
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import call_of
from mpc_lab.inference.verdicts import LEAST_OVERLAP, MOST_SHOWN_ABOVE
from mpc_lab.results.base import settings
from mpc_lab.results.wording import columns_of
from mpc_lab.text import NOTHING, percent, quote, with_interval
from mpc_lab.vocabulary import MATCHED, SYMMETRIC

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_WHAT = "The effect of place"
_BOTH = "both sides of a tie are shown together"
_HEADER = ["Group", "Effect of place", "Shown at the same places", "Scored lower, shown above"]
_CAPTION = "Effect of place: what being shown above an item with the same score is worth"
_ENDS = ("place_effect", "place_effect_low", "place_effect_high")


class PlaceExplorer(Explorer):
    """What a place does to outcomes, where the log says at which place items were shown.

    Parameters
    ----------
    audit : Audit
        With its rows.
    state : AuditState, optional
    **start
        Any trait.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.clicks(500), progress=False)
    >>> explorer = mpc.explorers.PlaceExplorer(audit, group="a")
    >>> "place" in explorer.selection.dims
    True
    """

    title: ClassVar[str] = "Place"
    unused: ClassVar[Mapping[str, str]] = {"pairing_mode": _BOTH, "epsilon": _BOTH}

    _found: xr.Dataset | None = None

    @classmethod
    def is_for(cls, audit: Audit) -> bool:
        """Whether the places at which items were shown are known."""
        columns = columns_of(settings(audit))
        return columns.get("position") is not None and columns.get("score") is not None

    def call(self) -> str:
        """Return the call of the first chart."""
        return call_of("mpc.charts.tie", self.group, self.scoring_rule)

    @property
    def selection(self) -> xr.Dataset:
        """How often places are looked at, as `Audit.examination` gives it."""
        needs_rows(self.audit, _WHAT)
        if self._found is None:
            self._found = self.audit.examination()
        return self._found

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the two charts, the effect of place by group, and what a later rule did."""
        needs_rows(self.audit, _WHAT)
        self.controls["sentence"] = Note(kind="sentence")
        self.controls["chart"], self.controls["examination"] = LiveChart(), LiveChart()
        self.controls["table"], self.controls["note"] = widgets.HTML(), Note()
        tie = column(self.controls["chart"], self.controls["table"])
        looked_at = column(self.controls["examination"], self.controls["note"])
        return [self.controls["sentence"], beside(tie, looked_at)]

    def draw(self) -> None:
        """Draw both sides of the group's ties, and once how often places are looked at."""
        from mpc_lab.charts.examination import examination
        from mpc_lab.charts.tie import tie

        self.controls["sentence"].text = later_rule(self.audit, self.group, self.scoring_rule)
        self.controls["chart"].show(tie(self.audit, self.group, self.scoring_rule))
        self.controls["table"].value = _table(self.audit, self.scoring_rule)
        if not self.controls["note"].text:
            self.controls["examination"].show(examination(self.selection))
            self.controls["note"].text = _note(self.audit)


def _of_mode(audit: Audit, rule: str, mode: str, name: str) -> Any:
    """Return a variable of the headline by group; NaN where the audit has none."""
    if name not in audit.headline or mode not in audit.headline["pairing_mode"].values:
        return np.full(len(audit.groups), np.nan)
    return audit.headline[name].sel(scoring_rule=rule, pairing_mode=mode).values


def later_rule(audit: Audit, group: str, rule: str) -> str:
    """Say in words whether lists were shown in the order of the scores."""
    k = audit.groups.index(group)
    above = float(_of_mode(audit, rule, MATCHED.name, "shown_above")[k])
    overlap = float(_of_mode(audit, rule, SYMMETRIC.name, "place_overlap")[k])
    who = f"group {quote(group)}"
    said = []
    if math.isfinite(above) and above > MOST_SHOWN_ABOVE:
        said.append(
            f"A later rule seems to have moved items: where the item of {who} has the lower score, "
            f"it was shown above the other in {_share(above)} of the pairs. Pairs "
            "matched by score are given no direction."
        )
    elif math.isfinite(above):
        said.append(
            f"Lists were shown about in the order of the scores: the item of {who} that has the "
            f"lower score was shown above the other in {_share(above)} of such pairs."
        )
    if math.isfinite(overlap):
        enough = "" if overlap >= LEAST_OVERLAP else ", too few for a direction"
        said.append(
            f"Of its pairs {_share(overlap)} can be compared at the same "
            f"places in both orders{enough}."
        )
    return "\n".join(said)


def _share(share: float) -> str:
    return percent(round(min(share, 1.0), 3)) if math.isfinite(share) else NOTHING


def _table(audit: Audit, rule: str) -> str:
    modes = audit.headline["pairing_mode"].values.tolist()
    mode = SYMMETRIC.name if SYMMETRIC.name in modes else modes[0]
    effects = np.stack([_of_mode(audit, rule, mode, name) for name in _ENDS], axis=1)
    overlap = _of_mode(audit, rule, SYMMETRIC.name, "place_overlap")
    above = _of_mode(audit, rule, MATCHED.name, "shown_above")
    rows = [
        [
            group,
            with_interval(*map(float, effects[k])),
            _share(float(overlap[k])),
            _share(float(above[k])),
        ]
        for k, group in enumerate(audit.groups)
    ]
    return plain_table(_HEADER, rows, caption=_CAPTION)


def _note(audit: Audit) -> str:
    if columns_of(settings(audit)).get("examined") is not None:
        return (
            "Outcomes of this audit are divided by how likely their row is to be looked at; the "
            "curve above is of the outcomes as they were logged."
        )
    return (
        "mpc.audit(…, examined=audit.examination()) divides outcomes by this curve; intervals then "
        "do not allow for its own uncertainty. Where people stop at the first item they like, "
        "no single number describes a place."
    )
