"""Indexing in stages that are kept as files: what each made of a part of the input, as Parquet with a manifest."""
