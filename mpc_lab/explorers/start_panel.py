"""From a log to an explorer: pick rows, give columns their parts, see what is amiss, run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import traitlets

from mpc_lab.charts.words import labels, plural
from mpc_lab.errors import MpcError
from mpc_lab.explorers.panel import AuditExplorer
from mpc_lab.explorers.pieces import (
    Beacon,
    ErrorBox,
    Note,
    Progress,
    button,
    checkbox,
    column,
    controls_row,
    dropdown,
    text_field,
)
from mpc_lab.explorers.sources import (
    frames_in,
    notebook_names,
    read_path,
    read_upload,
    without_folder,
)
from mpc_lab.explorers.start_html import code_html, preview_html, problems_html
from mpc_lab.explorers.start_state import StartState, code_of
from mpc_lab.files import ACCEPTED
from mpc_lab.files.finding import ENDS
from mpc_lab.ranking.table import open_table
from mpc_lab.results import load
from mpc_lab.results.variables import PAIRING_MODES
from mpc_lab.results.wording import name as shown_name
from mpc_lab.results.wording import quoted
from mpc_lab.scoring import SCORING_RULES

if TYPE_CHECKING:
    from mpc_lab.results import Audit

# What a column is for, in the order in which a person is asked.
_PARTS = {
    "query": ("Query", "what a ranked list belongs to"),
    "item": ("Item", "what was ranked; optional"),
    "score": ("Score", "the number the list was ranked by"),
    "outcome": ("Outcome", "what happened: a click, a rating"),
    "group": ("Group", "labels of the items to audit"),
    "position": ("Position", "logged place, 1 = top; optional"),
    "segment": ("Segment", "label of the query; optional"),
    "unit": ("Unit", "what queries lie in, such as a user; optional"),
}
_REQUIRED = ("query", "score", "outcome", "group")
_LARGE_UPLOAD = "For files above 10 MB give the path instead."
_OF_TEXT = "Delimiter (such as ; or tab) and encoding are found; give them where that goes wrong."
_FOUND = "automatic"
_SEVERAL = "Ctrl or ⌘ for several"
_FRAME, _FILE, _UPLOAD = "frame", "file", "upload"


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
        Where frames are looked for; by default the notebook's own names.

    Attributes
    ----------
    state : StartState
        What was chosen.
    explorer : AuditExplorer or None
        The panel of the last run.
    """

    def __init__(
        self, frame: Any = None, namespace: Callable[[], Mapping[str, Any]] = notebook_names
    ) -> None:
        self.state = StartState()
        self.explorer: AuditExplorer | None = None
        self._namespace = namespace
        self._filling = False
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
        self._box = ErrorBox()
        self._landing = column()
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
        made = column(Beacon(), self._fold, self._box, self._landing)
        made.add_class("mpc-explorer")
        self.state.observe(self._refresh, ("uses", "columns"))
        self.state.observe(self._refresh_end, "leave_out")
        self._refresh()
        return made

    # 1. Rows ------------------------------------------------------------------------------------

    def _rows_step(self) -> widgets.Widget:
        where = [("a frame in this notebook", _FRAME), ("a file by its path", _FILE)]
        self._where = dropdown("Rows from", [*where, ("an upload", _UPLOAD)], _FRAME)
        self._where.observe(self._place_changed, "value")
        self._frames = dropdown("Frame", [("(none)", "")], "")
        self._frames.observe(self._frame_chosen, "value")
        self._again = button("Look again", "List the frames that the notebook has now")
        self._again.on_click(lambda _: self._list_frames())
        self._path = text_field("Path", placeholder="folder/log.csv", continuous_update=False)
        self._path.layout.width = "28em"
        self._read = button("Read", "Read this file")
        self._delimiter = text_field("Delimiter", placeholder=_FOUND, continuous_update=False)
        self._encoding = text_field("Encoding", placeholder=_FOUND, continuous_update=False)
        for field in (self._delimiter, self._encoding):
            field.layout.width = "14em"
            field.observe(self._how_changed, "value")
        self._rows_box = ErrorBox()
        self._read.on_click(lambda _: self._guarded(self._read_path, self._rows_box))
        self._upload = widgets.FileUpload(accept=",".join(ENDS), description="Choose a file")
        self._upload.observe(lambda _: self._guarded(self._read_upload, self._rows_box), "value")
        self._help = Note()
        self._said = Note(kind="finding")
        self._preview = widgets.HTML()
        self._list_frames()
        if not self._frames_known and (self.state.frame is None or self.state.sheet is not None):
            self._where.value = _FILE
            self._path.value = self.state.given.get("data", "")
        self._place_changed()
        row = controls_row(
            self._where,
            self._frames,
            self._again,
            self._path,
            self._read,
            self._upload,
            self._delimiter,
            self._encoding,
            self._help,
        )
        return column(row, self._rows_box, self._said, self._preview)

    def _place_changed(self, _change: Any = None) -> None:
        place = self._where.value
        boxes = {
            _FRAME: (self._frames, self._again),
            _FILE: (self._path, self._read, self._delimiter, self._encoding),
            _UPLOAD: (self._upload, self._delimiter, self._encoding),
        }
        for box in (one for several in boxes.values() for one in several):
            box.layout.display = "" if box in boxes[place] else "none"
        helps = {
            _FRAME: ""
            if self._frames_known
            else "The notebook has no frame yet: make one, then look again.",
            _FILE: f"A file, a folder, or a pattern such as logs/*.csv. {ACCEPTED}; or a saved "
            f"audit, .nc. {_OF_TEXT}",
            _UPLOAD: f"{_OF_TEXT} {_LARGE_UPLOAD}",
        }
        self._help.text = helps[place]

    def _list_frames(self) -> None:
        self._frames_known = frames_in(self._namespace())
        named = [
            (f"{shown_name(label)} ({plural(len(open_table(frame)), 'row')})", label)
            for label, frame in self._frames_known.items()
        ]
        own = [label for label, one in self._frames_known.items() if one is self.state.frame]
        before = self._frames.value or (own[0] if own else "")
        self._filling = True
        try:
            self._frames.options = [("(choose)" if named else "(none)", ""), *named]
            self._frames.value = before if before in self._frames_known else ""
        finally:
            self._filling = False
        self._frames.disabled = not named
        if hasattr(self, "_help"):
            self._place_changed()

    def _frame_chosen(self, change: Any) -> None:
        label = change["new"]
        if label and not self._filling:
            frame = self._frames_known[label]
            self._guarded(lambda: self.state.use(frame, str(label)), self._rows_box)

    def _read_path(self) -> None:
        path = self._path.value.strip().strip("\"'")
        if Path(path).suffix.lower() == ".nc":
            self._land(load(Path(path).expanduser()))
            return
        how = self._how()
        self.state.use(read_path(path, **how), Path(path).name, {"data": path, **how})

    def _read_upload(self) -> None:
        for given in self._upload.value:
            name, how = given["name"], self._how()
            made = read_upload(name, given["content"], **how)
            self.state.use(made, name, {"data": name, **how})

    def _how(self) -> dict[str, str]:
        """Return how text is to be read, as far as a person said it."""
        sep = self._delimiter.value
        how = {"sep": sep.strip() or sep, "encoding": self._encoding.value.strip()}
        return {name: value for name, value in how.items() if value}

    def _how_changed(self, _change: Any = None) -> None:
        """Read an upload again, for which there is no button."""
        if self._where.value == _UPLOAD:
            self._guarded(self._read_upload, self._rows_box)

    # 2. Columns ---------------------------------------------------------------------------------

    def _columns_step(self) -> widgets.Widget:
        self._parts: dict[str, Any] = {}
        self._choices: dict[str, list[Any]] = {}
        cells = []
        for role, (label, meaning) in _PARTS.items():
            self._parts[role] = dropdown(label, [("(none)", 0)], 0)
            self._parts[role].observe(self._part_chosen(role), "value")
            cells.append(_cell(self._parts[role], meaning))
            if role == "group":
                self._sep = text_field("Separator", placeholder="none", continuous_update=False)
                self._sep.observe(self._sep_chosen, "value")
                self._sep_why = Note("parts several labels in one text, such as |")
                cells.append(_cell(self._sep, self._sep_why))
        grid = widgets.Box(cells)
        grid.add_class("mpc-grid")
        return grid

    def _fill_parts(self) -> None:
        """Offer the columns of the table, and show the ones that have a part."""
        names = [] if self.state.frame is None else list(open_table(self.state.frame).columns)
        shown = labels(names)
        self._filling = True
        try:
            for role, box in self._parts.items():
                first = "(choose)" if role in _REQUIRED else "(none)"
                offered: list[tuple[str, Any]] = list(zip(shown, names, strict=True))
                chosen = self.state.columns[role]
                if role == "group":
                    offered += self._boolean_sets(chosen)
                self._choices[role] = [None, *(value for _, value in offered)]
                words = [first, *(label for label, _ in offered)]
                box.options = [(label, place) for place, label in enumerate(words)]
                box.value = self._choices[role].index(chosen)
                box.disabled = not names
            self._sep.value = self.state.columns["group_sep"] or ""
            listed = isinstance(self.state.columns["group"], list)
            self._sep.disabled = not names or listed
            self._sep_why.text = (
                "Separator: boolean columns are groups themselves"
                if listed
                else "parts several labels in one text, such as |"
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

    def _part_chosen(self, role: str) -> Callable[[Any], None]:
        def choose(change: Any) -> None:
            if not self._filling and change["new"] is not None:
                picked = self._choices[role][change["new"]]
                self._guarded(lambda: self.state.choose(role, picked))

        return choose

    def _sep_chosen(self, change: Any) -> None:
        if not self._filling:
            self._guarded(lambda: self.state.choose("group_sep", change["new"] or None))

    # 3. Problems --------------------------------------------------------------------------------

    def _problems_step(self) -> widgets.Widget:
        self._list = widgets.HTML()
        self._leave = checkbox(
            "Leave out rows with a missing, unreadable or infinite value", self.state.leave_out
        )
        self._leave.layout.width = "auto"
        traitlets.link((self.state, "leave_out"), (self._leave, "value"))
        self._leave_why = Note()
        return column(self._list, controls_row(self._leave, self._leave_why))

    def _show_problems(self) -> None:
        if self.state.frame is None:
            self._list.value = ""
            self._leave.disabled, self._leave_why.text = True, "Choose the rows first."
            return
        problems = self.state.problems
        self._list.value = problems_html(
            problems, self.state.as_written, self.state.columns, leave_out=self.state.leave_out
        )
        some = any(one.kind == "drop" for one in problems)
        self._leave.disabled = not some and not self.state.leave_out
        self._leave_why.text = "" if some else "There is no such row."

    # 4. Run -------------------------------------------------------------------------------------

    def _run_step(self) -> widgets.Widget:
        self._rules = _several("Scoring rules", SCORING_RULES, self.state.scoring_rules)
        self._modes = _several("Pairs", PAIRING_MODES, self.state.pairing_modes)
        self._tolerance = text_field("Tolerance", placeholder="none", continuous_update=False)
        self._rules.observe(self._option("scoring_rules", self._rules), "value")
        self._modes.observe(self._option("pairing_modes", self._modes), "value")
        self._tolerance.observe(self._tolerance_chosen, "value")
        self._run = button("Run the audit", button_style="primary")
        self._run.on_click(lambda _: self._guarded(self._clicked))
        self._why = Note()
        self._progress = Progress()
        self._code = widgets.HTML()
        options = controls_row(
            _cell(self._rules, _SEVERAL),
            _cell(self._modes, _SEVERAL),
            _cell(self._tolerance, "in units of the outcome; optional"),
        )
        options.layout.align_items = "flex-start"
        return column(options, controls_row(self._run, self._why, self._progress), self._code)

    def _option(self, trait: str, box: Any) -> Callable[[Any], None]:
        def choose(change: Any) -> None:
            def take() -> None:
                setattr(self.state, trait, tuple(change["new"]))
                self._show_code()

            if self._filling:
                return
            self._guarded(take)
            self._filling = True
            try:
                box.value = getattr(self.state, trait)
            finally:
                self._filling = False

        return choose

    def _tolerance_chosen(self, change: Any) -> None:
        def take() -> None:
            text = change["new"].strip()
            try:
                value = float(text) if text else None
            except ValueError:
                raise MpcError(
                    f"The tolerance must be a number such as 0.05, but {quoted(text)} came."
                ) from None
            self.state.tolerance = value
            self._show_code()

        self._guarded(take)

    def _clicked(self) -> None:
        self._run.disabled = True
        try:
            self._progress.show("reading the log; a first run compiles for some 20 s", 0, 1)
            self.run()
        finally:
            self._progress.clear()
            self._refresh_end()

    def _told(self, label: str, done: int, total: int) -> None:
        self._progress.show(label, done, total)

    def _land(self, made: Audit) -> None:
        explorer = AuditExplorer(made)
        if "widget" in self.__dict__:
            self._landing.children = (explorer.widget,)
            self._fold.selected_index = None
        self.explorer = explorer

    # What follows a change ----------------------------------------------------------------------

    def _refresh(self, _change: Any = None) -> None:
        if self.state.frame is None:
            self._said.text, self._preview.value = "", ""
        else:
            table = open_table(self.state.frame)
            size = f"{plural(len(table), 'row')}, {plural(len(table.columns), 'column')}"
            said = [f"{shown_name(self.state.source)}: {size}."]
            if self.state.sheet is not None:
                files = self.state.sheet.files
                said += [without_folder(note, files.paths[0]) for note in self.state.sheet.notes]
            self._said.text = " ".join(said)
            self._preview.value = preview_html(self.state.as_written)
        self._fill_parts()
        self._refresh_end()

    def _refresh_end(self, _change: Any = None) -> None:
        self._show_problems()
        self._run.disabled = not self.state.ready
        if self.state.ready:
            self._why.text = ""
        elif self.state.frame is None:
            self._why.text = "Choose the rows first."
        else:
            self._why.text = "The problems above stand in the way."
        self._show_code()

    def _show_code(self) -> None:
        known = self.state.frame is not None
        named = self._frames.value if self._where.value == _FRAME else ""
        name = named if named and named.isidentifier() else "log"
        self._code.value = code_html(code_of(self.state, name)) if known else ""

    def _guarded(self, work: Callable[[], None], box: ErrorBox | None = None) -> None:
        """Do something; what goes wrong is shown where it was asked for, and choices stay."""
        self._rows_box.clear()
        self._box.clear()
        shown = self._box if box is None else box
        try:
            work()
        except traitlets.TraitError as error:
            shown.show(MpcError(str(error)))
        except Exception as error:  # shown to the person, whatever it is
            shown.show(error)

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        words = "<p>Run this cell to choose a log and audit it; it needs a running kernel.</p>"
        display(HTML(f'<div class="mpc-static">{words}</div>'))  # type: ignore[no-untyped-call]
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
