"""From a log to an explorer: pick rows, give columns their roles, see the problems, run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import narwhals as nw
import traitlets

from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import (
    Beacon,
    ErrorBox,
    Note,
    ProgressRow,
    button,
    checkbox,
    column,
    controls_row,
    dropdown,
    text_field,
)
from mpc_lab.explorers.problems import code_html, preview_html, problems_html
from mpc_lab.explorers.start_state import OPTIONAL, StartState, code_of
from mpc_lab.explorers.start_terms import terms_fold, threshold_field
from mpc_lab.explorers.tabs import AuditExplorer
from mpc_lab.files import ACCEPTED, find_files, take_upload
from mpc_lab.files.kinds import KINDS
from mpc_lab.ranking.columns import open_table
from mpc_lab.results import load
from mpc_lab.roles import ROLES
from mpc_lab.scoring import SCORING_RULES
from mpc_lab.text import labels, plural, quote
from mpc_lab.text import name as shown_name
from mpc_lab.vocabulary import MODES

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_LARGE_UPLOAD = "For files above 10 MB give the path instead."
_OF_TEXT = "Delimiter (such as ; or tab) and encoding are detected; give them if that goes wrong."
_FOUND = "automatic"
_SEVERAL = "Ctrl or ⌘ for several"
# What is chosen leads in this order, so that both sides of a tie come first where they are chosen.
_IN_ORDER = tuple(sorted(MODES, key=lambda name: not MODES[name].two_sided))
_FRAME, _FILE, _UPLOAD = "frame", "file", "upload"


def frames_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a namespace by name: pandas, polars, pyarrow, what narwhals knows.

    Names that begin with an underscore are left out: IPython keeps its history under them.
    """
    return {
        name: value
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and _is_table(value)
    }


def _is_table(value: object) -> bool:
    if isinstance(value, type):
        return False
    found: Any = nw.from_native(value, eager_only=True, pass_through=True)
    return isinstance(found, nw.DataFrame)


def notebook_names() -> dict[str, Any]:
    """Return what the user of this notebook has named; nothing outside of IPython."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return {} if instance is None else dict(instance.user_ns)


def start(frame: Any = None) -> Start:
    """Go from a log to an explorer with widgets, in a notebook.

    Parameters
    ----------
    frame : table or Ranking, optional
        The rows to begin with; others can be picked: a frame of the notebook (pandas, polars,
        pyarrow), or files: CSV, JSON lines, Parquet, Feather.

    Returns
    -------
    Start
        Shown by a notebook. Afterwards ``audit`` is what was found, and ``explorer`` the panel.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> begun = mpc.explorers.start(mpc.datasets.synthetic(queries=500).to_frame())
    >>> begun.state.columns["group"]
    'type'
    >>> begun.run().groups
    ('1', '2')
    """
    return Start(frame)


class Start:
    """The panel that :func:`start` shows.

    Parameters
    ----------
    frame : table or Ranking, optional
    namespace : callable, optional
        Where frames are looked for; by default the notebook's own names. None where there is no
        notebook to have any: then only files are offered.
    on_land : callable, optional
        Called with the explorer of each run before it is shown.

    Attributes
    ----------
    state : StartState
        What was chosen.
    explorer : AuditExplorer or None
        The panel of the last run.
    controls : dict
        The widgets by their names, once ``widget`` was made: ``frame``, ``path``, ``run``, one for
        each role of a column, and so on.
    """

    def __init__(
        self,
        frame: Any = None,
        namespace: Callable[[], Mapping[str, Any]] | None = notebook_names,
        on_land: Callable[[AuditExplorer], None] | None = None,
    ) -> None:
        self.state = StartState()
        self.explorer: AuditExplorer | None = None
        self._namespace, self._on_land = namespace, on_land
        self._filling = False
        self.controls: dict[str, Any] = {}
        if frame is not None:
            self.state.use(frame, "The given frame")

    @property
    def audit(self) -> Audit | None:
        """What the last run found."""
        found: Audit | None = self.state.audit
        return found

    def run(self) -> Audit:
        """Run the audit with what was chosen, and land in its explorer."""
        made = self.state.run(self._told if "widget" in self.__dict__ else None)
        self._land(made)
        return made

    @cached_property
    def widget(self) -> widgets.Widget:
        """The widgets, made when first asked for."""
        self.controls["error"] = ErrorBox()
        self.controls["explorer"] = column()
        steps = column(
            _heading("1. Rows"),
            self._rows_step(),
            _heading("2. Columns"),
            self._columns_step(),
            _heading("3. Problems"),
            self._problems_step(),
            _heading("4. Run"),
            self._run_step(),
        )
        self._fold = widgets.Accordion([steps], titles=("From a log to an audit",))
        self._fold.selected_index = 0
        made = column(Beacon(), self._fold, self.controls["error"], self.controls["explorer"])
        made.add_class("mpc-explorer")
        self.state.observe(self._refresh, ("uses", "columns"))
        self.state.observe(self._refresh_end, "leave_out")
        self.state.observe(self._show_modes, "pairing_modes")
        self.state.observe(self._show_code_again, OPTIONAL)
        self._refresh()
        return made

    # 1. Rows ------------------------------------------------------------------------------------

    def _rows_step(self) -> widgets.Widget:
        box = self.controls
        where = [("a file by its path", _FILE), ("an upload", _UPLOAD)]
        if self._namespace is not None:
            where = [("a frame in this notebook", _FRAME), *where]
        box["rows_from"] = dropdown("Rows from", where, where[0][1])
        box["rows_from"].observe(self._place_changed, "value")
        box["frame"] = dropdown("Frame", [("(none)", "")], "")
        box["frame"].observe(self._frame_chosen, "value")
        box["look_again"] = button("Look again", "List the frames that the notebook has now")
        box["look_again"].on_click(lambda _: self._list_frames())
        box["path"] = text_field("Path", placeholder="folder/log.csv", continuous_update=False)
        box["path"].layout.width = "28em"
        box["read"] = button("Read", "Read this file")
        box["delimiter"] = text_field("Delimiter", placeholder=_FOUND, continuous_update=False)
        box["encoding"] = text_field("Encoding", placeholder=_FOUND, continuous_update=False)
        for field in (box["delimiter"], box["encoding"]):
            field.layout.width = "14em"
            field.observe(self._how_changed, "value")
        box["rows_error"] = ErrorBox()
        box["read"].on_click(lambda _: self._guard(self._read_path, box["rows_error"]))
        box["upload"] = widgets.FileUpload(accept=",".join(KINDS), description="Choose a file")
        box["upload"].observe(lambda _: self._guard(self._read_upload, box["rows_error"]), "value")
        box["help"] = Note()
        box["rows"] = Note(kind="finding")
        box["preview"] = widgets.HTML()
        self._list_frames()
        if not self._frames_known and (self.state.frame is None or self.state.sheet is not None):
            box["rows_from"].value = _FILE
            box["path"].value = self.state.given.get("data", "")
        self._place_changed()
        asked = ("rows_from", "frame", "look_again", "path", "read", "upload", "delimiter")
        row = controls_row(*(box[name] for name in (*asked, "encoding", "help")))
        return column(row, box["rows_error"], box["rows"], box["preview"])

    def _place_changed(self, _change: Any = None) -> None:
        place = self.controls["rows_from"].value
        asked = {
            _FRAME: ("frame", "look_again"),
            _FILE: ("path", "read", "delimiter", "encoding"),
            _UPLOAD: ("upload", "delimiter", "encoding"),
        }
        for name in {name for names in asked.values() for name in names}:
            self.controls[name].layout.display = "" if name in asked[place] else "none"
        helps = {
            _FRAME: ""
            if self._frames_known
            else "The notebook has no frame yet: make one, then look again.",
            _FILE: f"A file, a folder, or a pattern such as logs/*.csv. {ACCEPTED}; or a saved "
            f"audit, .nc. {_OF_TEXT}",
            _UPLOAD: f"{_OF_TEXT} {_LARGE_UPLOAD}",
        }
        self.controls["help"].text = helps[place]

    def _list_frames(self) -> None:
        box = self.controls
        self._frames_known = {} if self._namespace is None else frames_in(self._namespace())
        named = [
            (f"{shown_name(label)} ({plural(len(open_table(frame)), 'row')})", label)
            for label, frame in self._frames_known.items()
        ]
        own = [label for label, one in self._frames_known.items() if one is self.state.frame]
        before = box["frame"].value or (own[0] if own else "")
        self._filling = True
        try:
            box["frame"].options = [("(choose)" if named else "(none)", ""), *named]
            box["frame"].value = before if before in self._frames_known else ""
        finally:
            self._filling = False
        box["frame"].disabled = not named
        if "help" in box:
            self._place_changed()

    def _frame_chosen(self, change: Any) -> None:
        label = change["new"]
        if label and not self._filling:
            frame = self._frames_known[label]
            self._guard(lambda: self.state.use(frame, str(label)), self.controls["rows_error"])

    def _read_path(self) -> None:
        path = self.controls["path"].value.strip().strip("\"'")
        if Path(path).suffix.lower() == ".nc":
            self._land(load(Path(path).expanduser()))
            return
        how = self._how()
        made = find_files(path, **how).read_all()
        self.state.use(made, Path(path).name, {"data": path, **how})

    def _read_upload(self) -> None:
        for given in self.controls["upload"].value:
            name, how = given["name"], self._how()
            made = take_upload(name, given["content"], **how).read_all()
            self.state.use(made, name, {"data": name, **how})

    def _how(self) -> dict[str, str]:
        """Return how text is to be read, as far as a person said it."""
        sep = self.controls["delimiter"].value
        how = {"sep": sep.strip() or sep, "encoding": self.controls["encoding"].value.strip()}
        return {name: value for name, value in how.items() if value}

    def _how_changed(self, _change: Any = None) -> None:
        """Read an upload again, for which there is no button."""
        if self.controls["rows_from"].value == _UPLOAD:
            self._guard(self._read_upload, self.controls["rows_error"])

    # 2. Columns ---------------------------------------------------------------------------------

    def _columns_step(self) -> widgets.Widget:
        self._choices: dict[str, list[Any]] = {}
        cells = []
        for role in ROLES.values():
            box = self.controls[role.name] = dropdown(role.label, [("(none)", 0)], 0)
            box.observe(self._role_chosen(role.name), "value")
            cells.append(_cell(box, role.hint + ("" if role.is_needed else "; optional")))
            if role.name == "group":
                self.controls["group_sep"] = text_field(
                    "Separator", placeholder="none", continuous_update=False
                )
                self.controls["group_sep"].observe(self._sep_chosen, "value")
                self.controls["group_sep_note"] = Note(
                    "separates several labels in one text, such as |"
                )
                cells.append(_cell(self.controls["group_sep"], self.controls["group_sep_note"]))
        grid = widgets.Box(cells)
        grid.add_class("mpc-grid")
        return grid

    def _fill_roles(self) -> None:
        """Offer the columns of the table, and show the ones that play a role."""
        names = [] if self.state.frame is None else list(open_table(self.state.frame).columns)
        shown = labels(names)
        self._filling = True
        try:
            for role in ROLES:
                box = self.controls[role]
                first = "(choose)" if ROLES[role].is_needed else "(none)"
                offered: list[tuple[str, Any]] = list(zip(shown, names, strict=True))
                chosen = self.state.columns[role]
                if role == "group":
                    offered += self._boolean_sets(chosen)
                self._choices[role] = [None, *(value for _, value in offered)]
                words = [first, *(label for label, _ in offered)]
                box.options = [(label, place) for place, label in enumerate(words)]
                box.value = self._choices[role].index(chosen)
                box.disabled = not names
            self.controls["group_sep"].value = self.state.columns["group_sep"] or ""
            listed = isinstance(self.state.columns["group"], list)
            self.controls["group_sep"].disabled = not names or listed
            self.controls["group_sep_note"].text = (
                "Separator: boolean columns are groups themselves"
                if listed
                else "separates several labels in one text, such as |"
            )
        finally:
            self._filling = False

    def _boolean_sets(self, chosen: Any) -> list[tuple[str, Any]]:
        """Offer all boolean columns together as groups, and those that were guessed."""
        if self.state.frame is None:
            return []
        schema = open_table(self.state.frame).schema
        flags = [column for column, kind in schema.items() if kind.__class__.__name__ == "Boolean"]
        sets = [flags] if flags else []
        if isinstance(chosen, list) and chosen not in sets:
            sets.append(chosen)
        words = [f"boolean columns: {', '.join(map(shown_name, one))}" for one in sets]
        return list(zip(labels(words), sets, strict=True))

    def _role_chosen(self, role: str) -> Callable[[Any], None]:
        def choose(change: Any) -> None:
            if not self._filling and change["new"] is not None:
                picked = self._choices[role][change["new"]]
                self._guard(lambda: self.state.choose(role, picked))

        return choose

    def _sep_chosen(self, change: Any) -> None:
        if not self._filling:
            self._guard(lambda: self.state.choose("group_sep", change["new"] or None))

    # 3. Problems --------------------------------------------------------------------------------

    def _problems_step(self) -> widgets.Widget:
        box = self.controls
        box["problems"] = widgets.HTML()
        box["leave_out"] = checkbox(
            "Leave out rows with a missing, unreadable or infinite value", self.state.leave_out
        )
        box["leave_out"].layout.width = "auto"
        traitlets.link((self.state, "leave_out"), (box["leave_out"], "value"))
        box["leave_out_note"] = Note()
        return column(
            box["problems"],
            controls_row(box["leave_out"], box["leave_out_note"]),
        )

    def _show_problems(self) -> None:
        box = self.controls
        if self.state.frame is None:
            box["problems"].value = ""
            box["leave_out"].disabled, box["leave_out_note"].text = (
                True,
                "Choose the rows first.",
            )
            return
        problems = self.state.problems
        box["problems"].value = problems_html(
            problems, self.state.as_written, self.state.columns, leave_out=self.state.leave_out
        )
        some = any(one.kind == "drop" for one in problems)
        box["leave_out"].disabled = not some and not self.state.leave_out
        box["leave_out_note"].text = "" if some else "There is no such row."

    # 4. Run -------------------------------------------------------------------------------------

    def _run_step(self) -> widgets.Widget:
        box = self.controls
        box["scoring_rules"] = _several("Scoring rules", SCORING_RULES, self.state.scoring_rules)
        box["pairing_modes"] = _several("Pairs", _IN_ORDER, self.state.pairing_modes)
        box["tolerance"] = text_field("Tolerance", placeholder="none", continuous_update=False)
        box["scoring_rules"].observe(self._option("scoring_rules", box["scoring_rules"]), "value")
        box["pairing_modes"].observe(self._option("pairing_modes", box["pairing_modes"]), "value")
        box["tolerance"].observe(self._tolerance_chosen, "value")
        box["run"] = button("Run the audit", button_style="primary")
        box["run"].on_click(lambda _: self._guard(self._clicked))
        box["note"] = Note()
        box["progress"] = ProgressRow()
        box["code"] = widgets.HTML()
        options = controls_row(
            _cell(box["scoring_rules"], _SEVERAL),
            _cell(box["pairing_modes"], _SEVERAL),
            _cell(box["tolerance"], "in units of the outcome; optional"),
            threshold_field(self.state, box, self._guard),
        )
        options.layout.align_items = "flex-start"
        return column(
            options,
            terms_fold(self.state, box, self._guard),
            controls_row(box["run"], box["note"], box["progress"]),
            box["code"],
        )

    def _option(self, trait: str, box: Any) -> Callable[[Any], None]:
        def choose(change: Any) -> None:
            def take() -> None:
                setattr(self.state, trait, tuple(change["new"]))
                self._show_code()

            if self._filling:
                return
            self._guard(take)
            self._filling = True
            try:
                box.value = getattr(self.state, trait)
            finally:
                self._filling = False

        return choose

    def _show_modes(self, _change: Any = None) -> None:
        """Show the modes of the state, which follow the position column until some are chosen."""
        was, self._filling = self._filling, True
        try:
            self.controls["pairing_modes"].value = self.state.pairing_modes
        finally:
            self._filling = was

    def _show_code_again(self, _change: Any) -> None:
        self._show_code()

    def _tolerance_chosen(self, change: Any) -> None:
        def take() -> None:
            text = change["new"].strip()
            try:
                value = float(text) if text else None
            except ValueError:
                raise MpcError(
                    f"The tolerance must be a number such as 0.05; got {quote(text)}."
                ) from None
            self.state.tolerance = value
            self._show_code()

        self._guard(take)

    def _clicked(self) -> None:
        self.controls["run"].disabled = True
        try:
            self.controls["progress"].show(
                "reading the log; a first run compiles for some 20 s", 0, 1
            )
            self.run()
        finally:
            self.controls["progress"].clear()
            self._refresh_end()

    def _told(self, label: str, done: int, total: int) -> None:
        self.controls["progress"].show(label, done, total)

    def _land(self, made: Audit) -> None:
        explorer = AuditExplorer(made)
        if self._on_land is not None:
            self._on_land(explorer)
        if "widget" in self.__dict__:
            self.controls["explorer"].children = (explorer.widget,)
            self._fold.selected_index = None
        self.explorer = explorer

    # What follows a change ----------------------------------------------------------------------

    def _refresh(self, _change: Any = None) -> None:
        if self.state.frame is None:
            self.controls["rows"].text, self.controls["preview"].value = "", ""
        else:
            table = open_table(self.state.frame)
            size = f"{plural(len(table), 'row')}, {plural(len(table.columns), 'column')}"
            said = [f"{shown_name(self.state.source)}: {size}."]
            if self.state.sheet is not None:
                folder = os.path.join(os.path.dirname(self.state.sheet.files.paths[0]), "")
                said += [note.replace(folder, "") for note in self.state.sheet.notes]
            self.controls["rows"].text = " ".join(said)
            self.controls["preview"].value = preview_html(self.state.as_written)
        self._fill_roles()
        self._refresh_end()

    def _refresh_end(self, _change: Any = None) -> None:
        self._show_problems()
        self.controls["run"].disabled = not self.state.ready
        if self.state.ready:
            self.controls["note"].text = ""
        elif self.state.frame is None:
            self.controls["note"].text = "Choose the rows first."
        else:
            self.controls["note"].text = "Fix the problems above first."
        self._show_code()

    def _show_code(self) -> None:
        known = self.state.frame is not None
        named = self.controls["frame"].value if self.controls["rows_from"].value == _FRAME else ""
        name = named if named and named.isidentifier() else "log"
        self.controls["code"].value = code_html(code_of(self.state, name)) if known else ""

    def _guard(self, work: Callable[[], None], box: ErrorBox | None = None) -> None:
        """Do something; what goes wrong is shown where it was asked for, and choices stay."""
        self.controls["rows_error"].clear()
        self.controls["error"].clear()
        shown = self.controls["error"] if box is None else box
        try:
            work()
        except traitlets.TraitError as error:
            shown.show(MpcError(str(error)))
        except Exception as error:  # shown to the person, whatever it is
            shown.show(error)

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        words = "Run this cell to choose a log and audit it; it needs a running kernel."
        # Without names to look in there is no notebook, and no cell to run.
        shown = words if self._namespace is not None else "Opening the file …"
        display(HTML(f'<div class="mpc-static"><p>{shown}</p></div>'))  # type: ignore[no-untyped-call]
        display(self.widget)  # type: ignore[no-untyped-call]


def _heading(words: str) -> widgets.Widget:
    return widgets.HTML(f'<h3 class="mpc-step">{words}</h3>')


def _cell(control: Any, meaning: str | Note) -> widgets.Widget:
    note = meaning if isinstance(meaning, Note) else Note(meaning)
    made = widgets.VBox([control, note])
    made.add_class("mpc-cell")
    return made


def _several(label: str, options: Any, value: Any) -> Any:
    box = widgets.SelectMultiple(
        options=list(options), value=tuple(value), description=label, rows=len(SCORING_RULES)
    )
    box.style.description_width = "initial"
    box.layout.width = "auto"
    box.add_class("mpc-control")
    return box
