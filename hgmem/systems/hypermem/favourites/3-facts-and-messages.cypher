// Facts of the longest episode, and the chunks with the messages that say them
// :param corpus => 'name'
MATCH (e:Episode {corpus: $corpus}) WITH e ORDER BY e.messages DESC, e.uid LIMIT 1
MATCH path = (e)<-[:IN_EPISODE]-(f:Fact)
OPTIONAL MATCH said = (f)-[:RESTS_ON]->(:Chunk)
RETURN path, said LIMIT 200
