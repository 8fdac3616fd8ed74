"""What needs the rows behind an audit: the pairs themselves, and the regression on them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.arguments import as_number, as_whole
from mpc_lab.errors import MpcError, near_match
from mpc_lab.results.variables import PAIRING_MODES

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit


def pairs(
    audit: Audit, group: str, rule: str, mode: str, epsilon: float | None, limit: int | None
) -> pd.DataFrame:
    """Return the pairs of one cell, one row each, sorted by gap and then by input order."""
    limit = _limit(limit)
    ranking = need_rows(audit, "pairs")
    scores = rule_scores(audit, group, rule, mode)
    listed = _list(audit, ranking, scores, group, rule, mode, epsilon, limit)
    used = ranking.score if scores is None else scores
    i, j = listed["row_i"], listed["row_j"]
    columns: dict[str, Any] = {"query": ranking.query_labels(ranking.query_code[i])}
    if ranking.item_code is not None:
        columns["item"] = ranking.item_labels(ranking.item_code[i])
        columns["other_item"] = ranking.item_labels(ranking.item_code[j])
    columns |= {"score": used[i], "other_score": used[j], "gap": listed["gap"]}
    columns |= {"position": listed["rank_i"], "other_position": listed["rank_j"]}
    columns |= {"outcome": ranking.outcome[i], "other_outcome": ranking.outcome[j]}
    return pd.DataFrame({**columns, "difference": listed["d"]})


def regression(audit: Audit, group: str, rule: str, mode: str, epsilon: float | None) -> Any:
    """Return the statsmodels fit of the outcome difference on a constant for one cell."""
    from mpc_lab.inference.regression import fit

    ranking = need_rows(audit, "regression")
    scores = rule_scores(audit, group, rule, mode)
    listed = _list(audit, ranking, scores, group, rule, mode, epsilon, None)
    codes = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    return fit(listed["d"], codes[listed["row_i"]])


def need_rows(audit: Audit, method: str) -> Ranking:
    """Return the ranking of an audit, read again where it was walked, or say how to give it."""
    if audit.ranking is None and audit.reread is not None:
        ranking = audit.reread()
        check_same_rows(ranking, audit.attrs, "this audit")
        audit.ranking, audit.scores = ranking, partial(known_scores, ranking)
    if audit.ranking is None:
        raise MpcError(
            f"audit.{method}() needs the rows of the log, and this audit holds aggregates only; "
            'give them with mpc.load("a.nc", ranking=ranking).'
        )
    return audit.ranking


def check_same_rows(ranking: Ranking, attrs: Mapping[Any, Any], what: str) -> None:
    """Refuse rows of which the audit counted others; walked logs have no fingerprint."""
    for name in ("n_rows", "n_queries", "n_units", "n_items"):
        if getattr(ranking, name) != attrs.get(name):
            raise MpcError(
                f"The ranking is not the one that {what} was made from: its {name} is "
                f"{getattr(ranking, name):,}, not {attrs.get(name)}; give the same rows."
            )


def rule_scores(audit: Audit, group: str, rule: str, mode: str) -> NDArray[np.float64] | None:
    """Return the scores of a rule, None for those of the log, once the cell is known to exist."""
    check_label("group", group, audit.groups)
    check_label("scoring rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing mode", mode, PAIRING_MODES)
    if audit.scores is not None:
        return audit.scores(rule, group)
    if rule == "baseline":
        return None
    raise MpcError(
        f"The scores of rule {rule!r} are not kept in a saved audit; "
        "run mpc.audit again on the ranking to see its pairs."
    )


def known_scores(ranking: Ranking, label: str, group: str) -> NDArray[np.float64] | None:
    """Return the scores of a rule of which only the label is left, None for those of the log."""
    from mpc_lab.scoring import SCORING_RULES, Boosted, Column, Demoted, as_rule

    if label == "baseline":
        return None
    if label in SCORING_RULES:
        return as_rule(label).scores(ranking, group)
    moved = re.fullmatch(r"(boosted|demoted)\((.+)\)", label)
    if moved:
        kind = Boosted if moved[1] == "boosted" else Demoted
        return kind(float(moved[2])).scores(ranking, group)
    try:
        return Column(label).scores(ranking, group)
    except MpcError as error:
        raise MpcError(
            f"The scores of rule {label!r} are not kept in a saved audit, and the ranking has no "
            "such column; run mpc.audit again with that rule."
        ) from error


def check_label(what: str, label: str, known: Sequence[str]) -> None:
    """Refuse a label that the audit does not have."""
    if not isinstance(label, str):
        came = type(label).__name__
        raise MpcError(f"A {what} is a text, but {came} came.{near_match('', known)}")
    if label not in known:
        raise MpcError(f"This audit has no {what} {label!r}.{near_match(label, known)}")


def names_in(given: Any) -> tuple[Any, ...]:
    """Return one name, or several, as a tuple; what is no list counts as a name."""
    if isinstance(given, str):
        return (given,)
    try:
        return tuple(given)
    except TypeError:
        return (given,)


def chosen_groups(audit: Audit, method: str, groups: Any) -> tuple[str, ...]:
    """Return the groups that were asked for by name or by a list of names, each once."""
    names = names_in(groups)
    if not names:
        raise MpcError(f"{method} needs at least one group; leave groups out for all of them.")
    for name in names:
        check_label("group", name, audit.groups)
    if len(set(names)) < len(names):
        raise MpcError(f"{method} takes each group once, not {names!r}.")
    return names


def _list(
    audit: Audit,
    ranking: Ranking,
    scores: NDArray[np.float64] | None,
    group: str,
    rule: str,
    mode: str,
    epsilon: float | None,
    limit: int | None,
) -> dict[str, NDArray[Any]]:
    from mpc_lab.pairing.listing import list_pairs

    if epsilon is None:
        epsilon = cell_epsilon(audit, group, rule)
    return list_pairs(ranking, group, scores, mode, checked_epsilon(epsilon), limit)


def _limit(limit: Any) -> int | None:
    found = None if limit is None else as_whole(limit)
    if limit is not None and (found is None or found < 0):
        raise MpcError(f"limit must be a number of pairs, 0 or more, not {limit!r}.")
    return found


def checked_epsilon(epsilon: Any) -> float:
    """Accept the largest score gap of a pair, which may be infinite."""
    found = as_number(epsilon)
    if not found >= 0:
        raise MpcError(f"epsilon must be a number of 0 or more, not {epsilon!r}.")
    return found


def headline_epsilon(audit: Audit, group: str, rule: str) -> float:
    """Return the headline's own threshold of a cell; NaN where it has no pair."""
    # All modes of one group and rule share the threshold of `matched`, so any mode can give it.
    return float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])


def cell_epsilon(audit: Audit, group: str, rule: str) -> float:
    """Return the headline's own threshold of a cell, which must have one."""
    value = headline_epsilon(audit, group, rule)
    if math.isnan(value):
        raise MpcError(
            f"Group {group!r} has no pair under rule {rule!r}, so it has no threshold to list "
            "pairs at; give epsilon."
        )
    return value
