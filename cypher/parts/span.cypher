// What several statements contain, at a line that names it: `// part: span`.
// Of an anchor `e`, as `span`: its document (uid), and the places there of the first and the last chunk of its passage.
CALL (e) {
  OPTIONAL MATCH (e)-[:RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE e:Anchor
  WITH min(c.document) AS document, min(c.position) AS first, max(c.position) AS last
  RETURN CASE WHEN document IS NOT NULL THEN [document, first, last] END AS span
}
