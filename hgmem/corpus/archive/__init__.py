"""Archives: a corpus as lines of JSON, each bound to the one before it. Nothing here knows of the database."""
