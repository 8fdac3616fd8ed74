"""Two rules of an audit, or two audits, side by side: what differs, and the pairs behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import ipywidgets as widgets
import pandas as pd
import traitlets
import xarray as xr

from mpc_lab.errors import MpcError, near_match
from mpc_lab.explorers.controls import Note, NumberRow, dropdown, plain_table
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.state import call_of
from mpc_lab.results.difference import Difference
from mpc_lab.results.questions.difference import ABOVE, Compared, changed_sides
from mpc_lab.results.two_audits import difference
from mpc_lab.text import NOTHING, entry, labels, plural, quote, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit

OTHER = "the old audit"
_MOST_PAIRS = 20
# Below this width, two panels with names do not fit beside each other.
_NARROW_BELOW = 640
_CHOSEN = "old and new are chosen below"
_OWN = "each side is at its own threshold here"


class CompareExplorer(Explorer):
    """The difference of two rules for every group; a click shows both curves and the pairs.

    Parameters
    ----------
    audit : Audit
        With two scoring rules, or with another audit to compare it with.
    state : AuditState, optional
    old : Audit, optional
        Another audit, such as that of last week; it is then one of the choices of ``base``.
    **start
        Any trait.

    Attributes
    ----------
    rule, base : str
        What is new and what is old: a scoring rule; `base` may be ``"the old audit"``, which is
        compared with the first rule of this one.
    found : Difference
        New less old, for all groups.
    changed : pandas.DataFrame
        The pairs of the group that changed sides.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> rules = ["baseline", mpc.Boosted(0.05)]
    >>> ranking = mpc.datasets.synthetic(queries=500)
    >>> audit = mpc.audit(ranking, scoring_rules=rules, progress=False)
    >>> explorer = mpc.explorers.CompareExplorer(audit, group="1")
    >>> explorer.rule, explorer.base, set(explorer.changed["was"])
    ('boosted(0.05)', 'baseline', {'below'})
    """

    title: ClassVar[str] = "Compare"
    takes_old: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {"scoring_rule": _CHOSEN, "epsilon": _OWN}

    rule = traitlets.Unicode().tag(redraw=True)
    base = traitlets.Unicode().tag(redraw=True)

    @classmethod
    def is_for(cls, audit: Audit) -> bool:
        """Whether there are two rules."""
        return audit.headline.sizes["scoring_rule"] > 1

    def prepare(self) -> None:
        """Start with the second rule against the first, or this audit against the old one."""
        self._differences: dict[tuple[str, str], Difference] = {}
        self._pairs: dict[tuple[str, ...], pd.DataFrame] = {}
        rules = self.scoring_rules
        if self.state.old is not None:
            self.rule, self.base = rules[0], OTHER
        else:
            self.base = "baseline" if "baseline" in rules else rules[0]
            self.rule = next((one for one in rules if one != self.base), rules[0])
        self.observe(self._keep_first, ("rule", "base"))

    @property
    def bases(self) -> tuple[str, ...]:
        """What `base` may be."""
        return self.scoring_rules + (() if self.state.old is None else (OTHER,))

    @traitlets.validate("rule", "base")
    def _check_side(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, str(proposal["value"])
        known = self.bases if name == "base" else self.scoring_rules
        if value not in known:
            raise traitlets.TraitError(
                f"{name} must be a scoring rule of the audit; got {value!r}."
                f"{near_match(value, known)}"
            )
        return value

    def _keep_first(self, _change: Any) -> None:
        # Two audits are compared under their first rules.
        if self.base == OTHER:
            self.rule = self.scoring_rules[0]

    @property
    def found(self) -> Difference:
        """New less old, for all groups and modes."""
        key = (self.rule, self.base)
        if key not in self._differences:
            self._differences[key] = (
                difference(self.audit, self._old_audit)
                if self.base == OTHER
                else self.audit.difference(*key)
            )
        return self._differences[key]

    def call(self) -> str:
        """Return the call of the chart of all groups."""
        found = call_of("audit.difference", self.rule, self.base)
        if self.base == OTHER:
            found = "mpc.difference(audit, old)"
        return f"mpc.charts.difference({found}, pairing_mode={self._mode!r})"

    @property
    def selection(self) -> xr.Dataset:
        """The difference of the chosen group and mode."""
        found = self.found
        if self.group not in found.groups:
            raise MpcError(
                f"The group must be in both audits; got {quote(self.group)}. Choose another."
            )
        return found.data.sel(group=self.group, pairing_mode=self._mode)

    @property
    def changed(self) -> pd.DataFrame:
        """The pairs of the group that changed sides, the closest under old first."""
        key = (self.rule, self.base, self.group, self._mode)
        if key not in self._pairs:
            self._pairs[key] = changed_sides(*self._cells())
        return self._pairs[key]

    @property
    def _mode(self) -> str:
        modes = self.found.pairing_modes
        return self.pairing_mode if self.pairing_mode in modes else modes[0]

    @property
    def _old_audit(self) -> Audit:
        if self.state.old is None:
            raise MpcError("The explorer must have an old audit; got none. Give explore(old=…).")
        return self.state.old

    def _cells(self) -> tuple[Compared, Compared]:
        """Return the cell of new and that of old."""
        old, base = self.audit, self.base
        if base == OTHER:
            old = self._old_audit
            base = str(old.headline["scoring_rule"].values[0])
        return (
            Compared(self.audit, self.group, self.rule, self._mode),
            Compared(old, self.group, base, self._mode),
        )

    # What a person sees -------------------------------------------------------------------------

    def make_controls(self) -> Sequence[widgets.Widget]:
        """Return the choices of new and old."""
        for name, known, words in (
            ("rule", self.scoring_rules, "New"),
            ("base", self.bases, "Old"),
        ):
            options = list(zip(labels(known), known, strict=True))
            self.controls[name] = dropdown(words, options, getattr(self, name))
            traitlets.link((self, name), (self.controls[name], "value"))
        return [self.controls["rule"], self.controls["base"]]

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the sentence, the chart of all groups, both curves, and the pairs."""
        self.controls["chart"] = LiveChart(narrow_below=_NARROW_BELOW)
        self.controls["chart"].observe(self._picked, "picked")
        self.controls["curves"] = LiveChart()
        self.controls["sentence"], self.controls["numbers"] = Note(kind="sentence"), NumberRow()
        self.controls["count"], self.controls["pairs"] = Note(), widgets.HTML()
        self.controls["notes"] = Note()
        hint = Note("Click a row, or use the list above, to choose a group for all tabs.")
        self._drawn_for: tuple[str, ...] | None = None
        names = ("sentence", "numbers", "chart")
        below = ("notes", "curves", "count", "pairs")
        return [
            *(self.controls[name] for name in names),
            hint,
            *(self.controls[name] for name in below),
        ]

    def draw(self) -> None:
        """Draw all groups where old or new is another; show the chosen one."""
        from mpc_lab.charts.difference import both_curves, difference_rows
        from mpc_lab.charts.difference import difference as chart

        self.controls["rule"].disabled = self.base == OTHER or len(self.scoring_rules) == 1
        found, mode = self.found, self._mode
        order = difference_rows(found, mode)["group"].tolist()
        wanted = (self.rule, self.base, mode)
        if wanted != self._drawn_for:
            wide, narrow = (
                chart(found, mode, narrow=is_narrow, live=True) for is_narrow in (False, True)
            )
            self.controls["chart"].show(wide, narrow)
            self.controls["notes"].text = str(found.attrs.get("notes", ""))
            self._drawn_for = wanted
        is_there = self.group in order
        self.controls["chart"].set(chosen=order.index(self.group) if is_there else -1)
        cell = self.selection
        self.controls["sentence"].text = f"Group {quote(self.group)}: {found.sentence(cell)}"
        self.controls["numbers"].show(_numbers(cell, found))
        self.controls["curves"].show(both_curves(found, *self._cells()))
        self._show_pairs()

    def _show_pairs(self) -> None:
        """Show the pairs that changed sides, or say why there are none."""
        try:
            pairs = self.changed
        except MpcError as error:
            self.controls["count"].text, self.controls["pairs"].value = str(error), ""
            return
        self.controls["count"].text = changed_words(pairs, self.group)
        self.controls["pairs"].value = _pairs_html(pairs)

    def _picked(self, change: Any) -> None:
        from mpc_lab.charts.difference import difference_rows

        places = (change["new"].get("pick") or {}).get("place") or [None]
        # A click beside the rows has no place.
        if places[0] is not None:
            order = difference_rows(self.found, self._mode)["group"].tolist()
            self.group = order[int(places[0])]


def _numbers(cell: xr.Dataset, found: Difference) -> list[tuple[str, str]]:
    """Return the numbers of one difference with their names."""
    names = ("difference", "ci_low_adjusted", "ci_high_adjusted")
    value, low, high = (float(cell[name]) for name in names)
    size = with_interval(value, low, high) if low == low else NOTHING
    shown = [
        ("Verdict", str(cell["verdict"].item())),
        ("Difference (adjusted interval)", size),
        ("Standard error", entry(float(cell["std_error"]), 4)),
        ("As if independent", entry(float(cell["std_error_independent"]), 4)),
        ("Pairs, new", f"{int(cell['n_pairs_new']):,}"),
        ("Pairs, old", f"{int(cell['n_pairs_old']):,}"),
        ("In both", entry(float(cell["n_pairs_shared"]), ",.0f")),
    ]
    if "ndcg_change" in cell:
        shown.append(("Change of NDCG", entry(float(cell["ndcg_change"]), 4)))
    return shown


def changed_words(pairs: pd.DataFrame, group: str) -> str:
    """Say how many pairs changed sides, and what their outcomes are."""
    close = plural(int(pairs.attrs["n_close"]), "pair")
    if pairs.empty:
        return f"None of the {close} of group {quote(group)} that are close changed sides."
    raised = int((pairs["is"] == ABOVE).sum())
    mean = entry(float(pairs["difference"].mean()), 3)
    return (
        f"{len(pairs):,} of {close} of group {quote(group)} that are close under old or new "
        f"changed sides: in {raised:,} the item of the group is above the other one now, in "
        f"{len(pairs) - raised:,} below. The mean difference of their outcomes is {mean}. "
        "Below, before and now are distances of scores."
    )


def _pairs_html(pairs: pd.DataFrame) -> str:
    """Return the closest pairs that changed sides as a table."""
    if pairs.empty:
        return ""
    shown = pairs.head(_MOST_PAIRS)
    table = pd.DataFrame({"query": shown["query"]})
    for name, title in (("item", "label"), ("other_item", "other_label")):
        if name in shown:
            table[name] = shown[title if title in shown else name]
    table["was"] = shown["was"]
    for name, words in (("score", "before"), ("new_score", "now")):
        table[words] = (shown[f"other_{name}"] - shown[name]).abs()
    outcomes = {"outcome": "outcome", "other_outcome": "other", "difference": "difference"}
    for name, words in outcomes.items():
        table[words] = shown[name]
    header = [str(column).replace("_", " ") for column in table.columns]
    rows = [list(row) for row in table.itertuples(index=False)]
    rows = [[", ".join(map(str, v)) if isinstance(v, tuple) else v for v in row] for row in rows]
    caption = "Pairs that changed sides, the closest first"
    if len(pairs) > _MOST_PAIRS:
        caption += f"; {_MOST_PAIRS} of {len(pairs):,}"
    return plain_table(header, rows, caption=caption)
