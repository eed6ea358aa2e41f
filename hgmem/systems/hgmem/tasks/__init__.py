"""What HGMem asks of a language model: a task brings its prompt, its reply type and its extractive function.

A prompt is a Markdown file in `prompts/`, named like its task.
"""

from pathlib import Path

PROMPTS = Path(__file__).parents[1] / "prompts"
