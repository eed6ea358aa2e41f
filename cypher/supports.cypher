// Which chunks the points of a memory lead to. Scores are cosine in [-1, 1].

// name: chunks_around_points(corpus, memory, points, read, k) read
// For each point the k chunks nearest to it among those read that mention its entities (inner), and as many among the
// rest that mention entities one relation away which memory does not involve (outer); the nearest first.
CYPHER 25 WITH COLLECT {
  UNWIND $points AS uid
  MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
  WITH DISTINCT p WHERE p.memory = $memory
  MATCH (p)-[:INVOLVES]->(v) WHERE v.corpus = $corpus
  RETURN DISTINCT v
} AS covered
UNWIND $points AS uid
MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
WITH p, covered WHERE p.memory = $memory
CALL (p, covered) {
  MATCH (p)-[:INVOLVES]->(v) WHERE v.corpus = $corpus
  CALL (v) {
    MATCH (v)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.uid IN $read
    RETURN collect(c) AS own
  }
  CALL (v, covered) {
    MATCH (v)-[r:RELATES]-(u)
    WITH r, u, r.corpus = $corpus AS ours, covered WHERE ours AND r.memory IN ['', $memory] AND u.memory IN ['', $memory]
      AND NOT u IN covered
    RETURN collect(DISTINCT u) AS around
  }
  WITH collect(own) AS own, collect(around) AS around
  RETURN COLLECT { UNWIND own AS some UNWIND some AS c RETURN DISTINCT c } AS inner,
         COLLECT { UNWIND around AS some UNWIND some AS u WITH DISTINCT u
                   MATCH (u)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.uid IN $read
                   RETURN DISTINCT c } AS beside
}
UNWIND [inner, [c IN beside WHERE NOT c IN inner]] AS some
CALL (p, some) {
  UNWIND some AS c
  WITH p, c WHERE c.embedding IS NOT NULL
  WITH c, 2 * vector.similarity.cosine(c.embedding, p.embedding) - 1 AS score
  RETURN c, score ORDER BY score DESC, c.uid LIMIT $k
}
WITH c, max(score) AS score
RETURN c.uid AS chunk ORDER BY score DESC, chunk;

// name: nearest_supports(corpus, memory, documents, points, vector) read
// For each point of a memory how near it is to a vector, and those of the chunks given with it that exist, the nearest
// to the point first. With `documents`, chunks of others are left out.
CYPHER 25 UNWIND $points AS row
MATCH (p:MemoryPoint {uid: row.uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
WITH p, row WHERE p.memory = $memory
RETURN p.uid AS point, 2 * vector.similarity.cosine(p.embedding, $vector) - 1 AS score, COLLECT {
  UNWIND row.chunks AS uid
  MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
  WHERE $documents IS NULL OR c.document IN $documents
  WITH DISTINCT p, c ORDER BY coalesce(vector.similarity.cosine(c.embedding, p.embedding), 0.0) DESC, c.uid
  RETURN c.uid
} AS chunks;

// name: chunks_beside(corpus, chunks, without, asked, k) read
// The k best of those right before or after one of these chunks in its document. A chunk's score is its nearness to the
// nearest of the vectors `asked`, and 0.05 for each of these chunks that its document has.
CYPHER 25 UNWIND $chunks AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
WITH c.document AS document, collect(DISTINCT c) AS own
UNWIND own AS c
MATCH (c)-[:NEXT_CHUNK]-(beside)
WITH DISTINCT beside, size(own) AS many
WHERE beside.corpus = $corpus AND beside.embedding IS NOT NULL AND NOT beside.uid IN $without
UNWIND $asked AS vector
WITH beside, many, max(2 * vector.similarity.cosine(beside.embedding, vector) - 1) AS near
WITH beside, near + 0.05 * many AS score
RETURN beside.uid AS chunk ORDER BY score DESC, chunk LIMIT $k;
