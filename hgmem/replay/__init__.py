"""A memory from its first step to its last, as one page that needs no network: what happened, drawn step by step."""
