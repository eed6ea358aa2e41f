"""Neo4j access: the only package that imports the driver, with one typed function per statement."""
