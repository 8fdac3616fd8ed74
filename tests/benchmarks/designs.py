"""The logs on which intervals and bands are held to their level, and how often they must cover."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_lab.datasets import synthetic
from mpc_lab.datasets.synthetic import synthetic_truth
from mpc_lab.pairing.terms import default_grid
from repeating import AT_LEAST_90, AT_LEAST_93, NOMINAL, Bound, options, show_designs
from simulated import (
    curve_grid,
    movielens_lists,
    movielens_threshold,
    shared_catalogue,
    source_of,
)


def no_gap(epsilon: float) -> float:
    """Return the true gap where outcomes have nothing to do with scores and groups."""
    return 0.0


@dataclass(frozen=True)
class Example:
    """The synthetic example, every row of it an item of its own."""

    bound: Bound = NOMINAL
    epsilons = (0.05, 0.2)
    truth = staticmethod(synthetic_truth)

    def draw(self, seed: int) -> Any:
        return source_of(synthetic(queries=500, seed=seed), ["1"])

    def grid(self, source: Any) -> Any:
        return curve_grid(source)


@dataclass(frozen=True)
class Catalogue:
    """300 queries, each of 20 items out of 200."""

    item_sd: float = 0.0
    side_sd: float = 0.0
    in_group: int = 80
    bound: Bound = NOMINAL
    epsilons = (0.05,)
    truth = staticmethod(no_gap)

    def draw(self, seed: int) -> Any:
        shocks = {"item_sd": self.item_sd, "side_sd": self.side_sd}
        rng = np.random.default_rng(seed)
        return source_of(shared_catalogue(rng, in_group=self.in_group, **shocks))

    def grid(self, source: Any) -> Any:
        return curve_grid(source)


@dataclass(frozen=True)
class Lists:
    """The lists of MovieLens 1M, at the threshold an audit gives the genre."""

    genre: str
    bound: Bound = AT_LEAST_90
    truth = staticmethod(no_gap)

    @property
    def epsilons(self) -> tuple[float, ...]:
        return (movielens_threshold(self.genre),)

    def draw(self, seed: int) -> Any:
        return movielens_lists(np.random.default_rng(seed), self.genre)

    def grid(self, source: Any) -> Any:
        """Return the grid up to the threshold: beyond it are ten times as many pairs."""
        whole = default_grid(np.array([self.epsilons]), False)
        return whole[: np.searchsorted(whole, self.epsilons[0]) + 1]


DESIGNS = {
    "(a) synthetic example, 500 queries": Example(),
    "(b) item shocks": Catalogue(item_sd=0.5),
    "(c) query × group shocks": Catalogue(side_sd=0.5),
    "(d) both shocks": Catalogue(item_sd=0.5, side_sd=0.5),
    "(e) item shocks, 5 items in g": Catalogue(item_sd=0.5, in_group=5, bound=AT_LEAST_93),
    "(e) item shocks, 10 items in g": Catalogue(item_sd=0.5, in_group=10, bound=AT_LEAST_93),
    "(f) MovieLens 1M, Drama": Lists("Drama"),
    "(f) MovieLens 1M, Horror": Lists("Horror"),
}


def study(description: str, header: list[str], rows: Callable[..., list[Any]]) -> int:
    """Run every design there is data for, print the table, return the exit code.

    Parameters
    ----------
    description : str
        For ``--help``.
    header : list of str
    rows : callable
        From name, design, repetitions and jobs to rows of (cells, whether they hold).
    """
    chosen = options(description)
    designs = DESIGNS
    if not os.environ.get("MPC_LAB_DATA"):
        print("MovieLens 1M is left out: MPC_LAB_DATA does not name the folder that holds it.\n")
        designs = {name: one for name, one in DESIGNS.items() if not isinstance(one, Lists)}
    elif chosen.jobs > 1:
        # Once, before the processes part.
        for genre in ("Drama", "Horror"):
            movielens_threshold(genre)
    print(f"{chosen.repetitions} repetitions, nominal 95 %\n")
    return show_designs(header, designs, rows, chosen)
