// The episodes of the largest topic in order of time, with what each is there
// :param corpus => 'name'
MATCH (t:Topic {corpus: $corpus}) WITH t ORDER BY t.episodes DESC, t.uid LIMIT 1
MATCH (t)<-[r:IN_TOPIC]-(e:Episode)
RETURN e.begins AS begins, e.subject AS episode, r.role AS role, r.weight AS weight, e.summary AS summary
ORDER BY begins
