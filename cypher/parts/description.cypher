// Of the entity or anchor `e`, the `description`: empty for an anchor, and for an entity that documents mention too which
// don't count, since it combines what all of them say.
CALL (e) {
  RETURN CASE WHEN e:Entity AND ($documents IS NULL OR NOT EXISTS {
    MATCH (e)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND NOT c.document IN $documents
  }) THEN coalesce(e.description, '') ELSE '' END AS description
}
