// Writing an archive into an empty corpus, with one kind of record per statement. Referenced records are written first.
// Every property is named here, so a file can't add others.

// name: restore_documents(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CREATE (:Document {uid: row.uid, corpus: $corpus, title: row.title, source: row.source, sha256: row.sha256,
                   metadata: row.metadata, status: row.status, chunking: row.chunking,
                   message_number: row.message_number, indexed_at: datetime(row.indexed_at)});

// name: restore_chunks(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (d:Document {uid: row.document, corpus: $corpus}) USING INDEX d:Document(uid)
CREATE (c:Chunk {uid: row.uid, corpus: $corpus, document: row.document, position: row.position, text: row.text,
                 tokens: row.tokens, start: row.start, end: row.end, status: row.status, error: row.error,
                 attempts: row.attempts, extraction: row.extraction, source_id: row.source_id,
                 messages: row.messages, corpus_key: row.corpus_key})-[:FROM_DOCUMENT]->(d)
WITH c, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector);

// name: restore_order(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (a:Chunk {uid: row.source, corpus: $corpus}), (b:Chunk {uid: row.target, corpus: $corpus})
USING INDEX a:Chunk(uid) USING INDEX b:Chunk(uid)
CREATE (a)-[:NEXT_CHUNK]->(b);

// name: restore_entities(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CREATE (e:Entity {uid: row.uid, corpus: $corpus, memory: '', key: row.key, corpus_key: row.corpus_key,
                  name: row.name, type: row.type, description: row.description, given: row.given,
                  condensed: row.condensed, cut: row.cut, stale: row.stale})
WITH e, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector);

// name: restore_mentions(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.entity, corpus: $corpus}), (c:Chunk {uid: row.chunk, corpus: $corpus})
USING INDEX e:Entity(uid) USING INDEX c:Chunk(uid)
CREATE (e)-[:FROM_CHUNK]->(c);

// name: restore_provisionals(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CREATE (e:Entity:Provisional {uid: row.uid, corpus: $corpus, memory: row.memory, name: row.name, type: row.type,
                              description: row.description})
WITH e, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector);

// name: restore_relations(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (a:Entity {uid: row.source, corpus: $corpus}), (b:Entity {uid: row.target, corpus: $corpus})
USING INDEX a:Entity(uid) USING INDEX b:Entity(uid)
CREATE (a)-[r:RELATES {uid: row.uid, corpus: $corpus, memory: row.memory, description: row.description,
                       keywords: row.keywords, weight: row.weight, chunks: row.chunks, given: row.given,
                       condensed: row.condensed, cut: row.cut, stale: row.stale}]->(b)
WITH r, row WHERE row.vector IS NOT NULL
CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector);

// name: restore_memories(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CREATE (:Memory {uid: row.uid, corpus: $corpus, memory: row.uid, owner: row.owner, system: row.system, model: row.model,
                 question: row.question, latest: row.latest, settings: row.settings, filters: row.filters, status: row.status,
                 created_at: datetime(row.created_at)});

// name: restore_steps(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CREATE (m)-[:HAS_STEP]->(:Step {corpus: $corpus, memory: row.memory, number: row.number, question: row.question,
                                strategy: row.strategy, judgement: row.judgement, operations: row.operations,
                                planned: row.planned, filters: row.filters, notes: row.notes, seconds: row.seconds,
                                usage: row.usage, created_at: datetime(row.created_at)});

// name: restore_step_order(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CALL (m, row) {
  MATCH (m)-[:HAS_STEP]->(a:Step {corpus: $corpus}) WHERE a.number = row.source
  MATCH (m)-[:HAS_STEP]->(b:Step {corpus: $corpus}) WHERE b.number = row.target
  CREATE (a)-[:NEXT_STEP]->(b)
};

// name: restore_points(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: row.uid, corpus: $corpus, memory: row.memory, born: row.born,
                                         died: row.died, description: row.description,
                                         deleted_chunks: row.deleted_chunks})
FOREACH (_ IN CASE WHEN row.died IS NULL THEN [] ELSE [1] END | SET p:DeadPoint)
WITH p, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(p, 'embedding', row.vector);

// name: restore_involved(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (p:MemoryPoint {uid: row.point, corpus: $corpus}), (e:Entity {uid: row.entity, corpus: $corpus})
USING INDEX p:MemoryPoint(uid) USING INDEX e:Entity(uid)
CREATE (p)-[:INVOLVES]->(e);

// name: restore_supported(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (p:MemoryPoint {uid: row.point, corpus: $corpus}), (c:Chunk {uid: row.chunk, corpus: $corpus})
USING INDEX p:MemoryPoint(uid) USING INDEX c:Chunk(uid)
CREATE (p)-[:SUPPORTED_BY]->(c);

// name: restore_revised(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (a:MemoryPoint {uid: row.source, corpus: $corpus}), (b:MemoryPoint {uid: row.target, corpus: $corpus})
USING INDEX a:MemoryPoint(uid) USING INDEX b:MemoryPoint(uid)
CREATE (a)-[:REVISED_AS]->(b);

// name: restore_merged(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (a:MemoryPoint {uid: row.source, corpus: $corpus}), (b:MemoryPoint {uid: row.target, corpus: $corpus})
USING INDEX a:MemoryPoint(uid) USING INDEX b:MemoryPoint(uid)
CREATE (a)-[:MERGED_INTO]->(b);

// name: restore_subqueries(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CALL (m, row) {
  MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) WHERE s.number = row.step
  CREATE (s)-[:ASKED]->(:SubQuery {corpus: $corpus, memory: row.memory, number: row.number, text: row.text,
                                   concern: row.concern, strategy: row.strategy, relations: row.relations,
                                   built: row.built})
};

// name: restore_retrieved(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CALL (m, row) {
  MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:ASKED]->(q:SubQuery {corpus: $corpus})
  WHERE s.number = row.step AND q.number = row.number
  RETURN q LIMIT 1
}
CALL (q, row) {
  MATCH (e:Entity {uid: row.entity, corpus: $corpus}) USING INDEX e:Entity(uid)
  CREATE (q)-[:RETRIEVED {rank: row.rank, score: row.score}]->(e)
}
CALL (q, row) {
  MATCH (c:Chunk {uid: row.chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
  CREATE (q)-[:RETRIEVED {rank: row.rank, score: row.score}]->(c)
};

// name: restore_targets(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CALL (m, row) {
  MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:ASKED]->(q:SubQuery {corpus: $corpus})
  WHERE s.number = row.step AND q.number = row.number
  RETURN q LIMIT 1
}
MATCH (p:MemoryPoint {uid: row.point, corpus: $corpus}) USING INDEX p:MemoryPoint(uid)
CREATE (q)-[:TARGETS]->(p);

// name: restore_answers(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (m:Memory {uid: row.memory, corpus: $corpus}) USING INDEX m:Memory(uid)
CREATE (m)-[:HAS_ANSWER]->(:Answer {uid: row.uid, corpus: $corpus, memory: row.memory, question: row.question,
                                    text: row.text, status: row.status, step: row.step, model: row.model,
                                    notes: row.notes, seconds: row.seconds, usage: row.usage,
                                    created_at: datetime(row.created_at)});

// name: restore_citations(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (a:Answer {uid: row.answer, corpus: $corpus}) USING INDEX a:Answer(uid)
CREATE (a)-[:HAS_CITATION]->(:Citation {uid: row.uid, corpus: $corpus, memory: row.memory, marker: row.marker,
                                        chunk: row.chunk, document: row.document, title: row.title,
                                        quote: row.quote, start: row.start, end: row.end,
                                        source_id: row.source_id, built: row.built, behind: row.behind,
                                        message: row.message, speaker: row.speaker, time: row.time,
                                        withdrawn: row.withdrawn});

// name: restore_cited(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (q:Citation {uid: row.citation, corpus: $corpus}) USING INDEX q:Citation(uid)
CALL (row) {
  MATCH (x:Chunk {uid: row.chunk, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Built {uid: row.built, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
}
CREATE (q)-[:CITES]->(x);

// name: restore_builds(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CREATE (:Build {uid: row.uid, corpus: $corpus, system: row.system, status: row.status, settings: row.settings,
                model: row.model, change: row.change, created_at: datetime(row.created_at),
                finished_at: datetime(row.finished_at), changed_at: datetime(row.changed_at)});

// name: restore_units(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (b:Build {uid: row.build, corpus: $corpus}) USING INDEX b:Build(uid)
CREATE (b)-[:HAS_UNIT]->(:Unit {uid: row.uid, corpus: $corpus, system: row.system, stage: row.stage, key: row.key,
                                digest: row.digest, status: row.status, attempts: row.attempts, error: row.error,
                                output: row.output, document: row.document, inputs: row.inputs, calls: row.calls,
                                tokens: row.tokens});

// name: restore_built(corpus, rows) write
// Write built rows, each with its MADE. Labels and names of properties come as parameters that hgmem/corpus/archive/ has
// checked. Without its own vector, a row that had one gets an empty one, which says that it has to be computed again.
CYPHER 25 UNWIND $rows AS row
CREATE (n:Built {uid: row.uid, corpus: $corpus})
SET n:$(row.label)
SET n += row.own_properties
SET n.system = row.system, n.kind = row.label, n.key = row.key, n.layer_key = row.layer_key, n.text = row.text,
    n.document = row.document, n.learnt = row.learnt,
    n.own_embedding = CASE WHEN row.replaced_vectors AND row.own_vector IS NULL THEN [] END
WITH n, row
CALL (n, row) {
  MATCH (u:Unit {uid: row.unit, corpus: $corpus}) USING INDEX u:Unit(uid)
  CREATE (u)-[:MADE]->(n)
}
CALL (n, row) {
  WITH n, row WHERE row.vector IS NOT NULL
  CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)
}
CALL (n, row) {
  WITH n, row WHERE row.own_vector IS NOT NULL
  CALL db.create.setNodeVectorProperty(n, 'own_embedding', row.own_vector)
}
WITH n, row WHERE row.plain_vector IS NOT NULL
CALL db.create.setNodeVectorProperty(n, 'vector', row.plain_vector);

// name: restore_support(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  MATCH (n:Built {uid: row.source, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  UNION ALL MATCH (n:Unit {uid: row.source, corpus: $corpus}) USING INDEX n:Unit(uid) RETURN n
}
CALL (row) {
  MATCH (x:Chunk {uid: row.target, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Built {uid: row.target, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
  UNION ALL MATCH (x:Unit {uid: row.target, corpus: $corpus}) USING INDEX x:Unit(uid) RETURN x
}
CREATE (n)-[:RESTS_ON]->(x);

// name: restore_extensions(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH (u:Unit {uid: row.unit, corpus: $corpus}), (n:Built {uid: row.row, corpus: $corpus})
USING INDEX u:Unit(uid) USING INDEX n:Built(uid)
CREATE (u)-[:EXTENDS {vector: row.gives_vector}]->(n);

// name: restore_own_relationships(corpus, rows) write
// Write relationships of systems' own types, which hgmem/corpus/archive/ has checked.
CYPHER 25 UNWIND $rows AS row
MATCH (n:Built {uid: row.source, corpus: $corpus}) USING INDEX n:Built(uid)
WITH n, row
CALL (row) {
  MATCH (x:Built {uid: row.target, corpus: $corpus}) USING INDEX x:Built(uid) RETURN x
  UNION ALL MATCH (x:Chunk {uid: row.target, corpus: $corpus}) USING INDEX x:Chunk(uid) RETURN x
  UNION ALL MATCH (x:Entity {uid: row.target, corpus: $corpus}) USING INDEX x:Entity(uid) RETURN x
}
CREATE (n)-[r:$(row.type)]->(x)
SET r = row.own_properties, r.unit = row.unit;

// name: unmake_given_vectors(corpus) write
// Let the next build make the units anew whose vectors were not in the archive.
CYPHER 25 MATCH (b:Build {corpus: $corpus}) USING INDEX b:Build(corpus)
MATCH (b)-[:HAS_UNIT]->(u:Unit {corpus: $corpus})
WHERE EXISTS { (u)-[e:EXTENDS]->(:Built {corpus: $corpus}) WHERE e.vector }
SET u.status = 'stale', u.digest = NULL
WITH DISTINCT b
SET b.change = 'imported without vectors', b.changed_at = datetime(),
    b.status = CASE b.status WHEN 'ready' THEN 'stale' ELSE b.status END;

// name: finish_restoring(corpus, run, properties, archive) write
// Release the completely restored corpus, and set its original properties and the archive.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.run = NULL, k.heartbeat = NULL, k.status = 'ready', k.archive = $archive,
    k.settings = $properties.settings, k.schema_version = $properties.schema_version,
    k.imported = $properties.imported, k.created_at = datetime($properties.created_at)
RETURN k.name AS corpus;
