"""What the sums need from an engine: every block of a log, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from mpc_lab.pairing.log import Log

Result = TypeVar("Result")
Task = Callable[[Log, int, int], Result]


class Walk(Protocol):
    """Hands each block of whole units to a task.

    A task gets a log and the units, from `first` to before `last`, that are its block. Tasks may
    run at the same time, in this process or in another; what they return must depend on their
    block alone. So that they can travel, they are functions of a module with arguments bound.
    """

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in the order of the blocks."""
        ...

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns to `start`; only the sum has to travel."""
        ...


class PlainWalk:
    """A `Walk` over the blocks of one log, one after the other where it is called."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __call__(self, task: Task[Result], label: str = "") -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        return (task(self.log, first, last) for first, last in self.log.blocks)

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns for each block."""
        return added(self(task), start)


def added(parts: Iterator[Result], start: Result) -> Result:
    """Add numbers or arrays in their order; `start` stays as it is."""
    total = start
    for part in parts:
        total = total + part  # type: ignore[operator]
    return total
