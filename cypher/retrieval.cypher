// What a step retrieves. Scores are cosine in [-1, 1], exact: of full vectors, by the index that proposes a candidate
// or by `vector.similarity.cosine`. Lists are nearest first, ties by uid.

// name: retrieve(corpus, memory, documents, queries, layers, ranking, limits) read
// One row for all sub-queries of a step. `found` holds, for each query in order, uids with scores: the nearest entities
// of its candidates, the nearest relations at them, their nearest source chunks, and what a search over all chunks finds
// by vector (`near`) and by full text (`matching`), with the `read_limit` that both together rank first (`read`, by
// reciprocal rank fusion). Source chunks and `read` are returned whole. `nearest` is the source chunk of an entity
// that is nearest to the query. A class is one entity: the best of its candidates is found, and all its members' chunks and
// relations are its own. `_limits` in hgmem/retrieval/step_evidence.py has the limits.
// A query's `search` names its candidates: 'index' (V_G − V_M, proposed by the vector index; `seen` counts the
// proposals), 'exact' (all of V_G − V_M), 'documents' (entities that those documents mention, without V_M), 'scope' or
// 'chosen' (the entities `chosen`: of a local scope, or candidates before). Up to `exact_limit` candidates are ranked
// exactly; more are proposed by the index first. With `documents`, chunks of other documents are ignored, and so are
// entities and relations that only those mention or state. Where those and others do, the description is left out, because
// it combines all of them. `layers` and `ranking` are those of the statement `worded`: the
// chunks, searched by the words of each query (parts/bm25.cypher).
CYPHER 25 replan=skip
CALL () {
  CALL () {
    MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
    WITH m LIMIT 1 WHERE $limits.exclude_covered AND any(q IN $queries WHERE NOT q.search IN ['scope', 'chosen'])
    MATCH (m)-[:HAS_POINT]->(p)-[:INVOLVES]->(v) WHERE p.corpus = $corpus AND v.corpus = $corpus AND p.died IS NULL
    RETURN collect(DISTINCT v) AS things
  }
  // part: members
  RETURN members AS covered
}
CALL (covered) { // of one row: two blocks that depend on nothing would be multiplied
  // part: bm25
  RETURN collect({number: one.query.number, rows: [hit IN best | hit.row]}) AS words
}
UNWIND $queries AS q
CALL (q) {
  WITH q WHERE q.search = 'documents'
  RETURN COLLECT {
    UNWIND $documents AS uid
    MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
    WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c) WHERE c.corpus = $corpus
    WITH DISTINCT c MATCH (c)<-[:FROM_CHUNK]-(e) WHERE e.corpus = $corpus
    RETURN DISTINCT e
  } AS scope
  UNION
  WITH q WHERE q.search IN ['scope', 'chosen']
  RETURN COLLECT {
    UNWIND q.chosen AS uid
    MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX SEEK e:Entity(uid)
    WITH DISTINCT e WHERE e.memory IN ['', $memory]
    RETURN e
  } AS scope
  UNION
  WITH q WHERE NOT q.search IN ['documents', 'scope', 'chosen']
  RETURN [] AS scope
}
CALL (q, scope) {
  CALL (q, scope) {
    WITH q WHERE q.search = 'index'
    MATCH (e:Entity)
    SEARCH e IN (VECTOR INDEX entity_embedding FOR q.vector WHERE e.corpus = $corpus AND e.memory IN ['', $memory]
                 LIMIT $limits.overfetch) SCORE AS s
    RETURN e, 2 * s - 1 AS score
    UNION ALL
    WITH q WHERE q.search = 'exact'
    WITH q LIMIT 1 // else the planner reads the whole corpus first, and then finds that nobody wants it
    MATCH (e:Entity {corpus: $corpus}) WHERE e.memory IN ['', $memory] AND e.embedding IS NOT NULL
    RETURN e, 2 * vector.similarity.cosine(e.embedding, q.vector) - 1 AS score
    UNION ALL
    WITH q, scope WHERE size(scope) <= $limits.exact_limit
    UNWIND scope AS e
    WITH q, e WHERE e.embedding IS NOT NULL
    RETURN e, 2 * vector.similarity.cosine(e.embedding, q.vector) - 1 AS score
    UNION ALL
    WITH q, scope WHERE size(scope) > $limits.exact_limit
    WITH q, [e IN scope | e.uid] AS uids
    MATCH (e:Entity)
    SEARCH e IN (VECTOR INDEX entity_embedding FOR q.vector WHERE e.corpus = $corpus AND e.uid IN uids LIMIT $limits.overfetch)
    SCORE AS s
    RETURN e, 2 * s - 1 AS score
  }
  RETURN collect({entity: e, score: score}) AS candidates
}
CALL (q, candidates, covered) { // how near the last one is, so that nothing is read of those behind
  UNWIND candidates AS candidate
  WITH q, covered, candidate.entity AS e, candidate.score AS score ORDER BY score DESC
  WITH e, score WHERE e.uid IS NOT NULL AND (q.search IN ['scope', 'chosen'] OR NOT $limits.exclude_covered OR NOT e IN covered)
    AND ($documents IS NULL OR e.memory <> '' OR EXISTS {
      MATCH (e)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.document IN $documents
    })
  WITH e, score LIMIT 3 * $limits.entity_limit // several may be of one class; where too many are, all are read
  WITH coalesce(e.canonical_uid, e.uid) AS class, max(score) AS score ORDER BY score DESC LIMIT $limits.entity_limit
  RETURN CASE count(*) WHEN $limits.entity_limit THEN min(score) ELSE -1.0 END AS least
}
CALL (q, candidates, covered, least) {
  UNWIND [candidate IN candidates WHERE candidate.score >= least] AS candidate
  WITH q, covered, candidate.entity AS e, candidate.score AS score
  WITH e, score WHERE e.uid IS NOT NULL AND (q.search IN ['scope', 'chosen'] OR NOT $limits.exclude_covered OR NOT e IN covered)
    AND ($documents IS NULL OR e.memory <> '' OR EXISTS {
      MATCH (e)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.document IN $documents
    })
  WITH e, score ORDER BY score DESC, e.uid
  WITH coalesce(e.canonical_uid, e.uid) AS class, head(collect(e)) AS e, max(score) AS score // the best of each class
  ORDER BY score DESC, e.uid LIMIT $limits.entity_limit
  RETURN collect(e) AS kept, collect({uid: e.uid, class: class, score: score}) AS entities
}
CALL (kept) {
  WITH kept AS things
  // part: members
  RETURN members
}
CALL (members) {
  UNWIND CASE WHEN $limits.relation_limit > 0 THEN members ELSE [] END AS e
  MATCH (e)-[r:RELATES]-()
  WITH DISTINCT r WHERE r.corpus = $corpus AND r.memory IN ['', $memory]
    AND ($documents IS NULL OR r.memory <> '' OR EXISTS {
      UNWIND r.chunks AS uid
      MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid) WHERE c.document IN $documents
    })
  RETURN collect(r) AS incident
}
CALL (q, incident) {
  CALL (q, incident) {
    WITH q, incident WHERE size(incident) <= $limits.exact_limit
    UNWIND incident AS r
    WITH q, r WHERE r.embedding IS NOT NULL
    RETURN r, 2 * vector.similarity.cosine(r.embedding, q.vector) - 1 AS score
    UNION ALL
    WITH q, incident WHERE size(incident) > $limits.exact_limit
    WITH q, [r IN incident | r.uid] AS uids
    MATCH ()-[r:RELATES]->()
    SEARCH r IN (VECTOR INDEX relation_embedding FOR q.vector WHERE r.corpus = $corpus AND r.uid IN uids LIMIT $limits.overfetch)
    SCORE AS s
    RETURN r, 2 * s - 1 AS score
  }
  WITH r, score WHERE r.uid IS NOT NULL // one that is being deleted may still be found
  ORDER BY score DESC, r.uid LIMIT $limits.relation_limit
  // a relation's ends have its corpus, and no other memory than its own: this is looked at in the nearest alone
  WITH r, score WHERE startNode(r).corpus = $corpus AND endNode(r).corpus = $corpus
  RETURN collect(r) AS joining, collect({uid: r.uid, score: score}) AS relations
}
CALL (members) {
  UNWIND members AS e
  WITH e, coalesce(e.canonical_uid, e.uid) AS class
  MATCH (e)-[:FROM_CHUNK]->(c)
  WITH c, collect(class) AS classes WHERE c.corpus = $corpus AND ($documents IS NULL OR c.document IN $documents)
  RETURN collect({chunk: c, classes: classes}) AS sources
}
CALL (q) {
  CALL (q) {
    WITH q WHERE $limits.search_limit > 0 AND $documents IS NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR q.vector WHERE c.corpus = $corpus LIMIT $limits.overfetch_chunks)
    SCORE AS s
    RETURN c, 2 * s - 1 AS score
    UNION ALL
    WITH q WHERE $limits.search_limit > 0 AND $documents IS NOT NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR q.vector WHERE c.corpus = $corpus AND c.document IN $documents
                 LIMIT $limits.overfetch_chunks) SCORE AS s
    RETURN c, 2 * s - 1 AS score
  }
  RETURN collect({chunk: c, score: score}) AS proposed
}
CALL (proposed) {
  CALL (proposed) { // how near the last one is, so that nothing is read of those behind
    UNWIND proposed AS hit
    WITH hit.chunk AS c, hit.score AS score ORDER BY score DESC
    WITH score WHERE c.uid IS NOT NULL // one that is being deleted may still be found
    WITH score LIMIT $limits.search_limit
    RETURN min(score) AS least
  }
  UNWIND [hit IN proposed WHERE hit.score >= least] AS hit
  WITH hit.chunk AS c, hit.score AS score
  WITH c, score WHERE c.uid IS NOT NULL
  ORDER BY score DESC, c.uid LIMIT $limits.search_limit
  RETURN collect(c) AS close, collect({uid: c.uid, score: score}) AS near
}
CALL (q, sources, proposed) {
  CALL (q, sources, proposed) {
    WITH q, sources, proposed WHERE size(sources) <= $limits.exact_limit
    UNWIND sources + proposed AS source // what the index proposed has its score already
    WITH source.chunk AS c, max(source.score) AS score, head(collect(source.classes)) AS classes
    WHERE classes IS NOT NULL
    RETURN c, classes, score
    UNION ALL
    WITH q, sources WHERE size(sources) > $limits.exact_limit
    CALL (q, sources) {
      WITH q, [source IN sources | source.chunk.uid] AS uids
      MATCH (c:Chunk)
      SEARCH c IN (VECTOR INDEX chunk_embedding FOR q.vector WHERE c.corpus = $corpus AND c.uid IN uids LIMIT $limits.overfetch)
      SCORE AS s
      RETURN collect({chunk: c, score: 2 * s - 1}) AS searched
    }
    UNWIND sources + searched AS source
    WITH source.chunk AS c, max(source.score) AS score, head(collect(source.classes)) AS classes
    WHERE score IS NOT NULL AND classes IS NOT NULL
    RETURN c, classes, score
  }
  WITH c, classes, coalesce(score, 2 * vector.similarity.cosine(c.embedding, q.vector) - 1) AS score
  // a chunk that is being indexed may lack its vector, and one that is being deleted may still be found
  WITH c, classes, score WHERE score IS NOT NULL AND c.uid IS NOT NULL
  ORDER BY score DESC, c.uid
  WITH collect({chunk: c, score: score, classes: classes}) AS hits
  RETURN hits, [hit IN hits[..$limits.source_limit] | hit.chunk] AS stating,
         [hit IN hits[..$limits.source_limit] | {uid: hit.chunk.uid, score: hit.score}] AS chunks
}
CALL (q, words) {
  RETURN coalesce(head([found IN words WHERE found.number = q.number | found.rows]), []) AS worded
}
CALL (q, close, near, worded) {
  UNWIND [i IN range(0, size(close) - 1) | {chunk: close[i], part: 1.0 / ($limits.fusion + i + 1), score: near[i].score}]
       + [i IN range(0, size(worded) - 1) | {chunk: worded[i], part: 1.0 / ($limits.fusion + i + 1)}] AS ranked
  WITH q, ranked.chunk AS c, sum(ranked.part) AS weight, max(ranked.score) AS score
  ORDER BY weight DESC, c.uid LIMIT $limits.read_limit
  WITH c, coalesce(score, 2 * vector.similarity.cosine(c.embedding, q.vector) - 1) AS score
  RETURN collect(c) AS chosen, collect({uid: c.uid, score: score}) AS read
}
WITH q, candidates, kept, joining, relations, chunks, near, worded, read, stating, chosen,
     [found IN entities |
      found {.uid, .score, nearest: head([hit IN hits WHERE found.class IN hit.classes | hit.chunk.uid])}] AS entities
WITH collect({number: q.number, seen: size(candidates), entities: entities, relations: relations, chunks: chunks,
              near: near, matching: [c IN worded | c.uid], read: read}) AS found,
     collect(kept) AS kept, collect(joining) AS joining,
     collect(stating) + collect(chosen) AS told
RETURN found,
  COLLECT { UNWIND kept AS some UNWIND some AS e WITH DISTINCT e
            // part: names
            // part: description
            RETURN e {.uid, .name, .type, .memory, .canonical_uid, names: names, description: description} } AS entities,
  COLLECT { UNWIND joining AS some UNWIND some AS r WITH DISTINCT r
            CALL (r) {
              WITH r WHERE $documents IS NOT NULL
              UNWIND r.chunks AS uid
              MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid) WHERE NOT c.document IN $documents
              RETURN count(c) > 0 AS combined
            }
            RETURN r {.uid, .weight, .chunks, description: CASE WHEN combined THEN '' ELSE r.description END,
                      keywords: CASE WHEN combined THEN [] ELSE r.keywords END, source: startNode(r).uid,
                      source_name: startNode(r).name, target: endNode(r).uid, target_name: endNode(r).name,
                      ends: [end IN [startNode(r), endNode(r)] | coalesce(end.canonical_uid, end.uid)]} } AS relations,
  COLLECT { UNWIND told AS some UNWIND some AS c WITH DISTINCT c
            MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
            RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                      title: d.title, date: d.date, type: d.type} } AS chunks;

// name: scopes(corpus, memory, documents, queries, limits) read
// The entities of each query's local scope: those of its target points, if `shared` those of other points that share one
// of these (N_M), and neighbours in `hops` hops (N_G), at most the `hub` heaviest of one entity, all with the other
// members of their classes. With `documents`, neighbours that none of them mentions don't count.
CYPHER 25 replan=skip
CALL () {
  MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX SEEK m:Memory(uid)
  WITH m LIMIT 1 WHERE $limits.shared
  MATCH (m)-[:HAS_POINT]->(p)-[:INVOLVES]->(v) WHERE p.corpus = $corpus AND v.corpus = $corpus AND p.died IS NULL
  WITH p, collect(v) AS tied
  RETURN collect(tied) AS ties
}
UNWIND $queries AS q
CALL (q) {
  CALL (q) {
    UNWIND q.targets AS uid
    MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
    WITH DISTINCT p WHERE p.memory = $memory AND p.died IS NULL
    MATCH (p)-[:INVOLVES]->(v) WHERE v.corpus = $corpus
    RETURN collect(DISTINCT v) AS things
  }
  // part: members
  RETURN members AS held
}
CALL (held, ties) {
  UNWIND ties AS tied
  WITH tied WHERE any(v IN tied WHERE v IN held)
  UNWIND tied AS v
  RETURN collect(DISTINCT v) AS sharing
}
CALL (held) {
  UNWIND held AS v
  WITH coalesce(v.canonical_uid, v.uid) AS class, collect(v) AS named
  CALL (named) {
    UNWIND named AS v
    MATCH (v)-[r:RELATES]-(u)
    WITH r, u, r.corpus = $corpus AS ours WHERE ours AND r.memory IN ['', $memory] AND u.memory IN ['', $memory]
      AND ($documents IS NULL OR u.memory <> '' OR EXISTS {
        MATCH (u)-[:FROM_CHUNK]->(c) WHERE u.corpus = $corpus AND c.corpus = $corpus AND c.document IN $documents
      })
    RETURN u ORDER BY r.weight DESC, u.uid LIMIT $limits.hub
  }
  RETURN collect(DISTINCT u) AS first
}
CALL (first) {
  CALL (first) {
    WITH CASE $limits.hops WHEN 2 THEN first ELSE [] END AS things
    // part: members
    RETURN members
  }
  UNWIND members AS v
  WITH coalesce(v.canonical_uid, v.uid) AS class, collect(v) AS named
  CALL (named) {
    UNWIND named AS v
    MATCH (v)-[r:RELATES]-(u)
    WITH r, u, r.corpus = $corpus AS ours WHERE ours AND r.memory IN ['', $memory] AND u.memory IN ['', $memory]
      AND ($documents IS NULL OR u.memory <> '' OR EXISTS {
        MATCH (u)-[:FROM_CHUNK]->(c) WHERE u.corpus = $corpus AND c.corpus = $corpus AND c.document IN $documents
      })
    RETURN u ORDER BY r.weight DESC, u.uid LIMIT $limits.hub
  }
  RETURN collect(DISTINCT u) AS second
}
CALL (held, sharing, first, second) {
  CALL (held, sharing, first, second) {
    UNWIND held + sharing + first + second AS e
    WITH DISTINCT e WHERE e.corpus = $corpus
    RETURN collect(e) AS things
  }
  // part: members
  RETURN [e IN members | e.uid] AS uids
}
RETURN q.number AS number, uids;

// name: near_chunks(corpus, documents, vector, k, over) read
// The k chunks nearest to a vector: all that plain retrieval does. With `documents`, those of others don't count.
CYPHER 25 replan=skip CALL () {
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (c:Chunk)
  SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus LIMIT $over) SCORE AS s
  RETURN c, 2 * s - 1 AS score
  UNION ALL
  WITH $documents AS documents WHERE documents IS NOT NULL
  MATCH (c:Chunk)
  SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus AND c.document IN documents LIMIT $over)
  SCORE AS s
  RETURN c, 2 * s - 1 AS score
}
WITH c, score WHERE c.uid IS NOT NULL // one that is being deleted may still be found
ORDER BY score DESC, c.uid LIMIT $k
MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN score, c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                 title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY score DESC, chunk.uid;

// name: chunks_beside(corpus, memory, documents, queries, k) read
// For each query about points (`targets`), the chunks next to those that the points rest on in their documents, without
// those: the k nearest to its vector.
CYPHER 25 replan=skip UNWIND $queries AS q
CALL (q) {
  UNWIND q.targets AS uid
  MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
  WITH DISTINCT p WHERE p.memory = $memory AND p.died IS NULL
  MATCH (p)-[:SUPPORTED_BY]->(c) WHERE c.corpus = $corpus
  RETURN collect(DISTINCT c) AS own
}
CALL (q, own) {
  UNWIND own AS one
  MATCH (one)-[:NEXT_CHUNK]-(c)
  WITH DISTINCT q, own, c WHERE c.corpus = $corpus AND NOT c IN own AND ($documents IS NULL OR c.document IN $documents)
    AND c.embedding IS NOT NULL // a chunk that is being indexed may lack its vector
  WITH c, 2 * vector.similarity.cosine(c.embedding, q.vector) - 1 AS score
  ORDER BY score DESC, c.uid LIMIT $k
  MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  RETURN score, c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                   title: d.title, date: d.date, type: d.type} AS chunk
}
RETURN q.number AS number, score, chunk
ORDER BY number, score DESC, chunk.uid;

// name: documents_beside(corpus, documents, read, vector, k, over) read
// What a plan may be told of the documents: those of the chunks in `read`, with how many of these each has, and the k
// others whose chunks are nearest to a vector, the nearest first. With `documents`, others don't count.
CYPHER 25 replan=skip CALL () {
  UNWIND $read AS uid
  MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
  WHERE $documents IS NULL OR c.document IN $documents
  WITH c.document AS document, count(DISTINCT c) AS passages
  MATCH (d:Document {uid: document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  WITH d, passages ORDER BY passages DESC, d.title, d.uid
  RETURN collect({uid: d.uid, title: d.title, date: d.date, passages: passages}) AS known
}
CALL (known) {
  CALL (known) {
    WITH known, $documents AS documents WHERE documents IS NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus LIMIT $over) SCORE AS score
    RETURN c, score
    UNION ALL
    WITH known, $documents AS documents WHERE documents IS NOT NULL
    MATCH (c:Chunk)
    SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus AND c.document IN documents LIMIT $over)
    SCORE AS score
    RETURN c, score
  }
  WITH known, c.document AS document, max(score) AS score // one that is being deleted may still be found
  WITH document, score WHERE document IS NOT NULL AND NOT document IN [one IN known | one.uid]
  ORDER BY score DESC, document LIMIT $k
  MATCH (d:Document {uid: document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
  WITH d, score ORDER BY score DESC, d.uid
  RETURN collect(d {.title, .date}) AS near
}
RETURN known, near;

// name: neighbours(corpus, memory, documents, uids, vector, k, hub) read
// The k entities nearest to a vector among those one relation away from memory's and not in it: what a plan may be
// told of. An entity gives its `hub` heaviest relations. A class is one entity, of which the nearest member is returned.
CYPHER 25 replan=skip CALL () {
  CALL () {
    UNWIND $uids AS uid
    MATCH (v:Entity {uid: uid, corpus: $corpus}) USING INDEX SEEK v:Entity(uid)
    RETURN collect(DISTINCT v) AS things
  }
  // part: members
  RETURN members AS held
}
UNWIND held AS v
WITH held, coalesce(v.canonical_uid, v.uid) AS class, collect(v) AS named
CALL (held, named) {
  UNWIND named AS v
  MATCH (v)-[r:RELATES]-(u)
  WITH r, u, held, r.corpus = $corpus AS ours WHERE ours AND r.memory IN ['', $memory] AND u.memory IN ['', $memory]
    AND NOT u IN held AND ($documents IS NULL OR EXISTS {
      MATCH (u)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.document IN $documents
    })
  RETURN u ORDER BY r.weight DESC, u.uid LIMIT $hub
}
WITH DISTINCT u WHERE u.corpus = $corpus AND u.embedding IS NOT NULL
WITH u, 2 * vector.similarity.cosine(u.embedding, $vector) - 1 AS score ORDER BY score DESC, u.uid
WITH coalesce(u.canonical_uid, u.uid) AS class, head(collect(u)) AS e, max(score) AS score
ORDER BY score DESC, e.uid LIMIT $k
// part: names
// part: description
RETURN e {.uid, .name, .type, .memory, .canonical_uid, names: names, description: description} AS entity
ORDER BY score DESC, entity.uid;

// name: find_chunks(corpus, uids) read
// These chunks, those of them that exist.
CYPHER 25 replan=skip UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
WITH DISTINCT c MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
          title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY chunk.uid;

// name: mentioned_entities(corpus, uids) read
// The entities that these chunks mention, each with the chunks that mention it.
CYPHER 25 replan=skip UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
WITH DISTINCT c MATCH (c)<-[:FROM_CHUNK]-(e) WHERE e.corpus = $corpus
WITH e, collect(c.uid) AS chunks
// part: names
RETURN e {.uid, .name, .type, .canonical_uid, names: names} AS entity, chunks ORDER BY entity.uid;

// name: classes_of_chunks(corpus, uids) read
// The names of each class of which these chunks mention a member, first the one that is shown.
CYPHER 25 replan=skip UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
WITH DISTINCT c MATCH (c)<-[:FROM_CHUNK]-(e) WHERE e.corpus = $corpus AND e.canonical_uid IS NOT NULL
WITH e.canonical_uid AS class, head(collect(e)) AS e
// part: names
RETURN names ORDER BY class;

// name: chunks_of_entities(corpus, documents, uids, vector, k) read
// The k chunks nearest to a vector among those that mention one of the entities, or another member of its class.
CYPHER 25 replan=skip CALL () {
  UNWIND $uids AS uid
  MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX SEEK e:Entity(uid)
  RETURN collect(DISTINCT e) AS things
}
// part: members
UNWIND members AS e
MATCH (e)-[:FROM_CHUNK]->(c)
WITH DISTINCT c WHERE c.corpus = $corpus AND c.embedding IS NOT NULL AND ($documents IS NULL OR c.document IN $documents)
WITH c, 2 * vector.similarity.cosine(c.embedding, $vector) - 1 AS score
ORDER BY score DESC, c.uid LIMIT $k
MATCH (d:Document {uid: c.document, corpus: $corpus}) USING INDEX SEEK d:Document(uid)
RETURN c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
          title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY score DESC, chunk.uid;

// name: chunks_around_points(corpus, memory, points, read, k) read
// For each point the k chunks nearest to it among those read that mention its entities (inner), and as many among the
// rest that mention entities one relation away which memory does not involve (outer); the nearest first. A class is one
// entity.
CYPHER 25 replan=skip CALL () {
  CALL () {
    UNWIND $points AS uid
    MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
    WITH DISTINCT p WHERE p.memory = $memory
    MATCH (p)-[:INVOLVES]->(v) WHERE v.corpus = $corpus
    RETURN collect(DISTINCT v) AS things
  }
  // part: members
  RETURN members AS covered
}
UNWIND $points AS uid
MATCH (p:MemoryPoint {uid: uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
WITH p, covered WHERE p.memory = $memory
CALL (p, covered) {
  CALL (p) {
    MATCH (p)-[:INVOLVES]->(v) WHERE v.corpus = $corpus
    RETURN collect(v) AS things
  }
  // part: members
  UNWIND members AS v
  CALL (v) {
    MATCH (v)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.uid IN $read
    RETURN collect(c) AS own
  }
  CALL (v, covered) {
    MATCH (v)-[r:RELATES]-(u)
    WITH r, u, r.corpus = $corpus AS ours, covered WHERE ours AND r.memory IN ['', $memory] AND u.memory IN ['', $memory]
      AND NOT u IN covered
    RETURN collect(DISTINCT u) AS around
  }
  WITH collect(own) AS own, collect(around) AS around
  CALL (around) {
    CALL (around) {
      UNWIND around AS some UNWIND some AS u
      RETURN collect(DISTINCT u) AS things
    }
    // part: members
    RETURN members AS outside
  }
  RETURN COLLECT { UNWIND own AS some UNWIND some AS c RETURN DISTINCT c } AS inner,
         COLLECT { UNWIND outside AS u
                   MATCH (u)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus AND c.uid IN $read
                   RETURN DISTINCT c } AS beside
}
UNWIND [inner, [c IN beside WHERE NOT c IN inner]] AS some
CALL (p, some) {
  UNWIND some AS c
  WITH p, c WHERE c.embedding IS NOT NULL
  WITH c, 2 * vector.similarity.cosine(c.embedding, p.embedding) - 1 AS score
  RETURN c, score ORDER BY score DESC, c.uid LIMIT $k
}
WITH c, max(score) AS score
RETURN c.uid AS chunk ORDER BY score DESC, chunk;

// name: nearest_supports(corpus, memory, documents, points, vector) read
// For each point of a memory how near it is to a vector, and those of the chunks given with it that exist, the nearest
// to the point first. With `documents`, chunks of others are left out.
CYPHER 25 replan=skip UNWIND $points AS row
MATCH (p:MemoryPoint {uid: row.uid, corpus: $corpus}) USING INDEX SEEK p:MemoryPoint(uid)
WITH p, row WHERE p.memory = $memory
RETURN p.uid AS point, 2 * vector.similarity.cosine(p.embedding, $vector) - 1 AS score, COLLECT {
  UNWIND row.chunks AS uid
  MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX SEEK c:Chunk(uid)
  WHERE $documents IS NULL OR c.document IN $documents
  WITH DISTINCT p, c ORDER BY coalesce(vector.similarity.cosine(c.embedding, p.embedding), 0.0) DESC, c.uid
  RETURN c.uid
} AS chunks;
