// Schema: the labels of hgmem and what ties them
CALL db.schema.visualization() YIELD nodes, relationships
WITH relationships, [n IN nodes WHERE labels(n)[0] IN
  ['Corpus', 'Document', 'Chunk', 'Entity', 'Memory', 'Step', 'SubQuery', 'MemoryPoint', 'Answer', 'Citation']] AS ours
RETURN ours, [r IN relationships WHERE startNode(r) IN ours AND endNode(r) IN ours] AS ties
