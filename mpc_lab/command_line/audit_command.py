"""``mpc-lab audit``: from files to a table, to the outputs asked for, and to the gate's answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_lab.command_line.config import settings
from mpc_lab.command_line.show import show
from mpc_lab.command_line.values import as_typed, names
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files
from mpc_lab.terminal import plain
from mpc_lab.writing import target_path, write_text

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_NEEDED = ("query", "score", "outcome", "group")
_ROLES = (*_NEEDED, "item", "unit", "position", "segment")
_OPTIONS = {"epsilon", "cluster", "level", "adjust", "tolerance", "bootstrap", "seed", "threshold"}
_LARGE = {"memory", "spill"}
_OUTPUTS = ("report", "save", "json", "csv", "card")
_STDOUT = Path("-")
# A path of "-" prints these instead.
_PRINTED = ("json", "csv", "card")
_PLANNED = 1000


def run(options: argparse.Namespace) -> int:
    """Audit the files and return the exit code.

    Parameters
    ----------
    options : argparse.Namespace
        As ``mpc_lab.command_line.options`` describes them.
    """
    try:
        return _run(settings(options))
    except MpcError as error:
        raise MpcError(as_typed(str(error))) from error


def _run(given: dict[str, Any]) -> int:
    _check_gate(given)
    if not given.get("files"):
        raise MpcError("There is no file to audit: name one, or several, or a pattern of names.")
    files = find_files(given["files"], given.get("sep"), given.get("encoding"))
    _check_outputs(given, files.paths)
    result = _audit(files, given)
    planned = given.get("planned", _PLANNED) if given.get("anytime") else None
    answer, sentence = _gate(result, planned) if given.get("gate") else (0, "")
    _write(result, given, planned)
    to_stdout = any(given.get(name) == _STDOUT for name in _PRINTED)
    if not given.get("quiet"):
        show(result, error=to_stdout)
    if sentence:
        print(plain(as_typed(sentence)), file=sys.stderr if to_stdout else sys.stdout)
    return answer


def _check_gate(given: dict[str, Any]) -> None:
    if not given.get("gate"):
        for name, said in (("anytime", given.get("anytime")), ("planned", "planned" in given)):
            if said:
                raise MpcError(f"--{name} says how the gate decides: add --gate.")
    elif "planned" in given and not given.get("anytime"):
        raise MpcError("--planned belongs to the intervals of --anytime: add --anytime.")
    if given.get("planned", _PLANNED) < 1:
        raise MpcError(f"--planned takes a number of queries, 1 or more, not {given['planned']}.")
    if given.get("anytime") and not isinstance(given.get("threshold"), float):
        raise MpcError(
            "--anytime needs a threshold that was fixed before the first look: give --threshold a "
            "number of score units."
        )


def _check_outputs(given: dict[str, Any], inputs: Sequence[str]) -> None:
    """Refuse a hopeless path before the work, not after it."""
    printed = [f"--{name}" for name in _PRINTED if given.get(name) == _STDOUT]
    if len(printed) > 1:
        listed = " and ".join(printed)
        raise MpcError(f'Only one of {listed} can be "-", which prints it: give the rest a file.')
    taken = {Path(path).resolve(): "a log that is read" for path in inputs}
    for name in _OUTPUTS:
        if name not in given or (name in _PRINTED and given[name] == _STDOUT):
            continue
        try:
            target = target_path(given[name]).resolve()
        except MpcError as error:
            raise MpcError(f"--{name}: {error}") from error
        if target in taken:
            raise MpcError(f"--{name} would overwrite {taken[target]}, {str(given[name])!r}.")
        taken[target] = f"the file of --{name}"


# -- the log ---------------------------------------------------------------------------------


def _keywords(roles: dict[str, list[str]], given: dict[str, Any]) -> dict[str, Any]:
    """Return the columns as an audit takes them."""
    single = {name: found[0] if len(found) == 1 else found for name, found in roles.items()}
    return {**single, **{name: given[name] for name in ("group_sep", "missing") if name in given}}


def _roles(files: Files, given: dict[str, Any]) -> dict[str, list[str]]:
    roles, known = {}, files.names
    for name in _ROLES:
        value = given.get(name)
        if value is not None:
            roles[name] = names(value, known) if isinstance(value, list) else [value]
    if given.get("guess"):
        roles = _guessed(files, given, roles) | roles
    absent = [name for name in _NEEDED if not roles.get(name)]
    if absent:
        listed = ", ".join(f"--{name}" for name in absent)
        raise MpcError(
            f"An audit needs {listed}: name a column of {files.paths[0]!r} for each, which has "
            f"{', '.join(map(repr, known[:12]))}{' and more' if len(known) > 12 else ''}; or let "
            "--guess choose."
        )
    return roles


def _guessed(
    files: Files, given: dict[str, Any], roles: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Guess the columns from the first rows, and print the guess."""
    from mpc_lab.ranking.guessing import guess_columns

    found_first = guess_columns(files.head())
    guess = {name: value for name, value in found_first.items() if value is not None}
    separator = guess.pop("group_sep", None)
    if separator and "group" not in given:
        given.setdefault("group_sep", separator)
    taken = {column for named in roles.values() for column in named}
    found = {
        name: [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        for name, value in guess.items()
        if name in _ROLES and name not in roles
    }
    # A column that was given a part keeps it.
    found = {name: several for name, several in found.items() if taken.isdisjoint(several)}
    fresh = [f"--{name} {','.join(several)}" for name, several in found.items()]
    fresh += [f"--group-sep {separator}"] if separator and "group" not in given else []
    print(plain(f"Guessed: {' '.join(fresh) or 'nothing'}"), file=sys.stderr)
    return found


def _shows_progress(given: dict[str, Any]) -> bool:
    return bool(given.get("progress", sys.stderr.isatty()))


# -- the audit and what is made of it --------------------------------------------------------


def _audit(files: Files, given: dict[str, Any]) -> Audit:
    from mpc_lab.engines.opening import open_log
    from mpc_lab.engines.progress import Progress
    from mpc_lab.run import audit

    chosen = {name: given[name] for name in _OPTIONS if name in given}
    if "rules" in given:
        chosen["scoring_rules"] = given["rules"]
    if "modes" in given:
        chosen["pairing_modes"] = names(given["modes"], ())
    chosen["progress"] = _shows_progress(given)
    how = {name: given[name] for name in _LARGE if name in given}
    with Progress(chosen["progress"], unit="file") as bar:
        log = open_log(
            files,
            _keywords(_roles(files, given), given),
            rules=chosen.get("scoring_rules", ()),
            progress=bar,
            **how,
        )
    if "groups" in given:
        chosen["groups"] = names(given["groups"], log.known.groups)
    return audit(log, **chosen)


def _gate(result: Audit, planned: int | None) -> tuple[int, str]:
    from mpc_lab.results.gate import decide, explain

    decision = decide(result, planned=planned)
    return decision.answer, explain(result, decision)


def _write(result: Audit, given: dict[str, Any], planned: int | None) -> None:
    """Write whatever was asked for, with the gate as it was decided, and say where it is."""
    made = []
    if "save" in given:
        result.save(given["save"])
        made.append("save")
    if "report" in given:
        shown = _shows_progress(given)
        pairs = given.get("pairs", 0)
        result.report(given["report"], pairs=pairs, progress=shown, planned=planned)
        made.append("report")
    if "json" in given:
        _put(given["json"], result.to_json(planned=planned) + "\n", "JSON")
        made.append("json")
    if "csv" in given:
        from mpc_lab.command_line.tables import to_csv

        _put(given["csv"], to_csv(result), "CSV")
        made.append("csv")
    if "card" in given:
        _put(given["card"], result.model_card(planned=planned), "A model card")
        made.append("card")
    for name in made:
        if given[name] != _STDOUT:
            print(f"Written: {plain(given[name])}", file=sys.stderr)


def _put(path: Path, text: str, what: str) -> None:
    """Write a text to its file, or print it."""
    if path == _STDOUT:
        sys.stdout.write(text)
    else:
        write_text(path, text, what)
