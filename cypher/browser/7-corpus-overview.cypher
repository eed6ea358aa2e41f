// Corpus overview: the entities that most chunks name, with the documents of these chunks
// :param memory => 'm…'
MATCH (m:Memory {uid: $memory})
CALL (m) {
  MATCH (e:Entity {corpus: m.corpus, memory: ''})-[:FROM_CHUNK]->(c:Chunk)
  WITH e, count(c) AS chunks ORDER BY chunks DESC, e.uid LIMIT 12
  RETURN e
}
MATCH path = (e)-[:FROM_CHUNK]->(:Chunk)-[:FROM_DOCUMENT]->(:Document)
RETURN path LIMIT 200
