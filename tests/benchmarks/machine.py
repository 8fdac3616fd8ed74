"""Name the machine that a table was made on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import mpc_lab


def described(*packages: str) -> str:
    """Return one line: processor, cores, memory, Python and the packages that were compared."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = {"mpc_lab": mpc_lab.__version__, **{name: version(name) for name in packages}}
    found = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"{_processor()}, {cores} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {found}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
