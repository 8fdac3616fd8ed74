"""An audit as a document: one self-contained page, its JSON twin, a section of a model card.

Every text that comes from data goes through ``mpc_lab.html.escape`` or
``mpc_lab.report.documents.escape_markdown``. May import from ``errors`` to ``charts``.
"""

from mpc_lab.report.documents import model_card, schema, to_json
from mpc_lab.report.page import write

__all__ = ["model_card", "schema", "to_json", "write"]
