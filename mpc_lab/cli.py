"""The door from the command line: ``mpc-lab``.

May import from every room. Exit codes 0, 1 and 2 belong to the gate, so an error is 3 or above.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mpc_lab import __version__
from mpc_lab.errors import MpcError
from mpc_lab.terminal import plain

# numpy, numba and rich load inside the functions, so that --version and --help answer at once.
if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from mpc_lab.results import Audit

BAD_INPUT = 3
UNEXPECTED = 70
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
    _show_what_cannot_be_encoded()
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        code = command(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # The reader left. Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (MpcError, OSError) as error:
        return _fail(str(error), BAD_INPUT)
    except Exception:
        # A fault of ours: shown whole, under a code that no gate's answer has.
        traceback.print_exc()
        return UNEXPECTED


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
    return parser


def _add_demo(commands: argparse._SubParsersAction[_Parser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="audit the synthetic example, whose gap is known",
        description="Audit the synthetic example of the paper's appendix A, whose gap is known.",
    )
    demo.add_argument("--queries", type=int, default=20_000, help="queries to draw (%(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="seed of the draw (%(default)s)")
    demo.add_argument("--save", type=Path, metavar="OUT.nc", help="save the audit to this file")
    demo.add_argument("--no-progress", action="store_true", help="show no progress bar")
    demo.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> int:
    _check_can_save(options.save)
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
    _show(result)
    return 0


def _check_can_save(path: Path | None) -> None:
    """Refuse a hopeless path before the work, not after it."""
    if path is not None and not path.parent.is_dir():
        raise MpcError(
            f"--save needs a file in a folder that exists, got {str(path)!r}; "
            f"make the folder {str(path.parent)!r} first."
        )


def _show(result: Audit) -> None:
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    print(plain(result.summary(), lines=True))
    print()
    PipedConsole(highlight=False).print(_table(result.to_frame()))


def _table(frame: pd.DataFrame) -> Table:
    """Lay out the headline: one row for each audited cell."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in ("group", "verdict"):
        table.add_column(name, overflow="fold")
    for name in ("gap", "adjusted interval", "pairs", "queries", "ε"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in frame.reset_index().to_dict("records"):
        # Text, not str: rich reads a str as markup.
        table.add_row(*(Text(plain(cell)) for cell in _cells(row)))
    return table


def _cells(row: dict[Hashable, Any]) -> tuple[str, ...]:
    estimable = row["estimate"] == row["estimate"]
    low, high = row["ci_low_adjusted"], row["ci_high_adjusted"]
    return (
        row["group"],
        row["verdict"],
        f"{row['estimate']:+.3f}" if estimable else "–",
        # The interval that the verdict rests on.
        f"{low:+.3f} to {high:+.3f}" if estimable else "–",
        f"{row['n_pairs']:,}",
        f"{row['n_queries']:,}",
        f"{row['epsilon']:.3g}",
    )


def _show_what_cannot_be_encoded() -> None:
    """Print "?" for a letter that the terminal's encoding lacks, rather than stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _fail(message: str, code: int) -> int:
    print(f"mpc-lab: {plain(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
