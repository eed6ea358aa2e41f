// name: paint_entities(corpus, persons, organizations, places, events) auto
// Second labels for pictures, after the types of entities: Browser's styles go by label alone. Returns how many changed.
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

// name: paint_points(corpus) auto
// The label of dead points, for those that died before there was one.
CYPHER 25 MATCH (p:MemoryPoint {corpus: $corpus}) WHERE (p.died IS NULL) = ('DeadPoint' IN labels(p))
CALL (p) {
  REMOVE p:DeadPoint
  FOREACH (_ IN CASE WHEN p.died IS NULL THEN [] ELSE [1] END | SET p:DeadPoint)
} IN TRANSACTIONS OF 2000 ROWS
RETURN count(p) AS painted;

// name: pictured(corpus, memory) read
// What there is to draw of a memory: for each favourite of cypher/browser/ that may come back empty, what it needs.
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
                 -[:FROM_DOCUMENT]->(:Document {corpus: $corpus}) } AS overview;
