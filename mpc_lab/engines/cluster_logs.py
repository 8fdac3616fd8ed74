"""What logs in the frames of any cluster share: what is read, counted and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.engines.cluster import Cluster, score_std
from mpc_lab.engines.pieces import Piece, Spec
from mpc_lab.errors import MpcError, near_match
from mpc_lab.pairing.arrays import Masks
from mpc_lab.ranking import Facts, checks
from mpc_lab.scoring import Boosted, Column

if TYPE_CHECKING:
    from mpc_lab.results.plan import Plan

# The column in which the order of the rows is written down, which a shuffle loses.
ORDER = "mpc_lab row"


def check_columns(frame: Any, spec: Spec) -> None:
    """Refuse a frame that lacks a column."""
    known = list(frame.columns)
    for name in spec.needed:
        if name not in known:
            raise MpcError(f"There is no column {name!r}.{near_match(str(name), map(str, known))}")


def unreadable(error: Exception, why: str = "") -> MpcError:
    """Return what is said of a part of a log that its frame could not deliver."""
    lines = str(error).strip().splitlines()
    why = why or ": ".join([type(error).__name__, *lines[:1]])
    return MpcError(
        f"Every part of the log must be readable, but one could not be read ({why}): look for a "
        "damaged or missing file, or an error in the code that makes the frame."
    )


def spec_of(frame: Any, spec: Spec, plan: Plan) -> Spec:
    """Return how partitions are read for a plan, whose rules may name further columns."""
    columns = [rule for rule in plan.scoring_rules if isinstance(rule, Column)]
    extra = tuple(dict.fromkeys(str(rule.name) for rule in columns))
    made = replace(spec, groups=plan.groups, extra=extra)
    check_columns(frame, made)
    return made


def spans(names: list[Masks]) -> bool:
    """Tell whether a name occurs in two pieces."""
    every = np.sort(np.concatenate(names))
    return bool((every[1:] == every[:-1]).any())


def check_units(pieces: list[Piece]) -> None:
    """Refuse a query that lies in two units, and so in two pieces."""
    if spans([piece.queries for piece in pieces]):
        raise MpcError(
            "A query must lie in one unit, but some query has rows in two: give each query one "
            "unit, or name more columns in query."
        )


def check_rows(pieces: list[Piece]) -> None:
    """Refuse a log without rows."""
    dropped = sum(piece.dropped for piece in pieces)
    if not sum(piece.n_rows for piece in pieces):
        raise checks.nothing_left(dropped) if dropped else checks.no_rows()


def facts_of(
    known: Facts, pieces: list[Piece], items: list[Masks], cluster: Cluster, plan: Plan
) -> Facts:
    """Count over all pieces, and find the spread of the scores where a rule asks for it."""
    made = replace(
        known,
        n_rows=sum(piece.n_rows for piece in pieces),
        n_queries=sum(piece.n_queries for piece in pieces),
        n_units=sum(piece.n_units for piece in pieces),
        n_items=len(np.unique(np.concatenate(items))),
        dropped=sum(piece.dropped for piece in pieces),
    )
    if any(isinstance(rule, Boosted) and rule.alpha is None for rule in plan.scoring_rules):
        made = replace(made, score_std=score_std(cluster, made.n_rows))
    return made
