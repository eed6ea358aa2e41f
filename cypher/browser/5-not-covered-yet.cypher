// What memory does not cover yet: V_G − V_M, the entities around memory that no living point involves
// :param memory => 'm…'
MATCH (m:Memory {uid: $memory})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(v:Entity)
WHERE p.died IS NULL
WITH m, collect(DISTINCT v) AS covered
UNWIND covered AS v
MATCH (v)-[:RELATES]-(e:Entity {corpus: m.corpus, memory: ''}) WHERE NOT e IN covered
WITH covered, e, count(DISTINCT v) AS ties ORDER BY ties DESC, e.uid LIMIT 25
MATCH path = (e)-[:RELATES]-(v:Entity) WHERE v IN covered
MATCH tied = (v)<-[:INVOLVES]-(p:MemoryPoint {memory: $memory}) WHERE p.died IS NULL
RETURN path, tied
