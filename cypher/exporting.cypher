// Reading a corpus for an archive. Uids are read in long pages and records in short ones, so nothing is read twice and
// at most one page is in memory. `{.*}` is reduced to the fields of hgmem/graph/record_types.py.

// name: corpus_properties(corpus) read
CYPHER 25 MATCH (k:Corpus {name: $corpus})
RETURN k {.embedding_model, .dimensions, .settings, .schema_version, .imported, .language,
          created_at: toString(k.created_at)} AS properties;

// name: document_uids(corpus, after, most) read
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus) WHERE d.uid > $after
RETURN d.uid AS uid ORDER BY uid LIMIT $most;

// name: chunk_uids(corpus, after, most) read
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) USING INDEX c:Chunk(corpus) WHERE c.uid > $after
RETURN c.uid AS uid ORDER BY uid LIMIT $most;

// name: entity_uids(corpus, shared, after, most) read
// Return entities of the corpus, or provisional entities of its memories (not `shared`).
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus)
WHERE e.uid > $after AND (e.memory = '') = $shared
RETURN e.uid AS uid ORDER BY uid LIMIT $most;

// name: decision_uids(corpus, after, most) read
CYPHER 25 MATCH (d:Decision {corpus: $corpus}) USING INDEX d:Decision(corpus) WHERE d.uid > $after
RETURN d.uid AS uid ORDER BY uid LIMIT $most;

// name: relation_uids(corpus, shared, after, most) read
// Return relations of the corpus, or those of its memories (not `shared`).
CYPHER 25 MATCH ()-[r:RELATES {corpus: $corpus}]->() USING INDEX r:RELATES(corpus)
WHERE r.uid > $after AND (r.memory = '') = $shared
RETURN r.uid AS uid ORDER BY uid LIMIT $most;

// name: memory_uids(corpus, after, most) read
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus) WHERE m.uid > $after
RETURN m.uid AS uid ORDER BY uid LIMIT $most;

// name: point_uids(corpus, after, most) read
CYPHER 25 MATCH (p:MemoryPoint {corpus: $corpus}) USING INDEX p:MemoryPoint(corpus) WHERE p.uid > $after
RETURN p.uid AS uid ORDER BY uid LIMIT $most;

// name: built_uids(corpus, learnt, after, most) read
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.uid > $after AND ($learnt OR NOT coalesce(n.learnt, false))
RETURN n.uid AS uid ORDER BY uid LIMIT $most;

// name: unit_uids(corpus, after, most) read
CYPHER 25 MATCH (u:Unit {corpus: $corpus}) USING INDEX u:Unit(corpus) WHERE u.uid > $after
RETURN u.uid AS uid ORDER BY uid LIMIT $most;

// name: read_nodes(corpus, rows, embeddings) read
// Return nodes, each of them found by its label and uid, such as `{Chunk: uid}`, and of built rows the unit that made
// them. A `vector`, which is no embedding of a text, is returned in any case, because it cannot be computed again.
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  MATCH (n:Document {uid: row.Document, corpus: $corpus}) USING INDEX n:Document(uid) RETURN n
  UNION ALL MATCH (n:Chunk {uid: row.Chunk, corpus: $corpus}) USING INDEX n:Chunk(uid) RETURN n
  UNION ALL MATCH (n:Entity {uid: row.Entity, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
  UNION ALL MATCH (n:Decision {uid: row.Decision, corpus: $corpus}) USING INDEX n:Decision(uid) RETURN n
  UNION ALL MATCH (n:Unit {uid: row.Unit, corpus: $corpus}) USING INDEX n:Unit(uid) RETURN n
  UNION ALL MATCH (n:Built {uid: row.Built, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
}
RETURN n {.*, indexed_at: CASE WHEN n:Document THEN toString(n.indexed_at) ELSE n.indexed_at END,
          verdict: CASE WHEN n:Decision THEN n.kind END,
          created_at: CASE WHEN n:Decision THEN toString(n.created_at) ELSE n.created_at END,
          unit: COLLECT { MATCH (u:Unit {corpus: $corpus})-[:MADE]->(n) RETURN u.uid ORDER BY u.uid }[0],
          replaced_vectors: CASE WHEN n.own_embedding IS NOT NULL THEN true END,
          embedding: CASE WHEN $embeddings THEN n.embedding END,
          own_embedding: CASE WHEN $embeddings THEN n.own_embedding END} AS record
ORDER BY record.uid;

// name: read_relationships(corpus, type, uids) read
// Return the relationships of this type of ours from these chunks, entities, rows or units.
CYPHER 25 UNWIND $uids AS uid
CALL (uid) {
  MATCH (n:Chunk {uid: uid, corpus: $corpus})-[r:NEXT_CHUNK]->(x:Chunk {corpus: $corpus}) USING INDEX n:Chunk(uid)
  RETURN n, r, x
  UNION ALL
  MATCH (n:Entity {uid: uid, corpus: $corpus})-[r:FROM_CHUNK]->(x:Chunk {corpus: $corpus}) USING INDEX n:Entity(uid)
  RETURN n, r, x
  UNION ALL
  MATCH (n:Built {uid: uid, corpus: $corpus})-[r:RESTS_ON]->(x) USING INDEX n:Built(uid) WHERE x.corpus = $corpus
  RETURN n, r, x
  UNION ALL
  MATCH (n:Unit {uid: uid, corpus: $corpus})-[r:RESTS_ON|EXTENDS]->(x) USING INDEX n:Unit(uid) WHERE x.corpus = $corpus
  RETURN n, r, x
}
WITH n, r, x WHERE type(r) = $type
RETURN r {.*, system: CASE type(r) WHEN 'EXTENDS' THEN n.system END, source: n.uid, target: x.uid} AS record
ORDER BY record.source, record.target;

// name: read_relations(corpus, uids, embeddings) read
CYPHER 25 UNWIND $uids AS uid
MATCH (a:Entity {corpus: $corpus})-[r:RELATES {uid: uid, corpus: $corpus}]->(b:Entity {corpus: $corpus})
USING INDEX r:RELATES(uid)
RETURN r {.*, source: a.uid, target: b.uid, embedding: CASE WHEN $embeddings THEN r.embedding END} AS record
ORDER BY record.uid;

// name: read_memory(corpus, memory, timeout, embeddings) read
// Return all records of one memory. `live` says whether its lease was renewed in the last `timeout` seconds. Its nodes
// are found by uid, which starts with the memory's.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WITH m LIMIT 1
RETURN m.run IS NOT NULL AND m.heartbeat >= datetime() - duration({milliseconds: $timeout * 1000}) AS live,
  m {.*, created_at: toString(m.created_at)} AS memory,
  COLLECT { MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(uid)
            WHERE e.uid STARTS WITH $memory + '-' AND e.memory = $memory
            RETURN e {.*, embedding: CASE WHEN $embeddings THEN e.embedding END} ORDER BY e.uid } AS provisionals,
  COLLECT { MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(uid)
            WHERE e.uid STARTS WITH $memory + '-' AND e.memory = $memory
            MATCH (e)-[r:RELATES {corpus: $corpus}]-(:Entity {corpus: $corpus}) WHERE r.memory = $memory
            WITH DISTINCT r
            RETURN r {.*, source: startNode(r).uid, target: endNode(r).uid,
                      embedding: CASE WHEN $embeddings THEN r.embedding END} ORDER BY r.uid } AS relations,
  COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s {.*, created_at: toString(s.created_at)}
            ORDER BY s.number } AS steps,
  COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:NEXT_STEP]->(after:Step {corpus: $corpus})
            RETURN {source: s.number, target: after.number} ORDER BY s.number, after.number } AS order,
  COLLECT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
            RETURN p {.*, embedding: CASE WHEN $embeddings THEN p.embedding END} ORDER BY p.born, p.uid } AS points,
  COLLECT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
            MATCH (p)-[r:INVOLVES|SUPPORTED_BY|REVISED_AS|MERGED_INTO]->(x) WHERE x.corpus = $corpus
            RETURN {kind: type(r), source: p.uid, target: x.uid} ORDER BY type(r), p.uid, x.uid } AS of_points,
  COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:ASKED]->(q:SubQuery {corpus: $corpus})
            RETURN q {.*, step: s.number} ORDER BY s.number, q.number } AS subqueries,
  COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:ASKED]->(q:SubQuery {corpus: $corpus})
            MATCH (q)-[hit:RETRIEVED|TARGETS]->(x) WHERE x.corpus = $corpus
            RETURN hit {.*, kind: type(hit), step: s.number, number: q.number, target: x.uid}
            ORDER BY hit.kind, hit.step, hit.number, hit.rank, hit.target } AS of_subqueries,
  COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus})
            RETURN a {.*, created_at: toString(a.created_at)} ORDER BY a.uid } AS answers,
  COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus})-[:HAS_CITATION]->(q:Citation {corpus: $corpus})
            RETURN q {.*, answer: a.uid} ORDER BY q.uid } AS citations,
  COLLECT { MATCH (m)-[:HAS_ANSWER]->(:Answer {corpus: $corpus})-[:HAS_CITATION]->(q:Citation {corpus: $corpus})
            MATCH (q)-[:CITES]->(x) WHERE x.corpus = $corpus
            RETURN {source: q.uid, target: x.uid} ORDER BY q.uid, x.uid } AS cited;

// name: read_builds(corpus) read
CYPHER 25 MATCH (b:Build {corpus: $corpus}) USING INDEX b:Build(corpus)
RETURN b {.*, created_at: toString(b.created_at), finished_at: toString(b.finished_at),
          changed_at: toString(b.changed_at)} AS record
ORDER BY record.system;

// name: read_own_relationships(corpus, uids) read
// Return the relationships of other types that begin at these rows and lead to a row, chunk or entity of the corpus.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH n MATCH (n)-[r]->(x)
WHERE x.corpus = $corpus AND coalesce(x.memory, '') = '' AND (x:Built OR x:Chunk OR x:Entity) AND type(r) <> 'RESTS_ON'
RETURN {system: n.system, type: type(r), source: n.uid, target: x.uid, unit: r.unit, properties: properties(r)} AS record
ORDER BY record.source, record.type, record.target, record.unit;
