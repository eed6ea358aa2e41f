"""A question's memory: recorded step by step, read back, replayed, shown in Neo4j Browser."""
