"""Questions that a report will ask, answered in another thread while its charts are drawn."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from mpc_lab.pairing.kernels import n_threads, start_pool, stopped_by, wait_for

Answer = TypeVar("Answer")


class Answers:
    """What questions were answered, each once; an error is raised again at each use.

    Drawing charts holds the interpreter, and the kernels behind most questions do not, so that
    both go on at once. Questions that are asked ahead wait for each other: together they need no
    more memory than one after the other.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, Future[Any]] = {}
        self._stop = np.zeros(1, dtype=np.uint8)
        self._pool = start_pool(1)

    def ask_ahead(self, name: Hashable, question: Callable[[], object]) -> None:
        """Let another thread answer a question as soon as those asked before are answered.

        With one thread, nothing is answered before its answer is needed.
        """
        if n_threads() > 1:
            self._found[name] = self._pool.submit(self._answer, question)

    def get(self, name: Hashable, question: Callable[[], Answer]) -> Answer:
        """Return the answer to the question of that name, once it is there."""
        if name not in self._found:
            self._found[name] = future = Future[Any]()
            try:
                future.set_result(question())
            except Exception as error:
                future.set_exception(error)
        answer: Answer = wait_for(self._found[name])
        return answer

    def close(self) -> None:
        """Answer no further question that was asked ahead; one that is being answered ends soon."""
        self._stop[0] = 1
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, question: Callable[[], Answer]) -> Answer:
        with stopped_by(self._stop):
            return question()
