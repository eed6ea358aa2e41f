// Bridges: entities that several living points share
// :param memory => 'm…'
MATCH (:Memory {uid: $memory})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(e:Entity)
WHERE p.died IS NULL
WITH e, collect(p) AS points WHERE size(points) > 1
MATCH path = (e)<-[:INVOLVES]-(p:MemoryPoint) WHERE p IN points
RETURN path
