"""What work cost, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What something cost: `calls` and `seconds` by kind and name, `tokens` by task.

    Kinds are `model` (tasks answered), `request` (what was sent to a language model's server on their behalf),
    `cache` (replies that were stored), `embedding` and `neo4j`. Seconds are exclusive: an embedding made on behalf
    of a model call counts as embedding alone. Tokens of a task are `prompt`, `completion`, `cached` (those of the
    prompt that the server had at hand) and `estimated` (those of the others that no server counted).
    """

    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tokens: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """How many requests went to a language model's server."""
        return sum(self.calls.get("request", {}).values())

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompts had."""
        return self._tokens("prompt")

    @property
    def completion_tokens(self) -> int:
        """How many tokens the replies had."""
        return self._tokens("completion")

    @property
    def cached_tokens(self) -> int:
        """How many of the prompts' tokens the server had at hand."""
        return self._tokens("cached")

    def _tokens(self, kind: str) -> int:
        return sum(counts.get(kind, 0) for counts in self.tokens.values())
