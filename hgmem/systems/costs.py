"""What prompts have at most, by hgmem's count of tokens: parts of the estimates of questions."""

from collections.abc import Sequence

from hgmem.models.prompts import PromptTask, read_prompt
from hgmem.settings import Settings
from hgmem.text.tokens import count

QUESTION = 100  # tokens of a question
TITLE = 50  # of a document's title, as far as a prompt has it, or of a name
HEADING = TITLE + 30  # of what stands before a passage: its number, title, date, type and place
EVERYTHING = 2**62


def around(task: type[PromptTask]) -> int:
    """Return the most tokens of a task's prompt beside what is found and known: its wording and the question."""
    prompt = read_prompt(task.prompt_file)
    return count(prompt.system) + count(prompt.user) + QUESTION


def passages(number: int, *, settings: Settings, tokens: int = EVERYTHING) -> int:
    """Return the most tokens of so many chunks of the settings' size, at most `tokens`, with their headings.

    The first one is shown whatever its size.
    """
    texts = min(max(tokens, settings.chunk_tokens), number * settings.chunk_tokens)
    return texts + number * HEADING


def packed(tokens: int) -> int:
    """Return the most tokens of chunks that fill a budget, with headings that are at most half as long."""
    return tokens + tokens // 2 + HEADING


def total(prompts: Sequence[int]) -> tuple[int, int]:
    """Return how many prompts there are, and their tokens."""
    return len(prompts), sum(prompts)
