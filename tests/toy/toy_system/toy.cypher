// The statements of the system that tests the rooms of systems.

// name: toy_members(corpus, uids) read
// Return the gists of each topic in order.
CYPHER 25 UNWIND $uids AS uid
MATCH (t:Built {uid: uid, corpus: $corpus}) USING INDEX t:Built(uid)
MATCH (g:Built {corpus: $corpus})-[tie:TOY_IN]->(t)
RETURN t.uid AS topic, g.uid AS uid, g.kind AS kind, g.text AS text, g.document AS document
ORDER BY topic, tie.place;
