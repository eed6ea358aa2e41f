// What changed between two steps: points that were born since, and those that became them
// :param memory => 'm…'  :param since => 1  :param step => 2
MATCH (:Memory {uid: $memory})-[:HAS_POINT]->(new:MemoryPoint)
WHERE new.born > $since AND new.born <= $step
OPTIONAL MATCH became = (:MemoryPoint)-[:REVISED_AS|MERGED_INTO]->(new)
OPTIONAL MATCH tied = (new)-[:INVOLVES]->(:Entity)
RETURN new, became, tied
