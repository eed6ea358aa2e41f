"""Writing the corpus: documents in, chunks, entities and relations out; also imports and deletes."""
