// The topics of a corpus, each with its episodes
// :param corpus => 'name'
MATCH path = (t:Topic {corpus: $corpus})<-[:IN_TOPIC]-(:Episode)
RETURN path LIMIT 300
