"""What the system does to a command: it closes or fills its streams, or tells it to end.

When asked to end, a command tidies up as it does for Ctrl-C. Without this, SIGTERM and SIGHUP end
Python at once, and spilled files stay on the disk.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

# A system may lack SIGHUP.
_NAMES = ("SIGTERM", "SIGHUP")
_MOMENT = 0.01  # seconds


class Stopped(KeyboardInterrupt):
    """Raised when a signal asks to end, so that whatever tidies up for Ctrl-C runs then too."""


class EndingSignals:
    """The handler of the signals that end a command.

    Attributes
    ----------
    seen : signal.Signals or None
        The first signal to end that was received.
    """

    def __init__(self) -> None:
        self.seen: signal.Signals | None = None
        self._stop_server: Callable[[], None] | None = None
        self._tell_ignored: Callable[[Any], object] = sys.unraisablehook
        self._is_working = False

    @contextmanager
    def heard(self, *, is_program: bool) -> Iterator[None]:
        """Listen for the signals to end inside the block; afterwards restore the old handlers.

        A signal that is ignored stays ignored, as SIGHUP does under ``nohup``. Outside the main
        thread nothing is heard, because Python calls handlers in the main thread only.

        Parameters
        ----------
        is_program : bool
            Whether Python ends after the block. Once a signal was seen, nothing may then kill
            Python on its way out, which would change its exit code.
        """
        before = _handlers()
        tell_ignored, sys.unraisablehook = sys.unraisablehook, self._repeat_if_ignored
        self._tell_ignored = tell_ignored
        self._is_working = True
        try:
            for number in before:
                signal.signal(number, self)
            yield
        finally:
            self._is_working = False
            sys.unraisablehook = tell_ignored
            for number, handler in before.items():
                ends = is_program and self.seen is not None
                signal.signal(number, signal.SIG_IGN if ends else handler)

    def __call__(self, number: int, _frame: FrameType | None = None) -> None:
        """Stop the work at the first signal; let the tidying up continue at any further one."""
        self.seen = self.seen or signal.Signals(number)
        if self._stop_server is not None:
            self._stop_server()
        elif self._is_working and not _is_tidying():
            raise Stopped

    def _repeat_if_ignored(self, ignored: Any) -> None:
        """Send the signal again if it arrived while Python ran code whose exceptions are ignored.

        An example is code that runs when an object is freed. A thread sends the signal a moment
        later: raised right here, the exception would be ignored as well.
        """
        if not isinstance(ignored.exc_value, Stopped):
            self._tell_ignored(ignored)
        elif self.seen is not None:
            send = (threading.main_thread().ident, self.seen)
            threading.Timer(_MOMENT, signal.pthread_kill, send).start()

    @contextmanager
    def while_serving(self) -> Iterator[None]:
        """Stop the server of the explorer in its own way; inside the block it may be started.

        Voila has a handler of its own, which ends the server with exit code 0, and which fails
        while the server is not yet there.
        """
        try:
            from tornado.ioloop import IOLoop
            from voila.app import Voila
        except ImportError:  # the explorer says itself what is not installed
            yield
            return
        loop = IOLoop.current()
        waiting = True

        def serve() -> None:
            if waiting:
                self._stop_server = lambda: loop.add_callback_from_signal(loop.stop)

        voilas_own = Voila._handle_signal_stop
        Voila._handle_signal_stop = lambda _voila, number, frame: self(number, frame)
        loop.add_callback(serve)  # called once the loop runs
        try:
            yield
        finally:
            waiting = False
            Voila._handle_signal_stop = voilas_own


def _handlers() -> dict[signal.Signals, Any]:
    """Return the current handlers of the signals to listen for."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    there = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    found = {number: signal.getsignal(number) for number in there}
    # None means a handler that Python did not set and could not put back.
    return {number: how for number, how in found.items() if how not in (signal.SIG_IGN, None)}


def _is_tidying() -> bool:
    """Tell whether the work was stopped and its resources are being released just now.

    If a library swallowed the exception of the first signal, the next signal raises another.
    """
    error = sys.exception()
    while error is not None:
        if isinstance(error, Stopped):
            return True
        error = error.__context__
    return False


# ---- standard output and standard error


class _Closed(io.TextIOBase):
    """A standard stream that was closed before the command began, None in Python."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


class _Watched:
    """A standard stream that remembers whether any of its output was lost.

    Python does not remember: when it writes without a buffer, the next line may come out as if
    nothing had been lost.
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
    output, said
        Standard output and standard error.
    """

    def __init__(self, output: _Watched, said: _Watched) -> None:
        self._output, self._said = output, said

    def lost(self) -> OSError | None:
        """Return why part of what was printed to standard output was lost; None if nothing was."""
        with suppress(OSError):
            self._output.flush()
        return self._output.error

    def forget(self) -> None:
        """Drop what could not be written; Python would otherwise try once more when it ends."""
        for watched in (self._output, self._said):
            if watched.error is not None:
                _forget(watched.stream)


@contextmanager
def watched_streams() -> Iterator[Streams]:
    """Watch the standard streams inside the block.

    Printing to a standard output that is closed or full is an error, so that nobody mistakes part
    of the output for all of it. Losses on standard error are ignored, and the work goes on.
    """
    before = sys.stdout, sys.stderr
    _fill_closed_places()
    output = _Watched(_Closed() if before[0] is None else before[0], strict=True)
    said = _Watched(_Closed() if before[1] is None else before[1], strict=False)
    streams = Streams(output, said)
    sys.stdout, sys.stderr = output, said
    try:
        yield streams
    finally:
        sys.stdout, sys.stderr = before
        streams.forget()


def _fill_closed_places() -> None:
    """Keep files that are opened later from taking the place of a closed standard stream.

    Otherwise what a library prints directly would be written into such a file.
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
