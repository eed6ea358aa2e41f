"""hgmem: graph RAG with a hypergraph working memory, all of it in one Neo4j."""

__version__ = "0.1.0"
