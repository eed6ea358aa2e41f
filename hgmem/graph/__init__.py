"""Neo4j: the only package that imports its driver; one typed function a statement."""
