"""The compared systems, one per file: each has a class `System` with the interface `serve.Benched`."""
