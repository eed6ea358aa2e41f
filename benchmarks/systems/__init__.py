"""The systems that are compared, one a file: each a class `System` as `serve.Benched` describes it."""
