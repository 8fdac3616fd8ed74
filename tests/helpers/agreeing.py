"""Random logs for all engines, and what it means that two audits agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

import mpc_lab as mpc

COLUMNS = {"query": "query", "score": "score", "outcome": "outcome"}
BOOLEANS = ["g0", "g1", "g2"]
RULES = ["baseline", "boosted", "demoted", mpc.Column("new"), "calibrated"]
MODES = ["matched", "mirrored", "adjacent"]
_ENDS = (
    "estimate",
    "ci_low",
    "ci_high",
    "ci_low_adjusted",
    "ci_high_adjusted",
    "bracket_low",
    "bracket_high",
)


def random_log(seed: int, *, queries: int = 60, items: int = 40) -> pd.DataFrame:
    """Return a log full of ties, with overlapping groups, labels that are missing and a few units.

    Rows of a query are scattered, lists have 1 to 20 rows, outcomes are whole or awkward numbers.
    """
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 21, queries)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    place = np.concatenate([rng.permutation(25)[:k] for k in size])
    frame = pd.DataFrame(
        {
            "query": query * 7919 % 104_729,
            "name": [f"query {q} of “{seed}”" for q in query],
            "user": query % 17,
            "item": np.concatenate([rng.permutation(items)[:k] for k in size]),
            "score": rng.integers(-8, 24, n) / 1024,
            "new": rng.normal(size=n).round(1),
            "outcome": rng.integers(0, 5, n) if seed % 2 else rng.normal(size=n),
            "position": place + 1,
            "looked_at": 1 / (place % 7 + 1),
            "label": rng.choice(["a", "b", "c|d", "a|d", "", "  "], n),
            "country": np.where(query % 3, "fr", "de"),
            "w": 0.3 + (query * 31 % 13) / 4,
            **{
                name: rng.random(n) < share
                for name, share in zip(BOOLEANS, (0.5, 0.3, 0.1), strict=True)
            },
        }
    )
    frame.loc[rng.random(n) < 0.1, "label"] = None
    frame["title"] = [f"item {code}" for code in frame["item"]]
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def assert_agree(one: mpc.Audit, other: mpc.Audit, *, curve: bool = True) -> None:
    """Insist that counts and verdicts are equal, and all other numbers to ten digits."""
    _same_numbers(one.headline, other.headline)
    for name in (
        "n_rows",
        "n_queries",
        "n_units",
        "n_items",
        "n_dropped",
        "n_capped",
        "alpha",
        "n_floored",
    ):
        assert one.attrs[name] == other.attrs[name], name
    if curve:
        _same_numbers(one.curve, other.curve)


def _same_numbers(one, other) -> None:
    assert set(one.data_vars) == set(other.data_vars)
    assert one.sizes == other.sizes
    error = one["std_error"].values
    for name in one.data_vars:
        here, there = one[name].values, other[name].values
        if here.dtype.kind in "biuU" or name in ("epsilon",):
            np.testing.assert_array_equal(here, there, err_msg=name)
            continue
        if name in _ENDS or name.startswith("band"):
            assert (np.isnan(here) == np.isnan(there)).all(), name
            assert not (np.abs(here - there) > 1e-10 * np.nan_to_num(error, nan=1.0)).any(), name
        elif name.startswith("p_"):
            np.testing.assert_allclose(there, here, rtol=0, atol=1e-10, err_msg=name)
        else:
            np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-300, err_msg=name)
