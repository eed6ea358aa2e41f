"""A memory in Neo4j Browser: where Browser is, our guide, style and favourites, and a server that hands them to it."""
