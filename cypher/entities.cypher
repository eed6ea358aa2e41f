// Entities and relations. Their fields are a pure function of the contributions of chunks and pre-built graphs
// (hgmem/extraction/contributions.py). These statements lock, read the contributions, and write the result.

// name: touch_entities(corpus, rows) write
// Create missing entities, link them to the chunks that mention them, and lock them. Returns rows as
// `entity_contributions` does, and whether each is `new`: it has no name until `write_entities` gives it one.
CYPHER 25 UNWIND $rows AS row
MERGE (e:Entity {uid: row.uid, corpus: $corpus})
ON CREATE SET e.memory = '', e.key = row.key
SET e.key = e.key
CALL (e, row) {
  UNWIND row.chunks AS chunk
  MATCH (c:Chunk {uid: chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
  SET c.status = c.status // takes the lock: whoever deletes the chunk sees this entity, or was there before
  MERGE (e)-[:FROM_CHUNK]->(c)
}
WITH DISTINCT e
WITH e, COLLECT { MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus}) RETURN c ORDER BY c.uid } AS sources
RETURN e.uid AS uid, e.name IS NULL AS new, e.key AS key, e.given AS given, e.condensed AS condensed,
       [c IN sources | c.uid] AS chunks, [c IN sources WHERE c.extraction IS NOT NULL | c.uid] AS extracted;

// name: known_entities(corpus, uids) read
// Return those of the entities that exist.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
RETURN e.uid AS uid;

// name: entity_contributions(corpus, uids) read
// Return each entity's pre-built contributions (`given`), its summary (`condensed`), the chunks that mention it, and
// those of them with an extraction.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
WITH e, COLLECT { MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus}) RETURN c ORDER BY c.uid } AS sources
RETURN e.uid AS uid, e.key AS key, e.given AS given, e.condensed AS condensed,
       [c IN sources | c.uid] AS chunks, [c IN sources WHERE c.extraction IS NOT NULL | c.uid] AS extracted;

// name: chunk_extractions(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
RETURN c.uid AS uid, c.extraction AS extraction;

// name: write_entities(corpus, rows) write
// Write the computed fields and the pre-built contributions. A vector whose text changed is dropped, and a vector in
// the row replaces it. `cut` marks a truncated description that a model is to summarize.
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.uid, corpus: $corpus}) USING INDEX e:Entity(uid)
FOREACH (_ IN CASE WHEN e.name = row.name AND e.description = row.description THEN [] ELSE [1] END |
  SET e.embedding = NULL)
SET e.name = row.name, e.type = row.type, e.description = row.description, e.given = row.given,
    e.condensed = row.condensed, e.cut = row.cut, e.stale = NULL
WITH e, row WHERE row.vector IS NOT NULL
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector);

// name: create_entities(corpus, rows) write
// Create complete entities in an empty corpus: fields, pre-built contributions, chunks and vector.
CYPHER 25 UNWIND $rows AS row
CREATE (e:Entity {uid: row.uid, corpus: $corpus, memory: '', key: row.key,
                  name: row.name, type: row.type, description: row.description, given: row.given,
                  condensed: row.condensed, cut: row.cut})
WITH e, row
CALL (e, row) {
  UNWIND row.chunks AS chunk
  MATCH (c:Chunk {uid: chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
  CREATE (e)-[:FROM_CHUNK]->(c)
}
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector);

// name: remove_entities(corpus, uids) write
// Delete entities without contributions. Those that a memory involves become provisional entities of that memory.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
CALL (e) {
  MATCH (p:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(e)
  WITH e, p.memory AS memory, collect(p) AS points
  MERGE (kept:Entity {uid: memory + '-' + e.uid, corpus: $corpus})
  ON CREATE SET kept.memory = memory, kept.name = e.name, kept.type = e.type,
                kept.description = e.description, kept:Provisional
  FOREACH (p IN points | MERGE (p)-[:INVOLVES]->(kept))
  WITH e, kept WHERE e.embedding IS NOT NULL
  CALL db.create.setNodeVectorProperty(kept, 'embedding', e.embedding)
}
DETACH DELETE e;

// name: touch_relations(corpus, rows) write
// Create missing relations, add the chunks that state them, and lock both ends. Returns rows as
// `relation_contributions` does.
CYPHER 25 UNWIND $rows AS row
MATCH (a:Entity {uid: row.source, corpus: $corpus}), (b:Entity {uid: row.target, corpus: $corpus})
USING INDEX a:Entity(uid) USING INDEX b:Entity(uid)
SET a.key = a.key, b.key = b.key
MERGE (a)-[r:RELATES {uid: row.uid, corpus: $corpus}]->(b)
ON CREATE SET r.memory = '', r.chunks = []
SET r.chunks = r.chunks + [chunk IN row.chunks WHERE NOT chunk IN r.chunks]
WITH DISTINCT a, r, b
WITH a, r, b, COLLECT { UNWIND r.chunks AS chunk
                        MATCH (c:Chunk {uid: chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
                        RETURN c ORDER BY c.uid } AS sources
RETURN r.uid AS uid, r.given AS given, r.condensed AS condensed, coalesce(r.chunks, []) AS chunks,
       a.key AS source, b.key AS target, [c IN sources | c.uid] AS living,
       [c IN sources WHERE c.extraction IS NOT NULL | c.uid] AS extracted;

// name: known_relations(corpus, uids) read
// Return those of the relations that exist.
CYPHER 25 UNWIND $uids AS uid
MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
RETURN r.uid AS uid;

// name: relation_contributions(corpus, uids) read
// Return each relation's pre-built contributions (`given`), its summary (`condensed`), its ends, the chunks that state
// it, those that still exist (`living`), and those with an extraction.
CYPHER 25 UNWIND $uids AS uid
MATCH (a:Entity {corpus: $corpus})-[r:RELATES {uid: uid, corpus: $corpus}]->(b:Entity {corpus: $corpus})
USING INDEX r:RELATES(uid)
WITH a, r, b, COLLECT { UNWIND r.chunks AS chunk
                        MATCH (c:Chunk {uid: chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
                        RETURN c ORDER BY c.uid } AS sources
RETURN r.uid AS uid, r.given AS given, r.condensed AS condensed, coalesce(r.chunks, []) AS chunks,
       a.key AS source, b.key AS target, [c IN sources | c.uid] AS living,
       [c IN sources WHERE c.extraction IS NOT NULL | c.uid] AS extracted;

// name: write_relations(corpus, rows) write
// Write the computed fields and the pre-built contributions. A vector whose text changed is dropped, and a vector in
// the row replaces it.
CYPHER 25 UNWIND $rows AS row
MATCH ()-[r:RELATES {uid: row.uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
FOREACH (_ IN CASE WHEN r.description = row.description AND r.keywords = row.keywords THEN [] ELSE [1] END |
  SET r.embedding = NULL)
SET r.description = row.description, r.keywords = row.keywords, r.weight = row.weight, r.chunks = row.chunks,
    r.given = row.given, r.condensed = row.condensed, r.cut = row.cut, r.stale = NULL
WITH r, row WHERE row.vector IS NOT NULL
CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector);

// name: create_relations(corpus, rows) write
// Create complete relations in an empty corpus.
CYPHER 25 UNWIND $rows AS row
MATCH (a:Entity {uid: row.source, corpus: $corpus}), (b:Entity {uid: row.target, corpus: $corpus})
USING INDEX a:Entity(uid) USING INDEX b:Entity(uid)
CREATE (a)-[r:RELATES {uid: row.uid, corpus: $corpus, memory: '', description: row.description,
                       keywords: row.keywords, weight: row.weight, chunks: row.chunks, given: row.given,
                       condensed: row.condensed, cut: row.cut}]->(b)
WITH r, row
CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector);

// name: remove_relations(corpus, uids) write
CYPHER 25 UNWIND $uids AS uid
MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
DELETE r;

// name: joined_entities(corpus, uids) read
// Return those of the entities that a relation of the corpus still joins.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
WHERE EXISTS { (e)-[r:RELATES {corpus: $corpus}]-(:Entity {corpus: $corpus}) WHERE r.memory = '' }
RETURN e.uid AS uid, e.key AS key, e.name AS name, e.type AS type;

// name: mark_stale(corpus, entities, relations) write
// Mark entities and relations of deleted chunks as needing recomputation.
CYPHER 25 CALL () {
  UNWIND $entities AS uid
  MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
  SET e.stale = true
}
CALL () {
  UNWIND $relations AS uid
  MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
  SET r.stale = true
};

// name: take_back(corpus, rows, relations) write
// Remove what chunks no longer contribute: their support of entities and of `relations` that are not in the row's lists.
CYPHER 25 UNWIND $rows AS row
MATCH (c:Chunk {uid: row.uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
CALL (c, row) {
  MATCH (c)<-[mention:FROM_CHUNK]-(e:Entity {corpus: $corpus}) WHERE NOT e.uid IN row.entities
  DELETE mention
}
CALL (row) {
  UNWIND $relations AS uid
  MATCH ()-[r:RELATES {uid: uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
  WHERE row.uid IN r.chunks AND NOT uid IN row.relations
  SET r.chunks = [chunk IN r.chunks WHERE chunk <> row.uid]
};

// name: stale(corpus) read
// Return the entities and relations that an interrupted run left in need of recomputation.
CYPHER 25
RETURN COLLECT { MATCH (e:Entity {corpus: $corpus}) WHERE e.memory = '' AND e.stale
                 RETURN e.uid } AS entities,
       COLLECT { MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
                 WHERE r.memory = '' AND r.stale
                 RETURN r.uid } AS relations;

// name: unembedded(corpus) read
// Return the corpus's entities and relations that an interrupted run left without a vector.
CYPHER 25
RETURN COLLECT { MATCH (e:Entity {corpus: $corpus}) WHERE e.memory = '' AND e.embedding IS NULL
                 RETURN e.uid } AS entities,
       COLLECT { MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
                 WHERE r.memory = '' AND r.embedding IS NULL
                 RETURN r.uid } AS relations;

// name: cut_descriptions(corpus) read
// Return the corpus's entities and relations with a truncated description that a model is to summarize.
CYPHER 25
RETURN COLLECT { MATCH (e:Entity {corpus: $corpus}) WHERE e.memory = '' AND e.cut
                 RETURN e.uid ORDER BY e.uid } AS entities,
       COLLECT { MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
                 WHERE r.memory = '' AND r.cut
                 RETURN r.uid ORDER BY r.uid } AS relations;

// name: missing_entity_vectors(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.embedding IS NULL
RETURN e.uid AS uid, e.name AS name, e.description AS description;

// name: put_entity_vectors(corpus, rows) write
// Write the vectors of texts that are still the entities' own.
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.uid, corpus: $corpus}) USING INDEX e:Entity(uid)
SET e.key = e.key // takes the lock before the text is read
WITH e, row WHERE e.name = row.name AND e.description = row.description
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector);

// name: missing_relation_vectors(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (a:Entity {corpus: $corpus})-[r:RELATES {uid: uid, corpus: $corpus}]->(b:Entity {corpus: $corpus})
USING INDEX r:RELATES(uid)
WHERE r.embedding IS NULL
RETURN r.uid AS uid, a.key AS source, b.key AS target, r.description AS description, r.keywords AS keywords;

// name: put_relation_vectors(corpus, rows) write
CYPHER 25 UNWIND $rows AS row
MATCH ()-[r:RELATES {uid: row.uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
SET r.memory = r.memory // takes the lock before the text is read
WITH r, row WHERE r.description = row.description AND r.keywords = row.keywords
CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector);

// name: lock_entities(corpus, uids) write
// Lock the entities until the transaction ends.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
SET e.key = e.key;

// name: count_entities(corpus, most) read
// Count the corpus's entities, up to `most`.
CYPHER 25 replan=skip CALL () {
  MATCH (e:Entity {corpus: $corpus}) WHERE e.memory = ''
  RETURN e LIMIT $most
}
RETURN count(e) AS entities;
