"""``mpc-lab tell``: the finding of a saved audit as five questions with their answers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpc_lab.cli.options import Command, add_path


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser, "file", type=Path, metavar="FILE", help="an audit that --save wrote")
    parser.add_argument(
        "--group", help="the group to tell about; by default the one with the largest finding"
    )


def _run(options: argparse.Namespace) -> int:
    """Print the story."""
    from mpc_lab.cli.show import fit
    from mpc_lab.results import load
    from mpc_lab.text import plain

    story = load(options.file).tell(options.group)
    print(fit("\n".join(plain(line) for line in str(story).split("\n")), sys.stdout))
    return 0


TELL = Command(
    "tell",
    "tell the finding of a saved audit as five questions",
    _add_arguments,
    _run,
    {
        "description": "Read an audit that was saved and answer: what was found, does it hold at "
        "every epsilon, is it chance, is it something else, what would closing it cost. Questions "
        "that need the rows of the log say so."
    },
)
