// Documents and chunks. Here and in the other files a lookup by uid names its index, and the way on from it
// begins after a LIMIT or DISTINCT: on an empty database the planner finds the index on `corpus` as cheap, and that
// plan, kept for seconds, reads the whole corpus for every row.

// name: document_states(corpus, uids) read
// What is stored of these documents; absent ones give no row.
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
RETURN d.uid AS uid, d.sha256 AS sha256, d.status AS status, d.chunking AS chunking, d.title AS title,
       d.source AS source, d.metadata AS metadata;

// name: list_documents(corpus) read
CYPHER 25 MATCH (d:Document {corpus: $corpus})
RETURN d.uid AS uid, d.title AS title, d.source AS source, d.status AS status,
       COUNT { (d)<-[:FROM_DOCUMENT]-(:Chunk {corpus: $corpus}) } AS chunks
ORDER BY title, uid;

// name: described_documents(corpus) read
// What questions may choose documents by.
CYPHER 25 MATCH (d:Document {corpus: $corpus})
RETURN d.uid AS uid, d.title AS title, d.source AS source, d.metadata AS metadata
ORDER BY uid;

// name: put_documents(corpus, rows) write
// The documents, pending until their last chunk is done; no row where the corpus is not ready.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the status is read
WITH k WHERE k.status = 'ready'
UNWIND $rows AS row
MERGE (d:Document {uid: row.uid, corpus: $corpus})
SET d += row.properties, d.status = 'pending'
RETURN d.uid AS uid;

// name: create_documents(corpus, rows) write
// Documents of a corpus that nobody reads yet, whole: their chunks come with all that they contribute.
CYPHER 25 UNWIND $rows AS row
CREATE (d:Document {uid: row.uid, corpus: $corpus, status: 'done', indexed_at: datetime()})
SET d += row.properties;

// name: create_chunks(corpus, rows) write
// Chunks of such documents, whole, each with its vector, and with NEXT_CHUNK from the one `before` it, null for a first.
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
CREATE (c:Chunk {uid: row.uid, corpus: $corpus, corpus_key: row.corpus_key, status: 'done', attempts: 0,
                 document: row.document, position: row.position, text: row.text, tokens: row.tokens, start: row.start,
                 end: row.end, source_id: row.source_id})-[:FROM_DOCUMENT]->(d)
WITH c, row
CALL (c, row) {
  MATCH (before:Chunk {uid: row.before, corpus: $corpus}) USING INDEX before:Chunk(uid)
  CREATE (before)-[:NEXT_CHUNK]->(c)
}
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: seal_document(corpus, uid, sha256) write
// The document's chunks are those of the text with this hash; a document that is gone stays gone.
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid)
SET d.sha256 = $sha256;

// name: put_chunks(corpus, rows) write
// Chunks of documents that are there. One that exists keeps its extraction and, unless a vector comes with the row, its
// status: with its vector a chunk is done, but for one whose extraction has still to be folded into the graph.
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
MERGE (c:Chunk {uid: row.uid, corpus: $corpus})
ON CREATE SET c.status = 'pending', c.attempts = 0, c.document = row.document, c.corpus_key = row.corpus_key,
              c.text = row.text, c.tokens = row.tokens
SET c.position = row.position, c.start = row.start, c.end = row.end, c.source_id = row.source_id
MERGE (c)-[:FROM_DOCUMENT]->(d)
WITH c, row WHERE row.vector IS NOT NULL
SET c.status = CASE c.status WHEN 'extracted' THEN 'extracted' ELSE 'done' END
WITH c, row
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: put_chunk_vectors(corpus, rows) write
// The vectors of chunks that are there.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: link_chunks(corpus, documents) write
// NEXT_CHUNK from each chunk of these documents to the one after it, and to no other.
CYPHER 25 UNWIND $documents AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
SET d.status = d.status // takes the lock: two that link one document's chunks go one after the other
WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
WITH d, c ORDER BY c.position, c.uid
WITH d, collect(c) AS ordered
UNWIND range(0, size(ordered) - 1) AS i
WITH ordered[i] AS here, ordered[i + 1] AS after // null after the last one
CALL (here, after) {
  MATCH (here)-[next:NEXT_CHUNK]->(other:Chunk {corpus: $corpus})
  WHERE after IS NULL OR other <> after
  DELETE next
}
WITH here, after WHERE after IS NOT NULL
MERGE (here)-[:NEXT_CHUNK]->(after);

// name: chunks_of_documents(corpus, documents) read
CYPHER 25 UNWIND $documents AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
WITH d, c ORDER BY c.position
RETURN d.uid AS document, collect(c {.uid, .status}) AS chunks;

// name: open_chunks(corpus, documents) read
// The chunks of these documents that are not done: without an extraction yet, or not yet folded into the graph.
CYPHER 25 UNWIND $documents AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
WHERE c.status <> 'done'
RETURN c.uid AS uid, c.document AS document, c.text AS text, c.status AS status, c.extraction AS extraction,
       d.title AS title
ORDER BY document, c.position;

// name: failed_documents(corpus) read
// The documents with a chunk whose extraction failed.
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) WHERE c.status = 'failed'
RETURN DISTINCT c.document AS uid ORDER BY uid;

// name: save_extractions(corpus, rows) write
// What each chunk contributes, and its vector; folded into entities later. The first writer's extraction stays, and
// comes back: so two indexers of one chunk fold the same.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.attempts = c.attempts + 1 // takes the lock before the extraction is read
WITH c, row
FOREACH (_ IN CASE WHEN c.extraction IS NULL THEN [1] ELSE [] END |
  SET c.extraction = row.extraction, c.status = 'extracted', c.error = NULL)
WITH c, row
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector)
RETURN c.uid AS uid, c.extraction AS extraction;

// name: fail_chunks(corpus, rows) write
// Why each chunk has no extraction; one that another run extracted has not failed.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid) WHERE c.extraction IS NULL
SET c.status = 'failed', c.error = row.error, c.attempts = c.attempts + 1;

// name: finish_chunks(corpus, uids) write
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.status = 'done';

// name: finish_documents(corpus, uids) write
// The documents whose chunks are all done.
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
WHERE NOT EXISTS { (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) WHERE c.status <> 'done' }
SET d.status = 'done', d.indexed_at = datetime()
RETURN d.uid AS uid;

// name: entities_of_chunks(corpus, chunks) read
// The relations that name one of these chunks as a source, and the entities that the chunks mention or that such a
// relation joins: its ends may come from other chunks.
CYPHER 25 CALL () {
  MATCH (a:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(b:Entity {corpus: $corpus})
  WHERE r.memory = '' AND any(uid IN r.chunks WHERE uid IN $chunks)
  RETURN collect(r.uid) AS relations, collect(a.uid) + collect(b.uid) AS ends
}
RETURN relations,
       COLLECT { UNWIND $chunks AS uid
                 MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
                 WITH DISTINCT c MATCH (c)<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus})
                 RETURN e.uid AS entity
                 UNION UNWIND ends AS entity RETURN entity } AS entities;

// name: lock_chunks(corpus, uids) write
// The chunks are locked by this transaction, and then the entities that mention them: what another transaction was
// about to rest on one of them is there to be seen now, or comes to nothing.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.status = c.status
WITH collect(DISTINCT c) AS chunks
UNWIND chunks AS c
MATCH (c)<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus})
WITH DISTINCT e ORDER BY e.uid
SET e.key = e.key;

// name: delete_chunks(corpus, uids) write
// The chunks, locked before, are gone; citations of them keep their quotes and are marked withdrawn.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL (c) {
  MATCH (q:Citation {corpus: $corpus})-[:CITES]->(c)
  SET q.withdrawn = true
}
DETACH DELETE c;

// name: delete_document_node(corpus, uid) write
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid) DELETE d;
