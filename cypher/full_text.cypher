// Full-text search ranked by BM25, with the statistics of what is searched alone.

// name: worded_chunks(corpus, documents, lucene, words, ranking) read
// Return the k chunks that fit words best by BM25, with their scores. The full-text index, whose own scores depend on
// other corpora, proposes `over` chunks. How many chunks there are, how many of them hold a word, and how long they are
// on average is counted in this corpus alone and, with `documents`, in these alone. A `whole` word counts where no
// letter, digit or mark is beside it, another one wherever its characters stand.
CYPHER 25 CALL () {
  MATCH (c:Chunk {corpus: $corpus}) WHERE $documents IS NULL OR c.document IN $documents
  RETURN count(c) AS many, avg(c.tokens) AS usual
}
CALL (many) {
  WITH many WHERE many > 0
  MATCH (c:Chunk)
  SEARCH c IN (FULLTEXT INDEX chunk_text FOR $lucene LIMIT $ranking.over)
  WHERE c.corpus = $corpus AND ($documents IS NULL OR c.document IN $documents)
  WITH c, toLower(c.text) AS text
  WITH c, [word IN $words | {whole: word.whole, parts: split(text, word.text)}] AS found
  RETURN collect({chunk: c, times: [one IN found | CASE WHEN one.whole THEN
    size([i IN range(1, size(one.parts) - 1)
          WHERE (one.parts[i - 1] = '' AND i = 1 OR right(one.parts[i - 1], 1) =~ '[^\\p{L}\\p{N}\\p{M}]')
            AND (one.parts[i] = '' AND i = size(one.parts) - 1 OR left(one.parts[i], 1) =~ '[^\\p{L}\\p{N}\\p{M}]')])
    ELSE size(one.parts) - 1 END]}) AS hits
}
WITH many, usual, hits, [i IN range(0, size($words) - 1) | size([hit IN hits WHERE hit.times[i] > 0])] AS holding
WITH usual, hits, [held IN holding | log(1 + (many - held + 0.5) / (held + 0.5))] AS weights
UNWIND hits AS hit
WITH hit.chunk AS c, hit.times AS times, weights, usual
WITH c, times, weights, $ranking.k1 * (1 - $ranking.b + $ranking.b * c.tokens / usual) AS norm
WITH c, reduce(sum = 0.0, i IN range(0, size(weights) - 1) |
               sum + CASE times[i] WHEN 0 THEN 0.0 ELSE weights[i] * times[i] / (times[i] + norm) END) AS score
WHERE score > 0
ORDER BY score DESC, c.uid LIMIT $ranking.k
MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN score, c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages, title: d.title} AS chunk
ORDER BY score DESC, chunk.uid;
