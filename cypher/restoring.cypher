// Writing an archive into an empty corpus. What is referred to is written first. Labels, relationship types and names of
// properties are those of hgmem/graph/record_types.py; of a system's own, hgmem/corpus/archive/ has checked the names.

// name: restore_nodes(corpus, rows) write
// Write nodes, each with its labels, properties, times and vectors. Steps and sub-queries have no uid, by which they
// could be found again: they are tied to what they belong to at once, the memory (`step_of`) or the step
// (`subquery_of`: the uid of the memory and the step's number).
CYPHER 25 UNWIND $rows AS row
CREATE (n {corpus: $corpus})
SET n:$(row.labels)
SET n += row.properties
FOREACH (name IN keys(row.times) | SET n[name] = datetime(row.times[name]))
CALL (n, row) {
  UNWIND keys(row.vectors) AS name
  CALL db.create.setNodeVectorProperty(n, name, row.vectors[name])
}
CALL (n, row) {
  MATCH (m:Memory {uid: row.step_of, corpus: $corpus}) USING INDEX m:Memory(uid)
  CREATE (m)-[:HAS_STEP]->(n)
}
CALL (n, row) {
  MATCH (m:Memory {uid: row.subquery_of[0], corpus: $corpus}) USING INDEX m:Memory(uid)
  MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) WHERE s.number = row.subquery_of[1]
  CREATE (s)-[:ASKED]->(n)
};

// name: restore_relationships(corpus, type, rows) write
// Write relationships of one type. `source` and `target` name nodes by label and uid, such as `{Chunk: uid}`, a step by
// the uid of its memory and its number, and a sub-query by these and its own number.
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  MATCH (a:Chunk {uid: row.source.Chunk, corpus: $corpus}) USING INDEX a:Chunk(uid) RETURN a
  UNION ALL MATCH (a:Entity {uid: row.source.Entity, corpus: $corpus}) USING INDEX a:Entity(uid) RETURN a
  UNION ALL MATCH (a:Build {uid: row.source.Build, corpus: $corpus}) USING INDEX a:Build(uid) RETURN a
  UNION ALL MATCH (a:Unit {uid: row.source.Unit, corpus: $corpus}) USING INDEX a:Unit(uid) RETURN a
  UNION ALL MATCH (a:Built {uid: row.source.Built, corpus: $corpus}) USING INDEX a:Built(uid) RETURN a
  UNION ALL MATCH (a:Memory {uid: row.source.Memory, corpus: $corpus}) USING INDEX a:Memory(uid) RETURN a
  UNION ALL MATCH (a:MemoryPoint {uid: row.source.MemoryPoint, corpus: $corpus}) USING INDEX a:MemoryPoint(uid) RETURN a
  UNION ALL MATCH (a:Answer {uid: row.source.Answer, corpus: $corpus}) USING INDEX a:Answer(uid) RETURN a
  UNION ALL MATCH (a:Citation {uid: row.source.Citation, corpus: $corpus}) USING INDEX a:Citation(uid) RETURN a
  UNION ALL MATCH (m:Memory {uid: row.source.Step[0], corpus: $corpus}) USING INDEX m:Memory(uid)
  MATCH (m)-[:HAS_STEP]->(a:Step {corpus: $corpus}) WHERE a.number = row.source.Step[1] RETURN a
  UNION ALL MATCH (m:Memory {uid: row.source.SubQuery[0], corpus: $corpus}) USING INDEX m:Memory(uid)
  MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus})-[:ASKED]->(a:SubQuery {corpus: $corpus})
  WHERE s.number = row.source.SubQuery[1] AND a.number = row.source.SubQuery[2] RETURN a
}
CALL (row) {
  MATCH (b:Document {uid: row.target.Document, corpus: $corpus}) USING INDEX b:Document(uid) RETURN b
  UNION ALL MATCH (b:Chunk {uid: row.target.Chunk, corpus: $corpus}) USING INDEX b:Chunk(uid) RETURN b
  UNION ALL MATCH (b:Entity {uid: row.target.Entity, corpus: $corpus}) USING INDEX b:Entity(uid) RETURN b
  UNION ALL MATCH (b:Unit {uid: row.target.Unit, corpus: $corpus}) USING INDEX b:Unit(uid) RETURN b
  UNION ALL MATCH (b:Built {uid: row.target.Built, corpus: $corpus}) USING INDEX b:Built(uid) RETURN b
  UNION ALL MATCH (b:MemoryPoint {uid: row.target.MemoryPoint, corpus: $corpus}) USING INDEX b:MemoryPoint(uid) RETURN b
  UNION ALL MATCH (b:Answer {uid: row.target.Answer, corpus: $corpus}) USING INDEX b:Answer(uid) RETURN b
  UNION ALL MATCH (b:Citation {uid: row.target.Citation, corpus: $corpus}) USING INDEX b:Citation(uid) RETURN b
  UNION ALL MATCH (m:Memory {uid: row.target.Step[0], corpus: $corpus}) USING INDEX m:Memory(uid)
  MATCH (m)-[:HAS_STEP]->(b:Step {corpus: $corpus}) WHERE b.number = row.target.Step[1] RETURN b
}
CREATE (a)-[r:$($type)]->(b)
SET r = row.properties
CALL (r, row) {
  UNWIND keys(row.vectors) AS name
  CALL db.create.setRelationshipVectorProperty(r, name, row.vectors[name])
};

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
    k.imported = $properties.imported, k.language = $properties.language, k.created_at = datetime($properties.created_at)
RETURN k.name AS corpus;
