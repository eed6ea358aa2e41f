// Full-text search ranked by BM25, with the statistics of what is searched alone.

// name: worded(corpus, documents, layers, ranking) read
// The rows that fit each query's words best, by layer (parts/bm25.cypher), the best first, with scores. `row` is the
// chunk or row itself where the layer asks for whole ones.
CYPHER 25 replan=skip
// part: bm25
CALL (layer, best) {
  WITH layer WHERE layer.whole AND layer.kind = ''
  UNWIND best AS hit
  WITH hit.row AS n, hit.score AS score
  MATCH (d:Document {uid: n.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  RETURN collect({uid: n.uid, score: score,
                  row: n {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                          title: d.title, date: d.date, type: d.type}}) AS hits
  UNION ALL
  WITH layer WHERE layer.whole AND layer.kind <> ''
  UNWIND best AS hit
  WITH hit.row AS n, hit.score AS score
  RETURN collect({uid: n.uid, score: score,
                  row: n {.*, stems: NULL, embedding: NULL, own_embedding: NULL, vector: NULL}}) AS hits
  UNION ALL
  WITH layer WHERE NOT layer.whole
  RETURN [hit IN best | {uid: hit.row.uid, score: hit.score}] AS hits
}
WITH layer, one, hits WHERE size(hits) > 0
RETURN layer.kind AS kind, one.query.number AS number, hits;
