"""Why there is a gap: what is left of it once the other groups are held fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import ipywidgets as widgets
import pandas as pd

from mpc_lab.explorers.controls import Note, beside, plain_table
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.results.base import is_rank_only
from mpc_lab.text import minus, plural, quote

if TYPE_CHECKING:
    from mpc_lab.results import Audit
    from mpc_lab.results.questions.partial import PartialGaps

_WHAT = "The gap net of other groups"
_ALL = "all close pairs under the logged scores are in one regression"
_MOST_PARTS, _DECIMALS = 12, 3


class WhyExplorer(Explorer):
    """The gap of every group alone and net of the others, and what the gap of one is made of.

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
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.WhyExplorer(audit, group="1")
    >>> explorer.selection.data.sizes["group"]
    2
    """

    title: ClassVar[str] = "Why"
    unused: ClassVar[Mapping[str, str]] = {
        "scoring_rule": _ALL,
        "pairing_mode": _ALL,
        "epsilon": _ALL,
    }

    _found: PartialGaps | None = None

    @classmethod
    def is_for(cls, audit: Audit) -> bool:
        """Whether there are scores and two groups that may explain each other."""
        return len(audit.groups) > 1 and not is_rank_only(audit)

    def call(self) -> str:
        """Return the call of the chart."""
        return "mpc.charts.partial(audit.partial())"

    @property
    def selection(self) -> PartialGaps:
        """The gaps, as `Audit.partial` gives them."""
        needs_rows(self.audit, _WHAT)
        if self._found is None:
            self._found = self.audit.partial()
        return self._found

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the chart, and the parts of one gap."""
        needs_rows(self.audit, _WHAT)
        self.controls["sentence"] = Note(kind="sentence")
        self.controls["chart"], self.controls["table"] = LiveChart(), widgets.HTML()
        parts = beside(self.controls["chart"], self.controls["table"])
        return [self.controls["sentence"], parts]

    def draw(self) -> None:
        """Draw all groups once, and the parts of the gap of the group that is looked at."""
        from mpc_lab.charts.partial import partial

        found = self.selection
        if not self.controls["sentence"].text:
            self.controls["sentence"].text = minus(found.sentence)
            self.controls["chart"].show(partial(found))
        self.controls["table"].value = _parts(found, self.group)


def _parts(found: PartialGaps, group: str) -> str:
    """Return the parts of a gap as a table, the largest first; the rest in one row."""
    parts: pd.Series[float] = found.decomposition().T[group]
    own = float(parts[group])
    others = parts.drop(group)
    others = others.loc[others.abs().sort_values(ascending=False).index]
    sizes = [(f"{group} itself (net)", own)]
    sizes += [(str(name), float(part)) for name, part in others[:_MOST_PARTS].items()]
    rest = others[_MOST_PARTS:]
    sizes += [(plural(len(rest), "other"), float(rest.sum()))] if len(rest) else []
    sizes.append(("together: the gap alone", float(parts.sum())))
    rows = [[name, round(size, _DECIMALS)] for name, size in sizes]
    caption = f"What the gap of {quote(group)} alone is made of"
    return plain_table(["Part", "Gap"], rows, caption=caption)
