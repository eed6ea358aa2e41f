"""Neo4j access: the only package that imports the driver, runs statements by name, and converts what they return."""
