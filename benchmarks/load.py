"""Load near-copies of a graph in bulk, and write the same live: seconds of each part, bytes, memory, a step afterwards.

Each copy has 2,000 chunks: the graph's own, and near-copies of them. 500 copies of the novel's graph are 1,000,000
chunks, 639,500 entities and 895,500 relations. `--live` writes them live. What is left in the folder is used again.
"""

import argparse
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import graphs
import large
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from comparing import THREE, Placed
from measures import machine, on_disk, resident, told
from running import place
from serve import Serving
from systems.product import Precomputed, System

from hgmem.client.loading import load_stages
from hgmem.corpus.aggregation import entity_uid, relation_uid
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.documents import document_uid
from hgmem.local import down, up
from hgmem.local.machine import Sizes
from hgmem.models.embedding import CheckedEmbedder
from hgmem.settings import load
from hgmem.stages.files import CURRENT, FORMAT, Folder, Header, Part
from hgmem.stages.schemas import SCHEMAS
from hgmem.text.identity import chunk_layer, key, text_hash, uid
from hgmem.text.stems import stored_stems

CORPUS, LANGUAGE, DIMENSIONS, PER_COPY = "large", "en", 384, 2_000
ENTITY, RELATION = ("name", "type", "description"), ("source", "target", "description", "keywords")
Ids = dict[str, list[str]]


def main() -> None:
    """Print one JSON object; progress goes to standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=Path, required=True, help="a graph folder of an earlier benchmark")
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--held", type=Path, required=True, help="work in this new folder")
    parser.add_argument("--live", action="store_true", help="write the stages live, and load nothing")
    parser.add_argument("--heap", default="4g")
    parser.add_argument("--pagecache", default="2g")
    options = parser.parse_args()
    stages, home = options.held / "stages", options.held / ("live" if options.live else "home")
    began = time.perf_counter()
    Making(options.graph, Folder(str(stages))).all(options.copies)
    found: dict[str, Any] = {"machine": machine(), "copies": options.copies, "stages_bytes": on_disk([stages])}
    say(f"stages made in {time.perf_counter() - began:.0f} s")
    sizes = {"heap": options.heap, "pagecache": options.pagecache}
    settings = load(data=home)
    try:
        with Watched(options.held) as watched:
            began = time.perf_counter()
            work = _live if options.live else _loaded
            found |= work(settings, stages, sizes)
            found["all_seconds"] = round(time.perf_counter() - began, 1)
        found["most_megabytes"] = watched.memory
        found["most_bytes_in_the_folder"] = watched.disk
        found |= _afterwards(settings, options, sizes)
    finally:
        down(settings)
    print(json.dumps(found, indent=2))


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


def _loaded(settings: Any, stages: Path, sizes: dict[str, str]) -> dict[str, Any]:
    return asdict(load_stages(settings, [str(stages)], memory=Sizes(**sizes), report=say))


def _live(settings: Any, stages: Path, sizes: dict[str, str]) -> dict[str, Any]:
    from hgmem import HGMem
    from hgmem.stages.writing import write

    server = up(settings, report=say, **sizes)
    embedder = CheckedEmbedder(Precomputed())
    access = {"uri": server.uri, "username": server.username, "password": server.password}
    with HGMem.open(CORPUS, embedder=embedder, **access) as client:
        services = client._services(CORPUS)
        services.embedder.embed = lambda texts, **_: np.ones((len(texts), DIMENSIONS), np.float32)  # of the name alone
        began = time.perf_counter()
        write(Folder(str(stages)), services)
        return {"writing_seconds": round(time.perf_counter() - began, 1)}


def _afterwards(settings: Any, options: argparse.Namespace, sizes: dict[str, str]) -> dict[str, Any]:
    """Return the bytes of the stopped database, and a step's time."""
    server = up(settings, **sizes)
    system = System()
    system.open(place(server, CORPUS))
    names = large.indexes(system.driver)
    system.close()
    down(settings)
    found: dict[str, Any] = {"bytes": large.stored(settings.data, names)}
    server = up(settings, **sizes)
    system.open(place(server, CORPUS))
    system.hold(CORPUS, options.copies * 1_279)
    serving = Serving(system)
    placed = Placed(title=THREE.name, case=THREE, corpus=CORPUS, copies=(0,), steps=20)
    serving.ready(folder=str(options.graph), as_=CORPUS, **placed.asked)
    seconds = [[serving.retrieve(as_=CORPUS, at=at)["seconds"] for at in range(20)] for _ in range(8)]
    found["first_round"] = told(seconds[0])
    found["step"] = told([each for some in seconds[2:] for each in some])
    found["server_megabytes"] = resident(server.pid or 0)
    system.close()
    return found


class Watched:
    """The most memory of this process and each of Java's, and the most bytes in a folder, while a block runs."""

    def __init__(self, folder: Path) -> None:
        self.memory: dict[str, float] = defaultdict(float)
        self.disk = 0
        self._folder, self._end = folder, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(2):
            self._note("this process", psutil.Process().memory_info().rss)
            for child in psutil.process_iter(["pid", "cmdline", "memory_info"]):
                line = " ".join(child.info["cmdline"] or ())
                if str(self._folder) in line and "java" in line and child.info["memory_info"]:
                    kind = "importer" if "import full" in line else "server"
                    self._note(kind, child.info["memory_info"].rss)
            try:
                self.disk = max(self.disk, on_disk([self._folder]))
            except OSError:  # a file went while it was looked at
                continue

    def _note(self, name: str, size: int) -> None:
        self.memory[name] = max(self.memory[name], round(size / 2**20))


class Making:
    """A stage folder of near-copies, a part for each."""

    def __init__(self, graph: Path, folder: Folder) -> None:
        self._graph, self._folder = graph, folder
        self._stems: dict[str, str] = {}

    def all(self, copies: int) -> None:
        """Write the parts that are missing, and what the whole consists of."""
        header = Header(
            format=FORMAT,
            corpus=CORPUS,
            embedder=Precomputed.name,
            dimensions=DIMENSIONS,
            model="made",
            prompts={},
            chunking="200/50/2000",
            entity_types=(),
            gleaning=0,
            condense=False,
            description_characters=2_000,
            language=LANGUAGE,
        )
        self._folder.write_json("stages.json", asdict(header))
        names = [f"copy{copy}" for copy in range(copies)]
        for copy, name in enumerate(names):
            if self._folder.part("vectors", f"g{name}") is None:
                self._write(name, graphs.load(self._graph, copy), copy)
        graph = [f"g{name}" for name in names]
        self._folder.write_json(CURRENT, {"documents": names, "graph": graph, "vectors": [*names, *graph]})

    def _write(self, name: str, graph: graphs.Graph, copy: int) -> None:
        many = len(graph.chunks)
        document = document_uid(CORPUS, name)
        uids = [uid(CORPUS, "chunk", document, at) for at in range(PER_COPY)]
        of: Ids = {one["id"]: uids[at::many] for at, one in enumerate(graph.chunks)}
        texts = [f"{graph.chunks[at % many]['text']}{f' {at // many}' if at >= many else ''}" for at in range(PER_COPY)]
        stated: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in graph.relations:
            for chunk in one["chunks"]:
                stated[chunk].append(one)
        named: dict[str, dict[str, Any]] = {key(one["name"]): one for one in graph.entities}
        mentioned = self._mentioned(graph, stated, named)
        replies = self._replies(graph, stated, named, mentioned)
        self._put("documents", name, [_document(document, name, copy)])
        rows = [
            {
                "uid": each,
                "document": document,
                "position": at,
                "text": texts[at],
                "stems": self._stemmed(texts[at], graph.chunks[at % many]["text"]),
                "tokens": graph.chunks[at % many]["tokens"],
                "start": 1_000 * at,
                "end": 1_000 * at + len(texts[at]),
                "source_id": graph.chunks[at % many]["id"] if at < many else None,
                "messages": None,
                "layer_key": chunk_layer(CORPUS),
            }
            for at, each in enumerate(uids)
        ]
        self._put("chunks", name, rows)
        told_ = {"model": "made", "prompt": "", "error": None}
        self._put(
            "replies",
            name,
            [
                {"chunk": each, "text_sha256": text_hash(texts[at]), "reply": replies[at % many], **told_}
                for at, each in enumerate(uids)
            ],
        )
        more = graphs._moved(graph.vectors["chunks"][np.arange(PER_COPY) % many], seed=(copy, 9))
        more[:many] = graph.vectors["chunks"]
        self._vectors(name, [("chunks", uids, more)])
        self._put_graph(name, graph, of, mentioned)

    def _put_graph(self, name: str, graph: graphs.Graph, of: Ids, mentioned: dict[str, set[str]]) -> None:
        entities, relations = [], []
        fields = {"condensed": None, "cut": None, "given": None}
        for one in graph.entities:
            chunks = sorted(each for id_ in mentioned[key(one["name"])] for each in of[id_])
            told_ = {name: one[name] for name in ("name", "type", "description")}
            uid_ = entity_uid(CORPUS, key(one["name"]))
            entities.append({"uid": uid_, "key": key(one["name"]), **told_, "chunks": chunks, **fields})
        for one in graph.relations:
            ends = sorted((key(one["source"]), key(one["target"])))
            chunks = sorted(each for id_ in one["chunks"] for each in of[id_])
            relations.append(
                {
                    "uid": relation_uid(CORPUS, (ends[0], ends[1])),
                    "source": entity_uid(CORPUS, ends[0]),
                    "target": entity_uid(CORPUS, ends[1]),
                    "source_key": ends[0],
                    "target_key": ends[1],
                    "keywords": one["keywords"],
                    "weight": float(len(chunks)),
                    "description": one["description"],
                    "chunks": chunks,
                    **fields,
                }
            )
        self._put("graph/entities", f"g{name}", entities)
        self._put("graph/relations", f"g{name}", relations)
        kinds = {"entities": entities, "relations": relations}
        vectors = [(kind, [one["uid"] for one in rows], graph.vectors[kind]) for kind, rows in kinds.items()]
        self._vectors(f"g{name}", vectors)

    def _mentioned(self, graph: graphs.Graph, stated: Any, named: Any) -> dict[str, set[str]]:
        """Return the chunks (ids) of each entity (key): its own, and those of its relations."""
        found = {name: set(one["chunks"]) for name, one in named.items()}
        for chunk, relations in stated.items():
            for one in relations:
                for end in (one["source"], one["target"]):
                    found[key(end)].add(chunk)
        return found

    def _replies(self, graph: graphs.Graph, stated: Any, named: Any, mentioned: dict[str, set[str]]) -> list[str]:
        """Return the extraction (JSON) of each chunk of the graph."""
        in_chunk: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name, chunks in mentioned.items():
            for at, chunk in enumerate(sorted(chunks)):
                in_chunk[chunk].append(named[name] if at == 0 else {**named[name], "description": ""})
        return [
            Extraction(
                entities=tuple(ExtractedEntity(**_some(each, ENTITY)) for each in in_chunk[one["id"]]),
                relations=tuple(ExtractedRelation(**_some(each, RELATION)) for each in stated[one["id"]]),
            ).model_dump_json()
            for one in graph.chunks
        ]

    def _stemmed(self, text: str, of: str) -> str:
        """Return the stems of a text; those of the graph's own texts are computed once."""
        own = of.rsplit(" ", 1)[0]
        if own not in self._stems:
            self._stems[own] = stored_stems(own, LANGUAGE)
        marks = text[len(own) :].split()
        return f"{self._stems[own].rstrip()} {' '.join(marks)} "

    def _vectors(self, name: str, kinds: list[tuple[str, list[str], Any]]) -> None:
        uids = [each for _, some, _ in kinds for each in some]
        every = np.concatenate([vectors for _, _, vectors in kinds]).astype(np.float32)
        offsets = pa.array(np.arange(len(uids) + 1, dtype=np.int32) * DIMENSIONS)
        columns = [
            pa.array(uids),
            pa.array([kind for kind, some, _ in kinds for _ in some]),
            pa.array(["made"] * len(uids)),
            pa.ListArray.from_arrays(offsets, pa.array(every.ravel())),
        ]
        self._put_table("vectors", name, pa.table(columns, schema=SCHEMAS["vectors"]))

    def _put(self, stage: str, name: str, rows: list[dict[str, Any]]) -> None:
        self._put_table(stage, name, pa.Table.from_pylist(rows, schema=SCHEMAS[stage]))

    def _put_table(self, stage: str, name: str, table: pa.Table) -> None:
        path = Path(self._folder.address) / stage / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd", write_page_checksum=True)
        part = Part(name=name, file=f"{stage}/{name}.parquet", rows=len(table), bytes=path.stat().st_size)
        self._folder.write_json(f"manifest/{stage}/{name}.json", asdict(part))


def _some(one: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: tuple(one[name]) if name == "keywords" else one[name] for name in names}


def _document(uid_: str, name: str, copy: int) -> dict[str, Any]:
    return {
        "uid": uid_,
        "id": name,
        "title": name,
        "source": name,
        "metadata": "{}",
        "sha256": text_hash(name),
        "chunking": "200/50/2000",
        "stems": stored_stems(name, LANGUAGE),
        "date": "",
        "type": "",
        "messages": None,
        "text": "",
        "places": None,
    }


if __name__ == "__main__":
    main()
