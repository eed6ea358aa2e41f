// Corpora, the unit of isolation between data sets.

// name: corpora() read
// Return every corpus by name. No other statement scans a label.
CYPHER 25 MATCH (k:Corpus)
RETURN k.name AS corpus, k.status AS status, k.embedding_model AS embedding_model, k.dimensions AS dimensions,
       toString(k.created_at) AS created_at
ORDER BY corpus;

// name: find_corpus(corpus) read
// Return the corpus, its lease, and the age of the lease's last heartbeat in seconds (`silent`).
CYPHER 25 replan=skip MATCH (k:Corpus {name: $corpus})
RETURN k.name AS corpus, k.status AS status, k.embedding_model AS embedding_model, k.dimensions AS dimensions,
       k.settings AS settings, k.imported AS imported, k.archive AS archive, k.cleared AS cleared,
       k.schema_version AS schema_version, k.language AS language, k.run AS run,
       duration.inSeconds(k.heartbeat, datetime()).seconds AS silent;

// name: lock_corpus(corpus) write
// Lock the corpus until the transaction ends, and return it.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name
RETURN k.name AS corpus, k.status AS status, k.embedding_model AS embedding_model, k.dimensions AS dimensions,
       k.settings AS settings, k.imported AS imported, k.archive AS archive, k.cleared AS cleared,
       k.schema_version AS schema_version, k.language AS language, k.run AS run,
       duration.inSeconds(k.heartbeat, datetime()).seconds AS silent;

// name: create_corpus(corpus, status, embedding_model, dimensions, settings, schema_version) write
// Create the corpus unless it exists, and return it.
CYPHER 25 MERGE (k:Corpus {name: $corpus})
ON CREATE SET k.status = $status, k.embedding_model = $embedding_model, k.dimensions = $dimensions,
              k.settings = $settings, k.schema_version = $schema_version, k.created_at = datetime()
RETURN k.name AS corpus, k.status AS status, k.embedding_model AS embedding_model, k.dimensions AS dimensions,
       k.settings AS settings, k.imported AS imported;

// name: corpus_identity(corpus) read
// Return what tells the corpus from those of its name in other databases, and from earlier ones.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
CALL db.info() YIELD id
RETURN id + ' ' + toString(k.created_at) AS identity;

// name: corpus_language(corpus) read
CYPHER 25 replan=skip MATCH (k:Corpus {name: $corpus})
RETURN k.language AS language;

// name: set_language(corpus, language) write
// Set the language of a corpus that has none, and return the one that it has.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.language = coalesce(k.language, $language)
RETURN k.language AS language;

// name: lease_corpus(corpus, run, status, timeout) write
// Lease the corpus to this run unless another run renewed its lease in the last `timeout` seconds. Returns one row on
// success.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run IS NULL OR k.run = $run OR k.heartbeat < datetime() - duration({milliseconds: $timeout * 1000})
SET k.run = $run, k.heartbeat = datetime(), k.status = $status
RETURN k.name AS corpus;

// name: set_embedder(corpus, run, embedding_model, dimensions, schema_version) write
// Set the embedder of a corpus that this run has leased, and the version of what it is about to write.
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.embedding_model = $embedding_model, k.dimensions = $dimensions, k.schema_version = $schema_version
RETURN k.name AS corpus;

// name: renew_corpus(corpus, run) write
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.heartbeat = datetime()
RETURN k.name AS corpus;

// name: release_corpus(corpus, run, status, imported) write
CYPHER 25 MATCH (k:Corpus {name: $corpus})
SET k.name = k.name // takes the lock before the lease is read
WITH k WHERE k.run = $run
SET k.run = NULL, k.heartbeat = NULL, k.status = $status, k.imported = $imported, k.archive = NULL
RETURN k.name AS corpus;

// name: count_corpus(corpus) read
// Return the corpus's counts, without what belongs to a single memory.
CYPHER 25
RETURN COUNT { MATCH (d:Document {corpus: $corpus}) } AS documents,
       COUNT { MATCH (c:Chunk {corpus: $corpus}) } AS chunks,
       COUNT { MATCH (e:Entity {corpus: $corpus}) WHERE e.memory = '' } AS entities,
       COUNT { MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
               WHERE r.memory = '' } AS relations,
       COUNT { MATCH (m:Memory {corpus: $corpus}) } AS memories,
       COUNT { MATCH (c:Chunk {corpus: $corpus})
               WHERE c.status IN ['failed', 'embedded'] AND c.error IS NOT NULL } AS failed,
       COUNT { MATCH (c:Chunk {corpus: $corpus}) WHERE NOT c.status IN ['done', 'embedded', 'failed'] } AS pending,
       COUNT { MATCH (c:Chunk {corpus: $corpus}) WHERE c.status = 'embedded' } AS without_graph,
       COUNT { MATCH (u:Unit {corpus: $corpus}) } AS units,
       COUNT { MATCH (n:Built {corpus: $corpus}) } AS built;

// name: failed_chunks(corpus, most) read
CYPHER 25 MATCH (c:Chunk {corpus: $corpus}) WHERE c.status IN ['failed', 'embedded'] AND c.error IS NOT NULL
RETURN c.uid AS chunk, c.document AS document, c.error AS error, toString(c.attempts) AS attempts
ORDER BY document, c.position LIMIT $most;

// name: mark_corpus(corpus, status) write
// Set the corpus's status. Readers refuse every status but 'ready'.
CYPHER 25 MATCH (k:Corpus {name: $corpus}) SET k.status = $status;

// name: fill_keywords(corpus, batch) auto
// Write the empty lists of keywords that Neo4j's importer has left out, in transactions of `batch` relations.
CYPHER 25 MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->(:Entity {corpus: $corpus})
WHERE r.keywords IS NULL AND r.memory = ''
CALL (r) { SET r.keywords = [] } IN TRANSACTIONS OF $batch ROWS;

// name: delete_corpus_contents(corpus, batch) auto
// Delete everything in the corpus but the corpus node, in transactions of `batch` nodes.
CYPHER 25 CALL () {
  MATCH (n:Built {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Unit {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Build {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:MemoryPoint {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:SubQuery {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Step {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Citation {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Answer {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Memory {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Decision {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Entity {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Chunk {corpus: $corpus}) RETURN n
  UNION ALL MATCH (n:Document {corpus: $corpus}) RETURN n
}
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF $batch ROWS;

// name: delete_corpus_node(corpus) write
CYPHER 25 MATCH (k:Corpus {name: $corpus}) DELETE k;
