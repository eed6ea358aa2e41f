// Retention: memories that nobody worked on for long. First a memory is claimed and marked as 'pruning', which no reader
// takes for a whole one; then what it holds goes in bounded transactions; last, in one transaction, it goes itself with
// its answers, or is marked 'pruned'. Its last activity is the newest of its creation, its steps, its answers and the
// last sign of a run that held it.

// name: old_memories(corpus, seconds, timeout, spared, after, most) read
// The next memories by uid to prune: without activity for so many seconds, of no status that is spared, not held by a
// run that gave a sign within `timeout` seconds. Those that are marked already are to be pruned at any age.
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus) WHERE m.uid > $after
WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.created_at } +
        COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus}) RETURN a.created_at } + [m.heartbeat] AS times
WITH m, reduce(last = m.created_at, time IN times | CASE WHEN time > last THEN time ELSE last END) AS active
WHERE (m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
  AND (m.status = 'pruning' OR (active <= datetime() - duration({seconds: $seconds}) AND NOT m.status IN $spared))
WITH m.uid AS uid ORDER BY uid LIMIT $most
RETURN uid;

// name: claim_old_memories(corpus, run, uids, seconds, timeout, spared) write
// Those of the memories that are held by this run and marked now: they still are what `old_memories` looks for.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid)
SET m.uid = m.uid // takes the lock before the claim and the times are read
WITH DISTINCT m
WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.created_at } +
        COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus}) RETURN a.created_at } + [m.heartbeat] AS times
WITH m, reduce(last = m.created_at, time IN times | CASE WHEN time > last THEN time ELSE last END) AS active
WHERE (m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
  AND (m.status = 'pruning' OR (active <= datetime() - duration({seconds: $seconds}) AND NOT m.status IN $spared))
SET m.run = $run, m.heartbeat = datetime(), m.status = 'pruning'
RETURN m.uid AS uid;

// name: empty_memories(corpus, run, uids, batch) auto
// Steps, sub-queries, points and what is provisional go, in transactions of `batch` nodes. What is found by way of
// another goes before it, so that the same again finds what is left.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid) WHERE m.run = $run AND m.status = 'pruning'
WITH DISTINCT m
CALL (m) {
  MATCH (m)-[:HAS_STEP]->(:Step {corpus: $corpus})-[:ASKED]->(n:SubQuery {corpus: $corpus}) RETURN n
  UNION ALL
  MATCH (m)-[:HAS_STEP]->(n:Step {corpus: $corpus}) RETURN n
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(:MemoryPoint {corpus: $corpus})-[:INVOLVES]->(n:Entity {corpus: $corpus})
  WHERE n.memory = m.uid
  RETURN DISTINCT n
  UNION ALL
  MATCH (m)-[:HAS_POINT]->(n:MemoryPoint {corpus: $corpus}) RETURN n
}
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF $batch ROWS;

// name: keep_answers(corpus, run, uids) write
// Emptied memories are pruned: they and their answers stay, and nobody holds them.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid)
SET m.uid = m.uid // takes the lock before the claim is read
WITH m WHERE m.run = $run AND m.status = 'pruning'
SET m.status = 'pruned', m.run = NULL, m.heartbeat = NULL
RETURN m.uid AS uid;

// name: delete_emptied(corpus, run, uids) write
// Emptied memories go, with their answers and citations.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid)
SET m.uid = m.uid // takes the lock before the claim is read
WITH m WHERE m.run = $run AND m.status = 'pruning'
WITH DISTINCT m, m.uid AS uid
CALL (m) {
  MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus})
  OPTIONAL MATCH (a)-[:HAS_CITATION]->(q:Citation {corpus: $corpus})
  DETACH DELETE q, a
}
DETACH DELETE m
RETURN uid;
