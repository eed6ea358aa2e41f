// What an answer used: the messages that it cites, the facts that rest on them, and their episodes and topics
// :param memory => 'm…'
MATCH cited = (:Memory {uid: $memory})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(c:Chunk)
OPTIONAL MATCH path = (c)<-[:RESTS_ON]-(:Fact)-[:IN_EPISODE]->(:Episode)-[:IN_TOPIC]->(:Topic)
RETURN cited, path LIMIT 200
