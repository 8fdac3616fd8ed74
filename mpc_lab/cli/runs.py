"""``mpc-lab audit --run``: a TREC run with its judgements in place of log files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpc_lab.cli.options import BY_NAME, COLUMNS, LARGE, OPTIONS
from mpc_lab.errors import MpcError

if TYPE_CHECKING:
    from mpc_lab.results import Audit

# Options that say that there is a run.
RUN_ALONE = frozenset({"run", "qrels", "unjudged"})
_NEEDED = ("run", "qrels", "groups")


def check_run(given: dict[str, Any]) -> list[str]:
    """Return the three files of a run, once it is clear that nothing else was named."""
    absent = [BY_NAME[name].flag for name in _NEEDED if not given.get(name)]
    if absent:
        raise MpcError(
            "A run must come with --run, --qrels and --groups, the table of its documents and "
            f"their groups; got none for {', '.join(absent)}."
        )
    taken = [option.flag for option in OPTIONS if option.section in (COLUMNS, LARGE)
             and given.get(option.name)]  # fmt: skip
    if given.get("files") or taken:
        said = ", ".join(taken) or "files"
        raise MpcError(
            f"A run must be audited on its own; got {said} too. Leave out --run, or leave out the "
            "rest."
        )
    if len(given["groups"]) != 1:
        raise MpcError(
            "--groups must be one file beside --run, a table of documents and their groups; got "
            f"{len(given['groups'])}."
        )
    return [str(given["run"]), str(given["qrels"]), given["groups"][0]]


def audit_run(given: dict[str, Any], chosen: dict[str, Any]) -> Audit:
    """Audit a run whose options were checked."""
    from mpc_lab.formats import read_run
    from mpc_lab.run import audit

    how = {name: given[name] for name in ("unjudged",) if name in given}
    ranking = read_run(given["run"], given["qrels"], given["groups"][0], **how)
    chosen = {name: value for name, value in chosen.items() if name != "groups"}
    return audit(ranking, **chosen)
