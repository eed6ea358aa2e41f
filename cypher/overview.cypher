// What a corpus holds near a question, before anything is searched for.

// name: overview(corpus, documents, vector, limits) read
// The documents whose chunks are nearest to a vector, the nearest first, each with its nearest chunk, and the entities
// nearest to it, one of each class. With `documents`, others don't count, nor do entities that none of them mentions, and
// an entity that others mention too comes without its description, which combines all of them.
// `limits` are how many documents and entities are returned, and for how many chunks and entities the indexes are asked.
CYPHER 25 replan=skip CALL () {
  CALL () {
    WITH $documents AS documents WHERE documents IS NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus LIMIT $limits.over_chunks) SCORE AS score
    RETURN c, score
    UNION ALL
    WITH $documents AS documents WHERE documents IS NOT NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus AND c.document IN documents
                 LIMIT $limits.over_chunks) SCORE AS score
    RETURN c, score
  }
  WITH c, score WHERE c.uid IS NOT NULL // one that is being deleted may still be found
  ORDER BY score DESC, c.uid
  WITH c.document AS document, head(collect(c)) AS nearest, max(score) AS best
  ORDER BY best DESC, document LIMIT $limits.documents
  MATCH (d:Document {uid: document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  WITH d, nearest, best ORDER BY best DESC, d.uid
  RETURN collect(nearest {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                          title: d.title, date: d.date, type: d.type}) AS near_documents
}
CALL (near_documents) { // so that one row comes before the other, and none are multiplied
  CALL (near_documents) {
    WITH near_documents WHERE $documents IS NULL
    MATCH (e:Entity)
    SEARCH e IN (VECTOR INDEX entity_embedding FOR $vector WHERE e.corpus = $corpus AND e.memory = '' LIMIT $limits.over_entities)
    SCORE AS score
    RETURN e, score
    UNION ALL
    WITH near_documents WHERE $documents IS NOT NULL
    UNWIND near_documents AS near
    MATCH (d:Document {uid: near.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
    WITH d MATCH (d)<-[:FROM_DOCUMENT]-(c) WHERE c.corpus = $corpus
    WITH DISTINCT c MATCH (c)<-[:FROM_CHUNK]-(e) WHERE e.corpus = $corpus AND e.memory = '' AND e.embedding IS NOT NULL
    WITH DISTINCT e RETURN e, vector.similarity.cosine(e.embedding, $vector) AS score
  }
  WITH e, score WHERE e.uid IS NOT NULL ORDER BY score DESC, e.uid
  WITH coalesce(e.canonical_uid, e.uid) AS class, head(collect(e)) AS e, max(score) AS score
  ORDER BY score DESC, e.uid LIMIT $limits.entities
  // part: names
  // part: description
  WITH e, names, description ORDER BY score DESC, e.uid
  RETURN collect(e {.uid, .name, .type, .memory, .canonical_uid, names: names, description: description}) AS entities
}
RETURN near_documents AS documents, entities;
