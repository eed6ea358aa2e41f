"""Builds: what systems make of a whole corpus before they answer (docs/decisions/0019-builds.md)."""
