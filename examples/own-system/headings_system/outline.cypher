// Sections with those above them, and the chunks that they cover
// :param corpus => 'name'
MATCH path = (:Section {corpus: $corpus})-[:IN_SECTION|RESTS_ON]->(:Section|Chunk {corpus: $corpus})
RETURN path LIMIT 200
