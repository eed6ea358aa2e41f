// Writing stages that are kept as files (hgmem/stages/). Nodes are created by the statements of an import.

// name: stored_replies(corpus, uids) read
// Return the extractions that the corpus has of these chunks, each with the text that it is of.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WHERE c.status IN ['extracted', 'done'] AND c.extraction IS NOT NULL
RETURN c.uid AS uid, c.text AS text, c.extraction AS extraction;

// name: create_mentions(corpus, rows) write
// Create FROM_CHUNK from entities to chunks that do not have it yet.
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.entity, corpus: $corpus}), (c:Chunk {uid: row.chunk, corpus: $corpus})
USING INDEX e:Entity(uid) USING INDEX c:Chunk(uid)
CREATE (e)-[:FROM_CHUNK]->(c);

// name: merge_mentions(corpus, rows) write
// Create FROM_CHUNK from entities to chunks where an interrupted run has not.
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.entity, corpus: $corpus}), (c:Chunk {uid: row.chunk, corpus: $corpus})
USING INDEX e:Entity(uid) USING INDEX c:Chunk(uid)
MERGE (e)-[:FROM_CHUNK]->(c);
