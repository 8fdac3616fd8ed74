"""An audit as a document: one self-contained page, its JSON twin, a section of a model card.

Every text that comes from data goes through ``mpc_lab.report.html.words`` or
``mpc_lab.report.markdown.words``. May import from ``errors`` to ``charts``.
"""

from mpc_lab.report.json_twin import schema, to_json
from mpc_lab.report.model_card import model_card
from mpc_lab.report.page import write

__all__ = ["model_card", "schema", "to_json", "write"]
