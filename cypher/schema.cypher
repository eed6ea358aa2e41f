// Uniqueness constraints, and range, vector and full-text indexes. Neo4j Browser shows these names. Vector indexes keep
// full precision (no quantization) and have no fixed dimensions: corpora with different embedders share an index, and
// hgmem checks a corpus's dimensions before every write and query.

// name: create_corpus_name() schema
CYPHER 25 CREATE CONSTRAINT corpus_name IF NOT EXISTS FOR (n:Corpus) REQUIRE n.name IS UNIQUE;

// name: create_document_uid() schema
CYPHER 25 CREATE CONSTRAINT document_uid IF NOT EXISTS FOR (n:Document) REQUIRE n.uid IS UNIQUE;

// name: create_chunk_uid() schema
CYPHER 25 CREATE CONSTRAINT chunk_uid IF NOT EXISTS FOR (n:Chunk) REQUIRE n.uid IS UNIQUE;

// name: create_entity_uid() schema
CYPHER 25 CREATE CONSTRAINT entity_uid IF NOT EXISTS FOR (n:Entity) REQUIRE n.uid IS UNIQUE;

// name: create_relation_uid() schema
CYPHER 25 CREATE CONSTRAINT relation_uid IF NOT EXISTS FOR ()-[r:RELATES]-() REQUIRE r.uid IS UNIQUE;

// name: create_decision_uid() schema
CYPHER 25 CREATE CONSTRAINT decision_uid IF NOT EXISTS FOR (n:Decision) REQUIRE n.uid IS UNIQUE;

// name: create_memory_uid() schema
CYPHER 25 CREATE CONSTRAINT memory_uid IF NOT EXISTS FOR (n:Memory) REQUIRE n.uid IS UNIQUE;

// name: create_point_uid() schema
CYPHER 25 CREATE CONSTRAINT point_uid IF NOT EXISTS FOR (n:MemoryPoint) REQUIRE n.uid IS UNIQUE;

// name: create_answer_uid() schema
CYPHER 25 CREATE CONSTRAINT answer_uid IF NOT EXISTS FOR (n:Answer) REQUIRE n.uid IS UNIQUE;

// name: create_citation_uid() schema
CYPHER 25 CREATE CONSTRAINT citation_uid IF NOT EXISTS FOR (n:Citation) REQUIRE n.uid IS UNIQUE;

// name: create_build_uid() schema
CYPHER 25 CREATE CONSTRAINT build_uid IF NOT EXISTS FOR (n:Build) REQUIRE n.uid IS UNIQUE;

// name: create_unit_uid() schema
CYPHER 25 CREATE CONSTRAINT unit_uid IF NOT EXISTS FOR (n:Unit) REQUIRE n.uid IS UNIQUE;

// name: create_built_uid() schema
CYPHER 25 CREATE CONSTRAINT built_uid IF NOT EXISTS FOR (n:Built) REQUIRE n.uid IS UNIQUE;

// name: create_key_uid() schema
CYPHER 25 CREATE CONSTRAINT key_uid IF NOT EXISTS FOR (n:Key) REQUIRE n.uid IS UNIQUE;

// name: create_key_hash() schema
CYPHER 25 CREATE CONSTRAINT key_hash IF NOT EXISTS FOR (n:Key) REQUIRE n.hash IS UNIQUE;

// name: create_session_hash() schema
CYPHER 25 CREATE CONSTRAINT session_hash IF NOT EXISTS FOR (n:Session) REQUIRE n.hash IS UNIQUE;

// name: create_session_expires_at() schema
CYPHER 25 CREATE INDEX session_expires_at IF NOT EXISTS FOR (n:Session) ON (n.expires_at);

// name: create_job_uid() schema
CYPHER 25 CREATE CONSTRAINT job_uid IF NOT EXISTS FOR (n:Job) REQUIRE n.uid IS UNIQUE;

// name: create_job_state() schema
CYPHER 25 CREATE INDEX job_state IF NOT EXISTS FOR (n:Job) ON (n.state);

// name: create_job_corpus() schema
CYPHER 25 CREATE INDEX job_corpus IF NOT EXISTS FOR (n:Job) ON (n.corpus);

// name: create_document_corpus() schema
CYPHER 25 CREATE INDEX document_corpus IF NOT EXISTS FOR (n:Document) ON (n.corpus);

// name: create_chunk_corpus() schema
CYPHER 25 CREATE INDEX chunk_corpus IF NOT EXISTS FOR (n:Chunk) ON (n.corpus);

// name: create_entity_corpus() schema
CYPHER 25 CREATE INDEX entity_corpus IF NOT EXISTS FOR (n:Entity) ON (n.corpus);

// name: create_entity_canonical() schema
CYPHER 25 CREATE INDEX entity_canonical IF NOT EXISTS FOR (n:Entity) ON (n.canonical_uid);

// name: create_decision_corpus() schema
CYPHER 25 CREATE INDEX decision_corpus IF NOT EXISTS FOR (n:Decision) ON (n.corpus);

// name: create_decision_a() schema
CYPHER 25 CREATE INDEX decision_a IF NOT EXISTS FOR (n:Decision) ON (n.a);

// name: create_decision_b() schema
CYPHER 25 CREATE INDEX decision_b IF NOT EXISTS FOR (n:Decision) ON (n.b);

// name: create_relation_corpus() schema
CYPHER 25 CREATE INDEX relation_corpus IF NOT EXISTS FOR ()-[r:RELATES]-() ON (r.corpus);

// name: create_memory_corpus() schema
CYPHER 25 CREATE INDEX memory_corpus IF NOT EXISTS FOR (n:Memory) ON (n.corpus);

// name: create_step_corpus() schema
CYPHER 25 CREATE INDEX step_corpus IF NOT EXISTS FOR (n:Step) ON (n.corpus);

// name: create_subquery_corpus() schema
CYPHER 25 CREATE INDEX subquery_corpus IF NOT EXISTS FOR (n:SubQuery) ON (n.corpus);

// name: create_point_corpus() schema
CYPHER 25 CREATE INDEX point_corpus IF NOT EXISTS FOR (n:MemoryPoint) ON (n.corpus);

// name: create_answer_corpus() schema
CYPHER 25 CREATE INDEX answer_corpus IF NOT EXISTS FOR (n:Answer) ON (n.corpus);

// name: create_citation_corpus() schema
CYPHER 25 CREATE INDEX citation_corpus IF NOT EXISTS FOR (n:Citation) ON (n.corpus);

// name: create_build_corpus() schema
CYPHER 25 CREATE INDEX build_corpus IF NOT EXISTS FOR (n:Build) ON (n.corpus);

// name: create_unit_corpus() schema
CYPHER 25 CREATE INDEX unit_corpus IF NOT EXISTS FOR (n:Unit) ON (n.corpus);

// name: create_built_corpus() schema
CYPHER 25 CREATE INDEX built_corpus IF NOT EXISTS FOR (n:Built) ON (n.corpus);

// name: create_learning_corpus() schema
// What walks taught. Few rows of a build are learnings, and each question looks among them.
CYPHER 25 CREATE INDEX learning_corpus IF NOT EXISTS FOR (n:Learning) ON (n.corpus);

// name: create_learning_wrong() schema
// Finds the learnings that record a wrong answer: no other has the property.
CYPHER 25 CREATE INDEX learning_wrong IF NOT EXISTS FOR (n:Learning) ON (n.corpus, n.owner, n.wrong);

// name: create_support_build() schema
// Finds the support that a build's rows have inherited (docs/decisions/0019-builds.md).
CYPHER 25 CREATE INDEX support_build IF NOT EXISTS FOR ()-[r:RESTS_ON]-() ON (r.build);

// name: create_entity_embedding() schema
CYPHER 25 CREATE VECTOR INDEX entity_embedding IF NOT EXISTS FOR (n:Entity) ON n.embedding
WITH [n.corpus, n.memory, n.uid]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_relation_embedding() schema
CYPHER 25 CREATE VECTOR INDEX relation_embedding IF NOT EXISTS FOR ()-[r:RELATES]-() ON r.embedding
WITH [r.corpus, r.memory, r.uid]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_chunk_embedding() schema
CYPHER 25 CREATE VECTOR INDEX chunk_embedding IF NOT EXISTS FOR (n:Chunk) ON n.embedding
WITH [n.corpus, n.document, n.uid]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_point_embedding() schema
CYPHER 25 CREATE VECTOR INDEX point_embedding IF NOT EXISTS FOR (n:MemoryPoint) ON n.embedding
WITH [n.corpus, n.memory, n.died]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_built_embedding() schema
CYPHER 25 CREATE VECTOR INDEX built_embedding IF NOT EXISTS FOR (n:Built) ON n.embedding
WITH [n.corpus, n.system, n.kind, n.document, n.uid]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_learning_vector() schema
// Finds the questions that were learnt near another one, however many there are.
CYPHER 25 CREATE VECTOR INDEX learning_vector IF NOT EXISTS FOR (n:Learning) ON n.vector WITH [n.corpus, n.owner]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_trail_vector() schema
CYPHER 25 CREATE VECTOR INDEX trail_vector IF NOT EXISTS FOR (n:Trail) ON n.vector WITH [n.corpus, n.owner]
OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}};

// name: create_words() schema
// `layer_key` stands for a corpus's chunks or one kind of a system's rows. It and `document` are indexed with the stems,
// so that hits of other layers can't crowd out a hit.
CYPHER 25 CREATE FULLTEXT INDEX words IF NOT EXISTS FOR (n:Chunk|Built) ON EACH [n.layer_key, n.document, n.stems]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};

// name: create_names(labels, types, properties) auto
// Make the names known before anything has them. Neo4j discards the plan of a statement when a name in it becomes known.
CYPHER 25 CALL () {
  UNWIND $labels AS label
  CALL db.createLabel(label)
}
CALL () {
  UNWIND $types AS type
  CALL db.createRelationshipType(type)
}
CALL () {
  UNWIND $properties AS property
  CALL db.createProperty(property)
};

// name: show_indexes() schema
// Return every index with the options to compare. `constraint` is the constraint that owns it, or null.
CYPHER 25 SHOW INDEXES YIELD name, type, state, entityType, labelsOrTypes, properties, options, owningConstraint
RETURN name, type, state, entityType AS entity_type, labelsOrTypes AS labels, properties, options,
       owningConstraint AS constraint
ORDER BY name;

// name: await_indexes(seconds) schema
CYPHER 25 CALL db.awaitIndexes($seconds);
