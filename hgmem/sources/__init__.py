"""Read input: files, LightRAG directories, and graphs of the neo4j-graphrag package."""
