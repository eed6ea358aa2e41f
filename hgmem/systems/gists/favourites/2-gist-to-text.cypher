// The topmost gists down to the text: a way from each through the gists that it condenses to the first chunk
// :param corpus => 'name'
MATCH (top:Gist {corpus: $corpus}) WHERE NOT EXISTS { (top)<-[:CONDENSES]-(:Gist) }
MATCH path = (top)-[:CONDENSES]->*(:Gist {level: 1})-[:RESTS_ON]->(c:Chunk)
WHERE c.uid = top.first OR top.level = 1
RETURN path LIMIT 200
