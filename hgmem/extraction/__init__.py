"""Turn text into contributions by chunking and extraction, and compute fields from them."""
