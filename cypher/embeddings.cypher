// Clearing and recomputing all vectors of a corpus. Every writer of vectors locks the corpus first, so no vector of the
// old embedder is written after the clearing.

// name: leased_memories(corpus, timeout) read
// Return the memories whose lease was renewed in the last `timeout` seconds.
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus)
WHERE m.run IS NOT NULL AND m.heartbeat >= datetime() - duration({milliseconds: $timeout * 1000})
RETURN m.uid AS uid ORDER BY uid;

// name: leased_builds(corpus, timeout) read
// Return the systems whose build's lease was renewed in the last `timeout` seconds.
CYPHER 25 MATCH (b:Build {corpus: $corpus}) USING INDEX b:Build(corpus)
WHERE b.run IS NOT NULL AND b.heartbeat >= datetime() - duration({milliseconds: $timeout * 1000})
RETURN b.system AS system ORDER BY system;

// name: interrupt_memories(corpus) write
// Revoke all leases on memories, because their runs hold vectors of the old embedder.
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus) WHERE m.run IS NOT NULL
SET m.run = NULL, m.heartbeat = NULL, m.status = CASE m.status WHEN 'running' THEN 'interrupted' ELSE m.status END;

// name: begin_reembedding(corpus, run, embedding_model, dimensions) write
// Set the new embedder. The old vectors stay until `mark_cleared`.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.embedding_model = $embedding_model, k.dimensions = $dimensions, k.cleared = false
RETURN k.name AS corpus;

// name: mark_cleared(corpus, run) write
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.cleared = true
RETURN k.name AS corpus;

// name: release_reembedding(corpus, run, status) write
// Release the lease. With any status but 'ready', re-embedding resumes later.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.run = NULL, k.heartbeat = NULL, k.status = $status, k.cleared = CASE $status WHEN 'ready' THEN NULL ELSE k.cleared END
RETURN k.name AS corpus;

// name: clear_chunk_vectors(corpus, most) write
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) USING INDEX c:Chunk(corpus) WHERE c.embedding IS NOT NULL
WITH c LIMIT $most SET c.embedding = NULL
RETURN count(c) AS cleared;

// name: clear_entity_vectors(corpus, most) write
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus) WHERE e.embedding IS NOT NULL
WITH e LIMIT $most SET e.embedding = NULL
RETURN count(e) AS cleared;

// name: clear_relation_vectors(corpus, most) write
CYPHER 25 MATCH ()-[r:RELATES {corpus: $corpus}]->() USING INDEX r:RELATES(corpus) WHERE r.embedding IS NOT NULL
WITH r LIMIT $most SET r.embedding = NULL
RETURN count(r) AS cleared;

// name: clear_point_vectors(corpus, most) write
CYPHER 25 MATCH (p:MemoryPoint {corpus: $corpus}) USING INDEX p:MemoryPoint(corpus) WHERE p.embedding IS NOT NULL
WITH p LIMIT $most SET p.embedding = NULL
RETURN count(p) AS cleared;

// name: clear_built_vectors(corpus, most) write
// A row's own vector stays beside the cleared one, because it says that both have to be written again.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus) WHERE n.embedding IS NOT NULL
WITH n LIMIT $most SET n.embedding = NULL
RETURN count(n) AS cleared;

// name: count_unembedded(corpus) read
// Count the missing vectors. Pending and failed chunks are excluded: their vector is written with their extraction.
CYPHER 25
RETURN COUNT { MATCH (c:Chunk {corpus: $corpus})
               WHERE c.embedding IS NULL AND c.status IN ['extracted', 'done', 'embedded'] }
     + COUNT { MATCH (e:Entity {corpus: $corpus}) WHERE e.embedding IS NULL }
     + COUNT { MATCH ()-[r:RELATES {corpus: $corpus}]->() WHERE r.embedding IS NULL }
     + COUNT { MATCH (p:MemoryPoint {corpus: $corpus}) WHERE p.embedding IS NULL }
     + COUNT { MATCH (n:Built {corpus: $corpus}) WHERE n.embedding IS NULL AND n.text <> '' } AS missing;

// name: missing_chunk_vectors(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
WHERE c.embedding IS NULL AND c.status IN ['extracted', 'done', 'embedded']
RETURN c.uid AS uid, c.text AS text;

// name: missing_own_relation_vectors(corpus, uids) read
// Return relations of memories with the names of their ends, because provisional entities have no keys.
CYPHER 25 UNWIND $uids AS uid
MATCH (a:Entity {corpus: $corpus})-[r:RELATES {uid: uid, corpus: $corpus}]->(b:Entity {corpus: $corpus})
USING INDEX r:RELATES(uid)
WHERE r.embedding IS NULL
RETURN r.uid AS uid, a.name AS source, b.name AS target, r.description AS description, r.keywords AS keywords;

// name: missing_point_vectors(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX p:MemoryPoint(uid) WHERE p.embedding IS NULL
RETURN p.uid AS uid, p.description AS text;

// name: missing_built_vectors(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) WHERE n.embedding IS NULL AND n.text <> ''
RETURN n.uid AS uid, n.text AS text, n.own_embedding IS NOT NULL AS own;

// name: plain_vectors(corpus, uids) read
// Return those of the rows that have a vector outside the index.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) WHERE n.vector IS NOT NULL
RETURN n {.*} AS row ORDER BY row.uid;

// name: put_point_vectors(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (p:MemoryPoint {uid: row.uid, corpus: $corpus}) USING INDEX p:MemoryPoint(uid)
CALL db.create.setNodeVectorProperty(p, 'embedding', row.vector);
