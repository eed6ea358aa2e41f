// Searches for violated invariants. Each row is an `invariant` (a name that hgmem/corpus/checking/findings.py
// explains), the number of violations (`found`), and up to `most` uids. Large kinds are read in pages of uids. The
// others are checked in one pass over the corpus that keeps only the violations.

// name: broken_documents(corpus, most) read
// Find chunks without their document, documents whose status contradicts their chunks, and chunks out of order.
// Documents without `sha256`, whose write or deletion is unfinished, are reported as `unfinished-document`.
CYPHER 25 CALL () {
  MATCH (c:Chunk {corpus: $corpus})
  WHERE NOT EXISTS { (c)-[:FROM_DOCUMENT]->(d:Document {corpus: $corpus}) WHERE d.uid = c.document }
  RETURN 'chunk-without-document' AS invariant, c.uid AS uid
  UNION ALL
  MATCH (d:Document {corpus: $corpus}) WHERE d.sha256 = '' OR NOT d.status IN ['done', 'embedded']
  WITH d WHERE d.sha256 = '' OR EXISTS { (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) WHERE c.status <> 'done' }
  RETURN 'unfinished-document' AS invariant, d.uid AS uid
  UNION ALL
  MATCH (d:Document {corpus: $corpus}) WHERE coalesce(d.sha256, '') <> ''
  WITH d, COLLECT { MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) RETURN DISTINCT c.status } AS statuses
  WITH d, CASE WHEN any(status IN statuses WHERE NOT status IN ['done', 'embedded']) THEN ['pending']
               WHEN 'embedded' IN statuses THEN ['embedded', 'pending'] ELSE ['done'] END AS possible
  WHERE NOT d.status IN possible
  RETURN 'document-status' AS invariant, d.uid AS uid
  UNION ALL
  MATCH (d:Document {corpus: $corpus}) WHERE coalesce(d.sha256, '') <> ''
  CALL (d) {
    MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
    WITH c ORDER BY c.position, c.uid
    WITH collect(c) AS ordered
    UNWIND range(0, size(ordered) - 1) AS i
    WITH ordered[i] AS here, ordered[i + 1] AS after
    WITH here, after, COLLECT { MATCH (here)-[:NEXT_CHUNK]->(next:Chunk {corpus: $corpus}) RETURN next.uid } AS linked
    WHERE linked <> CASE WHEN after IS NULL THEN [] ELSE [after.uid] END
    RETURN here LIMIT 1
  }
  RETURN 'chunk-order' AS invariant, d.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: broken_support(corpus, most) read
// Find unsupported entities, relations that name unknown chunks, and relations whose ends are out of order.
CYPHER 25 CALL () {
  MATCH (e:Entity {corpus: $corpus})
  WHERE e.memory = '' AND e.given IS NULL AND NOT EXISTS { (e)-[:FROM_CHUNK]->(:Chunk {corpus: $corpus}) }
    AND NOT EXISTS { (e)-[r:RELATES {corpus: $corpus}]-(:Entity {corpus: $corpus}) WHERE r.memory = '' }
  RETURN 'entity-without-support' AS invariant, e.uid AS uid
  UNION ALL
  MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
  UNWIND r.chunks AS chunk
  OPTIONAL MATCH (c:Chunk {uid: chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
  WITH DISTINCT r, c WHERE c IS NULL
  RETURN 'relation-unknown-chunk' AS invariant, r.uid AS uid
  UNION ALL
  MATCH (a:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(b:Entity {corpus: $corpus})
  WHERE r.memory = '' AND NOT a.key < b.key
  RETURN 'relation-order' AS invariant, r.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: broken_builds(corpus, ours, most) read
// Find units without their build, rows without the unit that made them, rows whose support or `document` is incomplete,
// and relationships of systems that nothing would take back. `document` is checked where a build went through all stages,
// because rows keep theirs until they are made anew. `ours` are the relationship types of hgmem.
CYPHER 25 CALL () {
  MATCH (u:Unit {corpus: $corpus})
  WHERE NOT EXISTS { (b:Build {corpus: $corpus})-[:HAS_UNIT]->(u) WHERE b.system = u.system }
  RETURN 'unit-without-build' AS invariant, u.uid AS uid
  UNION ALL
  MATCH (n:Built {corpus: $corpus})
  WITH n, COLLECT { MATCH (u:Unit {corpus: $corpus})-[:MADE]->(n) RETURN u.system } AS systems
  WHERE systems <> CASE WHEN n.learnt THEN [] ELSE [n.system] END
  RETURN 'built-without-unit' AS invariant, n.uid AS uid
  UNION ALL
  MATCH (u:Unit {corpus: $corpus}) WHERE u.inputs > 0
  MATCH (u)-[:MADE]->(n:Built {corpus: $corpus})
  WHERE NOT EXISTS { (n)-[:RESTS_ON]->(x) WHERE x.corpus = $corpus }
  RETURN DISTINCT 'built-without-support' AS invariant, n.uid AS uid
  UNION ALL
  MATCH (u:Unit {corpus: $corpus})
  WHERE u.inputs > 0 AND u.output IS NOT NULL AND NOT EXISTS { (u)-[:RESTS_ON]->(x) WHERE x.corpus = $corpus }
  RETURN 'built-without-support' AS invariant, u.uid AS uid
  UNION ALL
  MATCH (b:Build {corpus: $corpus}) WHERE b.status IN ['ready', 'stale']
  MATCH (b)-[:HAS_UNIT]->(u:Unit {corpus: $corpus})-[:MADE]->(n:Built {corpus: $corpus})
  WHERE n.document <> '' AND EXISTS { (n)-[:RESTS_ON]->(x) WHERE x.corpus = $corpus AND coalesce(x.document, '') <> n.document }
  RETURN DISTINCT 'built-document' AS invariant, n.uid AS uid
  UNION ALL
  MATCH (n:Built {corpus: $corpus})-[r]->(x)
  WHERE x.corpus = $corpus AND NOT type(r) IN $ours AND r.unit IS NOT NULL
    AND NOT EXISTS { (u:Unit {corpus: $corpus})-[:MADE|EXTENDS]->(n) WHERE u.uid = r.unit }
  RETURN DISTINCT 'built-relationship' AS invariant, n.uid AS uid
  UNION ALL
  MATCH (n:Built {corpus: $corpus})<-[r]-(x)
  WHERE x.corpus = $corpus AND NOT x:Built AND NOT type(r) IN $ours
  RETURN DISTINCT 'built-relationship' AS invariant, n.uid AS uid
  UNION ALL
  MATCH (b:Build {corpus: $corpus}) WHERE b.status = 'unfinished' RETURN 'unfinished-build' AS invariant, b.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: broken_vectors(corpus, dimensions, zero, most) read
// Find vectors that are missing, not of length `dimensions`, or not unit vectors. A unit vector's euclidean similarity to
// the zero vector, 1 / (1 + d²), is 0.5, and changes by 0.0005 for each thousandth of its length.
CYPHER 25 CALL () {
  MATCH (e:Entity {corpus: $corpus})
  WITH e.uid AS uid, e.embedding AS stored
  RETURN 'entity-vector' AS invariant, uid, stored
  UNION ALL
  MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
  RETURN 'relation-vector' AS invariant, r.uid AS uid, r.embedding AS stored
  UNION ALL
  MATCH (c:Chunk {corpus: $corpus}) WHERE c.status IN ['done', 'extracted', 'embedded']
  RETURN 'chunk-vector' AS invariant, c.uid AS uid, c.embedding AS stored
  UNION ALL
  MATCH (p:MemoryPoint {corpus: $corpus})
  RETURN 'point-vector' AS invariant, p.uid AS uid, p.embedding AS stored
  UNION ALL
  MATCH (n:Built {corpus: $corpus}) WHERE n.text <> ''
  RETURN 'built-vector' AS invariant, n.uid AS uid, n.embedding AS stored
  UNION ALL
  MATCH (n:Built {corpus: $corpus}) WHERE n.own_embedding IS NOT NULL
  RETURN 'built-vector' AS invariant, n.uid AS uid, n.own_embedding AS stored
}
WITH invariant, uid WHERE NOT CASE
  WHEN stored IS NULL OR size(stored) <> $dimensions THEN false
  ELSE abs(vector.similarity.euclidean(stored, $zero) - 0.5) <= 0.0005 END
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: crossings(corpus, most) read
// Find relationships to another corpus, which is why the other end is not restricted to $corpus.
CYPHER 25 CALL () {
  MATCH (n:Document {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Chunk {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Entity {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Memory {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Step {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:SubQuery {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:MemoryPoint {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Answer {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Citation {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Build {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Unit {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Built {corpus: $corpus}) RETURN n
}
MATCH (n)-[r]-(other) WHERE other.corpus <> $corpus OR r.corpus <> $corpus
WITH DISTINCT coalesce(n.uid, n.memory) AS uid
RETURN 'relationship-across-corpora' AS invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: leaks(corpus, most) read
// Find relationships between memories, and provisional entities visible outside their memory.
CYPHER 25 CALL () {
  CALL () {
    MATCH (n:Memory {corpus: $corpus}) RETURN n
    UNION ALL MATCH (n:Step {corpus: $corpus}) RETURN n
    UNION ALL MATCH (n:SubQuery {corpus: $corpus}) RETURN n
    UNION ALL MATCH (n:MemoryPoint {corpus: $corpus}) RETURN n
    UNION ALL MATCH (n:Answer {corpus: $corpus}) RETURN n
    UNION ALL MATCH (n:Citation {corpus: $corpus}) RETURN n
  }
  CALL (n) {
    MATCH (n)-[:HAS_STEP|NEXT_STEP|ASKED|TARGETS|HAS_POINT|REVISED_AS|MERGED_INTO|HAS_ANSWER|HAS_CITATION]->(other)
    WHERE other.memory <> n.memory
    RETURN 'relationship-across-memories' AS invariant
    UNION ALL
    MATCH (n)-[:INVOLVES|RETRIEVED]->(e:Entity {corpus: $corpus})
    WHERE NOT e.memory IN ['', n.memory]
    RETURN 'provisional-shared' AS invariant
  }
  RETURN DISTINCT invariant, coalesce(n.uid, n.memory) AS uid
  UNION ALL
  MATCH (a:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(b:Entity {corpus: $corpus})
  WHERE NOT (a.memory IN ['', r.memory] AND b.memory IN ['', r.memory])
  RETURN 'provisional-shared' AS invariant, r.uid AS uid
  UNION ALL
  MATCH (e:Entity {corpus: $corpus}) WHERE e.memory <> '' AND EXISTS { (e)-[:FROM_CHUNK]->(:Chunk {corpus: $corpus}) }
  RETURN 'provisional-shared' AS invariant, e.uid AS uid
  UNION ALL
  MATCH (e:Entity {corpus: $corpus}) WHERE (coalesce(e.memory, '') <> '') <> ('Provisional' IN labels(e)) OR e.memory IS NULL
  RETURN 'provisional-label' AS invariant, e.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: orphans(corpus, most) read
// Find nodes that can't be reached from their memory. Steps and sub-queries have no uid, so their memory's uid is
// returned.
CYPHER 25 CALL () {
  MATCH (s:Step {corpus: $corpus})
  WHERE NOT EXISTS { (m:Memory {corpus: $corpus})-[:HAS_STEP]->(s) WHERE m.uid = s.memory }
  RETURN 'orphan-step' AS invariant, s.memory AS uid
  UNION ALL
  MATCH (q:SubQuery {corpus: $corpus}) WHERE NOT EXISTS { (:Step {corpus: $corpus})-[:ASKED]->(q) }
  RETURN 'orphan-subquery' AS invariant, q.memory AS uid
  UNION ALL
  MATCH (p:MemoryPoint {corpus: $corpus})
  WHERE NOT EXISTS { (m:Memory {corpus: $corpus})-[:HAS_POINT]->(p) WHERE m.uid = p.memory }
  RETURN 'orphan-point' AS invariant, p.uid AS uid
  UNION ALL
  MATCH (a:Answer {corpus: $corpus})
  WHERE NOT EXISTS { (m:Memory {corpus: $corpus})-[:HAS_ANSWER]->(a) WHERE m.uid = a.memory }
  RETURN 'orphan-answer' AS invariant, a.uid AS uid
  UNION ALL
  MATCH (q:Citation {corpus: $corpus}) WHERE NOT EXISTS { (:Answer {corpus: $corpus})-[:HAS_CITATION]->(q) }
  RETURN 'orphan-citation' AS invariant, q.uid AS uid
  UNION ALL
  MATCH (e:Entity {corpus: $corpus}) WHERE e.memory <> ''
  OPTIONAL MATCH (m:Memory {uid: e.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
  WITH e, m
  WHERE m IS NULL OR NOT EXISTS { (p:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(e) WHERE p.memory = e.memory }
    AND NOT EXISTS { (e)-[r:RELATES {corpus: $corpus}]-(:Entity {corpus: $corpus}) WHERE r.memory = e.memory }
  RETURN CASE WHEN m IS NULL THEN 'orphan-provisional' ELSE 'unused-provisional' END AS invariant, e.uid AS uid
  UNION ALL
  MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus}) WHERE r.memory <> ''
  OPTIONAL MATCH (m:Memory {uid: r.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
  WITH r, m WHERE m IS NULL
  RETURN 'orphan-relation' AS invariant, r.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: broken_citations(corpus, most) read
// Find citations whose `withdrawn` contradicts their chunk or built row, and quotes that are not in it.
CYPHER 25 MATCH (q:Citation {corpus: $corpus})
WITH q, COLLECT { MATCH (q)-[:CITES]->(c) WHERE c.corpus = $corpus RETURN c.text } AS texts
WITH q.uid AS uid, CASE
  WHEN (size(texts) = 1) = coalesce(q.withdrawn, false) THEN 'citation-source'
  WHEN any(text IN texts WHERE NOT text CONTAINS q.quote) THEN 'citation-quote' END AS invariant
WHERE invariant IS NOT NULL
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: broken_memories(corpus, memories, adding, most) read
// Find violations in the points and steps of these memories. Memories in `adding` keep the parts of merged points.
// What belongs to a point is reached from it alone, in any plan: a memory may have thousands of points.
CYPHER 25 UNWIND $memories AS memory
MATCH (m:Memory {uid: memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WITH DISTINCT m
CALL (m) {
  MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
  WHERE NOT EXISTS { MATCH (p)-[:INVOLVES]->(e) WHERE e.corpus = $corpus }
  RETURN 'point-without-entities' AS invariant, p.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus}) WHERE p.died < p.born
  RETURN 'point-died-before-born' AS invariant, p.uid AS uid
  UNION ALL
  WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.number } AS numbers
  MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
  WHERE NOT p.born IN numbers OR (p.died >= p.born AND NOT p.died IN numbers)
  RETURN 'point-without-step' AS invariant, p.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
  WHERE p.died >= p.born AND p.retired IS NULL AND NOT EXISTS {
    MATCH (p)-[:REVISED_AS|MERGED_INTO]->(new) WHERE new.corpus = $corpus
  }
  RETURN 'point-died-alone' AS invariant, p.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(part:MemoryPoint {corpus: $corpus})-[:MERGED_INTO]->(whole:MemoryPoint {corpus: $corpus})
  WHERE CASE WHEN m.uid IN $adding THEN part.died <= whole.born AND part.died >= part.born AND part.retired IS NULL
             ELSE part.died IS NULL OR (part.died <> whole.born AND part.died >= part.born) END
  RETURN DISTINCT 'merge-parts' AS invariant, part.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(old:MemoryPoint {corpus: $corpus})-[:REVISED_AS]->(new:MemoryPoint {corpus: $corpus})
  WHERE old.died IS NULL OR (old.died <> new.born AND old.died >= old.born)
  RETURN DISTINCT 'revised-version' AS invariant, old.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(whole:MemoryPoint {corpus: $corpus})
  WHERE EXISTS { MATCH (whole)<-[:MERGED_INTO]-(part) WHERE part.corpus = $corpus }
  WITH whole,
       COLLECT { MATCH (whole)-[:INVOLVES]->(e) WHERE e.corpus = $corpus RETURN DISTINCT e.uid } AS own,
       COLLECT { MATCH (whole)<-[:MERGED_INTO]-(part)-[:INVOLVES]->(e)
                 WHERE part.corpus = $corpus AND e.corpus = $corpus RETURN DISTINCT e.uid } AS united
  WHERE size(own) > 0 AND (any(uid IN own WHERE NOT uid IN united) OR any(uid IN united WHERE NOT uid IN own))
  RETURN 'merge-entities' AS invariant, whole.uid AS uid
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(whole:MemoryPoint {corpus: $corpus})
  WHERE EXISTS { MATCH (whole)<-[:MERGED_INTO]-(part) WHERE part.corpus = $corpus }
  WITH whole,
       COLLECT { MATCH (whole)-[:SUPPORTED_BY]->(c) WHERE c.corpus = $corpus RETURN DISTINCT c.uid } AS own,
       COLLECT { MATCH (whole)<-[:MERGED_INTO]-(part)-[:SUPPORTED_BY]->(c)
                 WHERE part.corpus = $corpus AND c.corpus = $corpus RETURN DISTINCT c.uid } AS united
  WHERE any(uid IN own WHERE NOT uid IN united) OR any(uid IN united WHERE NOT uid IN own)
  RETURN 'merge-chunks' AS invariant, whole.uid AS uid
  UNION ALL
  WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.number ORDER BY s.number } AS numbers
  WHERE numbers <> range(1, size(numbers))
  RETURN 'step-numbers' AS invariant, m.uid AS uid
  UNION ALL
  WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s ORDER BY s.number } AS steps
  UNWIND range(0, size(steps) - 1) AS i
  WITH m, steps[i] AS here, steps[i + 1] AS after
  WITH m, after, COLLECT { MATCH (here)-[:NEXT_STEP]->(next:Step {corpus: $corpus}) RETURN next.number } AS linked
  WHERE linked <> CASE WHEN after IS NULL THEN [] ELSE [after.number] END
  RETURN DISTINCT 'step-order' AS invariant, m.uid AS uid
}
RETURN invariant, count(uid) AS found, collect(uid)[..$most] AS uids;

// name: memory_page(corpus, after, most) read
// Return the next memories by uid, with what the checks need. Memories that are being pruned are not checked.
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus) WHERE m.uid > $after
WITH m ORDER BY m.uid LIMIT $most
RETURN m.uid AS uid, m.status AS status, m.settings AS settings,
       m.run IS NOT NULL AND m.status <> 'pruning' AS held,
       duration.inSeconds(m.heartbeat, datetime()).seconds AS silent
ORDER BY uid;

// name: entity_page(corpus, after, most) read
// Return the next entities by uid.
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus) WHERE e.uid > $after
WITH e.uid AS uid ORDER BY uid LIMIT $most
RETURN uid;

// name: relation_page(corpus, after, most) read
CYPHER 25 MATCH ()-[r:RELATES {corpus: $corpus}]->() USING INDEX r:RELATES(corpus) WHERE r.uid > $after
WITH r.uid AS uid ORDER BY uid LIMIT $most
RETURN uid;

// name: stored_entities(corpus, uids, dimensions) read
// Return the stored fields of entities. `embedded` says whether the index must contain the entity.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
RETURN e.uid AS uid, e.memory AS memory, e.name AS name, e.type AS type, e.description AS description,
       coalesce(size(e.embedding) = $dimensions, false) AS embedded;

// name: stored_relations(corpus, uids, dimensions) read
CYPHER 25 UNWIND $uids AS uid
MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
RETURN r.uid AS uid, r.memory AS memory, r.description AS description, r.keywords AS keywords, r.weight AS weight,
       coalesce(size(r.embedding) = $dimensions, false) AS embedded;

// name: stored_chunks(corpus, uids, dimensions) read
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
RETURN c.uid AS uid, c.status AS status, c.extraction AS extraction, c.messages AS messages, c.text AS text,
       c.stems AS stems, c.layer_key AS layer_key,
       coalesce(size(c.embedding) = $dimensions, false) AS embedded;

// name: stored_built(corpus, uids, dimensions) read
// Return what the uids and layers of built rows follow from. `embedded` says whether the index must contain the row.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
RETURN n.uid AS uid, n.system AS system, n.kind AS kind, n.key AS key, n.layer_key AS layer_key, labels(n) AS labels,
       n.text AS text, n.stems AS stems, n.learnt AS learnt,
       coalesce(size(n.embedding) = $dimensions, false) AS embedded;

// name: stored_units(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (u:Unit {uid: uid, corpus: $corpus}) USING INDEX u:Unit(uid)
RETURN u.uid AS uid, u.system AS system, u.stage AS stage, u.key AS key;

// name: stored_points(corpus, memories, dimensions) read
// Return the memories' points that the index must contain.
CYPHER 25 UNWIND $memories AS memory
MATCH (m:Memory {uid: memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WITH DISTINCT m MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
WHERE size(p.embedding) = $dimensions
RETURN p.uid AS uid;

// name: unfolded_chunks(corpus, rows) read
// Return the chunks that are missing from an entity or relation which their extraction names.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL (c, row) {
  UNWIND row.entities AS uid
  OPTIONAL MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
  WITH c, e WHERE e IS NULL OR NOT EXISTS { (e)-[:FROM_CHUNK]->(c) }
  RETURN c.uid AS unfolded
  UNION ALL
  UNWIND row.relations AS uid
  OPTIONAL MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
  WITH c, r WHERE r IS NULL OR NOT c.uid IN r.chunks
  RETURN c.uid AS unfolded
}
RETURN DISTINCT unfolded AS uid;

// name: indexed_entities(corpus, uids, vector, most) read
// Return those of the entities that the vector index returns when asked for as many as there are uids.
CYPHER 25 MATCH (e:Entity)
SEARCH e IN (VECTOR INDEX entity_embedding FOR $vector WHERE e.corpus = $corpus AND e.uid IN $uids LIMIT $most)
RETURN e.uid AS uid;

// name: indexed_relations(corpus, uids, vector, most) read
CYPHER 25 MATCH ()-[r:RELATES]->()
SEARCH r IN (VECTOR INDEX relation_embedding FOR $vector WHERE r.corpus = $corpus AND r.uid IN $uids LIMIT $most)
RETURN r.uid AS uid;

// name: indexed_chunks(corpus, uids, vector, most) read
CYPHER 25 MATCH (c:Chunk)
SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus AND c.uid IN $uids LIMIT $most)
RETURN c.uid AS uid;

// name: indexed_built(corpus, uids, vector, most) read
CYPHER 25 MATCH (n:Built)
SEARCH n IN (VECTOR INDEX built_embedding FOR $vector WHERE n.corpus = $corpus AND n.uid IN $uids LIMIT $most)
RETURN n.uid AS uid;

// name: indexed_points(corpus, memories, vector, most) read
// Return the memories' points that the vector index returns.
CYPHER 25 MATCH (p:MemoryPoint)
SEARCH p IN (VECTOR INDEX point_embedding FOR $vector WHERE p.corpus = $corpus AND p.memory IN $memories LIMIT $most)
RETURN p.uid AS uid;
