// MemoRAG: what its recipes ask of a corpus.

// name: chunkings(corpus) read
// Return how documents were cut into chunks, each way once. It begins with tokens of a chunk, but where a graph brought
// its chunks along.
CYPHER 25 MATCH (d:Document {corpus: $corpus}) USING INDEX d:Document(corpus)
RETURN DISTINCT d.chunking AS chunking
ORDER BY chunking;
