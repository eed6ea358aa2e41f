"""A memory in Neo4j Browser: Browser's address, guide, style, favourites, and a local server for them."""
