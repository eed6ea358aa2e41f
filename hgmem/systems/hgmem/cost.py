"""What a question takes at most: each call of each step, with all that its prompt may show."""

from dataclasses import dataclass

from hgmem.models.prompts import PromptTask
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.clues import WriteClues
from hgmem.settings import Settings
from hgmem.systems.costs import HEADING, TITLE, around, packed, passages, total
from hgmem.systems.hgmem.loop import PAIR_TOKENS, ROUNDS
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.tasks import MOST_READ, Describe, Evolve, Merge, Plan, Subqueries, WholeStep

_LINE = 130  # tokens of an entity or relation: its name and type, and a description of at most 100
_WORDING = 250  # of what a plan's prompt says of judging, by wordings.toml
_MARKS = 1.25  # by how much numbers of passages lengthen the points in an answer's prompt


def cost(config: HGMemConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a new question, and how many tokens their prompts have at most."""
    prompts = [around(WriteClues) + packed(config.overview_tokens)] if config.clues else []
    for number in range(1, config.steps + 1):
        step = _Step(config=config, settings=settings, number=number)
        prompts += step.prompts()
        if config.answer_each_step or step.last:
            prompts.append(step.answer())
    return total(prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One step of a question whose replies are all as long as they may be."""

    config: HGMemConfig
    settings: Settings
    number: int

    @property
    def last(self) -> bool:
        """Whether nothing is planned after it."""
        return self.number == self.config.steps

    def prompts(self) -> list[int]:
        """Return the tokens of its prompts, without that of an answer."""
        config, merges = self.config, self.config.merge != "off" and self.number > 1
        described = ROUNDS * [self._prompt(Describe, evidence=True)] if config.describe else []
        evolved = [self._prompt(Evolve, evidence=True), *described]
        if config.calls == "whole":
            return evolved if self.last else [self._prompt(WholeStep, evidence=True, plans=True), *described]
        plans = [] if self.last else [self._prompt(task, plans=True) for task in (Plan, Subqueries)]
        return [*evolved, *([self._prompt(Merge)] if merges else []), *plans]

    def answer(self) -> int:
        """Return the tokens of the prompt of an answer at its end."""
        tokens = self.config.answer_tokens
        found = passages(self.config.answer_chunks, tokens=tokens, settings=self.settings)
        return around(AnswerQuestion) + round(_MARKS * self._memory(written=self.number)) + found

    def _prompt(self, task: type[PromptTask], *, evidence: bool = False, plans: bool = False) -> int:
        """Return the tokens of a task's prompt. What was asked before, or new names, come from replies."""
        reply, before = self.settings.max_tokens, self.number - 1
        own = reply + PAIR_TOKENS if task is Describe else self._memory(written=before + (not evidence))
        asked = before * reply if plans else reply if task is Evolve and before else 0
        concerns = reply if task is Subqueries else 0
        return (
            around(task)
            + own
            + asked
            + concerns
            + (self._evidence() if evidence else 0)
            + (_WORDING + (MOST_READ + self.config.titles) * TITLE + self.config.hints * _LINE if plans else 0)
        )

    def _memory(self, *, written: int) -> int:
        """Return the tokens of the points that so many steps have written at most, as far as a prompt shows them.

        A step adds to memory by one reply, and merges by another.
        """
        reply = self.settings.max_tokens
        merged = 0 if self.config.merge == "off" else max(0, written - 1)
        return min((written + merged) * reply, max(self.config.memory_tokens, reply))

    def _evidence(self) -> int:
        """Return the tokens of what a step finds: lines of entities and relations, chunks, and what it finds again."""
        found, config = self.config.retrieval, self.config
        first = self.number == 1
        queries = 1 + len(config.clues) * config.most_clues if first else config.concerns
        lines = queries * (found.entities + found.relations)
        searched = 0 if found.chunk_search == "off" else found.searched_chunks
        if config.later_chunks and not first:
            searched = min(searched, config.later_chunks)
        chunks = queries * (found.chunks + searched)
        texts = passages(chunks, tokens=config.evidence_tokens, settings=self.settings)
        return texts + lines * _LINE + (0 if first else chunks * HEADING)
