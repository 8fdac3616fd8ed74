"""What a person chose on the way from a log to an audit. No widget in here."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import traitlets

from mpc_lab.engines.progress import progress_told_to
from mpc_lab.errors import MpcError, near_match
from mpc_lab.explorers.problems import NUMBERS, Problem, can_run, find_problems, readable
from mpc_lab.files import Roles, Sheet
from mpc_lab.ranking import Ranking
from mpc_lab.ranking.guessing import ROLES, guess_columns, guess_separator
from mpc_lab.ranking.table import Frame, open_table
from mpc_lab.results.variables import PAIRING_MODES
from mpc_lab.run import audit
from mpc_lab.scoring import SCORING_RULES

if TYPE_CHECKING:
    from mpc_lab.results import Audit


class StartState(traitlets.HasTraits):
    """A table, the parts of its columns, and the options of the audit to come.

    Attributes
    ----------
    frame : table or None
        The rows as they look; set with `use`.
    uses : int
        How often rows were taken; tells of rows that look as those before did.
    sheet : Sheet or None
        The file they were read from, where they were.
    source : str
        Where they came from, in words.
    given : dict
        The path of that file as ``data``, with ``sep`` and ``encoding`` where these were given.
    columns : dict
        For each keyword of a ranking the column that was guessed or chosen, or None.
    leave_out : bool
        Leave out rows with a missing value, text where a number belongs, or infinity.
    scoring_rules, pairing_modes : tuple of str
    tolerance : float or None
        As in :func:`mpc_lab.audit`.
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
    audit = traitlets.Any(None, read_only=True)

    def __init__(self) -> None:
        super().__init__()
        self.sheet: Sheet | None = None
        self.given: dict[str, str] = {}
        self._by_hand: set[str] = set()
        self._looked_at: tuple[Any, ...] = ()
        self._problems: list[Problem] = []
        self.columns = dict.fromkeys(ROLES)

    def use(self, frame: Any, source: str, given: dict[str, str] | None = None) -> None:
        """Take other rows; parts that were chosen stay where the new table has such a column."""
        sheet = frame if isinstance(frame, Sheet) else None
        if sheet is not None:
            frame = sheet.as_it_looks()
        if isinstance(frame, Ranking):
            given = frame.columns.given()
            chosen = {
                role: list(value) if isinstance(value, tuple) else value
                for role, value in given.items()
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
        """Give a part to a column, or to None; with a group column its separator is guessed."""
        if role not in ROLES:
            raise MpcError(f"A log has no part {role!r}.{near_match(role, ROLES)}")
        if self.frame is None:
            raise MpcError("Choose the rows first: a frame of the notebook, or a file.")
        table = open_table(self.frame)
        if column is not None and not _has(table, role, column):
            if self.sheet is not None and isinstance(column, str):
                self.sheet.files.schema(Roles(labels=(column,)))  # says which file lacks it
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
        """Return the rows by the parts of their columns, which say what text in a file means."""
        return self.frame if self.sheet is None else self.sheet.by_role(self._roles())

    def _roles(self) -> Roles:
        given = {role: value for role, value in self.columns.items() if value is not None}
        flags = given.pop("group") if isinstance(given.get("group"), list) else []
        labels = [
            given[role] for role in ("query", "group", "item", "unit", "segment") if role in given
        ]
        named = [name for one in labels for name in (one if isinstance(one, list) else [one])]
        numbers = [given[role] for role in NUMBERS if role in given]
        return Roles(tuple(named), tuple(numbers), tuple(flags))

    @property
    def as_written(self) -> Any:
        """The rows to be looked at, in which an id such as 007 keeps its zeros."""
        return self.frame if self.sheet is None else self.sheet.table

    @property
    def problems(self) -> list[Problem]:
        """What stands in the way, found anew when rows or columns changed."""
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
        """Return the keywords of :func:`mpc_lab.audit` that the choices amount to."""
        given = {role: value for role, value in self.columns.items() if value is not None}
        given["missing"] = "drop" if self.leave_out else "raise"
        options: dict[str, Any] = {
            "scoring_rules": self.scoring_rules,
            "pairing_modes": self.pairing_modes,
            "tolerance": self.tolerance,
        }
        usual = {"missing": "raise", "scoring_rules": ("baseline",), "tolerance": None}
        usual["pairing_modes"] = ("matched",)
        return {
            name: value
            for name, value in {**given, **options}.items()
            if name not in usual or value != usual[name]
        }

    def run(self, told: Callable[[str, int, int], None] | None = None) -> Audit:
        """Run the audit.

        Parameters
        ----------
        told : callable, optional
            Told (what is done, steps done, steps so far known of).
        """
        if self.frame is None:
            raise MpcError("Choose the rows first: a frame of the notebook, or a file.")
        frame = self.rows()
        if self.sheet is not None:
            self.sheet.files.schema(self._roles())
            if not self.leave_out and not self.ready:
                self.sheet.files.check(self._roles())
        if self.sheet is None or self.leave_out:
            frame = readable(frame, self.columns, leave_out=self.leave_out)
        with progress_told_to(told or (lambda label, done, total: None)):
            made = audit(frame, **self.keywords())
        self.set_trait("audit", made)
        return made

    @traitlets.validate("scoring_rules", "pairing_modes")
    def _check_options(self, proposal: Any) -> tuple[str, ...]:
        known = SCORING_RULES if proposal["trait"].name == "scoring_rules" else PAIRING_MODES
        for name in proposal["value"]:
            if name not in known:
                raise traitlets.TraitError(f"There is no {name!r}.{near_match(name, known)}")
        if not proposal["value"]:
            raise traitlets.TraitError(f"Choose at least one of {', '.join(known)}.")
        return tuple(proposal["value"])

    @traitlets.validate("tolerance")
    def _check_tolerance(self, proposal: Any) -> float | None:
        value = proposal["value"]
        if value is not None and not 0 < value < float("inf"):
            raise traitlets.TraitError(
                f"tolerance must be a number above 0 in units of the outcome, not {value!r}."
            )
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
    lines = [f"    {key}={value!r}," for key, value in {**state.keywords(), **how}.items()]
    first = repr(state.given["data"]) if state.given else name
    return "\n".join([f"audit = mpc.audit({first},", *lines, ")"])


def _has(table: Frame, role: str, column: Any) -> bool:
    if role == "group_sep":
        return isinstance(column, str)
    names: list[Hashable] = column if isinstance(column, list) else [column]
    return column is None or all(name in table.columns for name in names)
