"""Read a working directory of LightRAG, or of HGMem's original code, as a pre-built graph."""

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from hgmem.errors import DocumentError
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
    documents = _documents(_Store.of(folder / DOCUMENTS))
    chunks = _chunks(_Store.of(folder / CHUNKS), documents)
    graph = _Graph.of(folder / GRAPH, frozenset(chunk.id for chunk in chunks))
    return Given(
        documents=tuple(documents.values()),
        chunks=chunks,
        entities=tuple(graph.entity(node) for node in graph.nodes.values()),
        relations=tuple(graph.relation(edge) for edge in graph.edges),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Store:
    """A JSON file of records by id."""

    path: Path
    records: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, path: Path) -> "_Store":
        """Return the file's records, after checking that each is an object."""
        records = _json(path)
        if not isinstance(records, dict):
            raise DocumentError(f"{str(path)!r}: not a JSON object of records by id")
        store = cls(path=path, records=records)
        for id_, record in records.items():
            if not isinstance(record, dict):
                store.fail(id_, "is not an object")
            store.checked(id_, id_)
        return store

    def text(self, id_: str, name: str) -> str:
        """Return a required text field."""
        value = self.records[id_].get(name)
        return self.checked(id_, value) if isinstance(value, str) else self.fail(id_, f"has no text in {name!r}")

    def checked(self, id_: str, text: str) -> str:
        """Return the text, or raise if it holds a null character or an unpaired surrogate."""
        return text if storable(text) else self.fail(id_, "has a null character or an unpaired surrogate")

    def fail(self, id_: str, what: str) -> NoReturn:
        raise DocumentError(f"{str(self.path)!r}, record {id_!r}: it {what}")


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DocumentError(f"{str(path)!r}, {place}: not JSON, or only half written: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{str(path)!r}, byte {error.start}: not UTF-8") from error
    except RecursionError:
        raise DocumentError(f"{str(path)!r}: JSON nested too deeply") from None
    except (OSError, ValueError) as error:
        raise DocumentError(f"{str(path)!r}: {error}") from error


def _documents(store: _Store) -> dict[str, Document]:
    documents = {}
    for id_, record in store.records.items():
        text = store.text(id_, "content").removeprefix(_MARK)
        given = record.get("file_path")
        file = store.checked(id_, given) if isinstance(given, str) and given not in _NO_FILE else ""
        title = Path(file).name or first_line(text) or id_
        documents[id_] = Document(id=id_, text=text, title=title[:TITLE_LENGTH], source=file)
    return documents


def _chunks(store: _Store, documents: Mapping[str, Document]) -> tuple[GivenChunk, ...]:
    ids: dict[str, list[str]] = {id_: [] for id_ in documents}
    for id_ in store.records:
        document = store.text(id_, "full_doc_id")
        if document not in documents:
            store.fail(id_, f"names the document {document!r}, which is not in {DOCUMENTS}")
        ids[document].append(id_)
    return tuple(chunk for id_, document in documents.items() for chunk in _placed(store, document, ids[id_]))


def _placed(store: _Store, document: Document, ids: Iterable[str]) -> Iterable[GivenChunk]:
    """Yield the document's chunks in order, with offsets that never decrease."""
    at = 0
    for id_ in sorted(ids, key=lambda id_: _order(store, id_)):
        text = store.text(id_, "content").removeprefix(_MARK)
        start = document.text.find(text, at)
        at = max(at, start)
        yield GivenChunk(id=id_, document=document.id, text=text, start=None if start < 0 else start)


def _order(store: _Store, id_: str) -> float:
    """Return the chunk's number, or infinity without one, which keeps the order of the file."""
    number = store.records[id_].get("chunk_order_index")
    number = math.inf if number is None else number
    if isinstance(number, bool) or not isinstance(number, int | float):
        store.fail(id_, f"has an invalid chunk_order_index: {number!r}")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """A node or an edge of GraphML: its line, its attributes, and its data by name."""

    line: int
    attributes: Mapping[str, str]
    data: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """A GraphML file with valid references."""

    path: Path
    nodes: Mapping[str, _Element]
    edges: tuple[_Element, ...]
    names: Mapping[str, str]
    chunks: frozenset[str]

    @classmethod
    def of(cls, path: Path, chunks: frozenset[str]) -> "_Graph":
        found = _Reader(path).read()
        nodes = {node.attributes.get("id", ""): node for node in found["node"]}
        graph = cls(path=path, nodes=nodes, edges=tuple(found["edge"]), names=_names(nodes), chunks=chunks)
        graph.check(found["node"])
        return graph

    def check(self, nodes: Iterable[_Element]) -> None:
        """Raise for a duplicate or unnamed node, and for an edge to an unknown node."""
        for node in nodes:
            if self.nodes.get(self.attribute(node, "id")) is not node:
                self.fail(node, f"duplicate node {node.attributes['id']!r}")
        for edge in self.edges:
            for end in ("source", "target"):
                if self.attribute(edge, end) not in self.nodes:
                    self.fail(edge, f"an edge whose {end} {edge.attributes[end]!r} is not a node")

    def entity(self, node: _Element) -> GivenEntity:
        return GivenEntity(
            name=self.names[node.attributes["id"]],
            type=_unquoted(node.data.get("entity_type", "")),
            description=_joined(node),
            chunks=self.sources(node),
        )

    def relation(self, edge: _Element) -> GivenRelation:
        keywords = edge.data.get("keywords", "").replace(_SEPARATOR, ",").replace('"', "").split(",")
        return GivenRelation(
            source=self.names[edge.attributes["source"]],
            target=self.names[edge.attributes["target"]],
            description=_joined(edge),
            keywords=_distinct(keywords),
            weight=self.weight(edge),
            chunks=self.sources(edge),
        )

    def attribute(self, element: _Element, name: str) -> str:
        if name not in element.attributes:
            self.fail(element, f"the attribute {name!r} is missing")
        return element.attributes[name]

    def sources(self, element: _Element) -> tuple[str, ...]:
        """Return the distinct chunks that an element comes from, or raise for an unknown one."""
        ids = _distinct(element.data.get("source_id", "").split(_SEPARATOR))
        for id_ in ids:
            if id_ not in self.chunks and id_ not in _NO_CHUNK:
                self.fail(element, f"it names the chunk {id_!r}, which is not in {CHUNKS}")
        return tuple(id_ for id_ in ids if id_ in self.chunks)

    def weight(self, edge: _Element) -> float:
        given = edge.data.get("weight", "").strip() or "1"
        try:
            weight = float(given)
        except ValueError:
            weight = math.nan
        return weight if math.isfinite(weight) else self.fail(edge, f"the weight {given!r} is not a number")

    def fail(self, element: _Element, what: str) -> NoReturn:
        raise DocumentError(f"{str(self.path)!r}, line {element.line}: {what}")


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
            self.inside.append(_Element(line=self.parser.CurrentLineNumber, attributes=attributes))
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
