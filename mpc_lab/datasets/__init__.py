"""Logs to learn and test with, each returned as a :class:`mpc_lab.Ranking`; `messy` is a table.

May import from: errors, ranking, rankers.
"""

from __future__ import annotations

from mpc_lab.datasets.clicks import ClicksTruth as ClicksTruth
from mpc_lab.datasets.clicks import clicks as clicks
from mpc_lab.datasets.clicks import clicks_truth as clicks_truth
from mpc_lab.datasets.messy import MessyTruth as MessyTruth
from mpc_lab.datasets.messy import messy as messy
from mpc_lab.datasets.messy import messy_truth as messy_truth
from mpc_lab.datasets.movielens import MovieLens as MovieLens
from mpc_lab.datasets.movielens import movielens as movielens
from mpc_lab.datasets.movielens import movielens_ranking as movielens_ranking
from mpc_lab.datasets.synthetic import synthetic as synthetic
from mpc_lab.datasets.synthetic import synthetic_truth as synthetic_truth

__all__ = [
    "ClicksTruth",
    "MessyTruth",
    "MovieLens",
    "clicks",
    "clicks_truth",
    "messy",
    "messy_truth",
    "movielens",
    "movielens_ranking",
    "synthetic",
    "synthetic_truth",
]
