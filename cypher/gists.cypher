// The pyramid of gists, and the text that it stands for.

// name: gist_places(corpus, documents) read
// Return every gist without its text: its level and tokens, the gists above it, and the place where it begins. With
// `documents`, those that rest on another don't count.
CYPHER 25 MATCH (g:Built {corpus: $corpus}) USING INDEX g:Built(corpus)
WHERE g.system = 'gists' AND g.kind = 'Gist' AND ($documents IS NULL OR g.document IN $documents)
CALL (g) {
  MATCH (g)<-[:CONDENSES]-(above:Built) WHERE above.corpus = $corpus
  RETURN collect(above.uid) AS above
}
OPTIONAL MATCH (c:Chunk {uid: g.first, corpus: $corpus})-[:FROM_DOCUMENT]->(d:Document {corpus: $corpus})
RETURN g.uid AS uid, g.level AS level, g.tokens AS tokens, above,
       coalesce(d.title, '') AS title, coalesce(d.uid, '') AS document, coalesce(c.position, 0) AS position
ORDER BY title, document, position, uid;

// name: nearest_gists(corpus, documents, uids) read
// Return gists of documents in the order of the text, and with each the highest gists above it. With `documents`, those
// that rest on another don't count.
CYPHER 25 UNWIND $uids AS uid
MATCH (g:Built {uid: uid, corpus: $corpus}) USING INDEX g:Built(uid)
CALL (g) {
  MATCH (g) ((b:Built WHERE b.corpus = $corpus)<-[:CONDENSES]-(a:Built WHERE a.corpus = $corpus))+ (top)
  WHERE top.corpus = $corpus AND NOT EXISTS {
    MATCH (top)<-[:CONDENSES]-(further:Built)
    WHERE further.corpus = $corpus AND ($documents IS NULL OR further.document IN $documents)
  }
    AND ($documents IS NULL OR top.document IN $documents)
  RETURN collect(DISTINCT top {.uid, .kind, .document, .title, .text, .tokens}) AS tops
}
OPTIONAL MATCH (c:Chunk {uid: g.first, corpus: $corpus})-[:FROM_DOCUMENT]->(d:Document {corpus: $corpus})
RETURN g {.uid, .kind, .document, .title, .text, .tokens} AS row, tops, d.title AS title, c.position AS position
ORDER BY title, row.document, position, row.uid;

// name: gist_texts(corpus, uids) read
// Return these gists, those of them that exist.
CYPHER 25 UNWIND $uids AS uid
MATCH (g:Built {uid: uid, corpus: $corpus}) USING INDEX g:Built(uid)
RETURN g {.uid, .kind, .document, .title, .text} AS row;

// name: texts_without_gist(corpus, documents, budget) read
// Return the chunks of these documents that no gist of one document covers, in order, as far as they fit into a number
// of tokens, and how many there are.
CYPHER 25 CALL () {
  UNWIND $documents AS uid
  MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
  WHERE NOT EXISTS {
    MATCH (c)<-[:RESTS_ON]-(g:Built {corpus: $corpus}) WHERE g.system = 'gists' AND g.document = d.uid
  }
  WITH d, c ORDER BY d.title, d.uid, c.position, c.uid
  RETURN collect({chunk: c, of: d}) AS found
}
WITH found, reduce(sums = [0], one IN found | sums + [sums[-1] + one.chunk.tokens]) AS sums
CALL (found, sums) {
  UNWIND range(0, size(found) - 1) AS i
  WITH i, found[i].chunk AS c, found[i].of AS d, sums[i + 1] AS used WHERE used <= $budget
  WITH c, d ORDER BY i
  RETURN collect(c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                    title: d.title, date: d.date, type: d.type}) AS chunks
}
RETURN size(found) AS many, chunks;

// name: whole_text(corpus, documents, budget) read
// Return how many tokens the chunks of a corpus or of these documents have, and, if they fit into a number of tokens, the
// chunks in order.
CYPHER 25 CALL () {
  MATCH (c:Chunk {corpus: $corpus}) WHERE $documents IS NULL OR c.document IN $documents
  RETURN sum(c.tokens) AS tokens
}
CALL (tokens) {
  WITH tokens WHERE tokens <= $budget
  MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
  WHERE $documents IS NULL OR d.uid IN $documents
  MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})
  WITH d, c ORDER BY d.title, d.uid, c.position, c.uid
  RETURN collect(c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                    title: d.title, date: d.date, type: d.type}) AS chunks
}
RETURN tokens, chunks;
