// Conversations: documents whose chunks grow with each message. Chunks hold the places of their messages as JSON, a list
// that begins with each message's id. What is read to append does not grow with the conversation, but for the search of
// ids, which is one pass over the chunks within the server.

// name: conversation_end(corpus, uid) read
// Return the conversation's state and its last chunk.
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid)
RETURN d.sha256 AS sha256, d.chunking AS chunking, d.title AS title, coalesce(d.message_number, 0) AS number,
       COLLECT { MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
                 WITH c ORDER BY c.position DESC LIMIT 1
                 RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .messages} } AS chunks;

// name: chunks_with_messages(corpus, uid, ids) read
// Return the chunks of a conversation that may have messages with these ids, as they stand in JSON up to a quote.
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH d LIMIT 1 MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
WHERE any(part IN split(c.messages, '{"id":"') WHERE split(part, '"')[0] IN $ids)
RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .messages} AS chunk
ORDER BY chunk.position;

// name: extend_conversation(corpus, uid, before, last, properties) write
// Create a conversation, or write what has changed of one whose hash is still `before` (null for a new one) and whose
// last chunk is still `last` (uid and text). Returns a row on success. A reader may see the hash of another writer before
// its chunks, which is why both are checked under the lock. A conversation that was extracted is indexed without a graph
// until its new messages are extracted.
CYPHER 25 MERGE (d:Document {uid: $uid, corpus: $corpus})
SET d.uid = d.uid // takes the lock before the hash is read
WITH d WHERE d.sha256 = $before OR d.sha256 IS NULL AND $before IS NULL
OPTIONAL MATCH (c:Chunk {uid: $last.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WITH d, CASE WHEN $last IS NULL THEN NOT EXISTS { (d)<-[:FROM_DOCUMENT]-(:Chunk {corpus: $corpus}) }
             ELSE c.text = $last.text AND NOT EXISTS { (c)-[:NEXT_CHUNK]->(:Chunk {corpus: $corpus}) } END AS same
WHERE same
SET d += $properties, d.indexed_at = datetime(),
    d.status = CASE WHEN coalesce(d.status, 'done') IN ['done', 'embedded'] THEN 'embedded' ELSE d.status END
RETURN d.uid AS uid;

// name: append_chunks(corpus, rows) write
// Create chunks of a conversation with their vectors, each after the chunk `before` (null for the first).
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
CREATE (c:Chunk {uid: row.uid, corpus: $corpus, layer_key: row.layer_key, status: 'embedded', attempts: 0,
                 document: row.document, position: row.position, text: row.text, stems: row.stems, tokens: row.tokens,
                 start: row.start, end: row.end, source_id: row.source_id, messages: row.messages})-[:FROM_DOCUMENT]->(d)
WITH c, row
CALL (c, row) {
  MATCH (before:Chunk {uid: row.before, corpus: $corpus}) USING INDEX before:Chunk(uid)
  CREATE (before)-[:NEXT_CHUNK]->(c)
}
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: conversation_chunks(corpus, uid) read
// Return all chunks of a conversation, in order.
CYPHER 25 MATCH (d:Document {uid: $uid, corpus: $corpus}) USING INDEX d:Document(uid)
WITH d LIMIT 1 MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .messages} AS chunk
ORDER BY chunk.position;

// name: conversations_of_speaker(corpus, speaker) read
// Return the conversations with a message that may be this speaker's. `speaker` is as it stands in JSON.
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) USING INDEX c:Chunk(corpus) WHERE c.messages CONTAINS $speaker
RETURN DISTINCT c.document AS uid ORDER BY uid;

// name: place_chunks(corpus, rows) write
// Write where chunks stand in their document. Citations move with their chunk.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WITH c, row, row.start - c.start AS by
CALL (c, by) {
  MATCH (q:Citation {corpus: $corpus})-[:CITES]->(c) WHERE by <> 0
  SET q.start = q.start + by, q.end = q.end + by
}
SET c.start = row.start, c.end = row.end;

// name: memories_of_texts(corpus, chunks, built, entities, relations) read
// Return the memories that quote, retrieved or rest on these chunks, or on the rows, entities and relations that came
// from them. Deleted chunks count where a memory still names them.
CYPHER 25 CALL () {
  MATCH (q:Citation {corpus: $corpus}) USING INDEX q:Citation(corpus)
  WHERE q.chunk IN $chunks OR q.built IN $built OR any(uid IN q.behind WHERE uid IN $chunks)
  RETURN q.memory AS memory
  UNION
  UNWIND $chunks AS uid
  MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
  MATCH (c)<-[:RETRIEVED|SUPPORTED_BY]-(n) WHERE n.corpus = $corpus
  RETURN n.memory AS memory
  UNION
  MATCH (p:MemoryPoint {corpus: $corpus}) USING INDEX p:MemoryPoint(corpus)
  WHERE any(uid IN p.deleted_chunks WHERE uid IN $chunks)
  RETURN p.memory AS memory
  UNION
  UNWIND $entities AS uid
  MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
  MATCH (e)<-[:RETRIEVED|INVOLVES]-(n) WHERE n.corpus = $corpus
  RETURN n.memory AS memory
  UNION
  MATCH (s:SubQuery {corpus: $corpus}) USING INDEX s:SubQuery(corpus)
  WHERE any(uid IN s.relations WHERE uid IN $relations) OR any(uid IN $built WHERE s.built CONTAINS uid)
  RETURN s.memory AS memory
}
RETURN DISTINCT memory ORDER BY memory;
