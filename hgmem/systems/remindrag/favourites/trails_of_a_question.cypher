// Trails that were learnt from the question of a memory or strengthened since, the strongest for it first
// :param memory => 'm…'
MATCH (l:Learning {memory: $memory})-[r:TOUCHED]->(t:Trail)-[:BETWEEN]->(n)
RETURN t.length * (2 * vector.similarity.cosine(CASE WHEN t.length > 0.000001 THEN t.vector ELSE l.vector END, l.vector) - 1)
         AS along,
       r.effective AS effective, t.tie AS tie, collect(coalesce(n.title, n.name)) AS between
ORDER BY along DESC
