"""Combinations of parameters, most of which are left to CI."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def combined(*lists: Iterable[Any]) -> list[Any]:
    """Return every combination; where CI is not set, so many run that each value is in one."""
    values = [list(one) for one in lists]
    kept = {tuple(k % len(one) for one in values) for k in range(max(map(len, values)))}
    return [
        pytest.param(
            *(one[k] for one, k in zip(values, places, strict=True)),
            marks=() if places in kept else pytest.mark.long,
        )
        for places in product(*(range(len(one)) for one in values))
    ]
