"""Sentences, tokens, identity, languages, shipped files."""
