// What a corpus holds, for people who look through it: things by name, one with what is said of it, built rows.

// name: list_things(corpus, words, skip, most) read
// The things whose names have these words (in lower case), those that most chunks mention first: of each class the
// member that most chunks mention, with the names of all, and how many chunks mention one of them.
CYPHER 25 MATCH (e:Entity {corpus: $corpus}) USING INDEX e:Entity(corpus)
WHERE e.memory = '' AND toLower(e.name) CONTAINS $words
WITH coalesce(e.canonical_uid, e.uid) AS thing, min(e.name) AS name, collect(e)[0] AS e
WITH thing, name, e, CASE WHEN e.canonical_uid IS NULL THEN COUNT { (e)-[:FROM_CHUNK]->() } ELSE COUNT {
  MATCH (member:Entity {canonical_uid: thing, corpus: $corpus})-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus})
  USING INDEX SEEK member:Entity(canonical_uid) WHERE member.memory = '' RETURN DISTINCT c
} END AS chunks
ORDER BY chunks DESC, name, thing SKIP $skip LIMIT $most
WITH name, thing, chunks, [e] AS things
// part: members
WITH name, thing, chunks, COLLECT {
  UNWIND members AS member
  RETURN member ORDER BY COUNT { (member)-[:FROM_CHUNK]->() } DESC, size(member.name) DESC, member.uid LIMIT 1
}[0] AS e
// part: names
RETURN e {.uid, .name, .type, .description, .memory, .canonical_uid, names: names} AS entity, chunks
ORDER BY chunks DESC, name, thing;

// name: show_thing(corpus, uid, most) read
// Of the thing that an entity names: the entities of its class, `most` of the chunks that mention them, and `most` of
// the relations that tie them to others.
CYPHER 25 MATCH (e:Entity {uid: $uid, corpus: $corpus}) USING INDEX e:Entity(uid) WHERE e.memory = ''
WITH collect(e) AS things
// part: members
WITH members WHERE size(members) > 0
RETURN [one IN members | one {.uid, .name, .type, .description, .memory, .canonical_uid}] AS members,
       COLLECT { UNWIND members AS one MATCH (one)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus})
                 WITH DISTINCT c ORDER BY c.document, c.position LIMIT $most RETURN c.uid } AS chunks,
       COLLECT { UNWIND members AS one
                 MATCH (one)-[r:RELATES {corpus: $corpus}]-(x:Entity {corpus: $corpus})
                 WHERE r.memory = '' AND NOT x IN members
                 WITH DISTINCT r, x ORDER BY r.weight DESC, x.name, r.uid LIMIT $most
                 RETURN {entity: x.uid, name: x.name, description: coalesce(r.description, '')} } AS ties;

// name: list_built(corpus, system, kind, times, skip, most) read
// Rows of one kind by time and place, or without a kind those on which no other row rests: first those that rest on
// rows. `times` names the properties that may tell a time, and `parts` counts the rows and chunks beneath each.
CYPHER 25 MATCH (n:Built {corpus: $corpus}) USING INDEX n:Built(corpus)
WHERE n.system = $system AND NOT coalesce(n.learnt, false) // what is learnt is of an owner
  AND CASE $kind
    WHEN '' THEN NOT EXISTS { MATCH (n)<-[:RESTS_ON]-(x:Built {corpus: $corpus}) WHERE NOT coalesce(x.learnt, false) }
    ELSE n.kind = $kind END
WITH n, [name IN $times WHERE n[name] IS NOT NULL | n[name]] AS when,
     EXISTS { (n)-[:RESTS_ON]->(:Built {corpus: $corpus}) } AS above
ORDER BY above DESC, when, n.kind, n.document, n.key SKIP $skip LIMIT $most
RETURN n {.*, embedding: NULL, own_embedding: NULL, vector: NULL} AS row,
       COUNT { MATCH (n)-[:RESTS_ON]->(x) WHERE x.corpus = $corpus AND (x:Built OR x:Chunk) } AS parts;

// name: list_parts(corpus, uid, times, skip, most) read
// The rows that a row rests on directly, and then chunks, in order. Without such a row, nothing is returned.
CYPHER 25 MATCH (n:Built {uid: $uid, corpus: $corpus}) USING INDEX n:Built(uid) WHERE NOT coalesce(n.learnt, false)
RETURN COLLECT {
  MATCH (n)-[:RESTS_ON]->(x) WHERE x.corpus = $corpus AND (x:Built OR x:Chunk)
  WITH DISTINCT x, [name IN $times WHERE x[name] IS NOT NULL | x[name]] AS when
  ORDER BY x:Chunk, when, x.document, coalesce(x.position, 0), coalesce(x.key, x.uid) SKIP $skip LIMIT $most
  RETURN {row: CASE WHEN x:Chunk THEN x {.uid, .document, .text, kind: 'Chunk'}
                    ELSE x {.*, embedding: NULL, own_embedding: NULL, vector: NULL} END,
          parts: CASE WHEN x:Chunk THEN 0
                      ELSE COUNT { MATCH (x)-[:RESTS_ON]->(y) WHERE y.corpus = $corpus AND (y:Built OR y:Chunk) } END}
} AS parts;
