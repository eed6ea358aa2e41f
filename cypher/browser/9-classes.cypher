// Classes: entities of memory that have several names, and the decisions that say why
// :param memory => 'm…'
MATCH (m:Memory {uid: $memory})-[:HAS_POINT]->(:MemoryPoint)-[:INVOLVES]->(v:Entity)
WITH DISTINCT m.corpus AS corpus, v.canonical_uid AS class WHERE class IS NOT NULL
MATCH path = (e:Entity {canonical_uid: class})-[:ALIAS_OF]->(:Entity)
OPTIONAL MATCH (d:Decision {corpus: corpus}) WHERE d.a = e.uid OR d.b = e.uid
RETURN path, d
