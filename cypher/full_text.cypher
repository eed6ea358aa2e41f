// Full-text search ranked by BM25, with the statistics of what is searched alone.

// name: worded(corpus, documents, layers, ranking) read
// Return for each query of a layer the k rows that fit its stems best by BM25, the best first, with scores. A layer is
// the corpus's chunks (`kind` is '') or one kind of a system's built rows. The full-text index, whose own scores depend
// on other corpora, proposes `over` rows. If it proposes fewer, they are all that hold a stem, and how many rows there
// are is counted in the whole layer (with `documents`, in theirs alone). Else all is counted in the rows proposed. With
// `titles`, the stems of a document's title count in each of its chunks, unless most of the rows proposed are of that
// document. Of a layer with rows `among` (uids), these alone count. `row` is the chunk or row itself where the layer asks
// for whole ones.
CYPHER 25 replan=skip UNWIND $layers AS layer
UNWIND layer.queries AS q
CALL (layer, q) {
  CALL (layer, q) {
    WITH layer, q WHERE layer.among IS NULL
    MATCH (n:Chunk|Built)
    SEARCH n IN (FULLTEXT INDEX words FOR q.lucene LIMIT $ranking.over)
    WHERE n.corpus = $corpus AND n.embedding IS NOT NULL // a chunk that is being indexed may lack its vector
      AND ($documents IS NULL OR n.document IN $documents)
    RETURN n
    UNION ALL
    UNWIND layer.among AS uid
    MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX SEEK n:Built(uid)
    RETURN n
  }
  WITH layer, q, n.document AS document, collect(n) AS some
  WITH layer, q, collect({document: document, rows: some}) AS groups, sum(size(some)) AS proposed
  CALL (layer, proposed) {
    WITH layer WHERE layer.among IS NOT NULL OR proposed >= $ranking.over
    RETURN coalesce(size(layer.among), proposed) AS rows
    UNION ALL
    WITH layer WHERE layer.kind = '' AND proposed < $ranking.over
    WITH layer LIMIT 1
    MATCH (c:Chunk {corpus: $corpus}) USING INDEX c:Chunk(corpus) WHERE $documents IS NULL OR c.document IN $documents
    RETURN count(c) AS rows
    UNION ALL
    WITH layer WHERE layer.kind <> '' AND layer.among IS NULL AND proposed < $ranking.over
    WITH layer LIMIT 1
    MATCH (b:Built {corpus: $corpus}) USING INDEX b:Built(corpus)
    WHERE b.system = layer.system AND b.kind = layer.kind AND b.text <> ''
      AND ($documents IS NULL OR b.document IN $documents)
    RETURN count(b) AS rows
  }
  WITH layer, q, groups, proposed, sum(rows) AS rows
  CALL (layer, q, groups, proposed) {
    UNWIND groups AS group
    CALL (layer, group, proposed) {
      WITH group WHERE $ranking.titles AND layer.kind = '' AND 2 * size(group.rows) <= proposed
      MATCH (d:Document {uid: group.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
      RETURN collect(d.stems) AS titles
    }
    UNWIND group.rows AS n
    WITH q, n, coalesce(titles[0], '') + n.stems AS stems WHERE stems IS NOT NULL // null in one that is being deleted
    RETURN collect({row: n, size: size(stems), times: [one IN q.stems | size(split(stems, ' ' + one + ' ')) - 1]}) AS hits
  }
  WITH layer, q, hits, rows,
       reduce(sum = 0.0, hit IN hits | sum + hit.size) / size(hits) AS usual,
       [i IN range(0, size(q.stems) - 1) | size([hit IN hits WHERE hit.times[i] > 0])] AS holding
  WITH layer, hits, usual, [held IN holding | log(1 + (rows - held + 0.5) / (held + 0.5))] AS weights
  UNWIND hits AS hit
  WITH layer, hit.row AS n, hit.times AS times, weights,
       $ranking.k1 * (1 - $ranking.b + $ranking.b * hit.size / usual) AS norm
  WITH layer, n, reduce(sum = 0.0, i IN range(0, size(weights) - 1) |
                        sum + CASE times[i] WHEN 0 THEN 0.0 ELSE weights[i] * times[i] / (times[i] + norm) END) AS score
  WHERE score > 0
  ORDER BY score DESC, n.uid LIMIT $ranking.k
  RETURN n, score
}
WITH layer, q, n, score
CALL (layer, n) {
  WITH n WHERE layer.whole AND layer.kind = ''
  MATCH (d:Document {uid: n.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  RETURN n {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
            title: d.title, date: d.date, type: d.type} AS row
  UNION ALL
  WITH n WHERE layer.whole AND layer.kind <> ''
  RETURN n {.*, stems: NULL, embedding: NULL, own_embedding: NULL, vector: NULL} AS row
  UNION ALL
  WITH n WHERE NOT layer.whole
  RETURN NULL AS row
}
WITH layer.kind AS kind, q.number AS number, n.uid AS uid, score, row
WHERE uid IS NOT NULL
RETURN kind, number, uid, score, row;
