"""Files that appear complete or not at all: written beside their place, then moved into it.

May import from: errors.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpc_lab.errors import MpcError


def target_path(path: str | os.PathLike[str]) -> Path:
    """Return where a file is to be written, or say why it cannot be.

    Parameters
    ----------
    path : path
        ``~`` is the home folder; a link is followed to its file.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise MpcError(f"path must be the path of a file; got {path!r}.")
    if "\0" in os.fspath(path) or not os.fspath(path):
        raise MpcError(f"path must be the path of a file; got {os.fspath(path)!r}.")
    try:
        os.fsencode(path)
        target = Path(path).expanduser()
        target = target.resolve() if target.is_symlink() else target
        usable = target.parent.is_dir() and (target.is_file() or not target.exists())
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        raise MpcError(f"{os.fspath(path)!r} cannot be written: {error}.") from error
    if not usable or not target.name:
        raise MpcError(
            f"{str(target)!r} cannot be written: its folder does not exist. Give a file in a "
            "folder that exists."
        )
    if not os.access(target.parent, os.W_OK):
        raise MpcError(
            f"{str(target)!r} cannot be written: its folder is read-only. Give a file in another "
            "folder."
        )
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Open a new file beside the path, and move it there if the block ends without an error.

    A crash, an error or Ctrl-C inside the block leaves the old file as it was.

    Parameters
    ----------
    path : path
        As in :func:`target_path`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as part:
    ...         _ = part.write_text("whole")
    ...     print(Path(folder, "a.txt").read_text())
    whole
    """
    target = target_path(path)
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.replace(part, target)
    except OSError as error:
        raise MpcError(f"{str(target)!r} cannot be written: {error}.") from error
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text as UTF-8, completely or not at all, and return where it is.

    A lone surrogate, which no encoding can hold, is written as ``?``.
    """
    with replacing(path) as part:
        part.write_bytes(text.encode("utf-8", "replace"))
    return target_path(path)
