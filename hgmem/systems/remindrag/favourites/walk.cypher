// The walk of a question, step by step: where it went, why, and what it read there
// :param memory => 'm…'
MATCH (:Memory {uid: $memory})-[:HAS_STEP]->(s:Step)-[:ASKED]->(q:SubQuery)
OPTIONAL MATCH (q)-[:RETRIEVED]->(e:Entity)
OPTIONAL MATCH (q)-[:RETRIEVED]->(c:Chunk)
RETURN s.number AS step, s.strategy AS strategy, q.text AS place, q.concern AS why, collect(DISTINCT e.name) AS entities,
       count(DISTINCT c) AS chunks
ORDER BY step
