// The statements of the system `headings`.

// name: headings_chunks(corpus, uids, vector, k) read
// Return the k chunks nearest to a vector of those that each section and the sections below it cover: the first of
// each section, then the second of each, and so on.
CYPHER 25 UNWIND range(0, size($uids) - 1) AS rank
MATCH (top:Built {uid: $uids[rank], corpus: $corpus}) USING INDEX top:Built(uid)
CALL (top) {
  MATCH (top)<-[:IN_SECTION]-{0,8}(s:Built WHERE s.corpus = $corpus)-[:RESTS_ON]->(c:Chunk WHERE c.corpus = $corpus)
  WITH DISTINCT c WHERE c.embedding IS NOT NULL
  WITH c, 2 * vector.similarity.cosine(c.embedding, $vector) - 1 AS score ORDER BY score DESC, c.uid LIMIT $k
  WITH collect({uid: c.uid, score: score}) AS nearest
  UNWIND range(0, size(nearest) - 1) AS place
  RETURN nearest[place].uid AS uid, nearest[place].score AS score, place
}
RETURN uid, score ORDER BY place, rank;

// name: headings_outline(corpus, depth) read
// Return all sections in the order of documents and chunks: document, indented heading, number of chunks.
CYPHER 25 MATCH (s:Built {corpus: $corpus}) USING INDEX s:Built(corpus)
WHERE s.system = 'headings' AND s.level <= $depth
MATCH (s)-[:RESTS_ON]->(c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT]->(d:Document {corpus: $corpus})
WITH s, d, min(c.position) AS first, count(c) AS chunks
ORDER BY d.title, d.uid, first, s.place, s.level
RETURN coalesce(d.title, '') AS document, left('            ', 2 * s.level - 2) + s.heading AS section, chunks;
