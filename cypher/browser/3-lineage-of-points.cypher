// Lineage of a point: everything that was revised and merged into it
// :param memory => 'm…'  :param point => 'm…-2-7', or '' for every point of the memory
MATCH (:Memory {uid: $memory})-[:HAS_POINT]->(whole:MemoryPoint)
WHERE $point IN ['', whole.uid]
MATCH path = (whole)<-[:REVISED_AS|MERGED_INTO]-+(:MemoryPoint)
RETURN path
