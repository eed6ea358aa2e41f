// What the learning of a memory touched: trails with their places, and the passages behind them
// :param memory => 'm…'
MATCH path = (l:Learning {memory: $memory})-[:TOUCHED]->(t:Trail)-[:BETWEEN]->(n)
OPTIONAL MATCH beneath = (n)-[:RESTS_ON]->(:Chunk)
RETURN path, beneath LIMIT 200
