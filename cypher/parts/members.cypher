// What several statements contain, at a line that names it: `// part: members`.
// Of the entities `things`, each once, `members`: these and all others of their classes. A class is read by its index,
// only where a thing is of one.
CALL (things) {
  UNWIND things AS thing
  WITH DISTINCT thing.canonical_uid AS class WHERE class IS NOT NULL
  MATCH (member:Entity {canonical_uid: class, corpus: $corpus}) USING INDEX SEEK member:Entity(canonical_uid)
  WHERE member.memory = ''
  RETURN collect(member) AS classed
}
CALL (things, classed) {
  RETURN [thing IN things WHERE thing.canonical_uid IS NULL] + classed AS members
}
