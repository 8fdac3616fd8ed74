"""What a person chose on the way from a log to an audit. No widget in here."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import traitlets

from mpc_lab.engines.running import report_progress_to
from mpc_lab.errors import MpcError, near_match
from mpc_lab.explorers.problems import ListedProblem, can_run, find_problems, readable, roles_of
from mpc_lab.files import Roles, Sheet
from mpc_lab.pairing.terms import (
    CLOSENESS,
    CONTRASTS,
    DIFFERENCE,
    ESTIMANDS,
    PAIRS,
    SCORE,
    Enough,
    Powered,
    Quantile,
    Smallest,
)
from mpc_lab.ranking import Ranking
from mpc_lab.ranking.columns import Frame, open_table
from mpc_lab.ranking.names import GUESSED, guess_columns, guess_separator
from mpc_lab.run import audit
from mpc_lab.scoring import SCORING_RULES
from mpc_lab.vocabulary import MODES, default_modes

if TYPE_CHECKING:
    from mpc_lab.results import Audit


# What an audit takes where it is not left as it is.
OPTIONAL = (
    *("tolerance", "threshold", "ascending", "outcome_name"),
    *("closeness", "contrast", "estimand", "outcome_cap", "against"),
)


class StartState(traitlets.HasTraits):
    """A table, the roles of its columns, and the options of the audit to come.

    Attributes
    ----------
    frame : table or None
        The rows as they look; set with `use`.
    uses : int
        How often rows were taken; tells of rows that look as those before did.
    sheet : Sheet or None
        The file they were read from, where they were.
    source : str
        Where they are from, in words.
    given : dict
        The path of that file as ``data``, with ``sep`` and ``encoding`` where these were given.
    columns : dict
        For each keyword of a ranking the column that was guessed or chosen, or None.
    leave_out : bool
        Leave out rows with a missing value, text where a number belongs, or infinity.
    scoring_rules, pairing_modes : tuple of str
    tolerance, outcome_cap : float or None
    threshold : Quantile, Smallest, Powered, Enough, float or None
    ascending : bool
    outcome_name : str or None
    closeness, contrast, estimand : str
    against : str or None
        As in :func:`mpc_lab.audit`. Modes that were not chosen are those of an audit that names
        none: with a position column symmetric and matched.
    audit : Audit or None
        What the last run found.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> state = StartState()
    >>> state.use(mpc.datasets.synthetic(queries=200).to_frame(), "log")
    >>> state.columns["group"], state.ready
    ('type', True)
    """

    frame = traitlets.Any(None, read_only=True)
    uses = traitlets.Int(0, read_only=True)
    source = traitlets.Unicode(read_only=True)
    columns = traitlets.Dict()
    leave_out = traitlets.Bool(False)
    scoring_rules = traitlets.Tuple(("baseline",))
    pairing_modes = traitlets.Tuple(("matched",))
    tolerance = traitlets.Float(None, allow_none=True)
    closeness = traitlets.Enum(CLOSENESS, SCORE)
    contrast = traitlets.Enum(CONTRASTS, DIFFERENCE)
    estimand = traitlets.Enum(ESTIMANDS, PAIRS)
    outcome_cap = traitlets.Float(None, allow_none=True)
    against = traitlets.Unicode(None, allow_none=True)
    threshold = traitlets.Any(None)
    ascending = traitlets.Bool(False)
    outcome_name = traitlets.Unicode(None, allow_none=True)
    audit = traitlets.Any(None, read_only=True)

    def __init__(self) -> None:
        super().__init__()
        self.sheet: Sheet | None = None
        self.given: dict[str, str] = {}
        self._by_hand: set[str] = set()
        self._looked_at: tuple[Any, ...] = ()
        self._problems: list[ListedProblem] = []
        self._cleaned_for: tuple[Any, ...] = ()
        self._cleaned: tuple[Any, bool] = (None, False)
        self.columns = dict.fromkeys(GUESSED)

    def use(self, frame: Any, source: str, given: dict[str, str] | None = None) -> None:
        """Take other rows; roles that were chosen stay where the new table has such a column."""
        sheet = frame if isinstance(frame, Sheet) else None
        if sheet is not None:
            frame = sheet.as_it_looks()
        if isinstance(frame, Ranking):
            chosen = {
                role: list(value) if isinstance(value, tuple) else value
                for role, value in frame.columns.given().items()
            }
            frame = frame.to_frame()
        else:
            chosen = {role: self.columns[role] for role in self._by_hand}
        table = open_table(frame)
        kept = {role: value for role, value in chosen.items() if _has(table, role, value)}
        self.sheet, self.given = sheet, given or {}
        with self.hold_trait_notifications():
            self.set_trait("frame", frame)
            self.set_trait("source", source)
            self.set_trait("uses", self.uses + 1)
            self.columns = {**guess_columns(frame), **kept}

    def choose(self, role: str, column: Any) -> None:
        """Give a role to a column, or to None; with a group column its separator is guessed."""
        if role not in GUESSED:
            raise MpcError(f"A log has no role {role!r}.{near_match(role, GUESSED)}")
        if self.frame is None:
            raise MpcError(
                "The rows must be chosen before their columns; got none. Choose a file or a frame."
            )
        table = open_table(self.frame)
        if column is not None and not _has(table, role, column):
            if self.sheet is not None and isinstance(column, str):
                self.sheet.files.schema(Roles(labels=(column,)))  # says which file lacks it
                for note in self.sheet.notes:
                    if f"Column {column!r} " in note:  # and why it was left out
                        raise MpcError(note)
            raise MpcError(
                f"There is no column {column!r} to use as {role}."
                f"{near_match(column, map(str, table.columns))}"
            )
        self._by_hand.add(role)
        changed = {**self.columns, role: column}
        if role == "group" and "group_sep" not in self._by_hand:
            one = column is not None and not isinstance(column, list)
            changed["group_sep"] = guess_separator(self.frame, column) if one else None
        self.columns = changed

    def rows(self) -> Any:
        """Return the rows by the roles of their columns, which say what text in a file means."""
        return self.frame if self.sheet is None else self.sheet.by_role(roles_of(self.columns))

    @property
    def cleaned(self) -> tuple[Any, bool]:
        """The rows to audit, and whether any cell had to be changed for that."""
        now = (id(self.frame), repr(self.columns), self.leave_out)
        if self._cleaned_for != now:
            rows = made = self.rows()
            if self.sheet is None or self.leave_out:
                made = readable(rows, self.columns, leave_out=self.leave_out)
            self._cleaned, self._cleaned_for = (made, made is not rows), now
        return self._cleaned

    @property
    def as_written(self) -> Any:
        """The rows to be looked at, in which an id such as 007 keeps its zeros."""
        return self.frame if self.sheet is None else self.sheet.table

    @property
    def problems(self) -> list[ListedProblem]:
        """The problems of the log; looked for again when rows or columns have changed."""
        if self.frame is None:
            return []
        now = (id(self.frame), repr(self.columns))
        if self._looked_at != now:
            self._problems = find_problems(self.rows(), self.columns)
            self._looked_at = now
        return self._problems

    @property
    def ready(self) -> bool:
        """Whether an audit can run."""
        return self.frame is not None and can_run(self.problems, leave_out=self.leave_out)

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of :func:`mpc_lab.audit` that express the choices."""
        given = {role: value for role, value in self.columns.items() if value is not None}
        given["missing"] = "drop" if self.leave_out else "raise"
        options: dict[str, Any] = {
            "scoring_rules": self.scoring_rules,
            "pairing_modes": self.pairing_modes,
        }
        usual = {"missing": "raise", "scoring_rules": ("baseline",)}
        usual["pairing_modes"] = self._usual_modes
        for name in OPTIONAL:
            options[name], usual[name] = getattr(self, name), self.traits()[name].default_value
        return {
            name: value
            for name, value in {**given, **options}.items()
            if name not in usual or value != usual[name]
        }

    def run(self, report: Callable[[str, int, int], None] | None = None) -> Audit:
        """Run the audit.

        Parameters
        ----------
        report : callable, optional
            Called with (what is done, steps done, steps so far known of).
        """
        if self.frame is None:
            raise MpcError(
                "The rows must be chosen before the audit; got none. Choose a file or a frame."
            )
        if self.sheet is not None:
            roles = roles_of(self.columns)
            self.sheet.files.schema(roles)
            if not self.leave_out and not self.ready:
                self.sheet.files.read(roles)  # says what is wrong, and in which line
        frame, _ = self.cleaned
        with report_progress_to(report or (lambda label, done, total: None)):
            made = audit(frame, **self.keywords())
        self.set_trait("audit", made)
        return made

    @property
    def _usual_modes(self) -> tuple[str, ...]:
        return default_modes(self.columns.get("position") is not None)

    @traitlets.observe("columns")
    def _follow_position(self, change: Any) -> None:
        """Take the modes that go with a position column, or without, unless others were chosen."""
        before = change["old"].get("position") if isinstance(change["old"], dict) else None
        if self.pairing_modes == default_modes(before is not None):
            self.pairing_modes = self._usual_modes

    @traitlets.validate("scoring_rules", "pairing_modes")
    def _check_options(self, proposal: Any) -> tuple[str, ...]:
        known = SCORING_RULES if proposal["trait"].name == "scoring_rules" else tuple(MODES)
        for name in proposal["value"]:
            if name not in known:
                raise traitlets.TraitError(f"There is no choice {name!r}.{near_match(name, known)}")
        if not proposal["value"]:
            raise traitlets.TraitError(
                f"{proposal['trait'].name} must be at least one of {', '.join(known)}; got none."
            )
        return tuple(proposal["value"])

    @traitlets.validate("tolerance")
    def _check_tolerance(self, proposal: Any) -> float | None:
        value = proposal["value"]
        if value is not None and not 0 < value < float("inf"):
            raise traitlets.TraitError(
                f"tolerance must be a number above 0 in units of the outcome; got {value!r}."
            )
        return None if value is None else float(value)

    @traitlets.validate("outcome_cap")
    def _check_cap(self, proposal: Any) -> float | None:
        value = proposal["value"]
        if value is not None and not abs(value) < float("inf"):
            raise traitlets.TraitError(f"outcome_cap must be a finite number; got {value!r}.")
        return None if value is None else float(value)


def code_of(state: StartState, name: str = "log") -> str:
    """Return the Python that does the same as the choices.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> state = StartState()
    >>> state.use(mpc.datasets.synthetic(queries=200).to_frame(), "log")
    >>> print(code_of(state).splitlines()[1])
        query='query',
    """
    how = {key: value for key, value in state.given.items() if key != "data"}
    rows = repr(state.given["data"]) if state.given else name
    asked, before = state.keywords(), []
    if state.cleaned[1]:
        columns = {role: asked.pop(role) for role in GUESSED if role in asked}
        more = "".join(f", {key}={value!r}" for key, value in how.items())
        cleaned = f"mpc.explorers.readable({rows}, columns, leave_out={state.leave_out}{more})"
        before, rows, how = [f"columns = {columns!r}", f"{name} = {cleaned}"], name, {}
    lines = [f"    {key}={_written(value)}," for key, value in {**asked, **how}.items()]
    named = ["    **columns,"] if before else []
    return "\n".join([*before, f"audit = mpc.audit({rows},", *named, *lines, ")"])


def _written(value: Any) -> str:
    rules = (Quantile, Smallest, Powered, Enough)
    return f"mpc.{value!r}" if isinstance(value, rules) else repr(value)


def _has(table: Frame, role: str, column: Any) -> bool:
    if role == "group_sep":
        return isinstance(column, str)
    names: list[Hashable] = column if isinstance(column, list) else [column]
    return column is None or all(name in table.columns for name in names)
