"""Language models, embedders, prompts, budgets and metering."""
