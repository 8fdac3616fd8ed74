"""The notebooks that come with the package.

A wheel holds them inside the package, a source tree beside it. May import from: errors.
"""

from __future__ import annotations

import os
from pathlib import Path

from mpc_lab.errors import MpcError

_PACKAGE = Path(__file__).parent


def notebooks() -> list[Path]:
    """Return the notebooks that came with this installation, in the order to read them.

    Returns
    -------
    list of pathlib.Path

    Examples
    --------
    >>> notebooks()[0].name
    '01_first_audit.ipynb'
    """
    for folder in (_PACKAGE / "notebooks", _PACKAGE.parent / "notebooks"):
        found = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
        if found:
            return found
    raise MpcError(
        f"The notebooks should be in {_PACKAGE / 'notebooks'} or beside {_PACKAGE}, but are in "
        "neither: install mpc-lab anew."
    )


def copy_notebooks(folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the notebooks into a folder; a file that is there already is never changed.

    Parameters
    ----------
    folder : path
        Where they go; it is made where it does not exist.

    Returns
    -------
    list of pathlib.Path
        The copies.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(copy_notebooks(folder))
    6
    """
    sources, target = notebooks(), Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise MpcError(
            f"The notebooks go into a folder, but {target} is a file: name another."
        ) from error
    present = [source.name for source in sources if (target / source.name).exists()]
    if present:
        raise MpcError(
            f"{target} has {', '.join(present)} already, which may hold your own work: name "
            "another folder, or move them."
        )
    copies = [target / source.name for source in sources]
    for source, copy in zip(sources, copies, strict=True):
        copy.write_bytes(source.read_bytes())
    return copies
