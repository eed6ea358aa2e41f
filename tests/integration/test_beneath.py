"""The chunks beneath built rows, at any distance and along any number of ways."""

from dumping import driver

from hgmem import HGMem
from hgmem.graph.built import chunks_beneath, nearest_beneath
from hgmem.values.inputs import Document

LAYERS, WIDTH = 30, 6  # of rows that each rest on all rows of the next layer: WIDTH ** LAYERS ways lead to the chunk

WRITE = """
UNWIND range(0, $layers - 1) AS layer UNWIND range(0, $width - 1) AS at
CREATE (:Built {uid: $corpus + layer + '-' + at, corpus: $corpus, layer: layer})
WITH count(*) AS written
MATCH (above:Built {corpus: $corpus}), (below:Built {corpus: $corpus}) WHERE below.layer = above.layer + 1
CREATE (above)-[:RESTS_ON]->(below)
WITH count(*) AS written
MATCH (last:Built {corpus: $corpus, layer: $layers - 1}), (c:Chunk {corpus: $corpus}) CREATE (last)-[:RESTS_ON]->(c)
WITH DISTINCT last
CREATE (last)-[:RESTS_ON]->(:Built {uid: randomUUID(), corpus: 'another'})-[:RESTS_ON]->
       (:Chunk {uid: 'strange' + last.uid, corpus: $corpus, document: '', position: 0, embedding: [1.0]})
"""

GONE = "MATCH (n:Built|Chunk) WHERE n.corpus = 'another' OR n.uid STARTS WITH 'strange' DETACH DELETE n"


def test_all_chunks_beneath_a_row_are_found_once_and_within_the_corpus(client: HGMem) -> None:
    client.add(Document(id="d", text="Anna sold the boat."), graph=False)
    with driver(client.settings) as opened:
        opened.execute_query(WRITE, corpus=client.corpus, layers=LAYERS, width=WIDTH)
        (row,), _, _ = opened.execute_query(
            "MATCH (c:Chunk {corpus: $corpus}) WHERE NOT c.uid STARTS WITH 'strange' RETURN c.uid AS uid",
            corpus=client.corpus,
        )
    top, corpus = f"{client.corpus}0-0", client.corpus
    query = client.embedder.embed(["boat"], kind="query")[0]
    assert chunks_beneath(client._database, corpus=corpus, uids=[top]) == {top: [row["uid"]]}
    assert nearest_beneath(client._database, corpus=corpus, uids=[top], query=query, k=3) == {top: [row["uid"]]}
    with driver(client.settings) as opened:
        opened.execute_query(GONE)
