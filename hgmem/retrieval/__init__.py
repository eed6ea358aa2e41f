"""Evidence of a step: entity linking, filters, context packing, and the answer task with its citations."""
