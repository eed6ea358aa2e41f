"""Write to the corpus: index, import, re-embed, check and delete."""
