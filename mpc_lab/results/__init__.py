"""The labelled tree: schema, ``Audit`` and its questions, its words, save and load, pool.

The first room that knows labels: arrays come in plain and leave as xarray. It may import from
``errors`` to ``comparators``, and at module level nothing heavier than xarray, pandas and scipy;
numba and statsmodels load when a person asks for pairs or a regression.
"""

from mpc_lab.results.audit import Audit
from mpc_lab.results.questions.boosts import FairBoost
from mpc_lab.results.questions.certificate import Certificate
from mpc_lab.results.questions.partial import PartialGaps
from mpc_lab.results.questions.tell import Story
from mpc_lab.results.recipe import Recipe
from mpc_lab.results.schema import (
    check_curve,
    check_headline,
    check_moments,
    curve_dataset,
    headline_dataset,
    moments_dataset,
)
from mpc_lab.results.storage import load, save

__all__ = [
    "Audit",
    "Certificate",
    "FairBoost",
    "PartialGaps",
    "Recipe",
    "Story",
    "check_curve",
    "check_headline",
    "check_moments",
    "curve_dataset",
    "headline_dataset",
    "load",
    "moments_dataset",
    "save",
]
