"""What the sums need from an engine: every block of a log, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from mpc_lab.pairing.log import Log

Result = TypeVar("Result")


class Walk(Protocol):
    """Hands each block of whole units to a task and yields the results in the order of blocks.

    A task gets a log and the units, from `first` to before `last`, that are its block. Tasks may
    run at the same time; what they yield must depend on their block alone.
    """

    def __call__(self, task: Callable[[Log, int, int], Result], label: str) -> Iterator[Result]:
        """Walk the log once."""
        ...
