"""An audit on the terminal: its reading in words, then its table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpc_lab.command_line.tables import headline_table
from mpc_lab.terminal import plain

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_ROWS = 200


def show(result: Audit, *, error: bool = False) -> None:
    """Print an audit.

    Parameters
    ----------
    result : Audit
    error : bool
        To standard error, where standard output is for something else.
    """
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if error else sys.stdout
    print(plain(result.summary(), lines=True), file=stream)
    print(file=stream)
    frame = result.to_frame()
    PipedConsole(highlight=False, file=stream).print(headline_table(frame.head(_ROWS)))
    if len(frame) > _ROWS:
        more = f"and {len(frame) - _ROWS:,} more rows; --csv and --save have them all."
        print(more, file=stream)
