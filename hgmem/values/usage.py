"""The cost of work, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The cost of a piece of work: `calls` and `seconds` by kind and name, `tokens` by task, `texts` by kind.

    Kinds are `model` (tasks answered), `request` (requests to a language model's server for them), `cache` (cached
    replies), `embedding`, `reranking` (by the reranker's name) and `neo4j`. Texts are those embedded and those
    reranked. Seconds are exclusive: an embedding made during a model call counts as embedding
    only. Tokens of a task are `prompt`, `completion`, `cached` (prompt tokens that the server had cached) and
    `estimated` (tokens that the server did not count).
    """

    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tokens: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    texts: Mapping[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """The number of requests to language model servers."""
        return sum(self.calls.get("request", {}).values())

    @property
    def prompt_tokens(self) -> int:
        """The number of prompt tokens."""
        return self._tokens("prompt")

    @property
    def completion_tokens(self) -> int:
        """The number of completion tokens."""
        return self._tokens("completion")

    @property
    def cached_tokens(self) -> int:
        """The number of prompt tokens that the server had cached."""
        return self._tokens("cached")

    def _tokens(self, kind: str) -> int:
        return sum(counts.get(kind, 0) for counts in self.tokens.values())
