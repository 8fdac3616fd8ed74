"""The door from a notebook: ``%load_ext mpc_lab``.

May import from every room. Charts are then drawn without network, in our theme, and
``%%mpc_audit`` audits the frame that a cell makes, with the options of ``mpc-lab audit``.
"""

from __future__ import annotations

import argparse
import ast
import keyword
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.core.error import UsageError

from mpc_lab.cli.options import COLUMNS, COMPARED, INFERENCE, OPTIONS, add_option, from_line, names
from mpc_lab.errors import MpcError, near_match

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_SECTIONS = (COLUMNS, COMPARED, INFERENCE)
_TAKEN = tuple(
    option for option in OPTIONS if option.section in _SECTIONS and option.name != "guess"
)
_THEME = "mpc_lab"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Turn on offline drawing and the theme, and add ``%%mpc_audit``."""
    draw_offline()
    magic: Any = _Magic(shell)
    shell.register_magic_function(magic, "line_cell", "mpc_audit")


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Give back what :func:`load_ipython_extension` changed."""
    import altair as alt

    alt.renderers.enable("default")
    alt.theme.enable("default")
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("mpc_audit", None)


def draw_offline() -> None:
    """Let Altair draw every chart as SVG inside the notebook, in the theme of our charts."""
    import altair as alt

    from mpc_lab.charts.theme import config

    alt.renderers.enable("svg")
    look: Any = {"config": config()}
    alt.theme.register(_THEME, enable=True)(lambda: look)


class _Magic:
    """Audit the frame that a cell makes.

    ::

        %%mpc_audit log --query user --item movie --score score --outcome rating --group genres
        log = pd.read_csv("log.csv")

    The cell runs as usual. Then the frame that the line names is audited, or, if it names none,
    the value of the cell's last line. The audit is shown, and kept under the name ``audit``.
    As ``%mpc_audit log …``, with one %, there is no cell to run.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._parser = _parser()
        self.__doc__ = f"{_Magic.__doc__}\n{self._parser.format_help()}"
        self.__name__ = "mpc_audit"

    def __call__(self, line: str, cell: str | None = None) -> Any:
        # IPython omits frames with this name from tracebacks, so that an error of the cell shows as
        # its own.
        __tracebackhide__ = True
        options = self._options(line)
        last = None if cell is None else _run(self._shell, cell, options.frame is None)
        try:
            frame = last if options.frame is None else self._find(options.frame)
            found = self._audit(frame, options)
        except MpcError as error:
            # Only the sentence is useful; IPython shows this error without a traceback.
            raise UsageError(str(error)) from None
        self._shell.user_ns[options.name] = found
        return found.explore() if options.explore else found

    def _options(self, line: str) -> argparse.Namespace:
        try:
            options = self._parser.parse_args(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"The line of %%mpc_audit cannot be read: {error}.") from None
        if not options.name.isidentifier() or keyword.iskeyword(options.name):
            raise UsageError(f"--name must be a name that Python allows; got {options.name!r}.")
        return options

    def _find(self, text: str) -> Any:
        space = self._shell.user_ns
        first = text.partition(".")[0]
        if first not in space:
            own = [name for name in space if not name.startswith("_")]
            close = near_match(first, own) if own else ""
            hint = close if close.startswith(" Did you mean") else ""
            raise MpcError(f"There is no {first!r} in this notebook to audit.{hint}")
        value = space[first]
        for part in text.split(".")[1:]:
            if not hasattr(value, part):
                raise MpcError(f"{text!r} cannot be audited: it has no {part!r}.")
            value = getattr(value, part)
        return value

    def _audit(self, frame: Any, options: argparse.Namespace) -> Any:
        from mpc_lab.run import audit

        if frame is None:
            raise MpcError(
                "%%mpc_audit must have a frame; got none. Name it on the line, as in "
                "%%mpc_audit log --query …, or make it the last line of the cell."
            )
        return audit(frame, **_keywords(frame, options))


class _LineParser(argparse.ArgumentParser):
    """A parser that neither prints nor leaves the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see %%mpc_audit?")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or "see %%mpc_audit?")


def _parser() -> _LineParser:
    parser = _LineParser(prog="%%mpc_audit", add_help=False, allow_abbrev=False)
    parser.add_argument("frame", nargs="?", help="the frame or ranking to audit, by its name")
    parser.add_argument("--name", default="audit", help="what to call the audit (%(default)s)")
    parser.add_argument("--explore", action="store_true", help="show the explorer of the audit")
    for option in _TAKEN:
        add_option(parser, option)
    return parser


def _keywords(frame: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a line as keywords of an audit."""
    keywords = {}
    for option in _TAKEN:
        given = getattr(options, option.name)
        if given is None:
            continue
        value = from_line(option, given)
        if option.kind in ("columns", "texts"):
            value = names(value, _columns(frame))
        if option.kind == "columns" and len(value) == 1:
            value = value[0]
        keywords[option.keyword] = value
    return keywords


def _columns(frame: Any) -> list[str]:
    if isinstance(frame, dict):
        return [str(name) for name in frame]
    known = getattr(frame, "column_names", None)  # pyarrow's columns are the values
    known = getattr(frame, "columns", ()) if known is None else known
    return [str(name) for name in known] if isinstance(known, Iterable) else []


def _run(shell: InteractiveShell, cell: str, wants_value: bool) -> Any:
    """Run the body of a cell in the notebook, and return the value of its last line if wanted."""
    __tracebackhide__ = True
    source = shell.transform_cell(cell)  # type: ignore[no-untyped-call]
    file = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    body = ast.parse(source, file).body
    last = body.pop() if wants_value and body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file, "exec"), shell.user_ns)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), file, "eval"), shell.user_ns)
