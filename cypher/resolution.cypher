// Decisions on whether two entities are the same, and the classes that follow from them (hgmem/values/decisions.py).
// Whoever writes a decision or a class has locked the corpus.

// name: decisions_of(corpus, uids) read
// Return the decisions on these entities, and whether the entities of each exist (`alive`, uids).
CYPHER 25 UNWIND $uids AS uid
CALL (uid) {
  MATCH (d:Decision {a: uid, corpus: $corpus}) USING INDEX d:Decision(a) RETURN d
  UNION ALL MATCH (d:Decision {b: uid, corpus: $corpus}) USING INDEX d:Decision(b) RETURN d
}
WITH DISTINCT d
RETURN d {.uid, .a, .b, .name_a, .name_b, .kind, .by, .reason, .evidence, .confidence,
          created_at: toString(d.created_at)} AS decision,
       COLLECT { UNWIND [d.a, d.b] AS end
                 MATCH (e:Entity {uid: end, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.memory = ''
                 RETURN e.uid } AS alive
ORDER BY decision.uid;

// name: every_decision(corpus) read
// Return every decision, as `decisions_of` does.
CYPHER 25 MATCH (d:Decision {corpus: $corpus}) USING INDEX d:Decision(corpus)
RETURN d {.uid, .a, .b, .name_a, .name_b, .kind, .by, .reason, .evidence, .confidence,
          created_at: toString(d.created_at)} AS decision,
       COLLECT { UNWIND [d.a, d.b] AS end
                 MATCH (e:Entity {uid: end, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.memory = ''
                 RETURN e.uid } AS alive
ORDER BY decision.uid;

// name: decided_entities(corpus, uids) read
// Return those of the entities that a decision names.
CYPHER 25 UNWIND $uids AS uid
WITH uid WHERE EXISTS { MATCH (d:Decision {a: uid, corpus: $corpus}) USING INDEX d:Decision(a) }
            OR EXISTS { MATCH (d:Decision {b: uid, corpus: $corpus}) USING INDEX d:Decision(b) }
RETURN uid;

// name: write_decisions(corpus, rows) write
// Write decisions, made now unless `created_at` says when. One of the same author on the same two entities is replaced.
CYPHER 25 UNWIND $rows AS row
MERGE (d:Decision {uid: row.uid, corpus: $corpus})
SET d += row, d.created_at = coalesce(datetime(row.created_at), datetime());

// name: delete_decisions(corpus, uids) write
CYPHER 25 UNWIND $uids AS uid
MATCH (d:Decision {uid: uid, corpus: $corpus}) USING INDEX d:Decision(uid)
DELETE d;

// name: write_classes(corpus, rows) write
// Write the class (`canonical`, null for none) of each of these entities.
CYPHER 25 UNWIND $rows AS row
MATCH (e:Entity {uid: row.uid, corpus: $corpus}) USING INDEX e:Entity(uid)
WHERE coalesce(e.canonical_uid, '') <> coalesce(row.canonical, '')
SET e.canonical_uid = row.canonical
WITH e, row
CALL (e) {
  MATCH (e)-[alias:ALIAS_OF]->(:Entity {corpus: $corpus})
  DELETE alias
}
WITH e, row WHERE row.canonical <> row.uid
MATCH (main:Entity {uid: row.canonical, corpus: $corpus}) USING INDEX main:Entity(uid)
CREATE (e)-[:ALIAS_OF]->(main);

// name: classed_entities(corpus) read
// Return the class that each entity of one has.
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus)
WHERE e.canonical_uid IS NOT NULL
RETURN e.uid AS uid, e.canonical_uid AS canonical;

// name: entities_named(corpus, uids) read
// Return those of the entities that exist, with their names.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.memory = ''
RETURN e.uid AS uid, e.name AS name;

// name: entity_names(corpus, after, most) read
// Return entities by uid, after one: names, types, the number of chunks that mention each, and whether one was extracted
// from: others were brought with a graph.
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus) WHERE e.memory = '' AND e.uid > $after
WITH e ORDER BY e.uid LIMIT $most
CALL (e) {
  MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus})
  RETURN count(c) AS chunks, count(c.extraction) > 0 AS extracted
}
RETURN e.uid AS uid, e.name AS name, e.type AS type, chunks, extracted
ORDER BY uid;

// name: entity_surroundings(corpus, uids, most) read
// Return of each entity the documents that mention it and the entities that relations tie it to, `most` of each.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
RETURN e.uid AS uid,
       COLLECT { MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus}) RETURN DISTINCT c.document LIMIT $most } AS documents,
       COLLECT { MATCH (e)-[r:RELATES {corpus: $corpus}]-(x:Entity {corpus: $corpus}) WHERE r.memory = ''
                 RETURN DISTINCT x.uid LIMIT $most } AS neighbours;

// name: entity_descriptions(corpus, uids) read
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
RETURN e.uid AS uid, e.description AS description;

// name: entity_passages(corpus, uids, most) read
// Return entities with `most` of the chunks that mention each, by document and position.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
RETURN e.uid AS uid, e.name AS name, e.type AS type, e.description AS description,
       COLLECT { MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus})
                 WITH c ORDER BY c.document, c.position LIMIT $most
                 RETURN {uid: c.uid, text: c.text} } AS chunks;
