// ReMindRAG: anchors of passages, the ways of a walk, and the trails that questions leave. An entity or anchor belongs
// to documents if it mentions or rests on a chunk of theirs.

// name: chunk_vectors(corpus, uids) read
// Return the vectors of these chunks, of those that have one.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid) WHERE c.embedding IS NOT NULL
RETURN c.uid AS uid, c.embedding AS vector
ORDER BY uid;

// name: entities_of_anchors(corpus) read
// Return for each anchor the entities of the corpus that its chunks mention, by uid and name.
CYPHER 25 MATCH (a:Built {corpus: $corpus}) USING INDEX a:Built(corpus)
WHERE a.system = 'remindrag' AND a.kind = 'Anchor'
CALL (a) {
  MATCH (a)-[:RESTS_ON]->(c:Chunk {corpus: $corpus})<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus}) WHERE e.memory = ''
  WITH DISTINCT e ORDER BY e.uid
  RETURN collect([e.uid, e.name]) AS entities
}
WITH a, entities WHERE size(entities) > 0
RETURN a.uid AS uid, entities
ORDER BY uid;

// name: seeds(corpus, documents, vector, k, over) read
// Return the k entities and anchors nearest to a vector, of a class the nearest. Its `uid` is then that of the class, as
// in all of a walk: one of its members has it. With `documents`, anchors of others and entities that no chunk of these
// mentions don't count.
CYPHER 25 CALL () {
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (n:Entity)
  SEARCH n IN (VECTOR INDEX entity_embedding FOR $vector WHERE n.corpus = $corpus AND n.memory = '' LIMIT $over) SCORE AS s
  RETURN n, s
  UNION ALL
  CALL () {
    UNWIND $documents AS uid
    MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
    WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus})
    WHERE e.memory = ''
    RETURN collect(DISTINCT e.uid) AS uids
  }
  WITH uids WHERE size(uids) > 0
  MATCH (n:Entity)
  SEARCH n IN (VECTOR INDEX entity_embedding FOR $vector WHERE n.corpus = $corpus AND n.uid IN uids LIMIT $over) SCORE AS s
  RETURN n, s
  UNION ALL
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = 'remindrag' AND n.kind = 'Anchor' LIMIT $over) SCORE AS s
  RETURN n, s
  UNION ALL
  WITH $documents AS documents WHERE documents IS NOT NULL
  MATCH (n:Built)
  SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
               WHERE n.corpus = $corpus AND n.system = 'remindrag' AND n.kind = 'Anchor' AND n.document IN documents
               LIMIT $over) SCORE AS s
  RETURN n, s
}
WITH n, 2 * s - 1 AS score WHERE n.uid IS NOT NULL // one that is being deleted may still be found
WITH n, score ORDER BY score DESC, n.uid
WITH coalesce(n.canonical_uid, n.uid) AS uid, head(collect(n)) AS e, max(score) AS score
ORDER BY score DESC, uid LIMIT $k
// part: names
// part: description
RETURN uid, names, CASE WHEN e:Entity THEN 'Entity' ELSE 'Anchor' END AS kind, coalesce(e.title, e.name) AS text,
       description, score
ORDER BY score DESC, uid;

// name: starts(corpus, documents, owners, vector, k, least, most) read
// Return the nodes from which the latest learnings of the k nearest questions began, of those as near as `least` (a
// cosine) among the `most` nearest learnings of each owner: an owner's own before everybody's, wrong answers as ones that
// began nowhere. With `documents`, nodes of others and questions that began at no other nodes don't count.
CYPHER 25 UNWIND $owners AS owner
// part: near_learnings
WITH l, 2 * s - 1 AS score
WHERE score >= $least AND l.uid IS NOT NULL AND (size(l.starts) > 0 OR l.key <> l.memory)
WITH l, score ORDER BY l.owner <> '' DESC, l.number DESC
WITH l.question AS question, score, collect(l)[0] AS l
CALL (l) {
  UNWIND l.starts AS uid
  CALL (uid) {
    MATCH (n:Entity {uid: uid, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
    UNION ALL MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  }
  WITH n, [n] AS things
  // part: members
  UNWIND members AS m
  WITH DISTINCT n, m WHERE $documents IS NULL
    OR EXISTS { MATCH (m)-[:FROM_CHUNK|RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE c.document IN $documents }
  RETURN collect(DISTINCT n) AS nodes
}
WITH l, score, nodes WHERE size(nodes) > 0
ORDER BY score DESC, l.uid LIMIT $k
UNWIND nodes AS n
WITH coalesce(n.canonical_uid, n.uid) AS uid, head(collect(n)) AS e, max(score) AS score
// part: names
// part: description
RETURN uid, names, CASE WHEN e:Entity THEN 'Entity' ELSE 'Anchor' END AS kind, coalesce(e.title, e.name) AS text,
       description, score
ORDER BY score DESC, uid;

// name: near_learnings(corpus, owners, vector, most) read
// Return what the answers cite from which the `most` learnings of each owner with the nearest questions were learnt, the
// nearest first, and which answers were wrong.
CYPHER 25 UNWIND $owners AS owner
// part: near_learnings
WITH l, s WHERE l.uid IS NOT NULL
RETURN l.memory AS memory, l.owner AS owner, l.question AS question, l.number AS number, l.key <> l.memory AS wrong,
       coalesce(l.cited, []) AS cited
ORDER BY s DESC, l.uid;

// name: near_touches(corpus, owners, vector, least, most) read
// Return the trails that the `most` learnings of each owner with the nearest questions touched, those as near as `least`
// (a cosine), each with what they said of it: how near the question is, whether it was of use, and the learning's number.
CYPHER 25 UNWIND $owners AS owner
// part: near_learnings
WITH l, 2 * s - 1 AS near WHERE near >= $least AND l.uid IS NOT NULL
MATCH (l)-[r:TOUCHED]->(t:Trail) WHERE t.corpus = $corpus
WITH t, collect([near, r.effective, l.number]) AS touches
// part: trail_ends
RETURN t.uid AS uid, t.owner AS owner, t.tie AS tie, t.alike AS alike, t.chunks AS chunks, ends, touches
ORDER BY uid;

// name: near_trails(corpus, owners, vector, least, most) read
// Return the `most` trails of each owner whose vectors point nearest to the question's, those whose product with it is at
// least `least`.
CYPHER 25 UNWIND $owners AS owner
CALL (owner) {
  MATCH (t:Trail)
  SEARCH t IN (VECTOR INDEX trail_vector FOR $vector WHERE t.corpus = $corpus AND t.owner = owner LIMIT $most) SCORE AS s
  RETURN t, t.length * (2 * s - 1) AS along
}
WITH t, along WHERE along >= $least AND t.uid IS NOT NULL
// part: trail_ends
RETURN t.uid AS uid, t.owner AS owner, t.tie AS tie, t.alike AS alike, t.chunks AS chunks, ends, along
ORDER BY uid;

// name: places_within(corpus, documents, uids) read
// Return those of these entities and anchors that a chunk of the documents mentions, by any name, or makes up.
CYPHER 25 UNWIND $uids AS uid
CALL (uid) {
  MATCH (n:Entity {uid: uid, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
  UNION ALL MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
}
WITH n, [n] AS things
// part: members
UNWIND members AS m
WITH n, m WHERE EXISTS { MATCH (m)-[:FROM_CHUNK|RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE c.document IN $documents }
RETURN DISTINCT n.uid AS uid
ORDER BY uid;

// name: replay(corpus, documents, hops) read
// Return the nodes to which strong trails lead, in the order of these hops, with the relations by which their `source` is
// tied to them. With `documents`, relations that only others state don't count.
CYPHER 25 UNWIND range(0, size($hops) - 1) AS place
WITH place, $hops[place].uid AS uid, $hops[place].source AS source
CALL (uid) {
  MATCH (n:Entity {uid: uid, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
  UNION ALL MATCH (n:Built {uid: uid, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
}
CALL (n, source) {
  CALL (n) {
    WITH [n] AS things
    // part: members
    RETURN members
  }
  UNWIND members AS member
  MATCH (member)-[r:RELATES {corpus: $corpus}]-(m:Entity {corpus: $corpus})
  WHERE coalesce(m.canonical_uid, m.uid) = source AND r.memory = ''
  CALL (r) {
    WITH r WHERE $documents IS NOT NULL
    UNWIND r.chunks AS stating
    MATCH (c:Chunk {uid: stating, corpus: $corpus}) USING INDEX c:Chunk(uid) WHERE c.document IN $documents
    RETURN collect(c.uid) AS within
  }
  WITH r, CASE WHEN $documents IS NULL THEN r.chunks ELSE within END AS chunks
  WHERE $documents IS NULL OR size(chunks) > 0
  RETURN collect(r {.uid, chunks: chunks, description: CASE WHEN size(chunks) < size(r.chunks) THEN '' ELSE r.description END})
         AS relations
}
WITH place, n, relations, n AS e
// part: names
// part: description
// part: span
RETURN n.uid AS uid, names, CASE WHEN n:Entity THEN 'Entity' ELSE 'Anchor' END AS kind,
       coalesce(n.title, n.name) AS text, description, relations, span
ORDER BY place;

// name: ways(corpus, documents, uids, wanted, read, rule) read
// Return where a walk can go from each of some nodes: along relations, to anchors that mention an entity or entities that
// an anchor mentions, to the anchors before and after, and to entities of like names; those nearest to a `wanted` vector
// first, so many of entities and of anchors. A strong trail counts for its way.
// With `read` (chunks by uid), places that have no other chunk don't count, unless a relation is all that is known there.
CYPHER 25 UNWIND $uids AS start
CALL (start) {
  CALL (start) {
    MATCH (n:Entity {uid: start, corpus: $corpus}) USING INDEX n:Entity(uid)
    RETURN collect(n) AS things
  }
  // part: members
  RETURN members AS named
}
CALL (start, named) {
  CALL (start, named) {
    UNWIND named AS n
    RETURN n
    UNION ALL
    MATCH (n:Built {uid: start, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  }
  MATCH (n)<-[:BETWEEN]-(t:Trail {corpus: $corpus})
  WITH t, $rule.strong[t.uid] AS along WHERE along IS NOT NULL
  MATCH (t)-[:BETWEEN]->(m) WHERE m.corpus = $corpus AND m.uid <> start
  RETURN collect({uid: coalesce(m.canonical_uid, m.uid), along: along}) AS trails
}
CALL (start, named) {
  UNWIND named AS n
  MATCH (n)-[r:RELATES]-(m) WHERE NOT m IN named AND r.corpus = $corpus AND m.corpus = $corpus AND r.memory = '' AND m.memory = ''
    AND ($documents IS NULL OR EXISTS {
      UNWIND r.chunks AS stating
      MATCH (c:Chunk {uid: stating, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid) WHERE c.document IN $documents })
  RETURN m AS m, 'RELATES' AS tie, r {.uid, .description, .chunks} AS relation, r.embedding AS other
  UNION ALL
  UNWIND named AS n
  MATCH (n)<-[:MENTIONS]-(m) WHERE m.corpus = $corpus AND m:Anchor
  RETURN m, 'MENTIONS' AS tie, NULL AS relation, NULL AS other
  UNION ALL
  UNWIND named AS n
  MATCH (n)<-[:SYNONYM_OF]-(tie) WHERE tie.corpus = $corpus
  WITH DISTINCT tie, named MATCH (tie)-[:SYNONYM_OF]->(m) WHERE m.corpus = $corpus AND NOT m IN named
  RETURN m, 'SYNONYM_OF' AS tie, NULL AS relation, NULL AS other
  UNION ALL
  MATCH (n:Built {uid: start, corpus: $corpus}) USING INDEX n:Built(uid)
  WITH DISTINCT n MATCH (n)-[:MENTIONS]->(m) WHERE m.corpus = $corpus
  RETURN m, 'MENTIONS' AS tie, NULL AS relation, NULL AS other
  UNION ALL
  MATCH (n:Built {uid: start, corpus: $corpus}) USING INDEX n:Built(uid)
  WITH DISTINCT n MATCH (n)-[:NEXT_ANCHOR]-(m) WHERE m.corpus = $corpus
  RETURN m, 'NEXT_ANCHOR' AS tie, NULL AS relation, NULL AS other
}
WITH start, m, tie, relation, other, trails
WHERE tie IN $rule.ties AND m.embedding IS NOT NULL AND ($documents IS NULL
  OR EXISTS { MATCH (m)-[:FROM_CHUNK|RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE c.document IN $documents })
WITH start, m, tie, relation, trails, 2 * vector.similarity.cosine(m.embedding, $wanted) - 1 AS near,
     2 * vector.similarity.cosine(coalesce(other, m.embedding), $wanted) - 1 AS told
WITH start, m, tie, relation, CASE WHEN near > told THEN near ELSE told END
     + reduce(most = 0.0, t IN trails | CASE WHEN t.uid = coalesce(m.canonical_uid, m.uid) AND t.along > most THEN t.along ELSE most END) AS score
ORDER BY score DESC, m.uid, tie, relation.uid
WITH start, coalesce(m.canonical_uid, m.uid) AS uid, tie, head(collect({m: m, tie: tie, relation: relation, score: score})) AS way
ORDER BY way.score DESC, uid, tie
WITH start, collect(way) AS every
UNWIND [way IN every WHERE way.m:Entity][..4 * $rule.most] + [way IN every WHERE way.m:Anchor][..4 * $rule.most] AS way
WITH start, way, way.m AS m
WHERE $read IS NULL
  OR EXISTS { MATCH (m)-[:FROM_CHUNK|RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE NOT c.uid IN $read }
  OR coalesce(way.relation.description, '') <> '' AND NOT EXISTS { MATCH (m)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus}) }
WITH start, collect(way) AS every
UNWIND [way IN every WHERE way.m:Entity][..$rule.most] + [way IN every WHERE way.m:Anchor][..$rule.most] AS way
WITH start, way.m AS m, way.tie AS tie, way.relation AS relation, way.score AS score
CALL (relation) {
  WITH relation WHERE relation IS NOT NULL AND $documents IS NOT NULL
  UNWIND relation.chunks AS stating
  MATCH (c:Chunk {uid: stating, corpus: $corpus}) USING INDEX c:Chunk(uid) WHERE c.document IN $documents
  RETURN collect(c.uid) AS within
}
CALL (m) {
  MATCH (d:Document {uid: m.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  RETURN collect(d.date) AS dates
}
WITH start, m, m AS e, tie, score, dates,
     CASE WHEN relation IS NULL OR $documents IS NULL THEN relation
          WHEN size(within) < size(relation.chunks) THEN relation {.*, chunks: within, description: ''}
          ELSE relation {.*, chunks: within} END AS relation
// part: names
// part: description
// part: span
RETURN start, coalesce(m.canonical_uid, m.uid) AS uid, names, CASE WHEN m:Entity THEN 'Entity' ELSE 'Anchor' END AS kind,
       coalesce(m.title, m.name) AS text, description, tie, score, relation,
       dates[0] AS date, span
ORDER BY start, score DESC, uid, tie;

// name: anchors_of_chunks(corpus, uids) read
// Return the anchors whose passages have one of these chunks, in their order, each with those that it has, and whether
// these are all.
CYPHER 25 UNWIND range(0, size($uids) - 1) AS rank
MATCH (c:Chunk {uid: $uids[rank], corpus: $corpus}) USING INDEX c:Chunk(uid)
MATCH (a:Anchor)-[:RESTS_ON]->(c) WHERE a.corpus = $corpus
WITH a AS e, min(rank) AS rank, collect(c.uid) AS chunks
// part: span
WITH e AS a, rank, chunks, span
RETURN a.uid AS uid, a.title AS text, chunks, rank, span,
       NOT EXISTS { MATCH (a)-[:RESTS_ON]->(c:Chunk {corpus: $corpus}) WHERE NOT c.uid IN $uids } AS whole
ORDER BY rank, uid;

// name: passage_chunks(corpus, uids) read
// Return the chunks of anchors' passages, in the order of the text.
CYPHER 25 UNWIND $uids AS uid
MATCH (a:Built {uid: uid, corpus: $corpus}) USING INDEX a:Built(uid)
MATCH (a)-[:RESTS_ON]->(c:Chunk {corpus: $corpus})
MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN a.uid AS uid,
       c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
          title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY uid, chunk.position, chunk.uid;

// name: texts_of_places(corpus, documents, places, vector, read) read
// Return what is read at each place: of an anchor whose `passage` is wanted all chunks, in the order of the text. Of
// another, the `k` nearest to a vector of the chunks named (uids) or, where none of these is there (deleted, or of other
// documents), of those that mention the entity and are not `read` yet.
CYPHER 25 UNWIND $places AS place
CALL (place) {
  WITH place WHERE NOT place.passage
  UNWIND place.chunks AS uid
  MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
  WHERE c.embedding IS NOT NULL AND ($documents IS NULL OR c.document IN $documents)
  RETURN collect(c) AS there
}
CALL (place, there) {
  WITH place WHERE place.passage
  MATCH (a:Built {uid: place.uid, corpus: $corpus}) USING INDEX a:Built(uid)
  MATCH (a)-[:RESTS_ON]->(c:Chunk {corpus: $corpus})
  WITH c ORDER BY c.position, c.uid
  RETURN collect(c) AS chunks
  UNION ALL
  WITH place, there WHERE size(there) > 0
  UNWIND there AS c
  WITH place, c ORDER BY vector.similarity.cosine(c.embedding, $vector) DESC, c.uid
  WITH place, collect(c) AS found
  RETURN found[..place.k] AS chunks
  UNION ALL
  WITH place, there WHERE NOT place.passage AND size(there) = 0
  CALL (place) {
    MATCH (n:Entity {uid: place.uid, corpus: $corpus}) USING INDEX n:Entity(uid)
    RETURN collect(n) AS things
  }
  // part: members
  UNWIND members AS e
  MATCH (e)-[:FROM_CHUNK]->(c)
  WITH DISTINCT place, c WHERE c.corpus = $corpus AND c.embedding IS NOT NULL
    AND ($documents IS NULL OR c.document IN $documents) AND NOT c.uid IN $read
  WITH place, c ORDER BY vector.similarity.cosine(c.embedding, $vector) DESC, c.uid
  WITH place, collect(c) AS found
  RETURN found[..place.k] AS chunks
}
UNWIND range(0, size(chunks) - 1) AS rank
WITH place.uid AS uid, rank, chunks[rank] AS c
MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN uid, c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
               title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY uid, rank;

// name: draw_number(corpus, scope, owner, layer_key) write
// Return the next number of an owner's learnings. The lock on the node of the scope holds until the transaction ends, so
// numbers are the order in which learnings are committed.
CYPHER 25 MERGE (s:Built {uid: $scope, corpus: $corpus})
ON CREATE SET s:TrailScope, s.system = 'remindrag', s.kind = 'TrailScope', s.key = $owner, s.owner = $owner,
              s.learnt = true, s.document = '', s.text = '', s.layer_key = $layer_key, s.drawn = 0
SET s.drawn = s.drawn + 1
RETURN s.drawn AS number;

// name: lock_scope(corpus, scope) write
// Lock the node of a scope until the transaction ends.
CYPHER 25 MATCH (s:Built {uid: $scope, corpus: $corpus}) USING INDEX s:Built(uid)
SET s.drawn = s.drawn;

// name: trails_to_touch(corpus, owner, rows) read
// Return the trails of those of these ties that still exist: each of the owner's between these places, by whatever names
// they had, or a new one. With them what ties their ends, how alike the vectors of these are, what the trail remembers, and
// the vectors of everybody's trails between these places (`shared`), if the owner is somebody.
CYPHER 25 UNWIND $rows AS row
CALL (row) {
  UNWIND row.ends AS end
  CALL (end) {
    MATCH (n:Entity {uid: end, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
    UNION ALL
    MATCH (n:Built {uid: end, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
  }
  RETURN collect(n) AS found
}
WITH row, found WHERE size(found) = size(row.ends)
CALL (found) {
  WITH found[..1] AS things
  // part: members
  RETURN members AS ours
}
CALL (found) {
  WITH found[1..] AS things
  // part: members
  RETURN members AS theirs
}
CALL (found, ours, theirs) {
  WITH found WHERE size(found) = 1
  RETURN 'PASSAGE' AS tie
  UNION ALL
  WITH found, ours, theirs WHERE size(found) = 2
  RETURN CASE WHEN EXISTS { UNWIND ours AS a MATCH (a)-[r:NEXT_ANCHOR]-(m)
                            WHERE m IN theirs AND m.corpus = $corpus } THEN 'NEXT_ANCHOR'
              WHEN EXISTS { UNWIND ours AS a MATCH (a)-[r:MENTIONS]-(m)
                            WHERE m IN theirs AND m.corpus = $corpus } THEN 'MENTIONS'
              WHEN EXISTS { UNWIND ours AS a MATCH (a)-[r:RELATES {corpus: $corpus}]-(m)
                            WHERE m IN theirs AND m.corpus = $corpus } THEN 'RELATES'
              WHEN EXISTS { UNWIND ours AS a MATCH (a)<-[:SYNONYM_OF]-(tie)-[:SYNONYM_OF]->(m)
                            WHERE m IN theirs AND tie.corpus = $corpus AND m.corpus = $corpus } THEN 'SYNONYM_OF'
         END AS tie
}
WITH row, found, ours, theirs, tie WHERE tie IS NOT NULL
CALL (ours, theirs) {
  UNWIND ours AS a
  MATCH (a)<-[:BETWEEN]-(t:Trail {corpus: $corpus})
  WHERE t.owner IN ['', $owner] AND (size(theirs) = 0 AND t.tie = 'PASSAGE'
    OR EXISTS { MATCH (t)-[:BETWEEN]->(b) WHERE b.corpus = $corpus AND b IN theirs AND b <> a })
  RETURN collect(DISTINCT t) AS trails
}
WITH row, found, tie, [t IN trails WHERE t.owner = $owner] AS own, [t IN trails WHERE t.owner <> $owner AND t.vector IS NOT NULL | t.vector] AS shared
UNWIND CASE WHEN size(own) > 0 THEN own ELSE [NULL] END AS t
CALL (t, found) {
  OPTIONAL MATCH (t)-[:BETWEEN]->(n) WHERE n.corpus = $corpus
  WITH found, collect(n) AS between
  RETURN CASE WHEN size(between) > 0 THEN between ELSE found END AS ends
}
RETURN row.uid AS touch, coalesce(t.uid, row.uid) AS uid, t.vector AS vector, t.chunks AS kept, shared, tie,
       [n IN ends | n.uid] AS ends,
       CASE WHEN size(ends) = 1 THEN 1.0
            ELSE 2 * vector.similarity.cosine(ends[0].embedding, ends[1].embedding) - 1 END AS alike
ORDER BY uid, touch;

// name: put_trails(corpus, owner, layer_key, rows) write
// Write trails with their ends and what they remember. A trail goes with an anchor that it leads to.
CYPHER 25 UNWIND $rows AS row
MERGE (t:Built {uid: row.uid, corpus: $corpus})
ON CREATE SET t:Trail, t.system = 'remindrag', t.kind = 'Trail', t.key = row.key, t.owner = $owner, t.tie = row.tie,
              t.learnt = true, t.document = '', t.text = '', t.layer_key = $layer_key
SET t.length = row.length, t.alike = row.alike, t.strength = toString(round(row.length, 2)), t.chunks = row.kept
WITH t, row
CALL db.create.setNodeVectorProperty(t, 'vector', row.vector)
WITH t, row
UNWIND row.ends AS end
CALL (end) {
  MATCH (n:Entity {uid: end, corpus: $corpus}) USING INDEX n:Entity(uid) RETURN n
  UNION ALL
  MATCH (n:Built {uid: end, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n
}
MERGE (t)-[:BETWEEN]->(n)
WITH t, CASE WHEN n:Built THEN [n] ELSE [] END AS anchors
FOREACH (anchor IN anchors | MERGE (t)-[:RESTS_ON]->(anchor));

// name: put_learning(corpus, layer_key, learning, touches) write
// Write a learning with the trails that it touched.
CYPHER 25 CREATE (l:Built:Learning {uid: $learning.uid, corpus: $corpus})
SET l.system = 'remindrag', l.kind = 'Learning', l.key = $learning.key, l.learnt = true, l.document = '', l.text = '',
    l.layer_key = $layer_key, l.question = $learning.question, l.owner = $learning.owner, l.memory = $learning.memory,
    l.penalty = $learning.penalty, l.starts = $learning.starts, l.cited = $learning.cited, l.number = $learning.number,
    l.wrong = CASE WHEN $learning.key <> $learning.memory THEN true END, l.created_at = toString(datetime())
WITH l
CALL db.create.setNodeVectorProperty(l, 'vector', $learning.vector)
WITH l
CALL (l) {
  UNWIND $touches AS touch
  MATCH (t:Built {uid: touch.uid, corpus: $corpus}) USING INDEX t:Built(uid)
  CREATE (l)-[:TOUCHED {effective: touch.effective, order: l.number, chunks: touch.chunks, beside: touch.beside}]->(t)
};

// name: learnings(corpus, owner, memory, question, learning) read
// Return the learnings that an owner sees, those of a memory, a question or a uid if it is given, in the order of their
// numbers.
CYPHER 25 MATCH (l:Learning {corpus: $corpus}) USING INDEX l:Learning(corpus)
WHERE ($owner IS NULL OR l.owner IN ['', $owner]) AND l.memory = coalesce($memory, l.memory)
  AND l.question = coalesce($question, l.question) AND l.uid = coalesce($learning, l.uid)
RETURN l.number AS number, l.question AS question,
       COUNT { (l)-[:TOUCHED]->(t:Built) WHERE t.corpus = $corpus } AS trails,
       COUNT { (l)-[r:TOUCHED]->(t:Built) WHERE t.corpus = $corpus AND r.effective } AS effective,
       l.memory AS memory, l.owner AS owner, l.created_at AS learnt, l.uid AS learning
ORDER BY owner, number;

// name: learning_of(corpus, uid) read
// Return a learning, if it exists.
CYPHER 25 MATCH (l:Built {uid: $uid, corpus: $corpus}) USING INDEX l:Built(uid)
RETURN l.uid AS uid;

// name: remove_learnings(corpus, owner, uids) write
// Delete learnings of an owner, and return the trails that they touched.
CYPHER 25 UNWIND $uids AS uid
MATCH (l:Built {uid: uid, corpus: $corpus}) USING INDEX l:Built(uid) WHERE l.owner = $owner
CALL (l) {
  MATCH (l)-[:TOUCHED]->(t:Built) WHERE t.corpus = $corpus
  RETURN collect(t.uid) AS trails
}
DETACH DELETE l
RETURN trails;

// name: touches_of(corpus, uids) read
// Return for each trail what it remembers, how alike its ends are now, and what touched it, in order.
CYPHER 25 UNWIND $uids AS uid
MATCH (t:Built {uid: uid, corpus: $corpus}) USING INDEX t:Built(uid)
WITH DISTINCT t
CALL (t) {
  MATCH (t)<-[r:TOUCHED]-(l:Built {corpus: $corpus})
  WITH r, l ORDER BY r.order
  RETURN collect({question: l.question, effective: r.effective, penalty: l.penalty, beside: coalesce(r.beside, 0.0),
                  chunks: r.chunks}) AS touches
}
CALL (t) {
  MATCH (t)-[:BETWEEN]->(n) WHERE n.corpus = $corpus
  RETURN collect(n.embedding) AS ends
}
RETURN t.uid AS uid, t.vector AS vector, coalesce(t.chunks, '') AS kept, touches,
       CASE WHEN size(ends) = 2 THEN 2 * vector.similarity.cosine(ends[0], ends[1]) - 1 ELSE 1.0 END AS alike
ORDER BY uid;

// name: learnt_questions(corpus, uids) read
// Return the questions whose learnings touched these trails, each with its vector, which takes half the time of a list.
CYPHER 25 UNWIND $uids AS uid
MATCH (t:Built {uid: uid, corpus: $corpus}) USING INDEX t:Built(uid)
MATCH (t)<-[:TOUCHED]-(l:Built {corpus: $corpus})
WITH DISTINCT l
RETURN l.question AS question, vector(l.vector, size(l.vector), FLOAT32) AS vector
ORDER BY l.number;

// name: set_trails(corpus, rows) write
// Write what trails remember now.
CYPHER 25 UNWIND $rows AS row
MATCH (t:Built {uid: row.uid, corpus: $corpus}) USING INDEX t:Built(uid)
SET t.length = row.length, t.alike = row.alike, t.strength = toString(round(row.length, 2)), t.chunks = row.kept
WITH t, row
CALL db.create.setNodeVectorProperty(t, 'vector', row.vector);

// name: remove_trails(corpus, uids) write
// Delete trails that no learning touches any more.
CYPHER 25 UNWIND $uids AS uid
MATCH (t:Built {uid: uid, corpus: $corpus}) USING INDEX t:Built(uid)
DETACH DELETE t;

// name: list_trails(corpus, owners, vector, k, least) read
// Return the strongest trails, for a question's vector if there is one, else by length: their ends, and what touched them.
CYPHER 25 MATCH (t:Built {corpus: $corpus}) USING INDEX t:Built(corpus)
WHERE t.system = 'remindrag' AND t.kind = 'Trail' AND ($owners IS NULL OR t.owner IN $owners)
WITH t, CASE WHEN $vector IS NULL OR t.length <= $least THEN t.length
        ELSE t.length * (2 * vector.similarity.cosine(t.vector, $vector) - 1) END AS along
ORDER BY along DESC, t.uid LIMIT $k
RETURN t.uid AS uid, t.owner AS owner, t.tie AS tie, t.length AS length, t.alike AS alike, along,
       COLLECT { MATCH (t)-[:BETWEEN]->(n) WHERE n.corpus = $corpus RETURN coalesce(n.title, n.name) ORDER BY n.uid } AS ends,
       COUNT { (t)<-[:TOUCHED]-(l:Built) WHERE l.corpus = $corpus } AS learnings
ORDER BY along DESC, uid;
