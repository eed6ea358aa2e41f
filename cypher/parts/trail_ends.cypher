// What several statements contain, at a line that names it: `// part: trail_ends`.
// The places (uids, in order) that a trail `t` ties, as `ends`: of an entity in a class the class's.
CALL (t) {
  MATCH (t)-[:BETWEEN]->(n) WHERE n.corpus = $corpus
  WITH coalesce(n.canonical_uid, n.uid) AS end ORDER BY end
  RETURN collect(end) AS ends
}
