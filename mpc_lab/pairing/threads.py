"""Work spread over threads: results in the order of jobs, and Ctrl-C seen while they run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import numpy as np

from mpc_lab.pairing.kernels import (
    FEW_ROWS,
    n_threads,
    start_pool,
    stop_flag,
    stopped_by,
    wait_for,
)
from mpc_lab.pairing.log import PlainWalk, Task

Job = TypeVar("Job")
Result = TypeVar("Result")
Other = TypeVar("Other")


def in_order(
    task: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    here: bool = False,
    threads: int | None = None,
) -> Iterator[Result]:
    """Yield results in the order of jobs; where not `here`, worked out on other threads.

    Then this thread only waits, so that Ctrl-C is seen at once, even during a single job. After
    Ctrl-C nobody waits for running jobs: the kernels of long lists check a flag and give up, those
    of ordinary blocks end soon, and jobs that spread further jobs start no more of them.
    """
    unwanted = stop_flag()
    for result in _in_order(task, jobs, here, threads or n_threads()):
        if unwanted[0]:
            raise CancelledError
        yield result


def _in_order(
    task: Callable[[Job], Result], jobs: Sequence[Job], here: bool, threads: int
) -> Iterator[Result]:
    if here or not jobs:
        yield from map(task, jobs)
        return
    stop = np.zeros(1, dtype=np.uint8)

    def job_with_flag(job: Job) -> Result:
        with stopped_by(stop):
            return task(job)

    threads = min(threads, len(jobs))
    # Only a few jobs ahead, so that few results wait for their turn.
    ahead: deque[Future[Result]] = deque()
    pool = start_pool(threads)
    try:
        for job in jobs:
            ahead.append(pool.submit(job_with_flag, job))
            if len(ahead) > 2 * threads:
                yield wait_for(ahead.popleft())
        while ahead:
            yield wait_for(ahead.popleft())
    finally:
        stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)


def at_once(
    one: Callable[[], Result], other: Callable[[], Other], *, here: bool
) -> tuple[Result, Other]:
    """Return what two pieces of work give; where not `here`, they are done on two threads."""
    work: list[Callable[[], Any]] = [one, other]
    first, second = in_order(lambda job: job(), work, here=here)
    return first, second


class ThreadedWalk(PlainWalk):
    """A `Walk` over the blocks of one log, a few at once; what they return comes in their order."""

    def __call__(self, task: Task[Result], label: str = "") -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        here = len(self.log.row) < FEW_ROWS
        return in_order(lambda block: task(self.log, *block), self.log.blocks, here=here)
