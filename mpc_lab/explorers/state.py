"""What the tabs of an explorer share: group, rule, mode and threshold, and their words and numbers.

No widget in here.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import traitlets

from mpc_lab.errors import MpcError, check_epsilon, near_match
from mpc_lab.results.base import has_tied_pairs, headline_epsilon, need_rows, settings
from mpc_lab.results.summary import Cell, Slice, interval_word, sentence, slices, why_not
from mpc_lab.results.wording import gap_in_words
from mpc_lab.text import (
    NOTHING,
    decimals,
    entry,
    minus,
    noun,
    number,
    percent,
    quote,
    with_interval,
)
from mpc_lab.vocabulary import MODES, NOT_ESTIMABLE

if TYPE_CHECKING:
    import xarray as xr

    from mpc_lab.results import Audit

Answer = TypeVar("Answer")
POWER = 0.8
SHARED = ("group", "scoring_rule", "pairing_mode", "epsilon")


class CellTraits(traitlets.HasTraits):
    """One cell of an audit and a threshold, as traits that refuse what the audit lacks.

    Attributes
    ----------
    audit : Audit
        Read-only.
    group, scoring_rule, pairing_mode : str
        The cell.
    epsilon : float
        The threshold: finite, and at least 0.
    """

    audit = traitlets.Any(read_only=True)
    group = traitlets.Unicode()
    scoring_rule = traitlets.Unicode()
    pairing_mode = traitlets.Unicode()
    epsilon = traitlets.Float()

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in the order of the headline."""
        return self._once(_labels, "group")

    @property
    def scoring_rules(self) -> tuple[str, ...]:
        """The labels of the scoring rules."""
        return self._once(_labels, "scoring_rule")

    @property
    def pairing_modes(self) -> tuple[str, ...]:
        """The names of the pairing modes."""
        return self._once(_labels, "pairing_mode")

    @property
    def own_epsilon(self) -> float:
        """The headline's own threshold of the cell; NaN where the cell has no pair."""
        return self._once(headline_epsilon, self.group, self.scoring_rule)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The thresholds of the curve, and the cell's own, ascending."""
        grid = set(self.audit.grid.tolist())
        own = self.own_epsilon
        return tuple(sorted(grid | ({own} if math.isfinite(own) else set())))

    @property
    def headline_cell(self) -> xr.Dataset:
        """The headline of the cell."""
        return self._once(_headline_cell, self.group, self.scoring_rule, self.pairing_mode)

    @property
    def curve_cell(self) -> xr.Dataset:
        """The curve of the cell, along ``epsilon``."""
        return self._once(_curve_cell, self.group, self.scoring_rule, self.pairing_mode)

    def step_words(self, epsilon: float) -> str:
        """Return a threshold as screen readers speak it, with its pairs once the curve is made."""
        known = self.__dict__.get("_known", {})
        key = (_curve_cell, (self.group, self.scoring_rule, self.pairing_mode))
        own = epsilon == self.own_epsilon
        pairs = None
        if own:
            pairs = self.cell.pairs
        elif key in known or "curve" in vars(self.audit):
            curve = self.curve_cell
            grid = curve["epsilon"].values
            below = int(np.searchsorted(grid, epsilon, side="right")) - 1
            pairs = int(curve["n_pairs"].values[max(below, 0)])
        counted = "" if pairs is None else f", {pairs:,} {noun(pairs, 'pair')}"
        return f"ε {epsilon:.3g}{counted}{', headline' if own else ''}"

    @property
    def cell(self) -> Cell:
        """The headline of the cell, as a person reads it."""
        return next(cell for cell in self.part.cells if cell.group == self.group)

    @property
    def part(self) -> Slice:
        """All groups under the rule and mode of the cell, as a person reads them."""
        return self._once(_slice, self.scoring_rule, self.pairing_mode)

    def _once(self, ask: Callable[..., Answer], *labels: str) -> Answer:
        """Return what the audit answers; it never changes, and a slider asks many times."""
        known = self.__dict__.setdefault("_known", {})
        if (ask, labels) not in known:
            known[ask, labels] = ask(self.audit, *labels)
        answer: Answer = known[ask, labels]
        return answer

    @traitlets.validate("group", "scoring_rule", "pairing_mode")
    def _check_label(self, proposal: Any) -> str:
        what, label = proposal["trait"].name, proposal["value"]
        known = self._once(_labels, what)
        if label not in known:
            raise traitlets.TraitError(
                f"This audit has no {what} {label!r}.{near_match(label, known)}"
            )
        return str(label)

    @traitlets.validate("epsilon")
    def _check_epsilon(self, proposal: Any) -> float:
        try:
            return check_epsilon(proposal["value"])
        except MpcError as error:
            raise traitlets.TraitError(str(error)) from None


class AuditState(CellTraits):
    """The cell and threshold that all tabs look at.

    Starts at the strongest finding of the baseline's matched pairs, at its own threshold. The
    threshold follows to that of another cell for as long as it is the headline's own.

    Parameters
    ----------
    audit : Audit
    old : Audit, optional
        Another one that it is compared with.
    label : str, optional
        The column of the log that says what an item is called, such as its title; by default the
        labels that the audit was given.
    **start
        Any of ``group``, ``scoring_rule``, ``pairing_mode``, ``epsilon``.

    Attributes
    ----------
    revision : int
        Grows by 1 when the four are settled after a change; observe it to see one change once.
    brush : tuple of float
        The two ends of the range of thresholds that was picked; empty where there is none.
    origin, shown : str
        The code that makes the audit, and the code that makes what is shown of it.
    link : str
        What charts and rails of one explorer have in common.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.explorers import AuditState
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> state = AuditState(audit, group="2")
    >>> state.pairing_mode, state.epsilon == state.own_epsilon
    ('matched', True)
    """

    revision = traitlets.Int(0)
    brush = traitlets.Tuple()
    origin = traitlets.Unicode("import mpc_lab as mpc")
    shown = traitlets.Unicode()

    def __init__(
        self, audit: Audit, old: Audit | None = None, label: Hashable = None, **start: Any
    ) -> None:
        super().__init__()
        self.set_trait("audit", audit)
        self.old, self.link, self.label = old, secrets.token_hex(6), label
        if label is not None:
            need_rows(audit, "explore(label=…)").column(label)
        self._at_own = False
        first = slices(audit)[0]
        cell = {"group": first.cells[0].group, "scoring_rule": first.rule}
        for name, value in {**cell, "pairing_mode": first.mode, **start}.items():
            if name not in SHARED:
                raise traitlets.TraitError(
                    f"An explorer has no option {name!r}.{near_match(name, SHARED)}"
                )
            if name != "epsilon":
                setattr(self, name, value)
        self.epsilon = start.get("epsilon", self._default_epsilon())
        self.observe(self._follow, ("group", "scoring_rule"))
        self.observe(self._settle, SHARED)
        self._at_own = self.epsilon == self._default_epsilon()

    def _default_epsilon(self) -> float:
        own = self.own_epsilon
        if math.isfinite(own):
            return own
        grid = self.audit.grid.tolist()
        return float(grid[len(grid) // 2])

    def _follow(self, _change: Any) -> None:
        if self._at_own:
            self.epsilon = self._default_epsilon()

    def _settle(self, change: Any) -> None:
        if change["name"] == "epsilon":
            self._at_own = self.epsilon == self._default_epsilon()
        self.revision += 1


def _labels(audit: Audit, dim: str) -> tuple[str, ...]:
    return tuple(audit.headline[dim].values.tolist())


def _headline_cell(audit: Audit, group: str, rule: str, mode: str) -> xr.Dataset:
    return audit.headline.sel(group=group, scoring_rule=rule, pairing_mode=mode)


def _curve_cell(audit: Audit, group: str, rule: str, mode: str) -> xr.Dataset:
    return audit.curve_of(group, rule, mode)


def _slice(audit: Audit, rule: str, mode: str) -> Slice:
    return next(one for one in slices(audit) if (one.rule, one.mode) == (rule, mode))


# ---- what is shown, as a call


# What the calls of charts and questions take unless they are given something else.
_USUAL = {"scoring_rule": "baseline", "pairing_mode": "matched"}


def call_of(function: str, *given: object, **options: object) -> str:
    """Return a call of a chart of ``audit`` as code; what is usual is left out.

    Examples
    --------
    >>> call_of("mpc.charts.forest", pairing_mode="matched", limit=5)
    'mpc.charts.forest(audit, limit=5)'
    """
    named = [f"{k}={v!r}" for k, v in options.items() if _USUAL.get(k) != v]
    first = [] if function.startswith("audit.") else ["audit"]
    return f"{function}({', '.join([*first, *map(repr, given), *named])})"


# ---- a cell in words and numbers


def cell_sentence(audit: Audit, cell: Cell, mode: str) -> str:
    """Return the verdict of a cell in words."""
    if cell.verdict == NOT_ESTIMABLE:
        return f"Group {quote(cell.group)} is not estimable: {why_not(cell)}."
    return minus(sentence(cell, mode, settings(audit)))


def cell_numbers(audit: Audit, cell: Cell, mode: str) -> list[tuple[str, str]]:
    """Return the numbers of a cell with their names."""
    options = settings(audit)
    adjusted = "" if options.get("adjust", "none") == "none" else "adjusted "
    return [
        ("Verdict", cell.verdict),
        (
            f"Gap ({adjusted}{percent(level_of(audit))} {interval_word(mode, options)})",
            gap(cell.estimate, cell.low, cell.high),
        ),
        ("Pairs", f"{cell.pairs:,}"),
        ("Queries", f"{cell.queries:,}"),
        ("Effective clusters", entry(cell.effective, ",.1f")),
        ("Threshold ε", entry(cell.epsilon, ".3g")),
    ]


def point_sentence(audit: Audit, point: xr.Dataset, mode: str, is_headline: bool) -> str:
    """Return what the curve says at one threshold, in words.

    A point of the curve has no verdict: its interval is not adjusted for the other groups.
    """
    who = quote(str(point["group"].item()))
    at = f"At ε = {float(point['epsilon']):.3g}"
    pairs, queries = int(point["n_pairs"]), int(point["n_queries"])
    if not pairs:
        return f"{at} group {who} has no {mode} pairs: choose a larger threshold."
    counted = f"{pairs:,} {mode} {noun(pairs, 'pair')} in {queries:,} {noun(queries, 'query')}"
    if not math.isfinite(float(point["estimate"])):
        return f"{at} the gap of group {who} is not estimable: {counted} are too few."
    low, high = float(point["ci_low"]), float(point["ci_high"])
    estimate, places = float(point["estimate"]), decimals(low, high)
    size = number(abs(estimate), places)
    tied = has_tied_pairs(audit, str(point["scoring_rule"].item()))
    against = MODES[mode].compared_with(float(point["epsilon"]), tied)
    how = gap_in_words(estimate, size, against, settings(audit))
    mark = " This is the threshold of the headline." if is_headline else ""
    if math.isfinite(low) and math.isfinite(high):
        tail = "covers 0" if low <= 0 <= high else "excludes 0"
        known = f"the {percent(level_of(audit))} interval for this threshold alone {tail}"
    else:
        known = "too few clusters carry them to give an interval"
    return f"{at}, for items of group {who}, {how}, over {counted}; {known}.{mark}"


def level_of(audit: Audit) -> float:
    """Return the confidence level of an audit."""
    return float(settings(audit).get("level", 0.95))


def gap(estimate: float, low: float, high: float) -> str:
    """Return a gap with its interval, or a dash."""
    return with_interval(estimate, low, high) if math.isfinite(estimate) else NOTHING
