// name: paint_entities(corpus, persons, organizations, places, events) auto
// Set the styling labels of entities by their types, because Browser styles nodes by label only. Returns how many
// changed.
CYPHER 25 MATCH (e:Entity {corpus: $corpus})
WITH e, toLower(e.type) AS type
WITH e, CASE WHEN type IN $persons THEN ['PersonEntity'] WHEN type IN $organizations THEN ['OrganizationEntity']
             WHEN type IN $places THEN ['PlaceEntity'] WHEN type IN $events THEN ['EventEntity'] ELSE [] END AS wanted
WHERE wanted <> [label IN labels(e) WHERE label IN ['PersonEntity', 'OrganizationEntity', 'PlaceEntity', 'EventEntity']]
CALL (e, wanted) {
  REMOVE e:PersonEntity:OrganizationEntity:PlaceEntity:EventEntity
  SET e:$(wanted)
} IN TRANSACTIONS OF 2000 ROWS
RETURN count(e) AS painted;

// name: pictured(corpus, memory) read
// Return what each favourite of cypher/browser/ that may be empty can draw of a memory.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WITH m LIMIT 1
RETURN
  COLLECT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
            WHERE EXISTS { (p)-[:INVOLVES]->(:Entity {corpus: $corpus}) }
            RETURN DISTINCT [p.born, p.died] AS life ORDER BY life } AS lives,
  COLLECT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})
            RETURN DISTINCT p.born AS born ORDER BY born } AS births,
  EXISTS { (m)-[:HAS_POINT]->(:MemoryPoint {corpus: $corpus})
           <-[:REVISED_AS|MERGED_INTO]-(:MemoryPoint {corpus: $corpus}) } AS lineage,
  EXISTS { MATCH (m)-[:HAS_ANSWER]->(:Answer {corpus: $corpus})-[:HAS_CITATION]->(:Citation {corpus: $corpus})
                 -[:CITES]->(:Chunk {corpus: $corpus}) } AS evidence,
  EXISTS { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(:Entity {corpus: $corpus})
                 <-[:INVOLVES]-(o:MemoryPoint {corpus: $corpus})
           WHERE p.died IS NULL AND o.died IS NULL AND o <> p AND o.memory = $memory } AS bridges,
  EXISTS { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(:Entity {corpus: $corpus})
                 -[:RELATES {corpus: $corpus}]-(e:Entity {corpus: $corpus, memory: ''})
           WHERE p.died IS NULL AND NOT EXISTS {
             MATCH (e)<-[:INVOLVES]-(o:MemoryPoint {corpus: $corpus}) WHERE o.died IS NULL AND o.memory = $memory
           } } AS uncovered,
  EXISTS { MATCH (:Entity {corpus: $corpus, memory: ''})-[:FROM_CHUNK]->(:Chunk {corpus: $corpus})
                 -[:FROM_DOCUMENT]->(:Document {corpus: $corpus}) } AS overview,
  EXISTS { MATCH (m)-[:HAS_POINT]->(:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(e)
           WHERE e.corpus = $corpus AND e.canonical_uid IS NOT NULL } AS classes,
  EXISTS { MATCH (o:Memory {uid: m.forked_from, corpus: $corpus}) USING INDEX o:Memory(uid)
           WITH COLLECT { MATCH (m)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus}) WHERE p.died IS NULL
                          RETURN toLower(p.description) AS said ORDER BY said } AS own,
                COLLECT { MATCH (o)-[:HAS_POINT]->(p:MemoryPoint {corpus: $corpus}) WHERE p.died IS NULL
                          RETURN toLower(p.description) AS said ORDER BY said } AS theirs
           WHERE own <> theirs RETURN 1 AS found } AS difference;
