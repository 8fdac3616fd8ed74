"""Checks of a saved audit that may come from somebody else, made before it is read.

HDF5 can do more than hold numbers: a file can point into other files, link in a circle, and claim
sizes that it does not hold. Whatever :func:`mpc_lab.results.storage.save` never writes is refused.
All checks look at headers alone; no link is followed before it is known to be a plain one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5r, h5s, h5t, h5z

from mpc_lab.errors import MpcError

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
# Well above what any audit needs: a hundred or two objects with some twenty attributes at most.
_MOST_OBJECTS = 1_000
_MOST_ATTRIBUTES = 1_000
_LARGEST_ATTRIBUTE = 1 << 16
_MOST_DIMS = 8
# gzip packs no more than a thousandfold: what claims to be larger was not written by save.
PACKED_AT_MOST: Final = 1_100
_FILTERS: Final = frozenset((h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32))
_LAYOUTS: Final = frozenset((h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED))
_NUMBERS: Final = frozenset((h5t.INTEGER, h5t.FLOAT))
# How netCDF ties variables to their dimensions; the only references that a saved audit holds.
_DIMENSIONS: Final = {"DIMENSION_LIST": h5t.VLEN, "REFERENCE_LIST": h5t.COMPOUND}
_LINKS: Final = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
# In a file a text of any length is its length, and where in the file it lies.
_TEXT_IN_FILE: Final = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])


def check_file(file: h5py.File, data: bytes, name: str, *, is_old: bool) -> None:
    """Refuse a file that holds what no saved audit holds.

    Parameters
    ----------
    file : h5py.File
        The file, opened from `data`.
    data : bytes
        The whole content of the file.
    name : str
        The path, for the error message.
    is_old : bool
        Whether it is a file of schema 1, which has texts of any length and which is read by the
        references that it holds.
    """
    survey = _Survey(data, name, is_old)
    root = h5g.open(file.id, b"/")
    survey.visit(h5o.get_info(root), "/")
    survey.check_attributes(root, "/")
    survey.check_group(root, "/", depth=0)
    if is_old:
        survey.check_references()


@dataclass
class _Survey:
    """What was seen of a file so far."""

    data: bytes
    name: str
    is_old: bool
    seen: set[tuple[int, int]] = field(default_factory=set)
    datasets: list[tuple[str, Any]] = field(default_factory=list)
    held: int = 0
    texts: int = 0

    def refuse(self, wanted: str, found: str, place: str) -> NoReturn:
        raise MpcError(
            f"{self.name!r} must {wanted}; got {found} at {place!r}. Give a file as audit.save() "
            "wrote it."
        )

    def visit(self, info: Any, place: str) -> None:
        """Note an object, or refuse it if a link has already led to it."""
        key = (int(info.fileno), int(info.addr))
        # A loop of links is an object that is reached twice.
        if key in self.seen or info.rc > 1:
            self.refuse("hold each object once", "a second link to the same object", place)
        self.seen.add(key)
        if len(self.seen) > _MOST_OBJECTS:
            self.refuse(f"hold at most {_MOST_OBJECTS:,} objects", "more", place)

    def check_group(self, group: Any, place: str, depth: int) -> None:
        count = group.get_num_objs()
        if count > _MOST_OBJECTS:
            self.refuse(f"hold at most {_MOST_OBJECTS:,} objects", f"{count:,}", place)
        for name in list(group):
            here = f"{place.rstrip('/')}/{name.decode('utf-8', 'replace')}"
            link = group.links.get_info(name)
            if link.type != h5l.TYPE_HARD:
                kind = _LINKS.get(link.type, "a link of an unknown kind")
                self.refuse("hold its parts itself", kind, here)
            info = h5o.get_info(group, name)
            self.visit(info, here)
            if info.type == h5o.TYPE_DATASET:
                self.check_dataset(h5d.open(group, name), here)
            elif info.type == h5o.TYPE_GROUP and depth == 0:
                inner = h5g.open(group, name)
                self.check_attributes(inner, here)
                self.check_group(inner, here, depth + 1)
            else:
                kind = "a group in a group" if info.type == h5o.TYPE_GROUP else "a named type"
                self.refuse("hold groups of datasets", kind, here)

    def check_dataset(self, dataset: Any, place: str) -> None:
        # First of all the storage: even to ask for a shape can open the files of a virtual dataset.
        made = dataset.get_create_plist()
        if made.get_layout() not in _LAYOUTS or made.get_external_count():
            self.refuse("hold its numbers itself", "storage in other files", place)
        self.check_filters(made, place)
        kind = dataset.get_type()
        self.check_type(kind, place)
        space = dataset.get_space()
        if space.get_simple_extent_type() == h5s.NULL or len(dataset.shape) > _MOST_DIMS:
            self.refuse(f"hold arrays of at most {_MOST_DIMS} dims", "another form", place)
        if space.get_simple_extent_dims(True) != dataset.shape:
            self.refuse("hold arrays of one size", "an array that may grow", place)
        self.check_attributes(dataset, place)
        self.check_size(dataset, kind, made, place)
        self.datasets.append((place, dataset))

    def check_filters(self, made: Any, place: str) -> None:
        filters = [made.get_filter(index)[0] for index in range(made.get_nfilters())]
        # The same filter twice would pack a thousandfold of a thousandfold.
        if not _FILTERS.issuperset(filters) or len(set(filters)) < len(filters):
            numbers = ", ".join(map(str, filters))
            self.refuse("be packed by gzip and shuffle alone", f"the filters {numbers}", place)

    def check_type(self, kind: Any, place: str) -> None:
        if kind.committed():
            self.refuse("hold plain numbers and texts", "a named type", place)
        family = kind.get_class()
        is_number = family in _NUMBERS and kind.get_size() <= 8
        if not is_number and family != h5t.STRING:
            self.refuse("hold plain numbers and texts", "another type", place)

    def check_size(self, dataset: Any, kind: Any, made: Any, place: str) -> None:
        """Refuse a dataset that claims more than the file holds for it."""
        stored = dataset.get_storage_size()
        claimed = math.prod(dataset.shape) * kind.get_size()
        if _is_dimension_alone(dataset, kind, stored):
            return
        self.held += stored
        packed = PACKED_AT_MOST if made.get_nfilters() else 1
        if claimed > packed * stored or self.held > len(self.data):
            self.refuse("hold all that it claims", f"a claim of {claimed:,} bytes", place)
        if kind.get_class() == h5t.STRING and kind.is_variable_str():
            self.check_texts(dataset, stored, place)

    def check_texts(self, dataset: Any, stored: int, place: str) -> None:
        """Refuse texts of any length that share their letters to claim more than there are."""
        plain = dataset.get_create_plist().get_layout() == h5d.CONTIGUOUS
        count = math.prod(dataset.shape)
        if not self.is_old or not plain or stored != count * _TEXT_IN_FILE.itemsize:
            self.refuse("hold plain numbers and texts", "texts of any length", place)
        if count:
            found = np.frombuffer(self.data, _TEXT_IN_FILE, count, dataset.get_offset())
            self.add_text(int(found["length"].sum(dtype=np.int64)), place)

    def add_text(self, length: int, place: str) -> None:
        self.texts += length
        if self.texts > len(self.data):
            self.refuse("hold all that it claims", f"texts of {self.texts:,} letters", place)

    def check_attributes(self, of: Any, place: str) -> None:
        count = h5a.get_num_attrs(of)
        if count > _MOST_ATTRIBUTES:
            self.refuse(f"have at most {_MOST_ATTRIBUTES:,} attributes", f"{count:,}", place)
        for index in range(count):
            attribute = h5a.open(of, index=index)
            self.check_attribute(attribute, place)

    def check_attribute(self, attribute: Any, place: str) -> None:
        name = attribute.name.decode("utf-8", "replace")
        here = f"{place}:{name}"
        kind = attribute.get_type()
        if attribute.get_storage_size() > _LARGEST_ATTRIBUTE:
            self.refuse(f"have attributes of at most {_LARGEST_ATTRIBUTE:,} bytes", "more", here)
        if kind.get_class() == _DIMENSIONS.get(name) and not kind.committed():
            return
        self.check_type(kind, here)
        if kind.get_class() == h5t.STRING and kind.is_variable_str():
            if attribute.shape != ():
                self.refuse("have attributes of one text each", "several", here)
            text = np.empty((), dtype=object)
            attribute.read(text, mtype=h5t.py_create(h5py.string_dtype()))
            self.add_text(len(text.item()), here)

    def check_references(self) -> None:
        """Refuse references to what no link leads to, which nothing else has looked at."""
        for place, dataset in self.datasets:
            if not h5a.exists(dataset, b"DIMENSION_LIST"):
                continue
            for found in h5py.AttributeManager(h5py.Dataset(dataset))["DIMENSION_LIST"]:
                for reference in found:
                    info = h5o.get_info(h5r.dereference(reference, dataset))
                    if (int(info.fileno), int(info.addr)) not in self.seen:
                        self.refuse("name its own dimensions", "another object", place)


def _is_dimension_alone(dataset: Any, kind: Any, stored: int) -> bool:
    """Say whether this is a dimension without labels, which has a size and no content."""
    flat = len(dataset.shape) == 1 and kind.get_class() == h5t.FLOAT and kind.get_size() == 4
    return flat and not stored and h5a.exists(dataset, b"NAME")
