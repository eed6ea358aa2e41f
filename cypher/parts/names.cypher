// What several statements contain, at a line that names it: `// part: names`.
// Of the entity `e`, the `names` of its class, none if it is of none: first that of the member which most chunks
// mention, ties by length, then by uid.
CALL (e) {
  WITH e WHERE e.canonical_uid IS NOT NULL
  MATCH (member:Entity {canonical_uid: e.canonical_uid, corpus: $corpus}) USING INDEX SEEK member:Entity(canonical_uid)
  WHERE member.memory = ''
  WITH member, COUNT { (member)-[:FROM_CHUNK]->() } AS mentions ORDER BY mentions DESC, size(member.name) DESC, member.uid
  RETURN collect(member.name) AS names
}
