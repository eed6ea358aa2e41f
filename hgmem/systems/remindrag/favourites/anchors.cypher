// The anchors of a corpus in the order of the text, and what they mention
// :param corpus => 'name'
MATCH (a:Anchor {corpus: $corpus}) WITH a ORDER BY a.document, a.place LIMIT 60
OPTIONAL MATCH chain = (a)-[:NEXT_ANCHOR]->(:Anchor)
OPTIONAL MATCH mentioned = (a)-[:MENTIONS]->(:Entity)
RETURN a, chain, mentioned LIMIT 300
