"""Sums over the close pairs of a log, each pair visited once or none at all."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.inference.partial import sum_contributions
from mpc_lab.pairing.close import Design, Targets, count_within
from mpc_lab.pairing.log import PlainWalk, sort_rows


@pytest.mark.parametrize(("width", "pairs"), [(-1.0, 0), (np.nan, 0), (0.0, 1), (0.5, 3), (2.0, 4)])
def test_pairs_within_a_width_are_counted(width, pairs):
    log = {
        "query": [0, 0, 0, 1, 1],
        "score": [0.25, 0.25, 0.75, 1.0, 2.5],
        "outcome": [0, 1, 0, 1, 0],
        "own": [True, False, True, False, True],
    }
    columns = {name: name for name in ("query", "score", "outcome")}
    rows = sort_rows(mpc.Ranking(log, **columns, group=["own"]))
    assert count_within(width, rows, 0, len(rows.units) - 1) == pairs


@pytest.mark.parametrize("items", [6, 12, 400])
def test_squares_over_two_items_are_those_of_pairs_listed_one_by_one(items, monkeypatch):
    # Two items that meet once are summed where they meet, others are listed: in two rounds here.
    monkeypatch.setattr("mpc_lab.inference.partial._ROOM", 100)
    draw = np.random.default_rng(items)
    n = 120
    log = {
        "query": np.repeat(np.arange(n // 6), 6),
        "item": np.concatenate([draw.permutation(items)[:6] for _ in range(n // 6)]),
        "unit": np.repeat(np.arange(n // 24), 24),
        "score": draw.random(n).round(1),
        "outcome": draw.random(n),
        "own": draw.random(n) < 0.5,
    }
    columns = {name: name for name in ("query", "item", "score", "outcome", "unit")}
    rows = sort_rows(mpc.Ranking(log, **columns, group=["own"]))
    design, targets = Design(1, 0.35), Targets(draw.normal(size=(4, 3)), draw.normal(size=(4, 3)))
    dyads, inside, by_item, pairs = {}, {}, {}, 0
    for q in range(len(rows.starts) - 1):
        for low in range(rows.starts[q], rows.starts[q + 1]):
            for up in range(low + 1, rows.starts[q + 1]):
                apart = rows.score[up] - rows.score[low]
                if 1 - apart / 0.35 <= 0:
                    continue
                pairs += 1
                own = float(rows.masks[0, up] & 1) - float(rows.masks[0, low] & 1)
                x, d = np.array([own, apart / 0.35, 1]), rows.outcome[up] - rows.outcome[low]
                turns = [(x, d), (x * [-1, -1, 1], -d)] if apart == 0 else [(x, d)]
                z = sum((targets.pick @ a) * (b - targets.fit @ a) for a, b in turns)
                z = z * (1 - apart / 0.35) / len(turns)
                both = tuple(sorted(map(int, (rows.cluster[low], rows.cluster[up]))))
                for item in set(both):
                    by_item[item] = by_item.get(item, 0) + z
                if both[0] != both[1]:
                    dyads[both] = dyads.get(both, 0) + z
                    inside[both, q // 4] = inside.get((both, q // 4), 0) + z
    found, squares = sum_contributions(PlainWalk(rows), design, targets, True, pairs)
    np.testing.assert_allclose(squares, sum(z**2 for z in dyads.values()), rtol=1e-12)
    np.testing.assert_allclose(found.by_dyad_query, sum(z**2 for z in inside.values()), rtol=1e-12)
    assert found.item.tolist() == sorted(by_item)
    np.testing.assert_allclose(found.by_item, [by_item[item] for item in sorted(by_item)])
