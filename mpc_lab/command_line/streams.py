"""Standard output and standard error where they are closed, full, or left by their reader."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Closed(io.TextIOBase):
    """A standard stream that was closed before the command began, which Python gives as None."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


class _Watched:
    """A standard stream that remembers that it did not take all it was given.

    Python does not: where it writes without a buffer, the next line may come out as if none were
    lost.
    """

    def __init__(self, stream: Any, *, strict: bool) -> None:
        self.stream, self.strict = stream, strict
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        with self._watching():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._watching():
            self.stream.flush()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = self.error or error
            if self.strict:
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Streams:
    """The standard streams of a command.

    Parameters
    ----------
    output, told
        Standard output and standard error.
    """

    def __init__(self, output: _Watched, told: _Watched) -> None:
        self._output, self._told = output, told

    def lost(self) -> OSError | None:
        """Return why standard output did not take all that was printed; None if it did."""
        with suppress(OSError):
            self._output.flush()
        return self._output.error

    def forget(self) -> None:
        """Drop what could not be written, which Python would try once more when it ends."""
        for watched in (self._output, self._told):
            if watched.error is not None:
                _forget(watched.stream)


@contextmanager
def watched_streams() -> Iterator[Streams]:
    """Watch the standard streams inside the block.

    To print to a standard output that is closed or full is an error, so that nobody takes a part
    of the output for the whole. What standard error does not take is told to nobody, and the work
    goes on.
    """
    before = sys.stdout, sys.stderr
    _fill_closed_places()
    output = _Watched(_Closed() if before[0] is None else before[0], strict=True)
    told = _Watched(_Closed() if before[1] is None else before[1], strict=False)
    streams = Streams(output, told)
    sys.stdout, sys.stderr = output, told
    try:
        yield streams
    finally:
        sys.stdout, sys.stderr = before
        streams.forget()


def _fill_closed_places() -> None:
    """Keep a file that is opened later from taking the place of a closed standard stream.

    What a library prints without asking Python would be written into that file.
    """
    for place, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            try:
                os.fstat(place)
            except OSError:
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _forget(stream: Any) -> None:
    with suppress(OSError):
        place = stream.fileno()
        kept, nowhere = os.dup(place), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, place)
            stream.flush()
        finally:
            os.dup2(kept, place)
            os.close(kept)
            os.close(nowhere)
