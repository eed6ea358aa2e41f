// The history of facts: what superseded, repeated or contradicted what, and the episodes that tell it
// :param corpus => 'name'
MATCH path = (f:Fact {corpus: $corpus})-[:SUPERSEDES|REPEATS|CONTRADICTS]->(:Fact)
OPTIONAL MATCH told = (f)-[:IN_EPISODE]->(:Episode)
RETURN path, told LIMIT 200
