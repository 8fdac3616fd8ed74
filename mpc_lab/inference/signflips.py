"""A test that needs no variance: would sums with random signs be as far from 0?"""

from __future__ import annotations

import numpy as np

from mpc_lab.inference.arrays import FloatArray

# One more than the flips is a multiple of 1/a for the usual levels, so that the rate can be a.
FLIPS = 999
_MOST_SUMS = 1_000
_ROUNDING = 1e-12


def sign_flip_p(sums: FloatArray, a: float, rng: np.random.Generator) -> float:
    """Test that independent sums, each symmetric about 0, add up to 0.

    Exact whatever their spread and their tails. Σ±T is compared, not a t statistic: given |T| the
    two put all signs in the same order, because ΣT² does not change with them. Those as far from 0
    as ΣT itself count in part, by a uniform draw: sums of a few whole numbers have many such, and
    a p-value that counted them all would be at most `a` less often than it should.

    Parameters
    ----------
    sums : array
        One for each independent unit. More than 1,000 are added to 1,000 first, by their order,
        which costs hardly any power and leaves them independent and symmetric.
    a : float
        The level of the test.
    rng : Generator
        Draws the signs.

    Returns
    -------
    float
        The p-value; NaN where so few sums differ from 0 that no signs could reject at `a`.

    Examples
    --------
    >>> import numpy as np
    >>> sign_flip_p(np.ones(20), 0.05, np.random.default_rng(0)) <= 0.001
    True
    """
    sums = np.asarray(sums, dtype=np.float64)
    sums = sums[sums != 0]
    if len(sums) > _MOST_SUMS:
        sums = np.asarray(np.bincount(np.arange(len(sums)) % _MOST_SUMS, sums), dtype=np.float64)
    # Of 2ⁿ signs two are as far from 0 as any.
    if 2.0 ** (1 - len(sums)) > a:
        return float("nan")
    total = float(sums.sum())
    bits = np.unpackbits(
        rng.integers(0, 256, (FLIPS, -(-len(sums) // 8)), dtype=np.uint8), axis=1, count=len(sums)
    )
    flipped = np.abs(2.0 * (bits @ sums) - total)
    # The same signs may be added up in another order, and must count as equal.
    excess = flipped - abs(total)
    rounding = _ROUNDING * float(np.abs(sums).sum())
    beyond, equal = (excess > rounding).sum(), 1 + (np.abs(excess) <= rounding).sum()
    return float((beyond + rng.uniform() * equal) / (1 + FLIPS))
