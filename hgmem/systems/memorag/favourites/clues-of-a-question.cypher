// The clues of a question, and the chunks that each of them found
// :param memory => 'm…'
MATCH path = (:Memory {uid: $memory})-[:HAS_STEP]->(:Step)-[:ASKED]->(q:SubQuery)
OPTIONAL MATCH found = (q)-[:RETRIEVED]->(:Chunk)
RETURN path, found
