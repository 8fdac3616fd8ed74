"""What it takes to make the same numbers again: versions, options, checksums, seed, one call.

A recipe is written from the attributes of an audit, which may come from somebody else's file, and a
person pastes and runs it: so every value is written as a literal.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mpc_lab.pairing.terms import parse_threshold
from mpc_lab.ranking.examination import PlaceTable, from_json
from mpc_lab.results.base import settings
from mpc_lab.results.schema import AuditBase
from mpc_lab.scoring import SCORING_RULES
from mpc_lab.vocabulary import default_modes

_MOVED = re.compile(r"(boosted|demoted)\((.+)\)")
_FLAGS = {"scoring_rules": "rules", "pairing_modes": "modes"}
_SIZES = {
    "n_rows": "rows",
    "n_queries": "queries",
    "n_units": "units",
    "n_items": "items",
    "n_dropped": "rows left out",
    "n_capped": "outcomes capped",
    "n_floored": "rows at the floor of examined",
    "n_left_out_of_sides": "queries left out of symmetric pairs",
}


@dataclass(frozen=True)
class Recipe:
    """How an audit was made, and how to make the same numbers again.

    Attributes
    ----------
    versions : dict
        The versions of mpc_lab, Python and the libraries that compute.
    options : dict
        As the keywords of :func:`mpc_lab.audit`.
    data : dict
        Sizes of the log, its columns and ``fingerprint``, the SHA-256 of the rows in their order
        (None where they were never all in memory).
    files : tuple of dict
        ``path``, ``bytes`` and ``sha256`` of each file that was read.
    seed : int
        The seed of everything that is drawn at random.
    call : str
        Python to paste: it ends with the audit in ``audit``.
    command : str or None
        The same for a shell, where the log is in files and every option can be written on a line.
    needs : tuple of str
        What `call` takes for granted, a sentence each.
    """

    versions: dict[str, str]
    options: dict[str, Any]
    data: dict[str, Any]
    files: tuple[dict[str, Any], ...]
    seed: int
    call: str
    command: str | None
    needs: tuple[str, ...]

    def to_json(self) -> str:
        """Return the recipe as one JSON text."""
        return json.dumps(asdict(self), default=str)

    def __repr__(self) -> str:
        made = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        sizes = [f"{self.data[k]:,} {word}" for k, word in _SIZES.items() if self.data.get(k)]
        lines = [f"Made with {made or 'unknown versions'}; seed {self.seed}."]
        lines.append(f"Log: {', '.join(sizes) or 'sizes not known'}.")
        if self.data.get("fingerprint"):
            lines.append(f"SHA-256 of the rows: {self.data['fingerprint']}.")
        lines += [
            f"{one['path']!a}: {one['bytes']:,} bytes, SHA-256 {one['sha256']}."
            for one in self.files
        ]
        lines += [*self.needs, "", self.call]
        return "\n".join([*lines, *(["", self.command] if self.command else [])])


# ---- what an audit was made from


def options_of(audit: AuditBase) -> dict[str, Any]:
    """Return the options the audit was run with."""
    return _kept(audit, "options")


def versions(audit: AuditBase) -> dict[str, str]:
    """Return the versions of the libraries that it was run with."""
    return {str(key): str(version) for key, version in _kept(audit, "versions").items()}


def columns(audit: AuditBase) -> dict[str, Any]:
    """Return which column had which role."""
    return {role: name for role, name in _kept(audit, "columns").items() if name is not None}


def fingerprint(audit: AuditBase) -> str | None:
    """Return the hash of the rows, None where it is not known."""
    if audit.ranking is not None:
        return audit.ranking.fingerprint()
    known = audit.attrs.get("fingerprint")
    return None if known is None else str(known)


def fingerprints(audit: AuditBase) -> list[str]:
    """Return the hash of the rows, "" if it is not known; for a pool, the hashes of its logs."""
    if "pooled" in audit.attrs:
        return [str(one) for one in _parse(audit, "pooled") or []]
    return [fingerprint(audit) or ""]


def describe_data(audit: AuditBase) -> dict[str, Any]:
    """Return the sizes of the log, its columns and its fingerprint."""
    known = settings(audit)
    sizes = {size: int(known[size]) for size in _SIZES if size in known}
    return {**sizes, "columns": columns(audit), "fingerprint": fingerprint(audit)}


def _kept(audit: AuditBase, name: str) -> dict[str, Any]:
    found = _parse(audit, name)
    return found if isinstance(found, dict) else {}


def _parse(audit: AuditBase, name: str) -> Any:
    try:
        return json.loads(str(audit.attrs.get(name, "null")))
    except ValueError:
        return None


def recipe(audit: AuditBase) -> Recipe:
    """Return the recipe of an audit; see :meth:`mpc_lab.Audit.recipe`."""
    options, source, data = options_of(audit), _kept(audit, "source"), describe_data(audit)
    files = tuple(one for one in source.get("files", []) if isinstance(one, dict))
    rules = _rules(audit, options)
    if "pooled" in audit.attrs:
        call, needs = _write_pooled(audit)
        command = None
    else:
        given = _given(audit, options, source, data)
        read = _read_frame(source)
        call = f"{read}\n{_call(given, rules, options, files)}".lstrip()
        needs = list(_needs(source, files, rules))
        command = _command(given, rules, options, files) if files else None
    return Recipe(
        versions=versions(audit),
        options=options,
        data=data,
        files=files,
        seed=int(settings(audit).get("seed", 0)),
        call=f"import mpc_lab as mpc\n\n{call}",
        command=command,
        needs=tuple(needs),
    )


def _rules(audit: AuditBase, options: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return kind and argument of every rule by its label."""
    labels = [str(label) for label in options.get("scoring_rules", [])]
    kept = _parse(audit, "rule_kinds")
    kept = kept if isinstance(kept, list) and len(kept) == len(labels) else [None] * len(labels)
    if all(isinstance(parts, list) and len(parts) == 2 for parts in kept):
        return {label: (str(kind), of) for label, (kind, of) in zip(labels, kept, strict=True)}
    return {label: _from_label(label) for label in labels}


def _from_label(label: str) -> tuple[str, Any]:
    """Guess a rule from its label, as an audit of 0.1 or a pool keeps it."""
    moved = _MOVED.fullmatch(label)
    if label in SCORING_RULES:
        return label, None
    return (moved[1], float(moved[2])) if moved else ("column", label)


def _given(
    audit: AuditBase, options: dict[str, Any], source: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """Return the keywords of the call that are plain values; rules and thresholds are not."""
    given = columns(audit)
    if data.get("n_dropped"):
        given["missing"] = "drop"
    given |= {name: source.get(name) for name in ("sep", "encoding", "memory")}
    given |= options
    if audit.attrs.get("all_groups"):
        given.pop("groups", None)
    # In a file that somebody else has written, an option that is not a keyword could be anything.
    return {name: v for name, v in given.items() if v is not None and name.isidentifier()}


def _needs(
    source: dict[str, Any], files: tuple[Any, ...], rules: dict[str, tuple[str, Any]]
) -> Iterator[str]:
    if not files and not _read_frame(source):
        kind = {"dask": "the Dask frame", "spark": "the Spark frame"}.get(str(source.get("kind")))
        yield f"frame must be {kind or 'the table'} that was audited, its rows in the same order."
    functions = [str(argument) for kind, argument in rules.values() if kind == "function"]
    for name in functions:
        yield f"The scoring rule {name!a} must be the same function."


# ---- Python


def _call(
    given: dict[str, Any],
    rules: dict[str, tuple[str, Any]],
    options: dict[str, Any],
    files: tuple[dict[str, Any], ...],
) -> str:
    written = _literals(given, rules, options)
    paths = [str(one["path"]) for one in files]
    log = ascii(paths[0] if len(paths) == 1 else paths) if paths else "frame"
    lines = [log, *(f"{name}={value}" for name, value in written.items())]
    return "audit = mpc.audit(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _read_frame(source: dict[str, Any]) -> str:
    """Return Python that reads the rows of a run as a frame; empty for any other log."""
    paths = source.get("paths")
    if source.get("kind") != "run" or not isinstance(paths, list) or len(paths) != 3:
        return ""
    how = [ascii(str(path)) for path in paths]
    if source.get("unjudged") == "zero":
        how.append("unjudged='zero'")
    return f"frame = mpc.read_run({', '.join(how)}).to_frame()"


def _literals(
    given: dict[str, Any], rules: dict[str, tuple[str, Any]], options: dict[str, Any]
) -> dict[str, str]:
    """Return every keyword as Python."""
    written = {n: v if isinstance(v, Verbatim) else ascii(v) for n, v in given.items()}
    if given.get("scoring_rules") == options.get("scoring_rules"):
        made = ", ".join(_rule_call(*rule) for rule in rules.values())
        written["scoring_rules"] = f"[{made}]"
    if isinstance(given.get("examined"), dict):
        written["examined"] = _examined_call(given["examined"])
    if "threshold" in given and not isinstance(given["threshold"], Verbatim):
        written["threshold"] = _threshold_call(str(given["threshold"]))
    if isinstance(given.get("primary"), dict):
        rule, mode, threshold = _primary(options)
        parts = (_rule_call(*rules[rule]), ascii(mode), _threshold_call(threshold))
        written["primary"] = f"({', '.join(parts)})"
    return written


def _examined_call(kept: dict[str, Any]) -> str:
    """Return what gives the same curve over places, to be pasted."""
    curve = from_json(kept)
    if isinstance(curve, PlaceTable):
        return repr(dict(curve.chances))
    return f"mpc.{curve!r}"


def _primary(options: dict[str, Any]) -> tuple[str, str, str]:
    found = options["primary"]
    return str(found["scoring_rule"]), str(found["pairing_mode"]), str(found["threshold"])


def _rule_call(kind: str, argument: Any) -> str:
    if kind == "function":
        name = str(argument)
        return name if name.isidentifier() else "your_function"
    if kind == "column":
        return f"mpc.Column({argument!a})"
    if kind in ("boosted", "demoted") and argument is not None:
        return f"mpc.{kind.capitalize()}({float(argument)!r})"
    return ascii(kind)


def _threshold_call(written: str) -> str:
    threshold = parse_threshold(written)
    return repr(threshold) if isinstance(threshold, float) else f"mpc.{threshold!r}"


def _write_pooled(audit: AuditBase) -> tuple[str, list[str]]:
    prints = [one or "unknown" for one in fingerprints(audit)]
    need = f"audits must be the {len(prints):,} audits that were pooled"
    return "audit = mpc.pool(audits)", [f"{need}, of rows with SHA-256 {', '.join(prints)}."]


class Verbatim(str):
    """Python that is written in a call as it is."""


# What mpc.audit takes where nothing is said; a call that is shown to a person leaves these out.
DEFAULTS: dict[str, Any] = {
    "scoring_rules": ["baseline"],
    "threshold": "Quantile(p=0.01)",
    "level": 0.95,
    "adjust": "holm",
    "bootstrap": 0,
    "seed": 0,
    "pairs_cap": 10,
    "closeness": "score",
    "contrast": "difference",
    "estimand": "pairs",
    "correction": "cr3",
    "ascending": False,
}


def changed_call(
    audit: AuditBase, changes: Mapping[str, Any], rows: str = "frame"
) -> tuple[str, str | None]:
    """Return the call of an audit with some keywords changed, without those at their default.

    Parameters
    ----------
    audit : Audit
    changes : mapping
        Values by keyword; None leaves a keyword out, and a `Verbatim` is written as it is.
    rows : str
        Python for the rows of a frame; files are named instead where all rows are taken.

    Returns
    -------
    call : str
    command : str or None
        The same for a shell, as in `Recipe`.
    """
    options, source = options_of(audit), _kept(audit, "source")
    files = tuple(one for one in source.get("files", []) if isinstance(one, dict))
    rules = _rules(audit, options)
    given = _given(audit, options, source, describe_data(audit))
    has_places = given.get("position") is not None
    usual = {
        **DEFAULTS,
        "cluster": "union" if given.get("item") is not None else "query",
        "pairing_modes": list(default_modes(has_places)),
    }
    given = {name: v for name, v in given.items() if name not in usual or usual[name] != v}
    given = {name: v for name, v in {**given, **changes}.items() if v is not None}
    written = _literals(given, rules, options)
    if not files or rows != "frame":
        log, command = rows, None
    else:
        log = ascii([str(one["path"]) for one in files] if len(files) > 1 else files[0]["path"])
        command = _command(given, rules, options, files)
    call = f"audit = mpc.audit({', '.join([log, *(f'{n}={v}' for n, v in written.items())])})"
    read = _read_frame(source)
    return f"{read}; {call}" if read else call, command


# ---- the command line


def _command(
    given: dict[str, Any],
    rules: dict[str, tuple[str, Any]],
    options: dict[str, Any],
    files: tuple[dict[str, Any], ...],
) -> str | None:
    """Return the line, None where an option cannot be written on one."""
    words = ["mpc-lab", "audit", *(str(one["path"]) for one in files)]
    spelt = {label: _rule_word(*rule) for label, rule in rules.items()}
    for name, value in given.items():
        if name == "scoring_rules":
            value = ",".join(spelt.values())
        elif name == "threshold":
            value = _threshold_word(str(value).removeprefix("mpc."))
        elif name == "primary":
            rule, mode, threshold = _primary(options)
            value = ",".join([spelt[rule], mode, _threshold_word(threshold)])
        elif name == "examined" and isinstance(value, dict):
            value = value.get("eta")
        elif name == "epsilon":
            value = ",".join(map(repr, value))
        words += _words(_FLAGS.get(name, name), value)
    reasons = (
        isinstance(curve := given.get("examined"), dict) and "eta" not in curve,  # a table
        any(kind == "function" for kind, _ in rules.values()),
        any("," in word for word in spelt.values()),  # a comma separates rules
        any(word.startswith("-") for word in words[2 : 2 + len(files)]),
        not all(word.isprintable() for word in words),  # a terminal would interpret it
    )
    return None if any(reasons) else shlex.join(words)


def _words(name: str, value: Any) -> Iterable[str]:
    if value is True:
        return [f"--{name.replace('_', '-')}"]
    several = value if isinstance(value, list) else [value]
    return [f"--{name.replace('_', '-')}={one}" for one in several]


def _rule_word(kind: str, argument: Any) -> str:
    return kind if argument is None else f"{kind}:{argument}"


def _threshold_word(written: str) -> str:
    threshold = parse_threshold(written)
    if isinstance(threshold, float):
        return repr(threshold)
    return ":".join([type(threshold).__name__.lower(), *map(str, asdict(threshold).values())])
