// Difference of two memories: active points of each that say what no active point of the other does
// :param memory => 'm…'  :param other => 'm…'
MATCH (other:Memory {uid: $other})
MATCH (m:Memory)-[:HAS_POINT]->(p:MemoryPoint) WHERE m.uid IN [$memory, other.uid] AND p.died IS NULL
WITH p, toLower(p.description) AS said,
     COLLECT { MATCH (p)-[:INVOLVES]->(e:Entity) RETURN DISTINCT toLower(e.name) AS name ORDER BY name } AS names
WITH said, names, collect(p) AS same, count(DISTINCT p.memory) AS memories WHERE memories = 1
UNWIND same AS p
MATCH path = (:Memory)-[:HAS_POINT]->(p)-[:INVOLVES]->(:Entity)
RETURN path
