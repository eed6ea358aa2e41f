// Topics with their gists, and the chunks beneath
// :param corpus => 'name'
MATCH path = (:ToyTopic {corpus: $corpus})<-[:TOY_IN]-(:ToyGist)-[:RESTS_ON]->(:Chunk)
RETURN path LIMIT 200
