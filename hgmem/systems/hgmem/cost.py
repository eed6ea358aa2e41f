"""What one question takes at most, for estimates before it is asked."""

from collections.abc import Mapping

from hgmem.settings import Settings
from hgmem.systems.hgmem.recipes import Calls, HGMemConfig

CALLS: Mapping[Calls, int] = {"separate": 4, "compact": 2, "single": 1}  # of a step: one of them reads the evidence
PROMPT_TOKENS = 1_000  # of a prompt without memory and evidence
LINE_TOKENS = 110  # of an entity or relation


def most_calls(config: HGMemConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and about how many tokens their prompts have at most."""
    a_step = CALLS[config.calls] + config.describe + config.select_entities * config.concerns
    answers = config.steps if config.answer_each_step else 1
    calls = config.steps * a_step + answers
    found = config.concerns * (config.retrieval.entities + config.retrieval.relations) * LINE_TOKENS
    evidence = (config.evidence_tokens + found) * (1 + config.describe) * config.steps
    return calls, calls * (PROMPT_TOKENS + config.memory_tokens) + evidence + answers * config.answer_tokens
