"""Where the rows of an audit come from: a frame of the notebook, a file, an upload."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import narwhals as nw

from mpc_lab.errors import MpcError
from mpc_lab.files import ACCEPTED, Sheet, find_files


def frames_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a namespace by name: pandas, polars, pyarrow, what narwhals knows.

    Names that begin with an underscore are left out: IPython keeps its history under them.
    """
    return {
        name: value
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and _is_table(value)
    }


def _is_table(value: object) -> bool:
    if isinstance(value, type):
        return False
    found: Any = nw.from_native(value, eager_only=True, pass_through=True)
    return isinstance(found, nw.DataFrame)


def notebook_names() -> dict[str, Any]:
    """Return what the user of this notebook has named; nothing outside of IPython."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return {} if instance is None else dict(instance.user_ns)


def read_path(path: str, sep: str | None = None, encoding: str | None = None) -> Sheet:
    """Read files of the machine that the kernel runs on.

    Parameters
    ----------
    path : str
        A file, a folder or a pattern; ``~`` is the home folder.
    sep, encoding : str, optional
        Of text files; found where they are not given.
    """
    written = path.strip().strip("\"'")
    if not written:
        raise MpcError(f"The path must be that of a file of a log; got none. Give {ACCEPTED}.")
    return find_files(written, sep or None, encoding or None).read_all()


def read_upload(
    name: str, content: bytes | memoryview, sep: str | None = None, encoding: str | None = None
) -> Sheet:
    """Read a file that was handed over as bytes, by the end of its name."""
    with TemporaryDirectory(prefix="mpc_lab_") as folder:
        file = Path(folder, PurePath(name).name or "upload")
        file.write_bytes(content)
        try:
            return find_files(str(file), sep or None, encoding or None).read_all()
        except MpcError as error:
            # The folder is ours, and nobody knows it.
            raise MpcError(without_folder(str(error), str(file))) from error


def without_folder(sentence: str, path: str) -> str:
    """Return a sentence in which a path, as Python writes it, is the name of the file."""
    return sentence.replace(repr(os.path.join(os.path.dirname(path), ""))[1:-1], "")
