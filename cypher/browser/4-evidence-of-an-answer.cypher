// Evidence of an answer: its quotes, their chunks, and the points that rest on these
// :param memory => 'm…'
MATCH path = (:Memory {uid: $memory})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(c:Chunk)
OPTIONAL MATCH source = (c)-[:FROM_DOCUMENT]->(:Document)
OPTIONAL MATCH support = (c)<-[:SUPPORTED_BY]-(p:MemoryPoint {memory: $memory}) WHERE p.died IS NULL
RETURN path, source, support
