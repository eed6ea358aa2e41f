// Forking a memory: what it held at the end of a step, copied in one transaction. The copies have uids of the fork, and
// nothing leads from one memory to the other. The first statement locks the memory, the others run after it.

// name: begin_fork(corpus, memory, fork, step, timeout, owner) write
// Create the fork, if its uid is not `taken`, the corpus is `ready`, and the memory has the step, is not pruned and not
// held by a run (`free`). It belongs to the memory's owner, or else to `owner`. `last` is the memory's last step.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the locks before status and lease are read
WITH k.status = 'ready' AS ready
MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner]
SET m.uid = m.uid
WITH m, ready, m.run IS NULL OR m.heartbeat < datetime() - duration({milliseconds: $timeout * 1000}) AS free,
     COLLECT { MATCH (m)-[:HAS_STEP]->(s) WHERE s.corpus = $corpus RETURN s ORDER BY s.number } AS steps
WITH m, ready, free, size(steps) AS last, coalesce($step, size(steps)) AS at, steps
WITH m, ready, free, last, at, steps[at - 1] AS s,
     EXISTS { MATCH (t:Memory {uid: $fork, corpus: $corpus}) USING INDEX t:Memory(uid) } AS taken,
     COLLECT { MATCH (m)-[:HAS_ANSWER]->(a) WHERE a.corpus = $corpus AND a.step = at
               RETURN a.status ORDER BY a.created_at DESC }[0] AS answered
FOREACH (_ IN CASE WHEN ready AND free AND NOT taken AND NOT m.status IN ['pruning', 'pruned'] AND 1 <= at <= last
                     THEN [1] ELSE [] END |
  CREATE (f:Memory {uid: $fork, corpus: $corpus, memory: $fork})
  SET f.system = m.system, f.model = m.model, f.settings = m.settings, f.question = m.question, f.created_at = datetime(),
      f.owner = CASE coalesce(m.owner, '') WHEN '' THEN coalesce($owner, '') ELSE m.owner END,
      f.latest = CASE WHEN s.question <> m.question THEN s.question END, f.filters = coalesce(s.filters, '{}'),
      f.forked_from = $memory, f.forked_at = at,
      f.status = coalesce(CASE WHEN coalesce(s.planned, '[]') = '[]' THEN answered END, CASE WHEN at = last AND m.status = 'unanswered' THEN m.status END, 'interrupted'))
RETURN ready, free, taken, m.status AS status, last, at;

// name: relations_to_fork(corpus, memory, step) read
// Return the memory's own relations between entities that a point of then involves together.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
MATCH (m)-[:HAS_POINT]->(p)-[:INVOLVES]->(a) WHERE p.corpus = $corpus AND a.corpus = $corpus AND p.born <= $step AND a.memory = $memory
WITH DISTINCT p, a MATCH (a)-[r:RELATES]-(b) WHERE r.corpus = $corpus AND b.corpus = $corpus AND r.memory = $memory
WITH DISTINCT p, r, b WHERE EXISTS { (p)-[:INVOLVES]->(b) }
RETURN DISTINCT r.uid AS uid, startNode(r).uid AS source, endNode(r).uid AS target ORDER BY uid;

// name: fork_entities(corpus, memory, fork, step) write
// Copy the entities that the corpus lacks and a point of then involves.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
MATCH (m)-[:HAS_POINT]->(p)-[:INVOLVES]->(e) WHERE p.corpus = $corpus AND e.corpus = $corpus AND p.born <= $step AND e.memory = $memory
WITH DISTINCT e
CREATE (c:Entity {corpus: $corpus})
SET c:$(labels(e))
SET c += e {.*, uid: $fork + substring(e.uid, size($memory)), memory: $fork};

// name: fork_relations(corpus, memory, fork, rows) write
// Copy relations (`uid`), each with the uid that it has in the fork (`copy`) and its ends there.
CYPHER 25 UNWIND $rows AS row
MATCH ()-[r:RELATES {uid: row.uid, corpus: $corpus}]->() USING INDEX r:RELATES(uid)
WITH r, row WHERE r.memory = $memory
WITH collect({stored: r, row: row}) AS found
UNWIND found AS one
WITH one.stored AS r, one.row AS row
MATCH (a:Entity {uid: row.source, corpus: $corpus}), (b:Entity {uid: row.target, corpus: $corpus})
USING INDEX a:Entity(uid) USING INDEX b:Entity(uid)
CREATE (a)-[c:RELATES {corpus: $corpus}]->(b)
SET c += r {.*, uid: row.copy, memory: $fork};

// name: fork_points(corpus, memory, fork, step) write
// Copy the points of then with what they involve and rest on, and their lineage. Those that died later are alive again.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
MATCH (m)-[:HAS_POINT]->(p) WHERE p.corpus = $corpus AND p.born <= $step
WITH collect(p) AS points
CALL (points) {
  MATCH (f:Memory {uid: $fork, corpus: $corpus}) USING INDEX f:Memory(uid)
  UNWIND points AS p
  WITH f, p, coalesce(p.died <= $step, false) AS dead
  CREATE (f)-[:HAS_POINT]->(c:MemoryPoint {corpus: $corpus})
  SET c += p {.*, uid: $fork + substring(p.uid, size($memory)), memory: $fork,
              died: CASE WHEN dead THEN p.died END, retired: CASE WHEN dead THEN p.retired END}
  FOREACH (_ IN CASE WHEN dead THEN [1] ELSE [] END | SET c:DeadPoint)
  CALL (p, c) {
    MATCH (p)-[:SUPPORTED_BY]->(x) WHERE x.corpus = $corpus
    CREATE (c)-[:SUPPORTED_BY]->(x)
  }
  CALL (p, c) {
    MATCH (p)-[:INVOLVES]->(e) WHERE e.corpus = $corpus AND e.memory <> $memory
    CREATE (c)-[:INVOLVES]->(e)
  }
  CALL (p, c) {
    MATCH (p)-[:INVOLVES]->(e) WHERE e.corpus = $corpus AND e.memory = $memory
    MATCH (own:Entity {uid: $fork + substring(e.uid, size($memory)), corpus: $corpus}) USING INDEX own:Entity(uid)
    CREATE (c)-[:INVOLVES]->(own)
  }
}
UNWIND points AS new
MATCH (new)<-[r:REVISED_AS|MERGED_INTO]-(old) WHERE old.corpus = $corpus
WITH type(r) AS type, $fork + substring(old.uid, size($memory)) AS part, $fork + substring(new.uid, size($memory)) AS whole
MATCH (a:MemoryPoint {uid: part, corpus: $corpus}), (b:MemoryPoint {uid: whole, corpus: $corpus})
USING INDEX a:MemoryPoint(uid) USING INDEX b:MemoryPoint(uid)
CREATE (a)-[:$(type)]->(b);

// name: fork_steps(corpus, memory, fork, step, relations) write
// Copy the steps of then with what they asked and retrieved. `relations` are the memory's own ones by the copies' uids.
// In the JSON of operations and plans, a text that begins with the memory's uid is the uid of a point.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
MATCH (m)-[:HAS_STEP]->(s) WHERE s.corpus = $corpus AND s.number <= $step
WITH collect(s) AS found
MATCH (f:Memory {uid: $fork, corpus: $corpus}) USING INDEX f:Memory(uid)
UNWIND found AS s
CREATE (f)-[:HAS_STEP]->(c:Step {corpus: $corpus})
SET c += s {.*, memory: $fork, operations: replace(s.operations, '"' + $memory + '-', '"' + $fork + '-'),
            planned: replace(s.planned, '"' + $memory + '-', '"' + $fork + '-')}
CALL (s, c) {
  MATCH (s)-[:ASKED]->(q) WHERE q.corpus = $corpus
  CREATE (c)-[:ASKED]->(a:SubQuery {corpus: $corpus})
  SET a += q {.*, memory: $fork, relations: [uid IN q.relations | coalesce($relations[uid], uid)]}
  CALL (q, a) {
    MATCH (q)-[hit:RETRIEVED]->(x) WHERE x.corpus = $corpus AND coalesce(x.memory, '') <> $memory
    CREATE (a)-[copy:RETRIEVED]->(x)
    SET copy = properties(hit)
  }
  CALL (q, a) {
    MATCH (q)-[hit:RETRIEVED]->(e) WHERE e.corpus = $corpus AND e.memory = $memory
    MATCH (own:Entity {uid: $fork + substring(e.uid, size($memory)), corpus: $corpus}) USING INDEX own:Entity(uid)
    CREATE (a)-[copy:RETRIEVED]->(own)
    SET copy = properties(hit)
  }
  CALL (q, a) {
    MATCH (q)-[:TARGETS]->(p) WHERE p.corpus = $corpus
    MATCH (own:MemoryPoint {uid: $fork + substring(p.uid, size($memory)), corpus: $corpus}) USING INDEX own:MemoryPoint(uid)
    CREATE (a)-[:TARGETS]->(own)
  }
}
WITH c ORDER BY c.number
WITH collect(c) AS steps
UNWIND range(1, size(steps) - 1) AS at
WITH steps[at - 1] AS before, steps[at] AS after
CREATE (before)-[:NEXT_STEP]->(after);

// name: fork_answers(corpus, memory, fork, step) write
// Copy the answers until then with their citations.
CYPHER 25 MATCH (m:Memory {uid: $memory, corpus: $corpus}) USING INDEX m:Memory(uid)
MATCH (m)-[:HAS_ANSWER]->(a) WHERE a.corpus = $corpus AND a.step <= $step
WITH collect(a) AS found
MATCH (f:Memory {uid: $fork, corpus: $corpus}) USING INDEX f:Memory(uid)
UNWIND found AS a
CREATE (f)-[:HAS_ANSWER]->(b:Answer {corpus: $corpus})
SET b += a {.*, uid: $fork + substring(a.uid, size($memory)), memory: $fork}
CALL (a, b) {
  MATCH (a)-[:HAS_CITATION]->(q) WHERE q.corpus = $corpus
  CREATE (b)-[:HAS_CITATION]->(c:Citation {corpus: $corpus})
  SET c += q {.*, uid: $fork + substring(q.uid, size($memory)), memory: $fork}
  CALL (q, c) {
    MATCH (q)-[:CITES]->(x) WHERE x.corpus = $corpus
    // The lock: whoever deletes or rewrites what is cited sees this citation, or was there before.
    SET x.uid = x.uid
    WITH c, x WHERE x.text CONTAINS c.quote
    CREATE (c)-[:CITES]->(x)
  }
  SET c.withdrawn = NOT EXISTS { MATCH (c)-[:CITES]->(x) WHERE x.corpus = $corpus }
};
