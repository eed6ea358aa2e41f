"""Naive retrieval: the chunks nearest to the question, one answer. The first baseline."""
