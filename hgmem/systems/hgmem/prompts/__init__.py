"""The prompts of HGMem's tasks: a Markdown file each, named like its task."""

from pathlib import Path

PROMPTS = Path(__file__).parent
