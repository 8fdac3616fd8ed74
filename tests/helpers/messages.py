"""Every message that the package raises, read from its source; run as a file it prints a table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import mpc_lab

PACKAGE = Path(mpc_lab.__file__).parent
RAISED = ("MpcError", "AuditFailed", "TraitError", "UsageError")
_FORMS = {
    "must": re.compile(r" must .*; got .+", re.DOTALL),
    "absent": re.compile(r"^There is no |^\S+( \S+)?( \S+)? has (no|an unknown) "),
    "cannot": re.compile(r" cannot be (?!.*; got )", re.DOTALL),
    "install": re.compile(r" must be installed .*Run pip install", re.DOTALL),
}


class Message(NamedTuple):
    """A message with the names of its parts in braces, and where it is raised."""

    file: str
    line: int
    kind: str
    text: str

    @property
    def form(self) -> str:
        """The dialect that the message is written in, "" for none."""
        return next((name for name, wanted in _FORMS.items() if wanted.search(self.text)), "")


def messages() -> Iterator[Message]:
    """Yield the messages that are written where an error is made, file by file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]
        for call in sorted(calls, key=lambda call: call.lineno):
            kind = ast.unparse(call.func).split(".")[-1]
            if kind in RAISED and call.args and (text := _written(call.args[0])):
                yield Message(path.relative_to(PACKAGE).as_posix(), call.lineno, kind, text)


def _written(node: ast.expr) -> str:
    """Return the text of an argument, "" where it was made elsewhere."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [
            "{" + ast.unparse(part.value) + "}"
            if isinstance(part, ast.FormattedValue)
            else str(getattr(part, "value", ""))
            for part in node.values
        ]
        return "".join(parts)
    return ""


if __name__ == "__main__":
    print("| where | form | message |\n|---|---|---|")
    for one in messages():
        shown = one.text.replace("|", "\\|").replace("\n", " ")
        print(f"| {one.file}:{one.line} | {one.form} | {shown} |")
