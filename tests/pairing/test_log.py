"""Sorted rows as kernels take them."""

from __future__ import annotations

import numpy as np

import mpc_lab as mpc
from mpc_lab.pairing.log import resort, sort_rows


def test_each_word_of_the_masks_is_in_one_piece():
    # Kernels are compiled once more for masks that do not, and read them more slowly.
    rng = np.random.default_rng(0)
    rows = {"q": np.repeat(np.arange(20), 10), "s": rng.random(200), "y": rng.random(200)}
    groups = {f"g{k}": rng.random(200) < 0.1 for k in range(130)}
    ranking = mpc.Ranking(rows | groups, query="q", score="s", outcome="y", group=list(groups))
    log = sort_rows(ranking)
    for made in (log, resort(log, rng.random(200))):
        assert made.masks.shape == (3, 200)
        assert all(word.flags.c_contiguous for word in made.masks)
