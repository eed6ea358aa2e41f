"""A memory as one self-contained HTML page that replays it step by step."""
