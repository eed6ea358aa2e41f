"""Entity resolution: which entities of a corpus are one thing, decided by people, rules and a model."""
