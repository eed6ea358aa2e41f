"""How HGMem's tasks are answered without a language model."""
