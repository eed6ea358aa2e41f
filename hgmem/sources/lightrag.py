"""Read a working directory of LightRAG, or of HGMem's original code, as a pre-built graph."""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from hgmem.errors import DocumentError
from hgmem.sources.json_records import Record, json_of
from hgmem.text.identity import key
from hgmem.text.segmentation import TITLE_LENGTH, first_line, storable
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

GRAPH = "graph_chunk_entity_relation.graphml"
CHUNKS = "kv_store_text_chunks.json"
DOCUMENTS = "kv_store_full_docs.json"

_SEPARATOR = "<SEP>"
_MARK = "\ufeff"
_ELEMENTS = frozenset({"graphml", "node", "edge"})
_NO_CHUNK = frozenset({"", "UNKNOWN", "manual_creation"})  # LightRAG's placeholders for a missing chunk
_NO_FILE = frozenset({"unknown_source", "no-file-path"})


def read_lightrag(directory: Path | str) -> Given:
    """Return the documents, chunks, entities and relations in the order of the files, without merging.

    A chunk's offset is found by searching forward in its document. Raises `DocumentError`, with the place, for bad
    data.
    """
    folder = Path(directory)
    for name in (DOCUMENTS, CHUNKS, GRAPH):
        if not os.path.isfile(folder / name):
            raise DocumentError(f"{str(folder)!r} is not a LightRAG working directory: {name} is missing")
    documents = _documents(_records(folder / DOCUMENTS))
    chunks = _chunks(_records(folder / CHUNKS), documents)
    elements, known = _Reader(folder / GRAPH).read(), frozenset(chunk.id for chunk in chunks)
    nodes = _nodes(elements["node"])
    names = _names(nodes)
    return Given(
        documents=tuple(documents.values()),
        chunks=chunks,
        entities=tuple(_entity(node, names[id_], known) for id_, node in nodes.items()),
        relations=tuple(_relation(edge, names, known) for edge in elements["edge"]),
    )


def _records(path: Path) -> dict[str, Record]:
    """Return a JSON file's records by id."""
    values = json_of(path)
    if not isinstance(values, dict):
        raise DocumentError(f"{str(path)!r}: not a JSON object of records by id")
    records = {id_: Record(value, path=path, place=f"record {id_!r}") for id_, value in values.items()}
    for id_, record in records.items():
        _storable(record, id_)
    return records


def _storable(record: Record, text: object, field: str = "") -> str:
    """Return a text, or raise if it is none, or holds a null character or an unpaired surrogate."""
    if not isinstance(text, str):
        record.fail("it is not a text", field)
    if not storable(text):
        record.fail("it has a null character or an unpaired surrogate", field)
    return text


def _text(record: Record, field: str) -> str:
    return _storable(record, record.values.get(field), field)


def _documents(records: Mapping[str, Record]) -> dict[str, Document]:
    documents = {}
    for id_, record in records.items():
        text = _text(record, "content").removeprefix(_MARK)
        given = record.values.get("file_path")
        file = _text(record, "file_path") if isinstance(given, str) and given not in _NO_FILE else ""
        title = Path(file).name or first_line(text) or id_
        documents[id_] = Document(id=id_, text=text, title=title[:TITLE_LENGTH], source=file)
    return documents


def _chunks(records: Mapping[str, Record], documents: Mapping[str, Document]) -> tuple[GivenChunk, ...]:
    found: dict[str, dict[str, Record]] = {id_: {} for id_ in documents}
    for id_, record in records.items():
        document = _text(record, "full_doc_id")
        if document not in documents:
            record.fail(f"it names the document {document!r}, which is not in {DOCUMENTS}")
        found[document][id_] = record
    return tuple(chunk for id_, document in documents.items() for chunk in _placed(document, found[id_]))


def _placed(document: Document, records: Mapping[str, Record]) -> Iterator[GivenChunk]:
    """Yield the document's chunks in order, with offsets that never decrease."""
    at = 0
    for id_, record in sorted(records.items(), key=lambda item: _order(item[1])):
        text = _text(record, "content").removeprefix(_MARK)
        start = document.text.find(text, at)
        at = max(at, start)
        yield GivenChunk(id=id_, document=document.id, text=text, start=None if start < 0 else start)


def _order(record: Record) -> float:
    """Return the chunk's number, or infinity without one, which keeps the order of the file."""
    number = record.values.get("chunk_order_index")
    number = math.inf if number is None else number
    if isinstance(number, bool) or not isinstance(number, int | float):
        record.fail(f"it is not a number: {number!r}", "chunk_order_index")
    return number


class _Element(Record):
    """A node or an edge of GraphML: its attributes, its data by name, and its line."""

    def __init__(self, attributes: dict[str, str], *, path: Path, line: int) -> None:
        super().__init__(attributes, path=path, place=f"line {line}")
        self.data: dict[str, str] = {}

    def attribute(self, name: str) -> str:
        """Return an attribute that must be there."""
        if not self.has(name):
            self.fail(f"the attribute {name!r} is missing")
        return self.text(name)


def _nodes(elements: Iterable[_Element]) -> dict[str, _Element]:
    """Return the nodes by id, which must be unique."""
    nodes: dict[str, _Element] = {}
    for node in elements:
        if nodes.setdefault(node.attribute("id"), node) is not node:
            node.fail(f"duplicate node {node.attribute('id')!r}")
    return nodes


def _entity(node: _Element, name: str, known: frozenset[str]) -> GivenEntity:
    kind = _unquoted(node.data.get("entity_type", ""))
    return GivenEntity(name=name, type=kind, description=_joined(node), chunks=_sources(node, known))


def _relation(edge: _Element, names: Mapping[str, str], known: frozenset[str]) -> GivenRelation:
    ends = {end: edge.attribute(end) for end in ("source", "target")}
    for end, id_ in ends.items():
        if id_ not in names:
            edge.fail(f"an edge whose {end} {id_!r} is not a node")
    keywords = edge.data.get("keywords", "").replace(_SEPARATOR, ",").replace('"', "").split(",")
    return GivenRelation(
        source=names[ends["source"]],
        target=names[ends["target"]],
        description=_joined(edge),
        keywords=_distinct(keywords),
        weight=_weight(edge),
        chunks=_sources(edge, known),
    )


def _sources(element: _Element, known: frozenset[str]) -> tuple[str, ...]:
    """Return the distinct chunks that an element comes from, or raise for an unknown one."""
    ids = _distinct(element.data.get("source_id", "").split(_SEPARATOR))
    for id_ in ids:
        if id_ not in known and id_ not in _NO_CHUNK:
            element.fail(f"it names the chunk {id_!r}, which is not in {CHUNKS}")
    return tuple(id_ for id_ in ids if id_ in known)


def _weight(edge: _Element) -> float:
    given = edge.data.get("weight", "").strip() or "1"
    try:
        weight = float(given)
    except ValueError:
        weight = math.nan
    return weight if math.isfinite(weight) else edge.fail(f"the weight {given!r} is not a number")


class _Reader:
    """A streaming GraphML parser that rejects document type declarations, and thereby custom entities."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.found: dict[str, list[_Element]] = defaultdict(list)
        self.inside: list[_Element] = []
        self.name = ""
        self.text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.StartDoctypeDeclHandler = self.doctype

    def read(self) -> Mapping[str, list[_Element]]:
        """Return the elements by kind, such as `node` and `edge`."""
        try:
            with self.path.open("rb") as file:
                self.parser.ParseFile(file)
        except expat.ExpatError as error:
            place = f"{str(self.path)!r}, line {error.lineno}, column {error.offset + 1}"
            raise DocumentError(f"{place}: {expat.ErrorString(error.code)}") from error
        except (OSError, LookupError, ValueError) as error:
            raise DocumentError(f"{str(self.path)!r}: {error}") from error
        if not self.found["graphml"]:
            raise DocumentError(f"{str(self.path)!r}: not GraphML")
        return self.found

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "key":
            self.names[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif kind == "data":
            self.name = self.names.get(attributes.get("key", "")) or self.fail("data that no <key> names")
            self.text.clear()
        elif kind in _ELEMENTS:
            self.inside.append(_Element(attributes, path=self.path, line=self.parser.CurrentLineNumber))
            self.found[kind].append(self.inside[-1])

    def end(self, tag: str) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "data" and self.inside:
            self.inside[-1].data[self.name] = "".join(self.text)
        elif kind in _ELEMENTS:
            self.inside.pop()

    def doctype(self, *_: object) -> None:
        self.fail("a document type declaration, which is not allowed")

    def fail(self, what: str) -> NoReturn:
        raise DocumentError(f"{str(self.path)!r}, line {self.parser.CurrentLineNumber}: {what}")


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Return each node's name without surrounding quotes, unless another node has that name."""
    taken = {key(id_) for id_ in ids}
    bare = {id_: _unquoted(id_) for id_ in ids}
    return {id_: name if name == id_ or key(name) not in taken else id_ for id_, name in bare.items()}


def _joined(element: _Element) -> str:
    parts = element.data.get("description", "").split(_SEPARATOR)
    return "\n".join(_distinct(_unquoted(part) for part in parts))


def _distinct(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _unquoted(text: str) -> str:
    """Return the text without surrounding quotes, unless it is a list such as `"a" and "b"`."""
    text = text.strip()
    inner = text[1:-1]
    return inner.strip() if text == f'"{inner}"' and '"' not in inner else text
