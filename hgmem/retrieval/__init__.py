"""Evidence of a step: filters, context packing, and the answer task with its citations."""
