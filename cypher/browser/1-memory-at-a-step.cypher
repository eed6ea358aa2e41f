// Memory at the end of a step
// :param memory => 'm…'  :param step => 2
MATCH path = (:Memory {uid: $memory})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(:Entity)
WHERE p.born <= $step AND (p.died IS NULL OR p.died > $step)
RETURN path
