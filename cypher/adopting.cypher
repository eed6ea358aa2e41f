// Reading a foreign graph for import. Its labels, types and property names are parameters. It has no corpora, and
// hgmem's own nodes (with `uid` and `corpus`) are excluded. Ids are read in long pages, records in short ones. Nothing
// is written.

// name: foreign_nodes(label, others, after, most) read
// Return the next nodes with this label and none of the labels `others`.
CYPHER 25 MATCH (n:$($label))
WHERE elementId(n) > $after AND (n.uid IS NULL OR n.corpus IS NULL) AND none(other IN $others WHERE other IN labels(n))
RETURN elementId(n) AS id ORDER BY id LIMIT $most;

// name: foreign_twice(label, other, others) read
// Count the nodes that have both labels and none of the labels `others`.
CYPHER 25 MATCH (n:$($label))
WHERE $other IN labels(n) AND (n.uid IS NULL OR n.corpus IS NULL) AND none(third IN $others WHERE third IN labels(n))
RETURN count(n) AS nodes;

// name: foreign_documents(ids) read
// Return all properties except vectors.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, COLLECT { UNWIND keys(n) AS name WITH name WHERE NOT (n[name] IS :: LIST<FLOAT> OR n[name] IS :: VECTOR)
                     RETURN [name, n[name]] ORDER BY name } AS properties
ORDER BY id;

// name: foreign_chunks(ids, text, position, own, in_document, document, next_chunk, chunk) read
// Return text, position and own id, the chunk's documents (in either direction of the relationship), and the next
// chunks.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, n[$text] AS text, n[$position] AS position, n[$own] AS own,
  COLLECT { MATCH (n)-[:$($in_document)]-(d:$($document)) WITH DISTINCT d RETURN elementId(d) AS there ORDER BY there } AS documents,
  COLLECT { MATCH (n)-[:$($next_chunk)]->(c:$($chunk)) WITH DISTINCT c RETURN elementId(c) AS there ORDER BY there } AS following
ORDER BY id;

// name: foreign_entities(ids, from_chunk, chunk) read
// Return labels, properties except vectors, and the chunks that mention the entity (in either direction).
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, labels(n) AS labels,
  COLLECT { UNWIND keys(n) AS name WITH name WHERE NOT (n[name] IS :: LIST<FLOAT> OR n[name] IS :: VECTOR)
            RETURN [name, n[name]] ORDER BY name } AS properties,
  COLLECT { MATCH (n)-[:$($from_chunk)]-(c:$($chunk)) WITH DISTINCT c RETURN elementId(c) AS there ORDER BY there } AS chunks
ORDER BY id;

// name: foreign_relations(ids, entity, others, after, most) read
// Return the next relationships from these entities to others.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
WITH DISTINCT n
MATCH (n)-[r]->(o:$($entity))
WHERE elementId(r) > $after AND (o.uid IS NULL OR o.corpus IS NULL) AND none(other IN $others WHERE other IN labels(o))
RETURN elementId(r) AS id, type(r) AS type, elementId(n) AS source, elementId(o) AS target,
  COLLECT { UNWIND keys(r) AS name WITH name WHERE NOT (r[name] IS :: LIST<FLOAT> OR r[name] IS :: VECTOR)
            RETURN [name, r[name]] ORDER BY name } AS properties
ORDER BY id LIMIT $most;

// name: foreign_labels(most) read
// Return the labels with the most foreign nodes, for an error message.
CYPHER 25 CALL db.labels() YIELD label
WHERE NOT label IN ['Corpus', 'Step', 'SubQuery']
WITH label, COUNT { MATCH (n:$(label)) WHERE n.uid IS NULL OR n.corpus IS NULL } AS nodes
WHERE nodes > 0
RETURN label, nodes ORDER BY nodes DESC, label LIMIT $most;

// name: foreign_members(corpus) read
// Count foreign nodes that carry the corpus's name, because hgmem would treat them as its own. In a new corpus, every
// node is foreign.
CYPHER 25 WITH NOT EXISTS { (:Corpus {name: $corpus}) } AS new
RETURN COUNT { MATCH (d:Document {corpus: $corpus}) WHERE new OR d.uid IS NULL }
     + COUNT { MATCH (c:Chunk {corpus: $corpus}) WHERE new OR c.uid IS NULL }
     + COUNT { MATCH (e:Entity {corpus: $corpus}) WHERE new OR e.uid IS NULL } AS nodes;
