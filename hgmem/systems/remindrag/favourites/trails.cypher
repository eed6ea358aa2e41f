// The longest trails, with the places between which they lead
// :param corpus => 'name'
MATCH (t:Trail {corpus: $corpus}) WHERE t.length > 0
WITH t ORDER BY t.length DESC, t.uid LIMIT 60
MATCH path = (t)-[:BETWEEN]->()
RETURN path
