// Deleting old memories. A memory is first leased and marked as 'pruning', so that readers ignore it. Then its contents
// are deleted in bounded transactions. Finally, one transaction deletes the memory with its answers, or marks it as
// 'pruned'. Its last activity is the latest time of its creation, its steps, its answers and its lease's heartbeat.

// name: old_memories(corpus, seconds, timeout, spared, owner, after, most) read
// Return the next memories to prune, by uid: inactive for `seconds`, with a status that is not spared, and without a
// lease renewed in the last `timeout` seconds. Memories already marked as 'pruning' are included at any age. With an
// `owner`, only that owner's own are returned, not everybody's.
CYPHER 25 MATCH (m:Memory {corpus: $corpus}) USING INDEX m:Memory(corpus)
WHERE m.uid > $after AND ($owner IS NULL OR m.owner = $owner)
WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.created_at } +
        COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus}) RETURN a.created_at } + [m.heartbeat] AS times
WITH m, reduce(last = m.created_at, time IN times | CASE WHEN time > last THEN time ELSE last END) AS active
WHERE (m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
  AND (m.status = 'pruning' OR (active <= datetime() - duration({seconds: $seconds}) AND NOT m.status IN $spared))
WITH m.uid AS uid ORDER BY uid LIMIT $most
RETURN uid;

// name: claim_old_memories(corpus, run, uids, seconds, timeout, spared, owner) write
// Lease and mark those of the memories that still meet the conditions of `old_memories`.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid) WHERE $owner IS NULL OR m.owner = $owner
SET m.uid = m.uid // takes the lock before the lease and the times are read
WITH DISTINCT m
WITH m, COLLECT { MATCH (m)-[:HAS_STEP]->(s:Step {corpus: $corpus}) RETURN s.created_at } +
        COLLECT { MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus}) RETURN a.created_at } + [m.heartbeat] AS times
WITH m, reduce(last = m.created_at, time IN times | CASE WHEN time > last THEN time ELSE last END) AS active
WHERE (m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}))
  AND (m.status = 'pruning' OR (active <= datetime() - duration({seconds: $seconds}) AND NOT m.status IN $spared))
SET m.run = $run, m.heartbeat = datetime(), m.status = 'pruning'
RETURN m.uid AS uid;

// name: empty_memories(corpus, run, uids, batch) auto
// Delete steps, sub-queries, points and provisional entities, in transactions of `batch` nodes. Nodes that are found
// through others are deleted before them, so that a repeated run finds the rest.
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
// Mark emptied memories as pruned and release them, keeping their answers.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run AND m.status = 'pruning'
SET m.status = 'pruned', m.run = NULL, m.heartbeat = NULL
RETURN m.uid AS uid;

// name: delete_emptied(corpus, run, uids) write
// Delete emptied memories with their answers and citations.
CYPHER 25 UNWIND $uids AS uid
MATCH (m:Memory {uid: uid, corpus: $corpus}) USING INDEX m:Memory(uid)
SET m.uid = m.uid // takes the lock before the lease is read
WITH m WHERE m.run = $run AND m.status = 'pruning'
WITH DISTINCT m, m.uid AS uid
CALL (m) {
  MATCH (m)-[:HAS_ANSWER]->(a:Answer {corpus: $corpus})
  OPTIONAL MATCH (a)-[:HAS_CITATION]->(q:Citation {corpus: $corpus})
  DETACH DELETE q, a
}
DETACH DELETE m
RETURN uid;
