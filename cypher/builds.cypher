// Builds, which is what systems make of a corpus: their leases, and what a run of one reads. No statement here or in
// built.cypher names a system, a kind or a relationship type of one.

// name: lease_build(corpus, system, uid, run, timeout, properties) write
// Lease a system's build to this run, creating it if necessary, unless another run renewed its lease in the last
// `timeout` seconds. Returns one row on success: whether the build is ready, the corpus has not changed since, and it was
// made with the same `stages`.
CYPHER 25 MERGE (b:Build {uid: $uid, corpus: $corpus})
ON CREATE SET b.system = $system, b.created_at = datetime()
SET b.uid = b.uid // takes the lock before the lease is read
WITH b WHERE b.run IS NULL OR b.run = $run OR b.heartbeat < datetime() - duration({milliseconds: $timeout * 1000})
WITH b, coalesce(b.status = 'ready' AND b.change IS NULL AND b.stages = $properties.stages, false) AS unchanged
SET b += $properties, b.run = $run, b.heartbeat = datetime(), b.status = 'building', b.change = NULL
RETURN unchanged;

// name: renew_build(corpus, uid, run) write
CYPHER 25 MATCH (b:Build {uid: $uid, corpus: $corpus}) USING INDEX b:Build(uid)
SET b.uid = b.uid // takes the lock before the lease is read
WITH b WHERE b.run = $run
SET b.heartbeat = datetime()
RETURN b.uid AS uid;

// name: release_build(corpus, uid, run, status, finished) write
// Release the lease. A build that is ready counts as stale if the corpus has changed meanwhile.
CYPHER 25 MATCH (b:Build {uid: $uid, corpus: $corpus}) USING INDEX b:Build(uid)
SET b.uid = b.uid // takes the lock before the lease is read
WITH b WHERE b.run = $run
SET b.run = NULL, b.heartbeat = NULL,
    b.status = CASE WHEN $status = 'ready' AND b.change IS NOT NULL THEN 'stale' ELSE $status END,
    b.finished_at = CASE WHEN $finished THEN datetime() ELSE b.finished_at END
RETURN b.uid AS uid;

// name: mark_builds(corpus, change, replaces) write
// Say of every build of the corpus that the corpus has changed since, and how. A change that doesn't replace others is
// said where nothing else has changed.
CYPHER 25 MATCH (b:Build {corpus: $corpus}) USING INDEX b:Build(corpus)
WITH b ORDER BY b.uid
SET b.change = CASE WHEN $replaces OR b.change IS NULL THEN $change ELSE b.change END, b.changed_at = datetime(),
    b.status = CASE b.status WHEN 'ready' THEN 'stale' ELSE b.status END;

// name: find_builds(corpus) read
// Return the builds of a corpus by system, with their units by status, and rows by kind.
CYPHER 25 MATCH (b:Build {corpus: $corpus}) USING INDEX b:Build(corpus)
RETURN b.uid AS uid, b.system AS system, b.status AS status, b.settings AS settings, b.model AS model,
       b.change AS change, toString(b.created_at) AS created_at, toString(b.finished_at) AS finished_at, b.run AS run,
       duration.inSeconds(b.heartbeat, datetime()).seconds AS silent,
       COLLECT { MATCH (b)-[:HAS_UNIT]->(u:Unit {corpus: $corpus})
                 WITH u.status AS name, count(*) AS number RETURN {name: name, number: number} } AS units,
       COLLECT { MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus) WHERE n.system = b.system
                 WITH n.kind AS name, count(*) AS number RETURN {name: name, number: number} } AS rows
ORDER BY system;

// name: find_build(corpus, uid) read
// Return one build without counts.
CYPHER 25 MATCH (b:Build {uid: $uid, corpus: $corpus}) USING INDEX b:Build(uid)
RETURN b.uid AS uid, b.system AS system, b.status AS status, b.settings AS settings, b.model AS model,
       b.change AS change, toString(b.created_at) AS created_at, toString(b.finished_at) AS finished_at, b.run AS run,
       duration.inSeconds(b.heartbeat, datetime()).seconds AS silent;

// name: being_indexed(corpus) read
// Return documents that an indexing run is writing, or that one left unfinished.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
WHERE d.sha256 = '' OR NOT d.status IN ['done', 'embedded'] AND EXISTS {
  (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) WHERE NOT c.status IN ['done', 'embedded', 'failed'] }
RETURN d.uid AS uid, d.title AS title ORDER BY title, uid LIMIT 1;

// name: chunks_to_build(corpus) read
// Return all chunks by document title, document and position.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
RETURN c.uid AS uid, c.document AS document, d.title AS title, coalesce(d.date, '') AS date,
       coalesce(d.type, '') AS type, c.position AS position, c.text AS text, c.tokens AS tokens, c.start AS start,
       c.end AS end, c.messages AS messages
ORDER BY title, document, position, uid;

// name: built_rows(corpus, system, kind, vectors) read
// Return the rows of one kind by key, with their vectors if asked.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.system = $system AND n.kind = $kind
RETURN n {.*, embedding: CASE WHEN $vectors THEN n.embedding END,
          own_embedding: CASE WHEN $vectors THEN n.own_embedding END,
          vector: CASE WHEN $vectors THEN n.vector END} AS row
ORDER BY row.key;

// name: units_of_stage(corpus, build, stage) read
CYPHER 25 MATCH (b:Build {uid: $build, corpus: $corpus}) USING INDEX b:Build(uid)
WITH b LIMIT 1 MATCH (b)-[:HAS_UNIT]->(u:Unit {corpus: $corpus}) WHERE u.stage = $stage
RETURN u.uid AS uid, u.key AS key, u.digest AS digest, u.status AS status, u.output AS output,
       coalesce(u.document, '') AS document
ORDER BY key;

// name: units_of_other_stages(corpus, build, stages) read
// Return the units of stages that the build no longer has.
CYPHER 25 MATCH (b:Build {uid: $build, corpus: $corpus}) USING INDEX b:Build(uid)
WITH b LIMIT 1 MATCH (b)-[:HAS_UNIT]->(u:Unit {corpus: $corpus}) WHERE NOT u.stage IN $stages
RETURN u.uid AS uid ORDER BY uid;

// name: withdraw_build(corpus, uid, run) write
// Say that the build cannot be asked, before it is deleted in several transactions.
CYPHER 25 MATCH (b:Build {uid: $uid, corpus: $corpus}) USING INDEX b:Build(uid)
SET b.uid = b.uid // takes the lock before the lease is read
WITH b WHERE b.run = $run
SET b.finished_at = NULL
RETURN b.uid AS uid;

// name: delete_build_contents(corpus, system, batch) auto
// Delete a system's rows and units, in transactions of `batch` nodes, and mark citations of them as withdrawn.
CYPHER 25 CALL () {
  MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus) WHERE n.system = $system RETURN n
  UNION ALL MATCH (n:Unit {corpus: $corpus}) USING INDEX n:Unit(corpus) WHERE n.system = $system RETURN n
}
CALL (n) {
  SET n.key = n.key // takes the lock: an answer that cites the row is seen, or sees that it is gone
  WITH n
  CALL (n) {
    MATCH (q:Citation {corpus: $corpus})-[:CITES]->(n)
    SET q.withdrawn = true
  }
  DETACH DELETE n
} IN TRANSACTIONS OF $batch ROWS;

// name: delete_build(corpus, uid, run) write
// Delete the node of an empty build that this run has leased.
CYPHER 25 MATCH (b:Build {uid: $uid, corpus: $corpus}) USING INDEX b:Build(uid)
SET b.uid = b.uid // takes the lock before the lease is read
WITH b WHERE b.run = $run
WITH b, b.uid AS uid
DELETE b
RETURN uid;
