// The `description` of the entity or anchor `e`. It is empty for an anchor. With `documents`, it is empty for an entity
// that other documents mention too, because it combines what all of them say.
CALL (e) {
  RETURN CASE WHEN e:Entity AND ($documents IS NULL OR NOT EXISTS {
    MATCH (e)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND NOT c.document IN $documents
  }) THEN coalesce(e.description, '') ELSE '' END AS description
}
