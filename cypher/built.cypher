// Units of a build and the rows that they made. Labels and relationship types come as parameters that hgmem/builds/
// has checked. RESTS_ON leads from a row or unit to everything that its text was made from, which is what a deletion
// follows (docs/decisions/0019-builds.md).

// name: standing(corpus, uids) read
// Return those of the uids that are chunks, entities, built rows or units of the corpus. A unit that a deletion has
// emptied does not count, as its output is gone.
CYPHER 25 UNWIND $uids AS uid
CALL (uid) {
  MATCH (n:Chunk {uid: uid, corpus: $corpus}) USING INDEX n:Chunk(uid) RETURN n.uid AS found
  UNION ALL MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n.uid AS found
  UNION ALL MATCH (n:Entity {uid: uid, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n.uid AS found
  UNION ALL MATCH (n:Unit {uid: uid, corpus: $corpus}) USING INDEX n:Unit(uid) WHERE n.status <> 'stale'
            RETURN n.uid AS found
}
RETURN found;

// name: made_by(corpus, uids) read
// Return the rows of these units, with the text of those that have their vector.
CYPHER 25 UNWIND $uids AS uid
MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
WITH DISTINCT u MATCH (u)-[:MADE]->(n:Built {corpus: $corpus})
RETURN u.uid AS unit, n.uid AS uid, CASE WHEN n.embedding IS NOT NULL THEN n.text END AS text;

// name: put_units(corpus, system, build, rows) write
CYPHER 25 UNWIND $rows AS row
MERGE (u:Unit {uid: row.uid, corpus: $corpus})
ON CREATE SET u.system = $system, u.stage = row.stage, u.key = row.key, u.attempts = 0
SET u.digest = row.digest, u.status = 'done', u.error = NULL, u.output = row.output, u.document = row.document,
    u.inputs = row.inputs, u.calls = row.calls, u.tokens = row.tokens, u.attempts = u.attempts + 1
WITH u
MATCH (b:Build {uid: $build, corpus: $corpus}) USING INDEX b:Build(uid)
MERGE (b)-[:HAS_UNIT]->(u);

// name: fail_units(corpus, system, build, rows) write
// Record why each unit was not made. What it made before stays.
CYPHER 25 UNWIND $rows AS row
MERGE (u:Unit {uid: row.uid, corpus: $corpus})
ON CREATE SET u.system = $system, u.stage = row.stage, u.key = row.key, u.attempts = 0
SET u.digest = row.digest, u.status = 'failed', u.error = row.error, u.attempts = u.attempts + 1
WITH u
MATCH (b:Build {uid: $build, corpus: $corpus}) USING INDEX b:Build(uid)
MERGE (b)-[:HAS_UNIT]->(u);

// name: withdraw_quotes(corpus, rows) write
// Mark citations of rows as withdrawn, with their quotes kept, where the row's text becomes another or the row goes
// (`text` is null).
CYPHER 25 UNWIND $rows AS row
MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH n, row WHERE row.text IS NULL OR n.text <> row.text
SET n.key = n.key // takes the lock: an answer that cites the row meanwhile is seen, or sees the change
WITH n
MATCH (q:Citation {corpus: $corpus})-[cites:CITES]->(n)
SET q.withdrawn = true
DELETE cites;

// name: put_built(corpus, rows) write
// Write rows with their labels and properties. A row without a vector keeps those that it has.
CYPHER 25 UNWIND $rows AS row
MERGE (n:Built {uid: row.uid, corpus: $corpus})
SET n:$(row.label)
FOREACH (name IN [k IN keys(n) WHERE NOT k IN ['uid', 'corpus', 'embedding', 'own_embedding', 'vector']] |
  REMOVE n[name])
SET n += row.properties
WITH n, row
CALL (n, row) {
  MATCH (n)<-[before:MADE]-(other:Unit {corpus: $corpus}) WHERE other.uid <> row.unit
  DELETE before
}
MATCH (u:Unit {uid: row.unit, corpus: $corpus}) USING INDEX u:Unit(uid)
MERGE (u)-[:MADE]->(n);

// name: put_built_vectors(corpus, rows) write
// Write the vector of each row's text. A row whose indexed vector another unit may replace keeps its own beside it.
CYPHER 25 UNWIND $rows AS row
MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid)
CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)
WITH n, row WHERE row.own
CALL db.create.setNodeVectorProperty(n, 'own_embedding', row.vector);

// name: clear_text_vectors(corpus, uids) write
// Remove the vectors of rows that have no text any more.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
SET n.embedding = NULL, n.own_embedding = NULL;

// name: put_plain_vectors(corpus, rows) write
// Write the vectors that no index holds, of any length.
CYPHER 25 UNWIND $rows AS row
MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid)
CALL db.create.setNodeVectorProperty(n, 'vector', row.vector);

// name: clear_plain_vectors(corpus, uids) write
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
SET n.vector = NULL;

// name: release_support(corpus, system, build, rows) write
// Remove the support that each row or unit no longer has. What rests on it inherits that support until the build has
// gone through all stages, so that a deletion still finds it. Learnt rows and those of other systems keep it.
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  UNION ALL MATCH (n:Unit {uid: row.uid, corpus: $corpus}) USING INDEX n:Unit(uid) RETURN n
}
WITH n, row
MATCH (n)-[r:RESTS_ON]->(x) WHERE x.corpus = $corpus AND NOT x.uid IN row.rests_on
CALL (n, x) {
  MATCH (n)<-[:RESTS_ON]-(d) WHERE d.corpus = $corpus AND d <> x
  MERGE (d)-[inherited:RESTS_ON]->(x)
  ON CREATE SET inherited.build = CASE WHEN d.system = $system AND NOT coalesce(d.learnt, false) THEN $build END
}
DELETE r;

// name: drop_inherited(corpus, build) write
// Remove inherited support of a build. Each unit is made from its present inputs, whose own support is complete.
CYPHER 25 MATCH (d)-[r:RESTS_ON {build: $build}]->(x) WHERE d.corpus = $corpus AND x.corpus = $corpus
DELETE r;

// name: put_support(corpus, rows) write
// Let each row or unit rest on chunks, built rows or units. Support that was inherited is its own from then on.
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  UNION ALL MATCH (n:Unit {uid: row.uid, corpus: $corpus}) USING INDEX n:Unit(uid) RETURN n
}
WITH n, row
UNWIND row.rests_on AS uid
CALL (uid) {
  MATCH (x:Chunk {uid: uid, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Built {uid: uid, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
  UNION ALL MATCH (x:Unit {uid: uid, corpus: $corpus}) USING INDEX x:Unit(uid) RETURN x
}
MERGE (n)-[r:RESTS_ON]->(x)
SET r.build = NULL;

// name: release_extensions(corpus, units) write
// Take back what these units gave: their ties, and vectors of rows that other units made.
CYPHER 25 UNWIND $units AS uid
MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
WITH DISTINCT u
CALL (u) {
  MATCH (u)-[:MADE|EXTENDS]->(n:Built {corpus: $corpus})
  MATCH (n)-[r]->(x) WHERE r.unit = u.uid AND x.corpus = $corpus
  DELETE r
}
CALL (u) {
  MATCH (u)-[e:EXTENDS]->(n:Built {corpus: $corpus})
  WITH n, e, e.vector AS given
  DELETE e
  WITH n WHERE given AND n.own_embedding IS NOT NULL
  CALL db.create.setNodeVectorProperty(n, 'embedding', n.own_embedding)
};

// name: put_extensions(corpus, rows) write
// Let a unit extend a row that another unit made.
CYPHER 25 UNWIND $rows AS row
MATCH (u:Unit {uid: row.unit, corpus: $corpus}) USING INDEX u:Unit(uid)
WITH u, row
MATCH (n:Built {uid: row.uid, corpus: $corpus}) USING INDEX n:Built(uid)
MERGE (u)-[e:EXTENDS]->(n)
SET e.vector = row.vector IS NOT NULL
WITH n, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector);

// name: put_ties(corpus, rows) write
// Write relationships of a system's own types from built rows to built rows, chunks or entities.
CYPHER 25 UNWIND $rows AS row
MATCH (n:Built {uid: row.source, corpus: $corpus}) USING INDEX n:Built(uid)
WITH n, row
CALL (row) {
  MATCH (x:Built {uid: row.target, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
  UNION ALL MATCH (x:Chunk {uid: row.target, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Entity {uid: row.target, corpus: $corpus}) USING INDEX x:Entity(uid) RETURN x
}
CREATE (n)-[r:$(row.type)]->(x)
SET r = row.properties, r.unit = row.unit;

// name: dependents(corpus, uids) read
// Return what rests directly on these chunks, rows or units.
CYPHER 25 UNWIND $uids AS uid
CALL (uid) {
  MATCH (x:Chunk {uid: uid, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Built {uid: uid, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
  UNION ALL MATCH (x:Unit {uid: uid, corpus: $corpus}) USING INDEX x:Unit(uid) RETURN x
}
WITH x
MATCH (x)<-[:RESTS_ON]-(d) WHERE d.corpus = $corpus
RETURN DISTINCT d.uid AS uid;

// name: learnt_of_entities(corpus, uids) read
// Return the learnt rows that are tied to one of these entities.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
WITH DISTINCT e MATCH (e)<-[]-(n) WHERE n.corpus = $corpus AND n:Built AND n.learnt
RETURN DISTINCT n.uid AS uid;

// name: empty_units(corpus, uids) write
// Empty those of the uids that are units, and let the next build make them anew.
CYPHER 25 UNWIND $uids AS uid
MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
SET u.status = 'stale', u.digest = NULL, u.output = NULL, u.error = NULL
WITH u
MATCH (u)-[r:RESTS_ON]->(x) WHERE x.corpus = $corpus
DELETE r;

// name: delete_built(corpus, uids) write
// Delete those of the uids that are built rows. The next build makes anew the units that made them, gave them something,
// or tied a row to them.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
CALL (n) {
  MATCH (n)<-[:MADE|EXTENDS]-(u:Unit {corpus: $corpus})
  SET u.status = 'stale', u.digest = NULL
}
CALL (n) {
  MATCH (n)<-[tie]-(:Built {corpus: $corpus}) WHERE tie.unit IS NOT NULL
  WITH DISTINCT tie.unit AS uid
  MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
  SET u.status = 'stale', u.digest = NULL
}
DETACH DELETE n;

// name: delete_units(corpus, uids) write
// Delete units that have no rows any more.
CYPHER 25 UNWIND $uids AS uid
MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
DETACH DELETE u;
// Searches of what systems have built, and the way back to the chunks that it rests on.

// name: near_built(corpus, system, kind, documents, vector, k, over) read
// Return the k rows of a kind nearest to a vector. With `documents`, those that rest on another don't count.
CYPHER 25 CALL () {
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = $system AND n.kind = $kind LIMIT $over) SCORE AS s
  RETURN n, 2 * s - 1 AS score
  UNION ALL
  WITH $documents AS documents WHERE documents IS NOT NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = $system AND n.kind = $kind AND n.document IN documents
               LIMIT $over) SCORE AS s
  RETURN n, 2 * s - 1 AS score
}
WITH n, score WHERE n.uid IS NOT NULL // one that is being deleted may still be found
ORDER BY score DESC, n.uid LIMIT $k
RETURN score, n {.*, stems: NULL, embedding: NULL, own_embedding: NULL, vector: NULL} AS row
ORDER BY score DESC, row.uid;

// name: chunks_beneath(corpus, uids) read
// Return the chunks that each row rests on, at any distance, in the order of documents and positions. The plan of
// a DISTINCT end visits each row once, however many ways lead to it.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH DISTINCT n
CALL (n) {
  MATCH (n) ((a WHERE a.corpus = $corpus)-[:RESTS_ON]->(b WHERE b.corpus = $corpus))+ (c)
  WITH DISTINCT c
  WITH c, c.corpus = $corpus AS ours WHERE ours AND c:Chunk
  WITH c ORDER BY c.document, c.position, c.uid
  RETURN collect(c.uid) AS chunks
}
WITH n, chunks WHERE size(chunks) > 0
RETURN n.uid AS uid, chunks;

// name: nearest_beneath(corpus, uids, vector, k) read
// Return for each row the k chunks nearest to a vector among those that it rests on, at any distance.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH DISTINCT n
CALL (n) {
  MATCH (n) ((a WHERE a.corpus = $corpus)-[:RESTS_ON]->(b WHERE b.corpus = $corpus))+ (c)
  WITH DISTINCT c
  WITH c, c.corpus = $corpus AS ours WHERE ours AND c:Chunk AND c.embedding IS NOT NULL
  WITH c, vector.similarity.cosine(c.embedding, $vector) AS score ORDER BY score DESC, c.uid LIMIT $k
  RETURN collect(c.uid) AS chunks
}
RETURN n.uid AS uid, chunks;
