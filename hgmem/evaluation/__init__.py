"""Evaluation: data sets with evidence, what systems find and answer of them, and how it compares."""
