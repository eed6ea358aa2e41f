// HyperMem: topics over episodes over facts, and the search from the top down.

// name: memberships(corpus, type) read
// Return for each hyperedge (the topic or episode at its centre) its members with their weights.
CYPHER 25 MATCH (centre:Built {corpus: $corpus}) USING INDEX centre:Built(corpus)
WHERE centre.system = 'hypermem' AND centre.kind IN ['Topic', 'Episode']
WITH DISTINCT centre MATCH (centre)<-[r:IN_TOPIC|IN_EPISODE]-(member)
WHERE member.corpus = $corpus AND type(r) = $type
WITH centre, r, member ORDER BY member.uid
RETURN centre.uid AS uid, collect([member.uid, r.weight]) AS members
ORDER BY uid;

// name: entities_of_episodes(corpus) read
// Return for each episode the entities of the corpus that its chunks mention, by uid and name.
CYPHER 25 MATCH (episode:Built {corpus: $corpus}) USING INDEX episode:Built(corpus)
WHERE episode.system = 'hypermem' AND episode.kind = 'Episode'
CALL (episode) {
  MATCH (episode)-[:RESTS_ON]->(c:Chunk {corpus: $corpus})<-[:FROM_CHUNK]-(e:Entity {corpus: $corpus})
  WITH DISTINCT e ORDER BY e.uid
  RETURN collect([e.uid, e.name]) AS entities
}
WITH episode, entities WHERE size(entities) > 0
RETURN episode.uid AS uid, entities
ORDER BY uid;

// name: counting_rows(corpus, documents, limits) read
// Return by kind the rows (uids) that count where a search is filtered: facts and episodes that rest on one of the
// `documents`, were said from `since` to `until`, by `speaker` if there is one, have a day from `begins` to `ends`, and
// hold all of one of the lists of `stems`, where such are given, and topics with such an episode.
// Where only some documents count, topics of several documents are returned as `across`.
CYPHER 25 CALL () {
  WITH $documents AS documents WHERE documents IS NULL
  MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
  RETURN n
  UNION ALL
  UNWIND $documents AS uid
  MATCH (d:Document {uid: uid, corpus: $corpus}) USING INDEX d:Document(uid)
  WITH DISTINCT d MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus})<-[:RESTS_ON]-(n:Built {corpus: $corpus})
  WHERE n.document = d.uid
  RETURN DISTINCT n
}
WITH n WHERE n.system = 'hypermem' AND n.kind IN ['Episode', 'Fact'] AND ($limits.speaker = '' OR $limits.speaker IN n.speakers)
  AND $limits.since <= coalesce(n.said_at, n.begins) <= $limits.until
  AND ($limits.stems = [] OR any(some IN $limits.stems WHERE all(stem IN some WHERE n.stems CONTAINS stem)))
  AND ($limits.begins = '' OR CASE WHEN coalesce(n.starts, '') <> '' THEN n.starts <= $limits.ends AND n.ends >= $limits.begins
       ELSE left(coalesce(n.said_at, n.begins), 10) <= $limits.ends AND left(coalesce(n.said_at, n.ends), 10) >= $limits.begins END)
CALL (n) {
  RETURN n AS row
  UNION ALL
  MATCH (n)-[:IN_TOPIC]->(row:Built) WHERE row.corpus = $corpus
  RETURN row
}
WITH DISTINCT row
RETURN CASE WHEN row.kind = 'Topic' AND $documents IS NOT NULL AND row.document = '' THEN 'across' ELSE row.kind END AS kind,
       collect(row.uid) AS uids;

// name: recall(corpus, vector, layers, given, limits) read
// Search topics, the episodes of those found, and the facts of these, each level by words and by vector, fused by
// reciprocal ranks. By `inherit`, the rank of the row above counts too. `layers` are the kinds of rows, each with the
// rows (uids) that fit the words best (full_text.cypher), all that count (`uids`, null for all of them), and `whole` for a
// level that is searched as a whole: the first one. `given` has rows (uids) of a level that was searched before, or null;
// a level with a limit of 0 is left out. With `holding`, facts that hold at a time come before those that have ended.
CYPHER 25 CALL () {
  UNWIND $layers AS layer
  CALL (layer) {
    UNWIND range(0, size(layer.worded) - 1) AS rank
    MATCH (n:Built {uid: layer.worded[rank], corpus: $corpus}) USING INDEX n:Built(uid)
    WITH n ORDER BY rank
    RETURN collect(n) AS worded
  }
  CALL (layer) {
    CALL (layer) {
      WITH layer WHERE layer.whole AND layer.uids IS NULL
      MATCH (n:Built)
      SEARCH n IN (VECTOR INDEX built_embedding FOR $vector
                   WHERE n.corpus = $corpus AND n.system = 'hypermem' AND n.kind = layer.kind LIMIT $limits.over) SCORE AS s
      RETURN n, s
      UNION ALL
      WITH layer, layer.uids AS uids WHERE layer.whole AND uids IS NOT NULL
      MATCH (n:Built)
      SEARCH n IN (VECTOR INDEX built_embedding FOR $vector WHERE n.corpus = $corpus AND n.uid IN uids LIMIT $limits.over)
      SCORE AS s
      RETURN n, s
    }
    WITH n, s WHERE n.uid IS NOT NULL // one that is being deleted may still be found
    WITH n ORDER BY s DESC, n.uid
    RETURN collect(n) AS near
  }
  RETURN collect({worded: worded, near: near, uids: layer.uids}) AS ranked
}
// topics
CALL (ranked) {
  UNWIND [ranked[0].near, ranked[0].worded] AS hits
  WITH hits[..$limits.depth] AS kept
  UNWIND range(0, size(kept) - 1) AS i
  WITH kept[i] AS n, sum(1.0 / ($limits.fusion + i + 1)) AS score ORDER BY score DESC, n.uid LIMIT $limits.topics
  RETURN collect({row: n, score: score}) AS topics
}
// episodes
CALL (ranked, topics) {
  WITH ranked, coalesce($given.topics, [one IN topics | one.row.uid]) AS above
  CALL (ranked, above) {
    UNWIND CASE WHEN $limits.topics > 0 THEN above ELSE [] END AS uid
    MATCH (t:Built {uid: uid, corpus: $corpus}) USING INDEX t:Built(uid)
    MATCH (t)<-[:IN_TOPIC]-(e:Built) WHERE e.corpus = $corpus AND (ranked[1].uids IS NULL OR e.uid IN ranked[1].uids)
    WITH DISTINCT e, vector.similarity.cosine(e.embedding, $vector) AS s ORDER BY s DESC, e.uid
    RETURN collect(e) AS beneath
  }
  UNWIND CASE WHEN $limits.topics > 0 THEN [beneath, [n IN ranked[1].worded WHERE n IN beneath]]
              ELSE [ranked[1].near, ranked[1].worded] END AS hits
  WITH above, hits[..$limits.depth] AS kept
  UNWIND range(0, size(kept) - 1) AS i
  WITH above, kept[i] AS n, sum(1.0 / ($limits.fusion + i + 1)) AS score
  CALL (n, above) {
    MATCH (n)-[:IN_TOPIC]->(t:Built) WHERE t.corpus = $corpus
    UNWIND [i IN range(0, size(above) - 1) WHERE above[i] = t.uid] AS place
    RETURN min(place) AS place
  }
  WITH n, score + coalesce(1.0 * $limits.inherit / ($limits.fusion + place + 1), 0.0) AS score
  ORDER BY score DESC, n.uid LIMIT $limits.episodes
  RETURN collect({row: n, score: score}) AS episodes
}
// facts
CALL (ranked, episodes) {
  WITH ranked, coalesce($given.episodes, [one IN episodes | one.row.uid]) AS above
  CALL (ranked, above) {
    UNWIND CASE WHEN $limits.episodes > 0 THEN above ELSE [] END AS uid
    MATCH (e:Built {uid: uid, corpus: $corpus}) USING INDEX e:Built(uid)
    MATCH (e)<-[:IN_EPISODE]-(f:Built) WHERE f.corpus = $corpus AND (ranked[2].uids IS NULL OR f.uid IN ranked[2].uids)
    WITH DISTINCT f, vector.similarity.cosine(f.embedding, $vector) AS s ORDER BY s DESC, f.uid
    RETURN collect(f) AS beneath
  }
  UNWIND CASE WHEN $limits.episodes > 0 THEN [beneath, [n IN ranked[2].worded WHERE n IN beneath]]
              ELSE [ranked[2].near, ranked[2].worded] END AS hits
  CALL (ranked, hits) {
    UNWIND range(0, size(hits) - 1) AS i
    WITH ranked, i, hits[i] AS n
    WITH i, n, $limits.holding AND EXISTS {
      MATCH (n)<-[r:SUPERSEDES]-(newer:Built) WHERE newer.corpus = $corpus AND r.since <= $limits.until
        AND newer.said_at <= $limits.until AND (newer.document = n.document OR ranked[2].uids IS NULL) } AS ended
    ORDER BY ended, i LIMIT $limits.depth
    RETURN collect({row: n, ended: ended}) AS kept
  }
  UNWIND range(0, size(kept) - 1) AS i
  WITH above, kept[i].row AS n, kept[i].ended AS ended, sum(1.0 / ($limits.fusion + i + 1)) AS score
  CALL (n, above) {
    MATCH (n)-[:IN_EPISODE]->(e:Built) WHERE e.corpus = $corpus
    UNWIND [i IN range(0, size(above) - 1) WHERE above[i] = e.uid] AS place
    RETURN min(place) AS place
  }
  WITH n, ended, score + coalesce(1.0 * $limits.inherit / ($limits.fusion + place + 1), 0.0) AS score
  ORDER BY ended, score DESC, n.uid LIMIT $limits.facts
  RETURN collect({row: n, score: score, ended: ended}) AS facts
}
UNWIND [one IN topics | {one: one, level: 0}] + [one IN episodes | {one: one, level: 1}]
     + [one IN facts | {one: one, level: 2}] AS hit
WITH hit.level AS level, hit.one.score AS score, hit.one.row AS n, coalesce(hit.one.ended, false) AS ended
RETURN level, score, n {.*, embedding: NULL, own_embedding: NULL} AS row,
       COLLECT { MATCH (n)-[:RESTS_ON]->(c:Chunk {corpus: $corpus}) WITH c ORDER BY c.position, c.uid RETURN c.uid } AS chunks
ORDER BY level, ended, score DESC, row.uid;

// name: unbuilt_chunks(corpus, documents) read
// Return the chunks of conversations, newest first, in which an episode misses a message: those on which none rests, and
// the last one of each conversation's last episode, with the message that ends it.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
WHERE $documents IS NULL OR d.uid IN $documents
MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) WHERE c.messages IS NOT NULL
CALL (c) {
  MATCH (c)<-[:RESTS_ON]-(e:Built {corpus: $corpus}) WHERE e.system = 'hypermem' AND e.kind = 'Episode'
  RETURN collect(e.last) AS lasts, count(e) AS built
}
WITH d, c, lasts, built WHERE built = 0 OR NOT EXISTS {
  MATCH (c)-[:NEXT_CHUNK]->(after:Chunk {corpus: $corpus})<-[:RESTS_ON]-(e:Built {corpus: $corpus})
  WHERE e.system = 'hypermem' AND e.kind = 'Episode' }
RETURN lasts, c {.uid, .document, .position, .text, .tokens, .start, .end, .source_id, .messages,
                 title: d.title, date: d.date, type: d.type} AS chunk
ORDER BY d.title, d.uid, c.position DESC;

// name: list_facts(corpus, limits) read
// Return facts by the time of their messages, the newest first.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.system = 'hypermem' AND n.kind = 'Fact' AND $limits.since <= n.said_at <= $limits.until
  AND ($limits.speaker = '' OR $limits.speaker IN n.speakers)
WITH n ORDER BY n.said_at DESC, n.uid LIMIT $limits.facts
RETURN 2 AS level, 0.0 AS score, n {.*, embedding: NULL, own_embedding: NULL} AS row,
       COLLECT { MATCH (n)-[:RESTS_ON]->(c:Chunk {corpus: $corpus}) WITH c ORDER BY c.position, c.uid RETURN c.uid } AS chunks
ORDER BY row.said_at DESC, row.uid;

// name: ledger_of(corpus, documents, uids, until) read
// Return what the ledger ties to each of these facts, of what was said until a time and in the documents, if not in all:
// the other fact, the type of the relationship, and whether the fact itself is the `newer` of both.
CYPHER 25 UNWIND $uids AS uid
MATCH (f:Built {uid: uid, corpus: $corpus}) USING INDEX f:Built(uid)
MATCH (f)-[r:SUPERSEDES|REPEATS|CONTRADICTS]-(n:Built)
WHERE n.corpus = $corpus AND n.said_at <= $until AND ($documents IS NULL OR n.document IN $documents)
RETURN uid, type(r) AS type, startNode(r) = f AS newer, r.since AS since, r.guess AS guess, 0.0 AS score,
       n {.*, embedding: NULL, own_embedding: NULL} AS row,
       COLLECT { MATCH (n)-[:RESTS_ON]->(c:Chunk {corpus: $corpus}) WITH c ORDER BY c.position, c.uid RETURN c.uid } AS chunks
ORDER BY uid, since, row.said_at DESC, row.uid;

// name: facts_behind(corpus, uids, documents, until) read
// Return what the facts of chunks (uids) say, in the order in which it was said, of what was said until a time: since when
// each has ended, by a guess or not, and by what at last, of facts in the documents, if not in all. Null if it holds.
CYPHER 25 UNWIND $uids AS uid
MATCH (c:Chunk {uid: uid, corpus: $corpus}) USING INDEX c:Chunk(uid)
MATCH (c)<-[:RESTS_ON]-(f:Built {corpus: $corpus})
WHERE f.system = 'hypermem' AND f.kind = 'Fact' AND f.said_at <= $until
WITH DISTINCT f
CALL (f) {
  MATCH (f)<-[r:SUPERSEDES]-(n:Built) WHERE n.corpus = $corpus AND r.since <= $until AND n.said_at <= $until
    AND ($documents IS NULL OR n.document IN $documents)
  WITH r, n ORDER BY r.since, n.said_at, n.uid
  RETURN collect({since: r.since, guess: r.guess, content: n.content}) AS by
}
RETURN f.content AS content, by[0].since AS since, by[0].guess AS guess, by[-1].content AS by ORDER BY f.said_at, f.uid;

// name: last_messages(corpus, documents) read
// Return the messages of the last chunk of each conversation.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
WHERE $documents IS NULL OR d.uid IN $documents
MATCH (d)<-[:FROM_DOCUMENT]-(c:Chunk {corpus: $corpus}) WHERE c.messages IS NOT NULL
  AND NOT EXISTS { (c)-[:NEXT_CHUNK]->(:Chunk {corpus: $corpus}) }
RETURN c.messages AS messages;

// name: list_changes(corpus, stems, since, until, limit) read
// Return what superseded or contradicted what, the newest first, where one of both facts holds all stems.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.system = 'hypermem' AND n.kind = 'Fact'
MATCH (n)-[r:SUPERSEDES|CONTRADICTS]->(older:Built) WHERE older.corpus = $corpus
WITH n, r, older, coalesce(r.since, n.said_at) AS since
WHERE $since <= since <= $until AND any(one IN [n, older] WHERE all(stem IN $stems WHERE one.stems CONTAINS stem))
ORDER BY since DESC, n.uid, older.uid LIMIT $limit
RETURN n {.uid, .content, .said_at, .document, .message_ids} AS newer, older.content AS before, type(r) AS type, since,
       r.guess AS guess;

// name: class_names(corpus, uids) read
// Return the names of the class of each of these entities that are of one.
CYPHER 25 UNWIND $uids AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.canonical_uid IS NOT NULL
// part: names
RETURN names;

// name: broken_ledger(corpus) read
// Return the facts (uids) that supersede one said later in the same conversation, or at no time from which it counts,
// that repeat one said later, or that the ledger ties to themselves.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.system = 'hypermem' AND n.kind = 'Fact'
MATCH (n)-[r:SUPERSEDES|REPEATS|CONTRADICTS]->(older:Built)
WHERE older.corpus = $corpus AND (n = older OR older.kind <> 'Fact' OR r.guess IS NULL
  OR (type(r) = 'SUPERSEDES' AND (r.since IS NULL OR (r.since < left(older.said_at, 10))))
  OR (type(r) <> 'CONTRADICTS' AND n.said_at <> '' AND n.said_at < older.said_at))
RETURN DISTINCT n.uid AS uid ORDER BY uid;
