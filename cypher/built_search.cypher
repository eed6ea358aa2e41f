// Searches of what systems have built, and the way back to the chunks that it rests on.

// name: near_built(corpus, system, kind, documents, vector, k, over) read
// Return the k rows of a kind nearest to a vector. With `documents`, those that rest on another don't count.
CYPHER 25 CALL () {
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = $system AND n.kind = $kind LIMIT $over) SCORE AS s
  RETURN n, 2 * s - 1 AS score
  UNION ALL
  WITH $documents AS documents WHERE documents IS NOT NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = $system AND n.kind = $kind AND n.document IN documents
               LIMIT $over) SCORE AS s
  RETURN n, 2 * s - 1 AS score
}
WITH n, score WHERE n.uid IS NOT NULL // one that is being deleted may still be found
ORDER BY score DESC, n.uid LIMIT $k
RETURN score, n {.*, embedding: NULL, own_embedding: NULL, vector: NULL} AS row
ORDER BY score DESC, row.uid;

// name: worded_built(corpus, documents, lucene, k) read
// Return the k rows that fit a full-text query best, as Lucene ranks them.
CYPHER 25 MATCH (n:Built)
SEARCH n IN (FULLTEXT INDEX built_text FOR $lucene LIMIT $k) SCORE AS score
WHERE n.corpus = $corpus AND ($documents IS NULL OR n.document IN $documents)
RETURN score, n {.*, embedding: NULL, own_embedding: NULL, vector: NULL} AS row
ORDER BY score DESC, row.uid;

// name: chunks_beneath(corpus, uids) read
// Return the chunks that each row rests on, directly or through other rows, in the order of documents and positions.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
MATCH (n)-[:RESTS_ON]->{1,10}(c:Chunk WHERE c.corpus = $corpus)
WITH DISTINCT uid, c ORDER BY c.document, c.position, c.uid
RETURN uid, collect(c.uid) AS chunks;

// name: nearest_beneath(corpus, uids, vector, k) read
// Return for each row the k chunks nearest to a vector among those that it rests on, directly or through other rows.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH DISTINCT n
CALL (n) {
  MATCH (n)-[:RESTS_ON]->{1,10}(c:Chunk WHERE c.corpus = $corpus)
  WITH DISTINCT c WHERE c.embedding IS NOT NULL
  WITH c, vector.similarity.cosine(c.embedding, $vector) AS score ORDER BY score DESC, c.uid LIMIT $k
  RETURN collect(c.uid) AS chunks
}
RETURN n.uid AS uid, chunks;
