"""The door from the command line: ``mpc-lab``.

May import from every room. Exit codes 0, 1 and 2 belong to the gate, so an error is 3 or above.
Heavy packages load inside the commands, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

import shtab

from mpc_lab import __version__
from mpc_lab.cli.audit import AUDIT, DEMO
from mpc_lab.cli.compare import COMPARE
from mpc_lab.cli.explore import EXPLORE
from mpc_lab.cli.notebooks import NOTEBOOKS
from mpc_lab.cli.options import as_typed
from mpc_lab.cli.process import EndingSignals, Streams, watched_streams
from mpc_lab.cli.tell import TELL
from mpc_lab.cli.trend import TREND
from mpc_lab.errors import MpcError
from mpc_lab.text import plain

# A further command is one file, and one name here.
COMMANDS = (DEMO, AUDIT, TELL, COMPARE, TREND, EXPLORE, NOTEBOOKS)

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
    except SystemExit:  # raised by the parser, which has printed what was asked for
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
        options, unknown = make_parser().parse_known_args(arguments)
        if unknown:  # the command's own help lists its options, that of mpc-lab does not
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        options.signals = signals
        run: Callable[[argparse.Namespace], int] = options.do
        return run(options), ""
    except MpcError as error:
        return BAD_INPUT, as_typed(str(error))
    except OSError:
        raise
    except Exception:
        # A fault of ours: shown whole, under a code that no gate's answer has.
        traceback.print_exc()
        return UNEXPECTED, ""


class _CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line and keep clear of the gate's exit codes."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {plain(message)}; see {self.prog} --help.\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of a whole line, with every command of `COMMANDS`."""
    parser = _CommandParser(
        prog="mpc-lab",
        description="Matched pair calibration: does a ranker undervalue a group of items?",
    )
    parser.add_argument("--version", action="version", version=f"mpc-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.help, **command.layout)
        command.add_arguments(own)
        own.set_defaults(do=command.run, parser=own)
    shtab.add_argument_to(parser, "--print-completion", help="print a completion script and stop")
    return parser


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
