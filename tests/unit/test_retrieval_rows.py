"""Rows of nodes that another transaction deletes during the statement: their properties are null."""

from typing import Any

from hgmem.graph.retrieval import Query, Scope, Words, mentioned_entities, near_chunks, neighbours, retrieve

GONE: dict[str, Any] = {"uid": None, "score": 0.5, "name": None, "description": None, "nearest": None}
CHUNK = {"uid": "c1", "document": "d", "position": 0, "text": "One.", "tokens": 2, "start": 0, "end": 4}
CHUNK |= {"source_id": None, "messages": None, "title": None}
ENTITY = {"uid": "e1", "name": "Ada", "type": "", "description": ""}
SCOPE = Scope(corpus="c", memory="m")


class Rows:
    """A runner that returns these rows for every statement."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = list(rows)

    def run(self, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
        return self.rows


def test_a_step_passes_over_what_is_being_deleted() -> None:
    hits = [GONE, {"uid": "c1", "score": 0.5, "nearest": "c9"}, {"uid": "c2", "score": None, "nearest": None}]
    lists = dict.fromkeys(("entities", "relations", "chunks", "near", "read"), hits)
    lost = dict.fromkeys(CHUNK)
    row = {
        "found": [{"number": 1, "seen": 3, "matching": ["c1", None], **lists}],
        "entities": [ENTITY, GONE],
        "relations": [{"uid": "r1", "source": None, "target": "e1"}],
        "chunks": [CHUNK, lost],
    }
    queries, words = [Query(number=1, vector=[1.0], search="index")], Words(layers=(), ranking={})
    found = retrieve(Rows(row), scope=SCOPE, queries=queries, words=words, limits={})
    assert found.found[0].near == found.found[0].read == found.found[0].entities == {"c1": 0.5}
    assert found.found[0].matching == ("c1",)
    assert found.found[0].nearest == {"c1": "c9"}
    assert (list(found.entities), list(found.relations), list(found.chunks)) == (["e1"], [], ["c1"])


def test_plain_searches_pass_over_it_too() -> None:
    lost = dict.fromkeys(CHUNK)
    rows = Rows({"chunk": CHUNK, "score": 0.5}, {"chunk": lost, "score": 0.4})
    assert [chunk.uid for chunk, _ in near_chunks(rows, scope=SCOPE, query=[1.0], k=2, over=2)] == ["c1"]
    beside = neighbours(Rows({"entity": GONE}, {"entity": ENTITY}), scope=SCOPE, uids=["e"], query=[1.0], limits=(2, 2))
    assert [entity.uid for entity in beside] == ["e1"]
    rows = Rows({"entity": GONE, "chunks": ["c1"]}, {"entity": ENTITY, "chunks": ["c1", None]})
    mentioned = mentioned_entities(rows, corpus="c", uids=["c1", "c2"])
    assert {chunk: [entity.uid for entity in found] for chunk, found in mentioned.items()} == {"c1": ["e1"]}
