// What several statements contain, at a line that names it: `// part: bm25`.
// Per layer and query, `layer`, `one.query` and `best`: the k rows (`row`, `score`) that fit the query's stems best by
// BM25, the best first, ties by uid. A layer is the corpus's chunks (`kind` is '') or one kind of a system's built rows,
// and a stem has a blank on each side. The full-text index, whose own scores depend on other corpora, proposes `over`
// rows of the layer. A query can name few documents: with more, the index proposes `first` rows of the layer, and where
// less than half of `over` are of these documents, it is asked again for each part of them. The first `scored` rows are
// ranked (null: all), and those of documents whose titles hold a stem. If these are all rows that hold one, the number of
// rows is counted in the whole layer, once for all its queries (with `documents`, in theirs alone). Else all is counted in
// the rows ranked. With `titles`, the stems of a document's title count in each of its chunks, unless most of the rows
// proposed are of that document. Of a layer with rows `among` (uids), these alone count,
// whatever their documents.
UNWIND $layers AS layer
CALL (layer) {
  UNWIND layer.queries AS q
  CALL (layer, q) {
    CALL (layer, q) {
      WITH layer, q WHERE layer.among IS NULL
      MATCH (n:Chunk|Built)
      SEARCH n IN (FULLTEXT INDEX words FOR layer.within + q.lucene LIMIT $ranking.first)
      WHERE n.corpus = $corpus
      RETURN n
      UNION ALL
      UNWIND layer.among AS uid
      MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX SEEK n:Built(uid)
      RETURN n
    }
    RETURN count(*) AS first,
           collect(CASE WHEN ($documents IS NULL OR n.document IN $documents OR layer.among IS NOT NULL)
                         AND n.embedding IS NOT NULL // a chunk that is being indexed may lack its vector
                   THEN n END) AS fitting
  }
  CALL (layer, q, first, fitting) {
    WITH layer, q WHERE first = $ranking.first AND 2 * size(fitting) < $ranking.over
    UNWIND layer.parts AS part
    CALL (q, part) {
      MATCH (n:Chunk|Built)
      SEARCH n IN (FULLTEXT INDEX words FOR part + q.lucene LIMIT $ranking.over) SCORE AS likeness
      WHERE n.corpus = $corpus
      RETURN n, likeness
    }
    WITH n ORDER BY likeness DESC LIMIT $ranking.over
    RETURN count(*) AS second, collect(CASE WHEN n.embedding IS NOT NULL THEN n END) AS again
  }
  WITH layer, q, CASE second WHEN 0 THEN fitting ELSE again END AS proposed,
       CASE second WHEN 0 THEN first < $ranking.first ELSE second < $ranking.over END AS whole
  RETURN collect({query: q, proposed: proposed,
                  all: layer.among IS NOT NULL OR whole AND size(proposed) <= coalesce($ranking.scored, $ranking.over)}) AS asked
}
CALL (layer, asked) {
  CALL (layer, asked) {
    WITH layer WHERE layer.among IS NOT NULL
    RETURN size(layer.among) AS rows
    UNION ALL
    WITH layer, asked WHERE layer.kind = '' AND layer.among IS NULL AND any(one IN asked WHERE one.all)
    WITH layer LIMIT 1
    MATCH (c:Chunk {corpus: $corpus}) USING INDEX c:Chunk(corpus) WHERE $documents IS NULL OR c.document IN $documents
    RETURN count(c) AS rows
    UNION ALL
    WITH layer, asked WHERE layer.kind <> '' AND layer.among IS NULL AND any(one IN asked WHERE one.all)
    WITH layer LIMIT 1
    MATCH (b:Built {corpus: $corpus}) USING INDEX b:Built(corpus)
    WHERE b.system = layer.system AND b.kind = layer.kind AND b.text <> ''
      AND ($documents IS NULL OR b.document IN $documents)
    RETURN count(b) AS rows
  }
  RETURN sum(rows) AS counted
}
UNWIND asked AS one
CALL (layer, one, counted) {
  CALL (layer, one) {
    UNWIND range(0, size(one.proposed) - 1) AS at
    WITH one.proposed[at].document AS document, collect(at) AS places
    CALL (layer, one, document, places) {
      WITH document WHERE $ranking.titles AND layer.kind = '' AND 2 * size(places) <= size(one.proposed)
      MATCH (d:Document {uid: document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
      RETURN collect(d.stems) AS titles
    }
    WITH places, coalesce(titles[0], '') AS title
    WITH title, CASE WHEN any(stem IN one.query.stems WHERE title CONTAINS stem) THEN places
                     ELSE [at IN places WHERE at < coalesce($ranking.scored, $ranking.over)] END AS ranked
    UNWIND ranked AS at
    WITH one.proposed[at] AS n, title
    WITH n, title + n.stems AS stems WHERE stems IS NOT NULL // null in one that is being deleted
    RETURN collect(n) AS rows, collect(size(stems)) AS sizes, sum(size(stems)) AS total,
           collect([stem IN one.query.stems | size(split(stems, stem)) - 1]) AS counts
  }
  WITH one, rows, sizes, total, counts, CASE WHEN one.all THEN counted ELSE size(rows) END AS many
  WITH rows, sizes, total, counts, many,
       [i IN range(0, size(one.query.stems) - 1) | size([times IN counts WHERE times[i] > 0])] AS holding
  WITH rows, sizes, total, counts, [held IN holding | log(1 + (many - held + 0.5) / (held + 0.5))] AS weights
  UNWIND range(0, size(rows) - 1) AS at
  WITH rows[at] AS n, counts[at] AS times, weights,
       $ranking.k1 * (1 - $ranking.b + $ranking.b * sizes[at] * size(rows) / total) AS norm
  WITH n, reduce(sum = 0.0, i IN range(0, size(weights) - 1) |
                 sum + CASE times[i] WHEN 0 THEN 0.0 ELSE weights[i] * times[i] / (times[i] + norm) END) AS score
  WHERE score > 0
  ORDER BY score DESC, n.uid LIMIT $ranking.k
  RETURN collect({row: n, score: score}) AS best
}
