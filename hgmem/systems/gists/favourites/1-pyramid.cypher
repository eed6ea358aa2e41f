// The memory of a corpus: its gists, level above level
// :param corpus => 'name'
MATCH (g:Gist {corpus: $corpus})
OPTIONAL MATCH path = (g)<-[:CONDENSES]-(:Gist)
RETURN g, path LIMIT 300
