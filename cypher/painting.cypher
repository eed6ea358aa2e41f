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
