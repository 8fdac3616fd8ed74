"""A look at a log before its findings are read: what could make them mean something else.

A check is a function in ``rows`` (never looks at outcomes), ``outcomes`` or ``reach`` (both ask an
audit), and a line in one of the two lists here. It returns a state, a sentence with its numbers,
and a remedy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from mpc_lab.errors import MpcError
from mpc_lab.ranking import Ranking
from mpc_lab.results.base import settings
from mpc_lab.results.preflight import outcomes, reach, rows
from mpc_lab.results.preflight.look import (
    CAUTION,
    DIRECTION,
    MARKS,
    OK,
    STOP,
    Finding,
    Look,
    as_rows,
)
from mpc_lab.results.summary import slices
from mpc_lab.text import plural

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

Check = Callable[[Look], Finding | None]

ROW_CHECKS: tuple[Check, ...] = (
    rows.check_labels,
    rows.check_dropped,
    rows.check_repeated_lists,
    rows.check_cut_lists,
    rows.check_item,
    rows.check_producers,
    rows.check_spread,
    rows.check_coarse_scores,
    rows.check_places,
)
OUTCOME_CHECKS: tuple[Check, ...] = (
    outcomes.check_direction,
    outcomes.check_young_outcomes,
    outcomes.check_place_effect,
    outcomes.check_other_rules,
    outcomes.check_largest_query,
    outcomes.check_tails,
    outcomes.check_largest_item,
    reach.check_enough_pairs,
    reach.check_threshold,
    outcomes.check_complements,
)
# These need rows, and are skipped for files that are walked, for clusters and for pools.
NEED_ROWS: dict[Check, str] = {
    rows.check_repeated_lists: "repeated lists",
    rows.check_cut_lists: "list lengths",
    rows.check_producers: "producers",
    rows.check_spread: "score scale",
    rows.check_places: "places",
    outcomes.check_young_outcomes: "young outcomes",
    outcomes.check_largest_item: "largest item or producer",
}
SUM_CHECKS: tuple[Check, ...] = tuple(
    check for check in (*ROW_CHECKS, *OUTCOME_CHECKS) if check not in NEED_ROWS
)
# Sums can answer these at some thresholds, or where the answer is clear.
_HALF_KNOWN = (DIRECTION, "score steps")
NOT_ASKED = "not asked"
COLUMNS = ["check", "state", "sentence", "remedy"]
_WORST_FIRST = (STOP, CAUTION, OK)
SAVED = "preflight"


def preflight(ranking: Ranking) -> pd.DataFrame:
    """Look at a log before it is audited, without looking at its outcomes.

    Parameters
    ----------
    ranking : Ranking

    Returns
    -------
    pandas.DataFrame
        One row a check, those that need attention first: ``check``; ``state``, one of ``"ok"``,
        ``"caution"``, ``"stop"``; ``sentence``, what was seen; ``remedy``, a call to paste or a
        sentence.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = mpc.preflight(mpc.datasets.synthetic(queries=200))
    >>> found["state"].unique().tolist()
    ['ok']
    """
    if not isinstance(ranking, Ranking):
        raise MpcError(
            f"mpc.preflight must have a Ranking; got {type(ranking).__name__}. Make one with "
            "mpc.Ranking(frame, query=..., score=..., outcome=..., group=...)."
        )
    return to_frame(_ask(Look(ranking), ROW_CHECKS))


def find(audit: Audit) -> list[Finding]:
    """Return the findings of all checks that an audit allows, those that matter first."""
    if audit.ranking is None and SAVED in audit.attrs:
        return list(_load(audit.attrs[SAVED]))
    if not slices(audit)[0].cells:
        return []
    if not isinstance(audit.ranking, Ranking):
        if settings(audit).get("rules"):  # files of version 0.1 are left as they were
            return _ask(Look(None, audit), (outcomes.check_largest_query, outcomes.check_tails))
        found = _ask(Look(None, audit), SUM_CHECKS)
        return [*found, _not_asked({one.check for one in found})]
    return _ask(Look(audit.ranking, audit), (*ROW_CHECKS, *OUTCOME_CHECKS))


def to_frame(findings: list[Finding]) -> pd.DataFrame:
    """Return findings as the frame that people see."""
    return pd.DataFrame(as_rows(findings), columns=COLUMNS, dtype=object)


def _ask(look: Look, checks: Iterable[Check]) -> list[Finding]:
    said = [finding for check in checks if (finding := check(look)) is not None]
    found = [look.with_command(finding) for finding in said]
    return sorted(found, key=lambda one: _WORST_FIRST.index(one.state))


def _not_asked(asked: set[str]) -> Finding:
    """Say which checks an audit without rows leaves open."""
    names = [name for name in (*NEED_ROWS.values(), *_HALF_KNOWN) if name not in asked]
    sentence = (
        f"The rows are not in memory, so these checks were not run: "
        f"{', '.join(names)}; how far the threshold reaches for the scores' spread; "
        "rows left out by group."
    )
    return Finding(NOT_ASKED, OK, sentence)


# ---- in words


def every_line(findings: list[Finding], *, shell: bool = False) -> Iterator[str]:
    """Yield everything that the checks say, for a shell if wanted; one line if all is well."""
    poor = [one for one in findings if one.state != OK]
    asked = [one for one in findings if one.check != NOT_ASKED]
    open_ = [one.sentence for one in findings if one.check == NOT_ASKED]
    if not poor:
        yield f"Preflight: {plural(len(asked), 'check')}, nothing to note."
        yield from open_
        return
    yield f"Preflight: {len(poor):,} of {plural(len(asked), 'check')} to note."
    for one in findings:
        yield f"  {MARKS[one.state]} {one.for_shell.line if shell else one.line}"


# ---- in files


def to_json(findings: Iterable[Finding]) -> str:
    """Return findings as they may be written to a file."""
    return json.dumps(as_rows([one.to_leave() for one in findings]))


def _load(text: Any) -> Iterator[Finding]:
    """Yield the findings of a file, which somebody else may have written."""
    try:
        records = json.loads(str(text))
        for record in records if isinstance(records, list) else []:
            values = {name: str(record[name]) for name in COLUMNS}
            if values["state"] in _WORST_FIRST:
                yield Finding(**values)
    except (ValueError, KeyError, TypeError) as error:
        raise MpcError(
            "The preflight of a saved audit must be a list of checks; got something else. Save the "
            "audit again."
        ) from error
