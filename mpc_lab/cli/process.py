"""What the system does to a command: it closes or fills its streams, or tells it to end.

Asked to end, a command tidies up as for Ctrl-C. Without this, SIGTERM and SIGHUP end Python at
once, and spilled files stay on the disk.
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
    """Raised by a signal to end, so that all that tidies up for Ctrl-C does so for it too."""


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
        """Hear the signals to end inside the block; afterwards the handlers are as they were.

        A signal that is ignored stays so, as SIGHUP under ``nohup``. Nothing is heard outside the
        main thread, where Python calls no handler.

        Parameters
        ----------
        is_program : bool
            Whether Python ends after the block. Then it is not to be killed on its way out once a
            signal was seen, which would change its exit code.
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
        """Stop the work at the first signal, and let tidying up go on at the others."""
        self.seen = self.seen or signal.Signals(number)
        if self._stop_server is not None:
            self._stop_server()
        elif self._is_working and not _is_tidying():
            raise Stopped

    def _repeat_if_ignored(self, ignored: Any) -> None:
        """Send the signal again where Python was just in code that can raise nothing.

        Such as what is called when an object is freed. It is sent by a thread and a moment later:
        raised in here, it would be ignored as well.
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
    """Return the handlers of the signals to end that are to be heard."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    there = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    found = {number: signal.getsignal(number) for number in there}
    # None is a handler that was not set by Python, and that Python could not put back.
    return {number: how for number, how in found.items() if how not in (signal.SIG_IGN, None)}


def _is_tidying() -> bool:
    """Tell whether the work was stopped and what it holds is being given back just now.

    Where a library swallowed the exception of the first signal, the next one is to raise another.
    """
    error = sys.exception()
    while error is not None:
        if isinstance(error, Stopped):
            return True
        error = error.__context__
    return False


# ---- standard output and standard error


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
    output, said
        Standard output and standard error.
    """

    def __init__(self, output: _Watched, said: _Watched) -> None:
        self._output, self._said = output, said

    def lost(self) -> OSError | None:
        """Return why standard output did not take all that was printed; None if it did."""
        with suppress(OSError):
            self._output.flush()
        return self._output.error

    def forget(self) -> None:
        """Drop what could not be written, which Python would try once more when it ends."""
        for watched in (self._output, self._said):
            if watched.error is not None:
                _forget(watched.stream)


@contextmanager
def watched_streams() -> Iterator[Streams]:
    """Watch the standard streams inside the block.

    To print to a standard output that is closed or full is an error, so that nobody takes a part
    of the output for the whole. What standard error does not take reaches nobody, and the work
    goes on.
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
