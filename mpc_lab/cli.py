"""The door from the command line: ``mpc-lab``.

May import from every room. Exit codes 0, 1 and 2 belong to the gate, so an error is 3 or above.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import shtab

from mpc_lab import __version__
from mpc_lab.command_line.options import BY_NAME, COLUMN_OPTIONS, add_options
from mpc_lab.command_line.show import show
from mpc_lab.command_line.signals import EndingSignals
from mpc_lab.command_line.streams import Streams, watched_streams
from mpc_lab.errors import MpcError
from mpc_lab.terminal import plain
from mpc_lab.writing import target_path

# numpy, numba and rich load inside the functions, so that --version and --help answer at once.
BAD_INPUT = 3
UNEXPECTED = 70
SIGNALLED = 128  # and the number of the signal, as shells have it
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``mpc-lab``; by default those of the process.

    Returns
    -------
    int
        0, or 3 and above for an error.
    """
    signals = EndingSignals()
    with watched_streams() as streams:
        _show_what_cannot_be_encoded()
        try:
            with signals.heard(is_program=arguments is None):
                code, said = _run(arguments, signals, streams)
        except KeyboardInterrupt:
            code, said = INTERRUPTED, "interrupted."
        if signals.seen is not None:
            code, said = SIGNALLED + signals.seen, f"stopped by {signals.seen.name}."
        if said:
            print(f"mpc-lab: {plain(said)}", file=sys.stderr)
    return code


def _run(
    arguments: Sequence[str] | None, signals: EndingSignals, streams: Streams
) -> tuple[int, str]:
    """Run one command, and return its exit code and the sentence of what went wrong, if any."""
    try:
        code, said = _answer(arguments, signals)
    except SystemExit:  # of the parser, which has printed what was asked for
        if streams.lost() is None:
            raise
        code, said = BAD_INPUT, ""
    except OSError as error:
        code, said = BAD_INPUT, _in_words(error)
    lost = streams.lost()
    if isinstance(lost, BrokenPipeError):
        return BROKEN_PIPE, "the reader of standard output left before its end."
    if lost is not None:
        return BAD_INPUT, (
            f"standard output could not be written: {_in_words(lost)} Send it to a file or a "
            "terminal that takes it."
        )
    return code, said


def _answer(arguments: Sequence[str] | None, signals: EndingSignals) -> tuple[int, str]:
    try:
        options = _parser().parse_args(arguments)
        options.signals = signals
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options), ""
    except MpcError as error:
        return BAD_INPUT, str(error)
    except OSError:
        raise
    except Exception:
        # A fault of ours: shown whole, under a code that no gate's answer has.
        traceback.print_exc()
        return UNEXPECTED, ""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and keep clear of the gate's exit codes."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {plain(message)}; see {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mpc-lab",
        description="Matched pair calibration: does a ranker undervalue a group of items?",
    )
    parser.add_argument("--version", action="version", version=f"mpc-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_audit(commands)
    _add_explore(commands)
    _add_notebooks(commands)
    shtab.add_argument_to(parser, "--print-completion", help="print a completion script and stop")
    return parser


def _add_demo(commands: argparse._SubParsersAction[_Parser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="audit the synthetic example, whose gap is known",
        description="Audit the synthetic example of the paper's appendix A, whose gap is known.",
    )
    demo.add_argument("--queries", type=int, default=20_000, help="queries to draw (%(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="seed of the draw (%(default)s)")
    for name, example, words in (
        ("--save", "OUT.nc", "save the audit to this file"),
        ("--report", "OUT.html", "write a self-contained page"),
    ):
        path = demo.add_argument(name, type=Path, metavar=example, help=words)
        path.complete = shtab.FILE  # type: ignore[attr-defined]
    demo.add_argument("--no-progress", action="store_true", help="show no progress bar")
    demo.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> int:
    _check_can_write(options, "save", "report")
    from mpc_lab.datasets import synthetic
    from mpc_lab.pairing.compiling import announced_compilation
    from mpc_lab.run import audit

    ranking = synthetic(queries=options.queries, seed=options.seed)
    progress = sys.stderr.isatty() and not options.no_progress
    # An audit that shows its progress announces compilation itself; the demo always does.
    with announced_compilation(not progress):
        result = audit(ranking, progress=progress)
    if options.save is not None:
        result.save(options.save)
        print(f"Saved to {plain(options.save)}.", file=sys.stderr)
    if options.report is not None:
        result.report(options.report, progress=progress)
        print(f"Report in {plain(options.report)}.", file=sys.stderr)
    show(result)
    return 0


def _check_can_write(options: argparse.Namespace, *names: str) -> None:
    """Refuse a hopeless path before the work, not after it."""
    for name in names:
        path = getattr(options, name)
        if path is not None:
            try:
                target_path(path)
            except MpcError as error:
                raise MpcError(f"--{name}: {error}") from error


_DESCRIPTION = """\
Audit whether a ranker undervalues groups of items, from log files with one row for each
item shown: CSV, JSON lines, Parquet or Feather. Several files are read as one log: a query that
occurs in two of them is one query.
"""
_EXAMPLES = """\
examples:
  mpc-lab audit log.csv --query user --item movie --score score --outcome rating \\
      --group genres --group-sep "|"
  mpc-lab audit "logs/2026-*/*.parquet" --query user,day --score s --outcome clicked \\
      --group is_new,is_local --report report.html --save audit.nc
  mpc-lab audit log.csv --guess                           look at the guess, then name the columns
  mpc-lab audit --config audit.toml --tolerance 0.02 --gate && deploy

config file: every option is a key, with files = ["logs/*.csv"]; its paths are taken from the
folder that it is in, and what stands on the line wins:
  files = "logs/*.csv"
  query = ["user", "day"]
  score = "score"
  outcome = "clicked"
  group = "genres"
  group_sep = "|"
  threshold = "quantile:0.01"
  tolerance = 0.02
  gate = true

exit codes: 0 done (with --gate: passed), 1 and 2 of --gate alone, 3 bad input or lost output,
70 a fault of mpc-lab, 128 and its number for a signal: 129 hung up, 130 interrupted, 141 the
reader of the output left, 143 terminated.
"""


def _add_audit(commands: argparse._SubParsersAction[_Parser]) -> None:
    audit = commands.add_parser(
        "audit",
        allow_abbrev=False,
        help="audit log files: a table, a report, a gate for a pipeline",
        usage="mpc-lab audit FILE… --query COLUMN --score COLUMN --outcome COLUMN --group COLUMN "
        "[options]",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    files = audit.add_argument(
        "files", nargs="*", metavar="FILE", help="files, or patterns such as 'logs/*.csv'"
    )
    files.complete = shtab.FILE  # type: ignore[attr-defined]
    config = audit.add_argument(
        "--config", type=Path, metavar="AUDIT.toml", help="take options from this file"
    )
    config.complete = shtab.FILE  # type: ignore[attr-defined]
    add_options(audit)
    audit.set_defaults(command=_audit)


def _audit(options: argparse.Namespace) -> int:
    from mpc_lab.command_line.audit_command import run

    return run(options)


def _add_explore(commands: argparse._SubParsersAction[_Parser]) -> None:
    explore = commands.add_parser(
        "explore",
        help="explore a log, or a saved audit, in the browser",
        description="Serve the explorer of one file on this machine and open it in the browser. "
        "Columns that are not named are asked for there.",
    )
    file = explore.add_argument("file", type=Path, metavar="FILE", help="a log or a saved audit")
    file.complete = shtab.FILE  # type: ignore[attr-defined]
    for name in COLUMN_OPTIONS:
        option = BY_NAME[name]
        how: dict[str, Any] = {"action": "append"} if option.is_list else {}
        explore.add_argument(
            option.flag, dest=name, metavar=option.metavar or "TEXT", help=option.help, **how
        )
    explore.add_argument("--port", type=int, default=0, help="port to serve at (a free one)")
    explore.add_argument("--no-open", action="store_true", help="open no browser")
    explore.set_defaults(command=_explore)


def _explore(options: argparse.Namespace) -> int:
    from mpc_lab.command_line.explore import run

    with options.signals.while_serving():
        return run(options)


def _add_notebooks(commands: argparse._SubParsersAction[_Parser]) -> None:
    notebooks = commands.add_parser(
        "notebooks",
        help="copy the tutorials and open them in JupyterLab",
        description="Copy the tutorial notebooks into a folder and open JupyterLab there.",
    )
    folder = notebooks.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("mpc-lab-notebooks"),
        metavar="FOLDER",
        help="where to copy them (%(default)s); a notebook that is there already stays",
    )
    folder.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    notebooks.add_argument("--no-open", action="store_true", help="copy only")
    notebooks.set_defaults(command=_notebooks)


def _notebooks(options: argparse.Namespace) -> int:
    from mpc_lab.command_line.notebooks import run

    return run(options)


def _show_what_cannot_be_encoded() -> None:
    """Print "?" for a letter that the terminal's encoding lacks, rather than stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _in_words(error: OSError) -> str:
    """Return what the system said as a sentence, without its number."""
    if error.strerror is None:
        return str(error) or f"{type(error).__name__}."
    files = [name for name in (error.filename, error.filename2) if name is not None]
    named = f": {' -> '.join(map(repr, files))}" if files else ""
    return f"{error.strerror}{named}."


if __name__ == "__main__":
    sys.exit(main())
