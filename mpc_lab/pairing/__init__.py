"""Who is compared with whom: pairing modes, thresholds, and the sweep that adds up their sums.

Takes a `Ranking`, gives `Moments`; a list of pairs is made only when a person asks to see one.
May import from `errors`, `vocabulary`, `ranking` and `scoring`; of the outside world, numpy and
numba.
"""

from __future__ import annotations

from typing import Any

from mpc_lab.pairing.terms import Enough, Powered, Quantile, Smallest
from mpc_lab.vocabulary import MODES

__all__ = ["PAIRING_MODES", "Enough", "Powered", "Quantile", "Smallest", "list_pairs"]


def __getattr__(name: str) -> Any:
    # The kernels import numba, so they load when pairs are first asked for.
    if name == "PAIRING_MODES":
        return tuple(MODES)
    if name == "list_pairs":
        from mpc_lab.pairing.pairs import list_pairs

        return list_pairs
    raise AttributeError(f"module 'mpc_lab.pairing' has no attribute {name!r}")
