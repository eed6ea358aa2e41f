// Memories: a question's hypergraph, its steps and its answers. Every write checks the lease (`run`). Reads with an
// `owner` find only that owner's and everybody's memories (`owner` '' or none); without one, they find all.

// name: corpus_of(uid, owner) read
// Return the corpus of a memory, a point or an answer, found by unique seek. Every later statement takes the corpus.
CYPHER 25 replan=skip CALL () {
  MATCH (n:Memory {uid: $uid}) RETURN n.corpus AS corpus, n.uid AS memory
  UNION ALL MATCH (n:MemoryPoint {uid: $uid}) RETURN n.corpus AS corpus, n.memory AS memory
  UNION ALL MATCH (n:Answer {uid: $uid}) RETURN n.corpus AS corpus, n.memory AS memory
}
MATCH (m:Memory {uid: memory, corpus: corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
RETURN corpus, memory, coalesce(m.owner, '') AS owner;

// name: create_memory(corpus, memory, run, properties) write
// Create a memory leased to this run. Returns no row if the corpus is not ready.
CYPHER 25 replan=skip MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the status is read
WITH k WHERE k.status = 'ready'
CREATE (m:Memory {uid: $memory, corpus: $corpus, memory: $memory})
SET m += $properties, m.status = 'running', m.run = $run, m.heartbeat = datetime(), m.created_at = datetime()
RETURN m.uid AS memory;

// name: lease_memory(corpus, memory, run, timeout, question, filters, owner, answers) write
// Lease the memory to this run for this question, if the corpus is `ready` and the memory `free`: not pruned, without
// another lease renewed in the last `timeout` seconds, and with so many `answers`, unless that is null. Its filters stay
// unless `filters` is set.
CYPHER 25 replan=skip MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the locks before status and lease are read
WITH k.status = 'ready' AS ready
MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
SET m.uid = m.uid
WITH m, ready, m.status AS before,
     (m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
     AND NOT m.status IN ['pruning', 'pruned']
     AND ($answers IS NULL OR $answers = COUNT { MATCH (m)-[:HAS_ANSWER]->(a) WHERE a.corpus = $corpus }) AS free
FOREACH (_ IN CASE WHEN ready AND free THEN [1] ELSE [] END |
  SET m.run = $run, m.heartbeat = datetime(), m.status = 'running', m.latest = $question,
      m.filters = coalesce($filters, m.filters))
RETURN before, ready, free, m.filters AS filters;

// name: renew_memory(corpus, memory, run) write
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run
SET m.heartbeat = datetime()
RETURN m.uid AS memory;

// name: release_memory(corpus, memory, run, status) write
// Release the lease, so that the memory can be continued.
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run
SET m.run = NULL, m.heartbeat = NULL, m.status = $status
RETURN m.uid AS memory;

// name: stop_memory(corpus, memory, owner) write
// Take the lease from the run that has it: its next write fails, and it ends.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run IS NOT NULL AND m.status = 'running'
SET m.run = NULL, m.heartbeat = NULL, m.status = 'interrupted'
RETURN m.uid AS memory;

// name: write_step(corpus, memory, run, step, subqueries, provisionals, relations, points, died, retired) write
// Write one complete step, or nothing if the lease is lost: sub-queries and their hits, new points with their lineage,
// superseded and retired points, and the memory's own entities and relations. `kept` are own entities that lack a vector.
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run
SET m.heartbeat = datetime()
CREATE (m)-[:HAS_STEP]->(s:Step {corpus: $corpus, memory: $memory})
SET s += $step, s.created_at = datetime()
CALL (m, s) {
  MATCH (m)-[:HAS_STEP]->(before) WHERE before.corpus = $corpus AND before.number = s.number - 1
  CREATE (before)-[:NEXT_STEP]->(s)
}
CALL (s) {
  UNWIND $subqueries AS row
  CREATE (s)-[:ASKED]->(q:SubQuery {corpus: $corpus, memory: $memory})
  SET q += row.properties
  CALL (q, row) {
    UNWIND row.entities AS hit
    MATCH (e:Entity {uid: hit.uid, corpus: $corpus}) USING INDEX SEEK e:Entity(uid)
    CREATE (q)-[:RETRIEVED {rank: hit.rank, score: hit.score}]->(e)
  }
  CALL (q, row) {
    UNWIND row.chunks AS hit
    MATCH (c:Chunk {uid: hit.uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
    CREATE (q)-[:RETRIEVED {rank: hit.rank, score: hit.score}]->(c)
  }
  CALL (q, row) {
    UNWIND row.targets AS target
    MATCH (p:MemoryPoint {uid: target, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
    CREATE (q)-[:TARGETS]->(p)
  }
}
CALL () {
  UNWIND $provisionals AS row
  MERGE (e:Entity {uid: row.uid, corpus: $corpus})
  ON CREATE SET e:Provisional, e.memory = $memory, e += row.properties
  WITH e, row
  CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector)
}
CALL () {
  UNWIND $relations AS row
  MATCH (a:Entity {uid: row.source, corpus: $corpus}), (b:Entity {uid: row.target, corpus: $corpus})
  USING INDEX SEEK a:Entity(uid) USING INDEX SEEK b:Entity(uid)
  MERGE (a)-[r:RELATES {uid: row.uid, corpus: $corpus}]->(b)
  ON CREATE SET r.memory = $memory, r += row.properties
  WITH r, row
  CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector)
}
CALL (m) {
  UNWIND $points AS row
  CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: row.uid, corpus: $corpus, memory: $memory})
  SET p += row.properties
  WITH p, row
  CALL db.create.setNodeVectorProperty(p, 'embedding', row.vector)
  CALL (p, row) {
    UNWIND row.entities AS one
    OPTIONAL MATCH (e:Entity {uid: one.uid, corpus: $corpus}) USING INDEX SEEK e:Entity(uid)
    CALL (e, one) {
      WITH e WHERE e IS NOT NULL
      RETURN e AS involved
      UNION
      WITH e, one WHERE e IS NULL // it went while this step was made: the memory keeps it
      MERGE (kept:Entity {uid: one.kept, corpus: $corpus})
      ON CREATE SET kept:Provisional, kept.memory = $memory, kept.name = one.name, kept.type = one.type,
                    kept.description = one.description
      RETURN kept AS involved
    }
    WITH DISTINCT involved
    CREATE (p)-[:INVOLVES]->(involved)
  }
  CALL (p, row) {
    UNWIND row.chunks AS uid
    OPTIONAL MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
    FOREACH (_ IN CASE WHEN c IS NULL THEN [1] ELSE [] END | // it went while this step was made
      SET p.deleted_chunks = coalesce(p.deleted_chunks, []) + uid)
    WITH p, c WHERE c IS NOT NULL
    CREATE (p)-[:SUPPORTED_BY]->(c)
  }
}
CALL () {
  UNWIND $points AS row
  UNWIND row.revises AS part
  MATCH (old:MemoryPoint {uid: part, corpus: $corpus}), (new:MemoryPoint {uid: row.uid, corpus: $corpus})
  USING INDEX SEEK old:MemoryPoint(uid) USING INDEX SEEK new:MemoryPoint(uid)
  CREATE (old)-[:REVISED_AS]->(new)
}
CALL () {
  UNWIND $points AS row
  UNWIND row.merges AS part
  MATCH (old:MemoryPoint {uid: part, corpus: $corpus}), (new:MemoryPoint {uid: row.uid, corpus: $corpus})
  USING INDEX SEEK old:MemoryPoint(uid) USING INDEX SEEK new:MemoryPoint(uid)
  CREATE (old)-[:MERGED_INTO]->(new)
  WITH old, new MATCH (old)-[:INVOLVES]->(e) WHERE e.corpus = $corpus
  MERGE (new)-[:INVOLVES]->(e) // a part may involve several entities of one class, of which memory shows one
}
CALL () {
  UNWIND $died AS uid
  MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
  SET p.died = $step.number, p:DeadPoint
}
CALL () {
  UNWIND $retired AS row
  MATCH (p:MemoryPoint {uid: row.uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
  SET p.retired = row.reason
}
RETURN toString(s.created_at) AS created_at,
       COLLECT { UNWIND $points AS row UNWIND row.entities AS one
                 MATCH (e:Entity {uid: one.kept, corpus: $corpus}) USING INDEX SEEK e:Entity(uid) WHERE e.embedding IS NULL
                 RETURN DISTINCT e.uid } AS kept;

// name: write_answer(corpus, memory, run, answer, citations, status) write
// Write the answer with its citations, and release the lease unless the status is 'running'.
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run
SET m.run = CASE $status WHEN 'running' THEN $run END, m.status = $status,
    m.heartbeat = CASE $status WHEN 'running' THEN datetime() END
CREATE (m)-[:HAS_ANSWER]->(a:Answer {uid: $answer.uid, corpus: $corpus, memory: $memory})
SET a += $answer, a.created_at = datetime()
CALL (a) {
  UNWIND $citations AS row
  CREATE (a)-[:HAS_CITATION]->(q:Citation {uid: row.uid, corpus: $corpus, memory: $memory})
  SET q += row.properties
  WITH q, row
  OPTIONAL MATCH (c:Chunk {uid: row.chunk, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
  OPTIONAL MATCH (n:Built {uid: row.built, corpus: $corpus}) USING INDEX SEEK n:Built(uid)
  // The lock: whoever deletes or rewrites the chunk sees this citation, or was there before.
  FOREACH (_ IN CASE WHEN c IS NULL THEN [] ELSE [1] END | SET c.status = c.status)
  FOREACH (_ IN CASE WHEN c.text CONTAINS row.properties.quote THEN [1] ELSE [] END | MERGE (q)-[:CITES]->(c))
  FOREACH (_ IN CASE WHEN n IS NULL THEN [] ELSE [1] END | SET n.key = n.key) // takes the lock likewise
  FOREACH (_ IN CASE WHEN n.text CONTAINS row.properties.quote THEN [1] ELSE [] END | MERGE (q)-[:CITES]->(n))
  // What is cited may have gone while the answer was made, or may have been made anew with another text.
  SET q.withdrawn = NOT EXISTS { MATCH (q)-[:CITES]->(x) WHERE x.corpus = $corpus }
}
RETURN a.uid AS answer;

// name: list_memories(corpus, owner) read
// Return the corpus's memories, newest first. The question is the first one, and of a fork the latest.
CYPHER 25 MATCH (m:Memory {corpus: $corpus})
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
RETURN m.uid AS uid, m.corpus AS corpus, coalesce(m.owner, '') AS owner, m.system AS system, m.model AS model,
       CASE WHEN m.forked_from IS NULL THEN m.question ELSE coalesce(m.latest, m.question) END AS question,
       m.status AS status, COUNT { (m)-[:HAS_STEP]->(:Step {corpus: $corpus}) } AS steps,
       COUNT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus}) WHERE p.died IS NULL } AS points,
       COUNT { MATCH (m)-[:HAS_ANSWER]->(:Answer {corpus: $corpus})-[:HAS_CITATION]->(q:Citation {corpus: $corpus})
               WHERE q.withdrawn } AS withdrawn,
       coalesce(m.forked_from, '') AS forked_from,
       toString(m.created_at) AS created_at, duration.inSeconds(m.heartbeat, datetime()).seconds AS silent
ORDER BY m.created_at DESC, uid;

// name: find_memory(corpus, memory, owner) read
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
RETURN m.uid AS uid, m.corpus AS corpus, m.system AS system, m.model AS model, m.question AS question,
       m.status AS status, m.settings AS settings, coalesce(m.owner, '') AS owner,
       coalesce(m.forked_from, '') AS forked_from, m.forked_at AS forked_at,
       coalesce(m.latest, m.question) AS latest, toString(m.created_at) AS created_at,
       duration.inSeconds(m.heartbeat, datetime()).seconds AS silent;

// name: memory_points(corpus, memory, owner, names) read
// Return one row: every point of the memory, including superseded ones, in order of birth (uids end in the operation's
// number, and 10 follows 9), as a list of the properties of these `names`, and each involved entity once, in no order.
// What the points involve is returned as pairs of uids.
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
WITH m LIMIT 1 MATCH (m)-[:HAS_POINT]->(p) WHERE p.corpus = $corpus
WITH p ORDER BY p.born, size(p.uid), p.uid
WITH collect(p) AS points
RETURN [p IN points | [name IN $names | p[name]]] AS points,
       COLLECT { UNWIND points AS p MATCH (p)-[:INVOLVES]->(e)
                 WITH p, collect(e.uid) AS uids RETURN [p.uid, uids] } AS involves,
       COLLECT { UNWIND points AS p MATCH (p)-[:SUPPORTED_BY]->(c) WHERE c.corpus = $corpus
                 WITH p, c ORDER BY c.document, c.position
                 WITH p, collect(c.uid) AS uids RETURN [p.uid, uids] } AS chunks,
       COLLECT { UNWIND points AS p MATCH (p)<-[:REVISED_AS]-(old) WHERE old.corpus = $corpus
                 WITH p, collect(old.uid) AS uids RETURN [p.uid, uids] } AS revises,
       COLLECT { UNWIND points AS p MATCH (p)<-[:MERGED_INTO]-(old) WHERE old.corpus = $corpus
                 WITH p, old ORDER BY old.born, size(old.uid), old.uid
                 WITH p, collect(old.uid) AS uids RETURN [p.uid, uids] } AS merges,
       COLLECT { UNWIND points AS p MATCH (p)-[:INVOLVES]->(e)
                 WITH DISTINCT e WHERE e.corpus = $corpus
                 // part: names
                 RETURN e {.uid, .name, .type, .description, .memory, .canonical_uid, names: names} } AS entities;

// name: point_scores(corpus, memory, vector, most) read
// Return the similarity of each active point with a vector. `most` is the number of all points, including superseded
// ones, so that the index compares every point without reading vectors from the store.
CYPHER 25 replan=skip MATCH (p:MemoryPoint)
SEARCH p IN (VECTOR INDEX point_embedding FOR $vector WHERE p.corpus = $corpus AND p.memory = $memory LIMIT $most) SCORE AS s
WITH p, s WHERE p.uid IS NOT NULL AND p.died IS NULL
RETURN collect([p.uid, 2 * s - 1]) AS scores;

// name: memory_steps(corpus, memory, owner) read
// Return the memory's steps in order, each with its sub-queries and their hits.
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
WITH m LIMIT 1 MATCH (m)-[:HAS_STEP]->(s) WHERE s.corpus = $corpus
RETURN s {.*, created_at: toString(s.created_at), subqueries: COLLECT {
  MATCH (s)-[:ASKED]->(q) WHERE q.corpus = $corpus
  RETURN q {.*, targets: COLLECT { MATCH (q)-[:TARGETS]->(p) WHERE p.corpus = $corpus RETURN p.uid ORDER BY p.uid },
            entities: COLLECT { MATCH (q)-[hit:RETRIEVED]->(e)
                                WITH hit, e, e.corpus = $corpus AS ours WHERE ours AND e:Entity
                                RETURN {uid: e.uid, rank: hit.rank, score: hit.score, name: e.name}
                                ORDER BY hit.rank },
            chunks: COLLECT { MATCH (q)-[hit:RETRIEVED]->(c)
                              WITH hit, c, c.corpus = $corpus AS ours WHERE ours AND c:Chunk
                              RETURN {uid: c.uid, rank: hit.rank, score: hit.score, source_id: c.source_id}
                              ORDER BY hit.rank }}
  ORDER BY q.number }} AS step
ORDER BY step.number;

// name: memory_answers(corpus, memory, owner) read
CYPHER 25 replan=skip MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
WITH m LIMIT 1 MATCH (m)-[:HAS_ANSWER]->(a) WHERE a.corpus = $corpus
RETURN a {.*, citations: COLLECT { MATCH (a)-[:HAS_CITATION]->(q) WHERE q.corpus = $corpus
                                   RETURN q {.*} ORDER BY q.marker }} AS answer
ORDER BY a.created_at, answer.uid;

// name: quote_statuses(corpus, quotes) read
// What the documents of quotes say now: whether a chunk has the `pattern` of the quote, looked for where it has the
// quote's longest `word`; no row for a document that is gone.
CYPHER 25 UNWIND $quotes AS quote
MATCH (d:Document {uid: quote.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
WITH DISTINCT d, quote
RETURN quote.number AS number,
       EXISTS { MATCH (d)<-[:FROM_DOCUMENT]-(c)
                WHERE c.corpus = $corpus AND c.text CONTAINS quote.word AND c.text =~ quote.pattern } AS found;

// name: find_entities(corpus, uids) read
// Return those of these uids that are entities, with their fields.
CYPHER 25 replan=skip UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX SEEK e:Entity(uid)
// part: names
RETURN e {.uid, .name, .type, .description, .memory, .canonical_uid, names: names} AS entity;
