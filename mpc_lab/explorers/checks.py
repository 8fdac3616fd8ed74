"""Whether the comparison itself can be trusted: errors, power, balance, placebo, density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import numpy as np
import pandas as pd
import traitlets
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import near_match
from mpc_lab.explorers.controls import Note, ProgressRow, button, controls_row, dropdown
from mpc_lab.explorers.explorer import Explorer, needs_rows
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import call_of
from mpc_lab.results.questions.balance import balance

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.ranking import Ranking
    from mpc_lab.results import Audit

_MOST_TEXTS = 30
_CHOSEN_AT_FIRST = 8
_PLACEBOS = (50, 200, 1000)
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class _Check:
    """One check: its name, whether it takes long, and what it asks."""

    name: str
    long: bool
    asks: str


CHECKS = {
    "ladder": _Check(
        "Standard errors",
        False,
        "How much wider the intervals are because pairs share queries and items. Where the first "
        "mark is far below the others, an audit that takes pairs as independent would claim too "
        "much. At each group's own threshold ε.",
    ),
    "power": _Check(
        "Power",
        False,
        "Which gaps could have been found. Where the smallest detectable gap is large, an "
        "inconclusive group has too few pairs; that does not mean that there is no gap. Over all "
        "thresholds ε.",
    ),
    "balance": _Check(
        "Balance",
        True,
        "Whether the two items of the pairs are alike in other columns of the log. A large "
        "difference inside the pairs says what else the gap may be made of.",
    ),
    "placebo": _Check(
        "Placebo",
        True,
        "The same gap for groups drawn at random: their members are drawn among items that are "
        "shown about as often, or among the rows of a query where membership is not the item's "
        "own. They should be rejected no more often than the level allows.",
    ),
    "density": _Check(
        "Distances",
        True,
        "How the score distances of the pairs are spread near 0. The limit at ε → 0 is sound where "
        "there are many pairs close to 0 and no heap at it. For all thresholds ε alike.",
    ),
}


class ChecksExplorer(Explorer):
    """Checks of the comparison behind a gap; the long ones run when they are asked to.

    What was found is kept for as long as the explorer lives, for every cell and threshold.

    Parameters
    ----------
    audit : Audit
    state : AuditState, optional
    **start
        Any trait.

    Attributes
    ----------
    check : {"ladder", "power", "balance", "placebo", "density"}
        The check that is shown.
    covariates : tuple
        Columns of the log that `balance` compares, beside the position.
    permutations : int
        How many placebo groups.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.ChecksExplorer(audit, group="1", check="balance")
    >>> explorer.selection is None  # a long check waits for run()
    True
    >>> explorer.run().covariate.values.tolist()
    ['position']
    """

    title: ClassVar[str] = "Checks"

    check = traitlets.Enum(tuple(CHECKS), "ladder").tag(redraw=True)
    covariates = traitlets.Tuple().tag(redraw=True)
    permutations = traitlets.Int(200, min=1, max=10_000).tag(redraw=True)

    def prepare(self) -> None:
        """Start with nothing checked."""
        self._filling = False
        self._found: dict[tuple[Any, ...], xr.Dataset] = {}

    @cached_property
    def comparable(self) -> list[Any]:
        """The columns of the log that can be covariates; looked for when first asked for."""
        return comparable_columns(self.audit.ranking)

    @traitlets.default("covariates")
    def _first_covariates(self) -> tuple[Any, ...]:
        return tuple(self.comparable[:_CHOSEN_AT_FIRST])

    @traitlets.validate("covariates")
    def _check_covariates(self, proposal: Any) -> tuple[Any, ...]:
        names = tuple(proposal["value"])
        for name in names:
            if name not in self.comparable:
                hint = near_match(name, map(str, self.comparable))
                raise traitlets.TraitError(f"There is no column {name!r} to compare.{hint}")
        return names

    def call(self) -> str:
        """Return the call of the chart of the check that is shown."""
        kind = {"scoring_rule": self.scoring_rule, "pairing_mode": self.pairing_mode}
        if self.check == "ladder":
            return call_of("mpc.charts.ladder", **kind)
        chart = {"balance": "love", "density": "distance_density"}.get(self.check, self.check)
        at = {"epsilon": self.epsilon} if self.check in ("balance", "placebo") else {}
        return call_of(f"mpc.charts.{chart}", self.group, **kind, **at)

    @property
    def selection(self) -> xr.Dataset | None:
        """The numbers of the check that is shown; None while a long one was not run."""
        audit: Audit = self.audit
        cell = {"scoring_rule": self.scoring_rule, "pairing_mode": self.pairing_mode}
        if self.check == "ladder":
            return audit.headline[["std_error", "std_error_by"]].sel(cell)
        if self.check == "power":
            return audit.power().sel({**cell, "group": self.group})
        return self._found.get(self._what())

    def run(self, report: Report | None = None) -> xr.Dataset:
        """Run the check that is shown, unless that was done already.

        Parameters
        ----------
        report : callable, optional
            Called with (steps done, steps in all).

        Returns
        -------
        xarray.Dataset
            Now also in ``selection``.
        """
        if not CHECKS[self.check].long:
            found = self.selection
            assert found is not None
            return found
        needs_rows(self.audit, f"{CHECKS[self.check].name}, as a check,")
        key = self._what()
        if key not in self._found:
            self._found[key] = self._work(report or (lambda done, total: None))
        return self._found[key]

    def _what(self) -> tuple[Any, ...]:
        options = {"balance": self.covariates, "placebo": self.permutations}
        # The density of gaps is that of the limit at 0, whatever the threshold.
        at = None if self.check == "density" else self.epsilon
        return (self.check, *self._cell(), at, options.get(self.check))

    def _cell(self) -> tuple[str, str, str]:
        return self.group, self.scoring_rule, self.pairing_mode

    def _work(self, report: Report) -> xr.Dataset:
        cell = self._cell()
        audit: Audit = self.audit
        if self.check == "density":
            return audit.limit(*cell)
        if self.check == "balance":
            return audit.balance(self.covariates, *cell, self.epsilon, permutations=0)
        total, count = self.permutations, 0

        def done() -> None:
            nonlocal count
            count += 1
            report(count, total)

        report(0, total)
        return balance(audit, (), *cell, self.epsilon, permutations=total, done=done)

    # What a person sees -------------------------------------------------------------------------

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the choice of the check."""
        self.controls["check"] = widgets.ToggleButtons(
            options=[(check.name, key) for key, check in CHECKS.items()],
            description="Check",
            value=self.check,
        )
        self.controls["check"].style.description_width = "initial"
        self.controls["check"].style.button_width = "auto"
        self.controls["check"].add_class("mpc-control")
        self.controls["check"].add_class("mpc-toggles")
        traitlets.link((self, "check"), (self.controls["check"], "value"))
        return [self.controls["check"]]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the options of the long checks, and the place of the chart."""
        self.controls["question"] = Note()
        self.controls["covariates"] = widgets.SelectMultiple(
            options=[(str(name), name) for name in self.comparable],
            value=self.covariates,
            description="Columns to compare",
            rows=min(max(len(self.comparable), 2), 6),
        )
        self.controls["covariates"].style.description_width = "initial"
        self.controls["covariates"].layout.width = "auto"
        self.controls["covariates"].add_class("mpc-control")
        traitlets.link((self, "covariates"), (self.controls["covariates"], "value"))
        self.controls["permutations"] = dropdown(
            "Placebo groups", self._counts(), self.permutations
        )
        self.controls["permutations"].observe(self._placebos_chosen, "value")
        self.controls["run"] = button("Run this check")
        self.controls["run"].on_click(self._clicked)
        self.controls["progress"] = ProgressRow()
        self.controls["note"] = Note()
        self.controls["chart"] = LiveChart()
        options = controls_row(
            self.controls["covariates"],
            self.controls["permutations"],
            self.controls["run"],
            self.controls["progress"],
            self.controls["note"],
        )
        return [self.controls["question"], options, self.controls["chart"]]

    def draw(self) -> None:
        """Show the chart of the check, or the button that runs it."""
        check = CHECKS[self.check]
        self.controls["question"].text = check.asks
        compared = self.check == "balance" and bool(self.comparable)
        self.controls["covariates"].layout.display = "" if compared else "none"
        self.controls["permutations"].layout.display = "" if self.check == "placebo" else "none"
        if self.controls["permutations"].value != self.permutations:
            wanted = self.permutations
            self._filling = True
            self.controls["permutations"].options = self._counts()
            self.controls["permutations"].value = wanted
            self._filling = False
        found = self.selection
        waiting = check.long and found is None
        self.controls["run"].layout.display = "" if waiting else "none"
        self.controls["chart"].layout.display = "none" if waiting else ""
        self.controls["note"].text = self._reason(waiting)
        if found is not None:
            self.controls["chart"].show(self._make_chart(found))

    def _counts(self) -> list[tuple[str, int]]:
        """Return numbers of placebos to choose from, among them the one that is set."""
        return [(f"{n:,}", n) for n in sorted({*_PLACEBOS, self.permutations})]

    def _reason(self, waiting: bool) -> str:
        if waiting:
            # Refused already here, so that nobody presses the button for nothing.
            needs_rows(self.audit, f"{CHECKS[self.check].name}, as a check,")
        if self.check == "balance" and not self.comparable:
            return "Columns to compare: the log has no other column; places are compared."
        return ""

    def _make_chart(self, found: xr.Dataset) -> AnyChart:
        from mpc_lab.charts.distance_density import distance_density
        from mpc_lab.charts.ladder import ladder
        from mpc_lab.charts.love import love
        from mpc_lab.charts.placebo import placebo
        from mpc_lab.charts.power import power

        audit: Audit = self.audit
        cell = (self.scoring_rule, self.pairing_mode)
        if self.check == "ladder":
            return ladder(audit, *cell)
        if self.check == "power":
            return power(audit, self.group, *cell)
        if self.check == "balance":
            return love(audit, self.group, (), *cell, found=found)
        if self.check == "placebo":
            return placebo(audit, self.group, *cell, found=found)
        return distance_density(audit, self.group, *cell, found=found)

    def _placebos_chosen(self, change: Any) -> None:
        # While the list is filled again, nothing was chosen.
        if change["new"] is not None and not self._filling:
            self.permutations = change["new"]

    def _clicked(self, _button: Any) -> None:
        """Run a long check, with its progress; what goes wrong is shown in the panel."""
        name = CHECKS[self.check].name
        self.controls["run"].disabled = True
        try:
            self.controls["progress"].show(f"{name} …", 0, 1)
            self.run(
                lambda done, total: self.controls["progress"].show(
                    f"{done:,} of {total:,} placebo groups", done, total
                )
            )
        except Exception as error:  # shown to the person, whatever it is
            self.show_error(error)
        else:
            self.redraw()
        finally:
            self.controls["run"].disabled = False
            self.controls["progress"].clear()


def comparable_columns(ranking: Ranking | None) -> list[Any]:
    """Return the columns of a log that balance can compare: numbers, and texts of few kinds.

    Left out are those that play a role in the audit, and those that are the same in all rows of
    every query: in a pair, these are equal on both sides.
    """
    if ranking is None:
        return []
    given = ranking.columns.given()
    given.pop("group_sep", None)
    taken: set[Any] = set()
    for value in given.values():
        taken |= set(value) if isinstance(value, tuple) else {value}
    frame = ranking.to_frame()
    first = np.unique(ranking.query_code, return_index=True)[1][ranking.query_code]
    return [
        name for name in frame.columns if name not in taken and _is_comparable(frame[name], first)
    ]


def _is_comparable(values: pd.Series[Any], first: NDArray[np.int64]) -> bool:
    """Whether a column can be compared; `first` is the first row of each row's query."""
    own = values.to_numpy()
    if own.dtype.kind in "biuf":
        fits = bool(np.isfinite(own).all())
    else:
        is_text = pd.api.types.infer_dtype(values, skipna=False) == "string"
        fits = is_text and values.nunique() <= _MOST_TEXTS
    return fits and bool((own != own[first]).any())
