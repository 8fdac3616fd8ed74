"""The chart library as one script: made once on a machine, and sent to a page once a kernel."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import anywidget

# The library announces itself to every chart of the page, those that came before it too.
_ANNOUNCE = """
globalThis.__mpcLabVega ??= {};
globalThis.__mpcLabVega.embed ??= vegaEmbed;
globalThis.__mpcLabVega.arrived?.();
export default { render() {} };
"""
_END = "\n// end of the chart library\n"


class _Library(anywidget.AnyWidget):
    """Vega, Vega-Lite and Vega-Embed; hidden, and one for all charts of a kernel."""

    def __init__(self, code: str) -> None:
        self._esm = code
        super().__init__()


_sent: list[_Library] = []


def send_library() -> anywidget.AnyWidget:
    """Send the chart library to the page, unless it is there."""
    if not _sent or _sent[0].comm is None:
        _sent[:] = [_Library(script())]
    return _sent[0]


@cache
def script() -> str:
    """Return the chart library as one ES module."""
    import pooch

    return kept_script(Path(pooch.os_cache("mpc_lab")))


def kept_script(folder: Path) -> str:
    """Return the script that a folder keeps; made, which takes two seconds, where it keeps none.

    Parameters
    ----------
    folder : pathlib.Path
        Where it cannot be written nothing is kept.
    """
    import vl_convert

    made_of = f"{version('vl-convert-python')}{_ANNOUNCE}".encode()
    file = folder / f"vega-{hashlib.sha256(made_of).hexdigest()[:16]}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        kept = file.read_text("utf-8")
        # A file that was cut short does not end as the script does.
        if kept.endswith(_END):
            return kept.removesuffix(_END)
    code = str(vl_convert.javascript_bundle(_ANNOUNCE))
    with contextlib.suppress(OSError):
        _keep(file, code + _END)
    return code


def _keep(file: Path, text: str) -> None:
    """Write a file at once: another kernel never reads a half."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as part:
            part.write(text)
        os.replace(name, file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
