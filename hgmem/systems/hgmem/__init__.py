"""HGMem: a working memory that is a hypergraph (HGMem, 2025)."""
