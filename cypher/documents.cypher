// Documents and chunks. Here and in the other files, a lookup by uid names its index, and the pattern that continues
// from it starts after a LIMIT or DISTINCT. Otherwise, on an empty database, the planner considers the index on
// `corpus` as cheap. That plan is cached for seconds, and reads the whole corpus for every row.

// name: document_states(corpus, uids) read
// Return what is stored of these documents. Unknown ones give no row.
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
RETURN d.uid AS uid, d.id AS id, d.sha256 AS sha256, d.status AS status, d.chunking AS chunking, d.title AS title,
       d.source AS source, d.metadata AS metadata;

// name: list_documents(corpus, most) read
// The source of a conversation is its id.
CYPHER 25 MATCH (d:Document {corpus: $corpus})
RETURN d.uid AS uid, d.id AS id, d.title AS title, d.source AS source, d.status AS status,
       CASE WHEN d.chunking STARTS WITH 'messages/' THEN d.source ELSE '' END AS conversation,
       COUNT { (d)<-[:FROM_DOCUMENT]-(:Chunk {corpus: $corpus}) } AS chunks
ORDER BY title, uid LIMIT $most;

// name: documents_of_files(corpus, paths) read
// The documents that came from these files, such as the rows of a table.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus) WHERE d.source IN $paths
RETURN d.source AS path, d.uid AS uid
ORDER BY uid;

// name: described_documents(corpus) read
// Return the properties by which questions can filter documents.
CYPHER 25 MATCH (d:Document {corpus: $corpus})
RETURN d.uid AS uid, d.id AS id, d.title AS title, d.source AS source, d.metadata AS metadata
ORDER BY uid;

// name: put_documents(corpus, rows) write
// Write the documents as pending. Returns no row if the corpus is not ready.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the status is read
WITH k WHERE k.status = 'ready'
UNWIND $rows AS row
MERGE (d:Document {uid: row.uid, corpus: $corpus})
SET d += row.properties, d.status = 'pending'
RETURN d.uid AS uid;

// name: create_documents(corpus, rows) write
// Create complete documents in a corpus that is being imported, with chunks to follow.
CYPHER 25 UNWIND $rows AS row
CREATE (d:Document {uid: row.uid, corpus: $corpus, status: 'done', indexed_at: datetime()})
SET d += row.properties;

// name: create_chunks(corpus, rows) write
// Create complete chunks of such documents with their vectors, and NEXT_CHUNK from the chunk `before` (null for the
// first). What else a row's `more` says of a chunk replaces that, and a failed one has no vector.
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
CREATE (c:Chunk {uid: row.uid, corpus: $corpus, layer_key: row.layer_key, status: 'done', attempts: 0,
                 document: row.document, position: row.position, text: row.text, stems: row.stems, tokens: row.tokens,
                 start: row.start, end: row.end, source_id: row.source_id, messages: row.messages})-[:FROM_DOCUMENT]->(d)
SET c += coalesce(row.more, {})
WITH c, row
CALL (c, row) {
  MATCH (before:Chunk {uid: row.before, corpus: $corpus}) USING INDEX before:Chunk(uid)
  CREATE (before)-[:NEXT_CHUNK]->(c)
}
WITH c, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: seal_document(corpus, uid, sha256, messages) write
// Record that the document's chunks are those of the text with this hash, and of a conversation the number of its last
// message. Deleted documents are ignored.
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid)
SET d.sha256 = $sha256, d.message_number = $messages;

// name: unseal_documents(corpus, uids) write
// The documents' chunks are no longer those of any text: the next run indexes them anew.
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
SET d.sha256 = '';

// name: put_chunks(corpus, rows) write
// Write chunks of existing documents. Existing chunks keep their extraction, and also their status unless the row has a
// vector. A vector makes a chunk done, unless its extraction is still to be aggregated. Citations move with their chunk.
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
MERGE (c:Chunk {uid: row.uid, corpus: $corpus})
ON CREATE SET c.status = 'pending', c.attempts = 0, c.document = row.document, c.layer_key = row.layer_key,
              c.text = row.text, c.stems = row.stems, c.tokens = row.tokens
WITH c, d, row, row.start - c.start AS by // null for a new chunk
CALL (c, by) {
  MATCH (q:Citation {corpus: $corpus})-[:CITES]->(c) WHERE by <> 0
  SET q.start = q.start + by, q.end = q.end + by
}
SET c.position = row.position, c.start = row.start, c.end = row.end, c.source_id = row.source_id,
    c.messages = row.messages
MERGE (c)-[:FROM_DOCUMENT]->(d)
WITH c, row WHERE row.vector IS NOT NULL
SET c.status = CASE c.status WHEN 'extracted' THEN 'extracted' ELSE 'done' END
WITH c, row
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: put_chunk_vectors(corpus, rows) write
// Write the vectors of existing chunks.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: link_chunks(corpus, documents) write
// Set NEXT_CHUNK from each chunk of these documents to the next one only.
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
// Return the chunks of these documents that are not extracted or not aggregated yet, those without a graph included. The
// extraction is `outdated` where the text has grown since: it counts until the chunk is extracted anew.
CYPHER 25 UNWIND $documents AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
WHERE c.status <> 'done'
RETURN c.uid AS uid, c.document AS document, c.text AS text, c.status AS status,
       CASE c.status WHEN 'extracted' THEN c.extraction END AS extraction, c.position AS position, d.title AS title,
       coalesce(d.date, '') AS date, coalesce(d.type, '') AS type,
       c.extraction IS NOT NULL AND c.status <> 'extracted' AS outdated, c.messages IS NOT NULL AS has_messages
ORDER BY document, position;

// name: failed_documents(corpus) read
// Return the documents with a chunk whose extraction failed. One that was embedded before is still so.
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) WHERE c.status IN ['failed', 'embedded'] AND c.error IS NOT NULL
RETURN DISTINCT c.document AS uid ORDER BY uid;

// name: save_extractions(corpus, rows) write
// Write each chunk's extraction and vector. The first writer's extraction stays and is returned, so that concurrent
// indexers aggregate the same one. A chunk whose text has changed meanwhile is left as it is and gives no row.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.attempts = c.attempts + 1 // takes the lock before the extraction is read
WITH c, row WHERE c.text = row.text
FOREACH (_ IN CASE WHEN c.extraction IS NULL OR NOT c.status IN ['extracted', 'done'] THEN [1] ELSE [] END |
  SET c.extraction = row.extraction, c.status = 'extracted', c.error = NULL)
WITH c, row
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector)
RETURN c.uid AS uid, c.extraction AS extraction;

// name: embed_chunks(corpus, rows) write
// Write the vectors of chunks that are indexed without a graph. One that was extracted keeps its status, and one whose
// text has changed meanwhile is left as it is.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.attempts = c.attempts // takes the lock before the status is read
WITH c, row WHERE c.text = row.text
SET c.status = CASE WHEN c.status IN ['extracted', 'done'] THEN c.status ELSE 'embedded' END, c.error = NULL
WITH c, row
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: fail_chunks(corpus, rows) write
// Record why each chunk has no extraction, unless another run has extracted it. One that is embedded stays so.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WHERE c.extraction IS NULL OR NOT c.status IN ['extracted', 'done']
SET c.attempts = c.attempts + 1, c.error = row.error,
    c.status = CASE c.status WHEN 'embedded' THEN 'embedded' ELSE 'failed' END;

// name: finish_chunks(corpus, uids) write
// Mark chunks as done, but those whose text has changed since they were extracted.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.attempts = c.attempts // takes the lock before the status is read
WITH c WHERE c.status = 'extracted'
SET c.status = 'done';

// name: finish_documents(corpus, uids) write
// Mark documents as done if all their chunks are, as embedded if some of these have no extraction, and return both.
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH d, COLLECT { MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) RETURN DISTINCT c.status } AS statuses
WHERE all(status IN statuses WHERE status IN ['done', 'embedded'])
SET d.status = CASE WHEN 'embedded' IN statuses THEN 'embedded' ELSE 'done' END, d.indexed_at = datetime()
RETURN d.uid AS uid;

// name: entities_of_chunks(corpus, chunks) read
// Return the relations that these chunks support, and the entities that these chunks mention or those relations join.
// The ends of a relation may come from other chunks.
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
// Lock the chunks, and then the entities that mention them. Concurrent additions of support by these chunks are then
// either visible or will fail.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.status = c.status
WITH collect(DISTINCT c) AS chunks
UNWIND chunks AS c
MATCH (c)<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus})
WITH DISTINCT e ORDER BY e.uid
SET e.key = e.key;

// name: delete_chunks(corpus, uids) write
// Delete locked chunks, mark citations of them as withdrawn with their quotes kept, and keep their uids on the points
// that they supported.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL (c) {
  MATCH (q:Citation {corpus: $corpus})-[:CITES]->(c)
  SET q.withdrawn = true
}
CALL (c, uid) {
  MATCH (p)-[:SUPPORTED_BY]->(c) WHERE p.corpus = $corpus
  SET p.deleted_chunks = coalesce(p.deleted_chunks, []) + uid
}
DETACH DELETE c;

// name: chunk_texts(corpus, uids) read
// Return what these chunks hold now.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
RETURN c.uid AS uid, c.text AS text, c.status AS status, c.start AS start, c.messages AS messages;

// name: grow_chunks(corpus, rows) write
// Give chunks a text that begins with the one that they have. What was extracted from it stays until the chunk is
// extracted anew, and with a vector the chunk is indexed without a graph. Citations keep their places.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.text = row.text, c.stems = row.stems, c.tokens = row.tokens, c.messages = row.messages,
    c.end = c.start + row.end - row.start, c.error = NULL,
    c.status = CASE WHEN row.vector IS NULL THEN 'pending' ELSE 'embedded' END
WITH c, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: rewrite_chunks(corpus, rows) write
// Give chunks another text, without the extraction and the vector of the old one.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
SET c.text = row.text, c.stems = row.stems, c.tokens = row.tokens, c.messages = row.messages,
    c.end = c.start + row.end - row.start, c.extraction = NULL, c.error = NULL, c.embedding = NULL,
    c.status = CASE WHEN row.vector IS NULL THEN 'pending' ELSE 'embedded' END
WITH c, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: citations_of_chunks(corpus, uids) read
// Return the citations of these chunks, each with its place in the document.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WITH DISTINCT c MATCH (c)<-[:CITES]-(q:Citation {corpus: $corpus})
RETURN q.uid AS uid, c.uid AS chunk, q.quote AS quote, coalesce(q.message, '') AS message, q.start AS start;

// name: withdraw_citations(corpus, uids) write
// Mark citations as withdrawn, with their quotes kept.
CYPHER 25 UNWIND $uids AS uid
MATCH (q:Citation {uid: uid, corpus: $corpus}) USING INDEX q:Citation(uid)
SET q.withdrawn = true
WITH q MATCH (q)-[cites:CITES]->(c) WHERE c.corpus = $corpus
DELETE cites;

// name: move_citations(corpus, rows) write
// Write the places of quotes in their documents.
CYPHER 25 UNWIND $rows AS row
MATCH (q:Citation {uid: row.uid, corpus: $corpus}) USING INDEX q:Citation(uid)
SET q.start = row.start, q.end = row.end;

// name: delete_document_nodes(corpus, uids) write
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
DELETE d;
