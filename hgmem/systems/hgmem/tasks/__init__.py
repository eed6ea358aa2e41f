"""What HGMem asks of a language model: a task brings its prompt, its reply type and its extractive function."""
