// What is adopted: a graph that another program wrote, with labels, types and property names of its own, which come as
// parameters. It has no corpora; nodes of hgmem's, known by `uid` and `corpus`, may lie beside it and are left out.
// Ids come in long pages, what they name in short ones. Nothing is written.

// name: foreign_nodes(label, others, after, most) read
// The next nodes of a label that have none of the labels `others`.
CYPHER 25 MATCH (n:$($label))
WHERE elementId(n) > $after AND (n.uid IS NULL OR n.corpus IS NULL) AND none(other IN $others WHERE other IN labels(n))
RETURN elementId(n) AS id ORDER BY id LIMIT $most;

// name: foreign_twice(label, other, others) read
// How many nodes have two labels, and none of the labels `others`.
CYPHER 25 MATCH (n:$($label))
WHERE $other IN labels(n) AND (n.uid IS NULL OR n.corpus IS NULL) AND none(third IN $others WHERE third IN labels(n))
RETURN count(n) AS nodes;

// name: foreign_documents(ids) read
// Properties but vectors.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, COLLECT { UNWIND keys(n) AS name WITH name WHERE NOT (n[name] IS :: LIST<FLOAT> OR n[name] IS :: VECTOR)
                     RETURN [name, n[name]] ORDER BY name } AS properties
ORDER BY id;

// name: foreign_chunks(ids, text, position, own, in_document, document, next_chunk, chunk) read
// Text, number in its document, id of its own; the documents that it is from, whichever way that is drawn, and the
// chunks after it.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, n[$text] AS text, n[$position] AS position, n[$own] AS own,
  COLLECT { MATCH (n)-[:$($in_document)]-(d:$($document)) WITH DISTINCT d RETURN elementId(d) AS there ORDER BY there } AS documents,
  COLLECT { MATCH (n)-[:$($next_chunk)]->(c:$($chunk)) WITH DISTINCT c RETURN elementId(c) AS there ORDER BY there } AS following
ORDER BY id;

// name: foreign_entities(ids, from_chunk, chunk) read
// Labels, properties but vectors, and the chunks that mention it, whichever way that is drawn.
CYPHER 25 UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, labels(n) AS labels,
  COLLECT { UNWIND keys(n) AS name WITH name WHERE NOT (n[name] IS :: LIST<FLOAT> OR n[name] IS :: VECTOR)
            RETURN [name, n[name]] ORDER BY name } AS properties,
  COLLECT { MATCH (n)-[:$($from_chunk)]-(c:$($chunk)) WITH DISTINCT c RETURN elementId(c) AS there ORDER BY there } AS chunks
ORDER BY id;

// name: foreign_relations(ids, entity, others, after, most) read
// The next relationships that lead from these entities to others.
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
// What there is to adopt, for an error: the labels with most nodes.
CYPHER 25 CALL db.labels() YIELD label
WHERE NOT label IN ['Corpus', 'Step', 'SubQuery']
WITH label, COUNT { MATCH (n:$(label)) WHERE n.uid IS NULL OR n.corpus IS NULL } AS nodes
WHERE nodes > 0
RETURN label, nodes ORDER BY nodes DESC, label LIMIT $most;

// name: foreign_members(corpus) read
// How many nodes carry the name of a corpus without being of hgmem's making: it would take them for its own. In a
// corpus that there is not yet, nothing is.
CYPHER 25 WITH NOT EXISTS { (:Corpus {name: $corpus}) } AS new
RETURN COUNT { MATCH (d:Document {corpus: $corpus}) WHERE new OR d.uid IS NULL }
     + COUNT { MATCH (c:Chunk {corpus: $corpus}) WHERE new OR c.uid IS NULL }
     + COUNT { MATCH (e:Entity {corpus: $corpus}) WHERE new OR e.uid IS NULL } AS nodes;
