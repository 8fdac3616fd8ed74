"""``mpc-lab notebooks``: the tutorials, copied and opened.

A wheel holds them inside the package, a source tree beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mpc_lab.cli.options import Command, add_path
from mpc_lab.errors import MpcError
from mpc_lab.text import plain

_PACKAGE = Path(__file__).parents[1]


def notebooks() -> list[Path]:
    """Return the notebooks of this installation, in the order to read them.

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
        f"The notebooks must be in {_PACKAGE / 'notebooks'} or beside {_PACKAGE}; got "
        "neither. Install mpc-lab again."
    )


def copy_notebooks(folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the notebooks, and the stored results that they show, into a folder.

    All are copied or none; what is there already is never changed.

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
    ...     [copy.suffix for copy in copy_notebooks(folder)].count(".ipynb")
    8
    """
    target = Path(folder)
    sources = notebooks()
    sources += sorted(sources[0].parent.glob("*.nc"))
    contents = {target / source.name: source.read_bytes() for source in sources}
    try:
        _check_free(target, contents)
        with _undone_on_failure(target) as made:
            target.mkdir(parents=True, exist_ok=True)
            for copy, content in contents.items():
                with open(copy, "xb") as file:  # never into a file that was made meanwhile
                    made.append(copy)
                    file.write(content)
    except OSError as error:
        raise MpcError(
            f"The notebooks cannot be copied to {target}: {error.strerror or error}. Name another "
            "folder, one that can be written to."
        ) from error
    return list(contents)


def _check_free(target: Path, copies: Iterable[Path]) -> None:
    """Refuse what cannot be a folder, and a folder that holds what would be copied there."""
    for folder in (target, *target.parents):
        if folder.is_symlink() and not folder.exists():
            raise MpcError(
                f"The notebooks must go into a folder; got {folder}, a link that leads "
                "nowhere. Name another folder, or remove the link."
            )
        if folder.exists() and not folder.is_dir():
            raise MpcError(
                f"The notebooks must go into a folder; got {folder}, a file. Name a folder."
            )
    # A link that leads nowhere is there too: to write to it would make a file elsewhere.
    present = [copy.name for copy in copies if os.path.lexists(copy)]
    if present:
        raise MpcError(
            f"{target} must not hold the notebooks yet; got {', '.join(present)}, "
            "which may hold your own work. Name another folder, or move them."
        )


@contextmanager
def _undone_on_failure(target: Path) -> Iterator[list[Path]]:
    """Give a list for files that are made; they and new folders go if the block does not end."""
    new = [folder for folder in (target, *target.parents) if not folder.exists()]
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for file in made:
            file.unlink(missing_ok=True)
        for folder in new:
            with suppress(OSError):  # something else is in it by now
                folder.rmdir()
        raise


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(
        parser,
        "folder",
        is_folder=True,
        nargs="?",
        type=Path,
        default=Path("mpc-lab-notebooks"),
        metavar="FOLDER",
        help="where to copy them (%(default)s); existing ones are never overwritten",
    )
    parser.add_argument("--no-open", action="store_true", help="copy only")


def _run(options: argparse.Namespace) -> int:
    """Copy the tutorials, open JupyterLab unless that is not wanted, and return the exit code."""
    folder: Path = options.folder
    opens = not options.no_open
    if opens and importlib.util.find_spec("jupyterlab") is None:
        raise MpcError(
            "JupyterLab must be installed to open the notebooks. Run pip install "
            '"mpc-lab[lab]", or give --no-open to copy the notebooks only.'
        )
    for path in copy_notebooks(folder):
        print(plain(path))
    return _run_lab(folder) if opens else 0


def _run_lab(folder: Path) -> int:
    """Run JupyterLab to its end; pass a signal to stop on, and wait while it ends its kernels."""
    with subprocess.Popen([sys.executable, "-m", "jupyterlab", str(folder)]) as lab:
        try:
            return lab.wait()
        except KeyboardInterrupt:
            lab.terminate()
            raise


NOTEBOOKS = Command(
    "notebooks",
    "copy the tutorials and open them in JupyterLab",
    _add_arguments,
    _run,
    {"description": "Copy the tutorial notebooks into a folder and open JupyterLab there."},
)
