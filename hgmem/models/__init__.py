"""Language models, embedders, rerankers, prompts, and the metering of calls."""
