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

// name: worded_built(corpus, system, kind, documents, lucene, words, ranking) read
// Return the k rows of a kind that fit words best by BM25, with their scores. The full-text index, whose own scores
// depend on other corpora, proposes `over` rows. How many rows there are, how many of them hold a word, and how long they
// are on average (in characters) is counted in this layer alone and, with `documents`, in rows that rest on one of these.
// Words count as in worded_chunks.
CYPHER 25 CALL () {
  MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
  WHERE n.system = $system AND n.kind = $kind AND n.text <> '' AND ($documents IS NULL OR n.document IN $documents)
  RETURN count(n) AS many, avg(size(n.text)) AS usual
}
CALL (many) {
  WITH many WHERE many > 0
  MATCH (n:Built)
  SEARCH n IN (FULLTEXT INDEX built_text FOR $lucene LIMIT $ranking.over)
  WHERE n.corpus = $corpus AND n.text <> '' AND ($documents IS NULL OR n.document IN $documents)
  WITH n, toLower(n.text) AS text
  WITH n, [word IN $words | {whole: word.whole, parts: split(text, word.text)}] AS found
  RETURN collect({row: n, times: [one IN found | CASE WHEN one.whole THEN
    size([i IN range(1, size(one.parts) - 1)
          WHERE (one.parts[i - 1] = '' AND i = 1 OR right(one.parts[i - 1], 1) =~ '[^\\p{L}\\p{N}\\p{M}]')
            AND (one.parts[i] = '' AND i = size(one.parts) - 1 OR left(one.parts[i], 1) =~ '[^\\p{L}\\p{N}\\p{M}]')])
    ELSE size(one.parts) - 1 END]}) AS hits
}
WITH many, usual, hits, [i IN range(0, size($words) - 1) | size([hit IN hits WHERE hit.times[i] > 0])] AS holding
WITH usual, hits, [held IN holding | log(1 + (many - held + 0.5) / (held + 0.5))] AS weights
UNWIND hits AS hit
WITH hit.row AS n, hit.times AS times, weights, usual
WITH n, times, weights, $ranking.k1 * (1 - $ranking.b + $ranking.b * size(n.text) / usual) AS norm
WITH n, reduce(sum = 0.0, i IN range(0, size(weights) - 1) |
               sum + CASE times[i] WHEN 0 THEN 0.0 ELSE weights[i] * times[i] / (times[i] + norm) END) AS score
WHERE score > 0
ORDER BY score DESC, n.uid LIMIT $ranking.k
RETURN score, n {.*, embedding: NULL, own_embedding: NULL, vector: NULL} AS row
ORDER BY score DESC, row.uid;

// name: chunks_beneath(corpus, uids) read
// Return the chunks that each row rests on, at any distance, in the order of documents and positions. The plan of
// a DISTINCT end visits each row once, however many ways lead to it.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH DISTINCT n
CALL (n) {
  MATCH (n) ((a WHERE a.corpus = $corpus)-[:RESTS_ON]->(b WHERE b.corpus = $corpus))+ (c)
  WITH DISTINCT c
  WITH c, c.corpus = $corpus AS ours WHERE ours AND c:Chunk
  WITH c ORDER BY c.document, c.position, c.uid
  RETURN collect(c.uid) AS chunks
}
WITH n, chunks WHERE size(chunks) > 0
RETURN n.uid AS uid, chunks;

// name: nearest_beneath(corpus, uids, vector, k) read
// Return for each row the k chunks nearest to a vector among those that it rests on, at any distance.
CYPHER 25 UNWIND $uids AS uid
MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid)
WITH DISTINCT n
CALL (n) {
  MATCH (n) ((a WHERE a.corpus = $corpus)-[:RESTS_ON]->(b WHERE b.corpus = $corpus))+ (c)
  WITH DISTINCT c
  WITH c, c.corpus = $corpus AS ours WHERE ours AND c:Chunk AND c.embedding IS NOT NULL
  WITH c, vector.similarity.cosine(c.embedding, $vector) AS score ORDER BY score DESC, c.uid LIMIT $k
  RETURN collect(c.uid) AS chunks
}
RETURN n.uid AS uid, chunks;
