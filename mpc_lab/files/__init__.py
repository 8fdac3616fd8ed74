"""What a file of a log means: which files there are, of what kind, and what a cell of text is.

The only room that reads CSV, Parquet, Feather or JSON lines. Every door and every engine gets the
same Arrow batches from here, so that a log has one answer however it is read. It may import
pyarrow and `mpc_lab.errors`, and nothing else of mpc_lab.
"""

from __future__ import annotations

from mpc_lab.files.kinds import ACCEPTED
from mpc_lab.files.log import Files, Sheet, find_files, take_upload
from mpc_lab.files.values import Roles

__all__ = ["ACCEPTED", "Files", "Roles", "Sheet", "find_files", "take_upload"]
