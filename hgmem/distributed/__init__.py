"""Indexing on a Ray cluster: the stages' work in pools of actors. The only package that imports Ray."""
