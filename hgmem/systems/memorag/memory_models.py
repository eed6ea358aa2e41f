"""Memory models: what a question's clues are written from.

The pyramid of gists, the whole text, and no memory at all are each read by a chat model or by the rule-based one. A
memory of another package (own_memories.py) writes its clues itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hgmem.errors import UsageError
from hgmem.graph.retrieval import Scope
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.metering import timed
from hgmem.retrieval.clues import Clue, ClueKind, CluesReply, WriteClues, cleaned
from hgmem.retrieval.rendering import tokens_of
from hgmem.retrieval.step_evidence import SMALL, RetrievalConfig, Scene, gather
from hgmem.services import Services
from hgmem.systems.gists.reading import Pyramid, gist_places, gist_texts, texts_without_gist, whole_text
from hgmem.systems.memorag import own_memories
from hgmem.systems.memorag.recipes import MemoRAGConfig
from hgmem.text.language import counted
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltPassage, Citable, Subquery
from hgmem.values.graph_elements import Chunk

_MOST_LOOKED_INTO = 5  # gists of one reply
_LOOKING = 0.5  # share of the budget for looking: levels are a factor of `ratio` apart, so few miss the rest by it
_LEADS = RetrievalConfig(entities=6, relations=6, chunks=0, searched_chunks=0, chunk_search="off", exclude=False)
EVERYTHING = 2**62  # a budget that all texts fit into
Thing = TypeVar("Thing")
_MOST_ASKED_FOR = 20  # clues of a kind that a prompt names, where a recipe has no limit


@dataclass(slots=True, kw_only=True)
class MemoryModel:
    """What writes the clues of one question. This one has no memory, so the model guesses, as HyDE and RQ-RAG do.

    `clues` are without repetition, by what makes two the same, `read` the gists that were read for them. With `whole`,
    all of memory is read, in parts where it does not fit. With `theme` false, the question says nothing to look for.
    `notes` are kept with the step, and `remarks` said with the answer.
    """

    services: Services
    scope: Scope
    config: MemoRAGConfig
    question: str
    whole: bool = False
    theme: bool = True
    clues: dict[str, Clue] = field(default_factory=dict)
    read: Sequence[BuiltPassage] = ()
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def write(self) -> None:
        """Write clues of the config's kinds."""
        self._write(())

    def _write_parts(self, parts: Sequence[Sequence[Citable]]) -> None:
        """Ask for clues of each part of memory, for its share of them, at least one."""
        if len(parts) > 1:
            self.notes.append(f"memory was read in {len(parts)} parts: memory_tokens={self.config.memory_tokens:,}")
        config, (least, more) = self.config, divmod(self.config.most_clues, max(1, len(parts)))
        for at, part in enumerate(parts):
            self.config = replace(config, most_clues=max(1, least + (at < more)))
            self._write(part)

    def _write(self, memory: Sequence[Citable]) -> None:
        """Ask for clues of all kinds at once, or of each by itself."""
        kinds = self.config.kinds
        for some in [kinds] if self.config.calls == "few" else [(kind,) for kind in dict.fromkeys(kinds)]:
            self._ask(some, memory)

    def _ask(
        self,
        kinds: tuple[ClueKind, ...],
        memory: Sequence[Citable],
        parts: Sequence[Citable] = (),
        *,
        look: bool = False,
    ) -> CluesReply:
        task = WriteClues(
            question=self.question,
            memory=tuple(memory),
            kinds=kinds,
            most=min(self.config.most_clues, _MOST_ASKED_FOR),
            parts=tuple(parts),
            look=look,
            limit=self.config.clue_tokens,
            theme=self.theme,
            leads=self._leads() if "queries" in kinds else (),
        )
        reply = self.services.reply(task)
        self._take(reply, task)
        return reply

    def _take(self, reply: CluesReply, task: WriteClues) -> None:
        found, notes = cleaned(reply, task, most=self.config.most_clues, shortest=self.config.shortest)
        for clue in found:
            self.clues.setdefault(clue.key, clue)
        self.notes += [*reply.notes, *notes]

    def _leads(self) -> tuple[str, ...]:
        """Return pairs of names that the graph ties near the question, for the rule-based model, which thinks of none.

        The nearest come first. Without a graph there are none.
        """
        if serving(self.services.model, WriteClues.name).name != ExtractiveModel.name:
            return ()
        vectors = self.services.embed([self.question], kind="query")
        scene = Scene(scope=self.scope, covered=0, entities=SMALL, narrow=self.scope.documents is not None)
        asked = [Subquery(text=self.question)]
        evidence, _ = gather(self.services.database, asked, vectors, scene=scene, config=_LEADS)
        return tuple(f"{tie.source_name}, {tie.target_name}" for tie in evidence.relations)


@dataclass(slots=True, kw_only=True)
class FullText(MemoryModel):
    """The whole text as its own memory, where it fits the budget, without a build."""

    def write(self) -> None:
        """Write clues. Raises `UsageError` if the text exceeds the budget and is not to be read in parts."""
        budget = self.config.memory_tokens
        chunks, tokens = whole_text(
            self.services.database, scope=self.scope, budget=EVERYTHING if self.whole else budget
        )
        if self.whole:
            self._write_parts(list(fitting_parts(chunks, [tokens_of(chunk) for chunk in chunks], budget=budget)))
            return
        if tokens > budget:
            raise UsageError(
                f"the text has {tokens:,} tokens, more than memory_tokens={budget:,}: raise it if "
                "the model reads that much, choose documents with --where (filters=), or build gists with `hgmem build "
                f"gists --corpus {self.scope.corpus}` and ask with --recipe default"
            )
        self._write(chunks)


def fitting_parts(things: Sequence[Thing], sizes: Sequence[int], *, budget: int) -> Iterator[list[Thing]]:
    """Yield neighbouring things together as far as their sizes fit into a budget, at least one at a time."""
    part: list[Thing] = []
    left = budget
    for thing, size in zip(things, sizes, strict=True):
        if part and size > left:
            yield part
            part, left = [], budget
        part.append(thing)
        left -= size
    if part:
        yield part


@dataclass(slots=True, kw_only=True)
class GistMemory(MemoryModel):
    """The pyramid of gists: its most detailed level that fits the budget, and what lies below named gists."""

    def write(self) -> None:
        """Write clues.

        They are asked for once, or once more for each level that is looked into, at most `descents` times. All that a
        prompt shows, what was looked into too, has at most `memory_tokens`.
        """
        pyramid = Pyramid(gist_places(self.services.database, scope=self.scope))
        looks = self.config.descents if self.config.calls == "few" else 0
        looking = round(_LOOKING * self.config.memory_tokens) if looks else 0
        shown, missing = pyramid.fitting(self.config.memory_tokens, looking=looking)
        if self.whole and (missing or self.scope.documents is not None):
            self._write_all(pyramid, missing=missing, shown=shown)
            return
        if missing and not shown:
            raise UsageError(
                f"memory_tokens={self.config.memory_tokens} holds no gist of the highest level: raise it, or build "
                f"further levels with `hgmem build gists --corpus {self.scope.corpus} --set memory_tokens=…`"
            )
        memory = self._texts(shown)
        if missing:
            held, more = counted(len(shown), "gist", "gists"), counted(missing, "gist", "gists")
            self.notes.append(f"memory showed {held} and left {more} out: memory_tokens={self.config.memory_tokens:,}")
        left = self.config.memory_tokens - pyramid.tokens(shown)
        chunks = self._chunks(left)
        self.read = memory
        if looks:
            self.read = [*memory, *self._descend(pyramid, (*memory, *chunks), left - tokens_of(*chunks))]
        else:
            self._write((*memory, *chunks))

    def _write_all(self, pyramid: Pyramid, *, shown: Sequence[str], missing: int) -> None:
        """Ask for clues of all of memory: of the most detailed level that fits, else of the highest, part by part."""
        view = pyramid.highest if missing else shown
        memory = self._texts(view)
        texts: list[Citable] = [*memory, *self._chunks(EVERYTHING)]
        sizes = [tokens_of(one) if isinstance(one, Chunk) else count(one.text) for one in texts]
        self.read = memory
        self._write_parts(list(fitting_parts(texts, sizes, budget=self.config.memory_tokens)))

    def _descend(self, pyramid: Pyramid, first: Sequence[Citable], tokens: int) -> Sequence[BuiltPassage]:
        """Ask for clues, then again with what is below the gists that the reply names, while there is something.

        Return what was looked into. Each look may take its share of the tokens that are left for all. There are as many
        as there are levels below.
        """
        parts: list[BuiltPassage] = []
        for looks in range(self.config.descents, -1, -1):
            numbered: Sequence[Citable] = (*first, *parts)
            known = {each.uid for each in numbered}
            last = [each.uid for each in (parts or first)]
            share = tokens // max(min(looks, pyramid.depth(last)), 1)
            reachable = [uid for each in last for uid in pyramid.below(each) if uid not in known]
            look = looks > 0 and any(pyramid.within([uid], share) for uid in reachable)
            reply = self._ask(self.config.kinds, first, parts, look=look)
            wanted = [numbered[at].uid for at in dict.fromkeys(reply.look) if look and 0 <= at < len(numbered)]
            below = [uid for each in wanted[:_MOST_LOOKED_INTO] for uid in pyramid.below(each)]
            fresh = pyramid.within([uid for uid in below if uid not in known], share)
            if not fresh:
                break
            tokens -= pyramid.tokens(fresh)
            parts += self._texts(fresh)
        return parts

    def _texts(self, uids: Sequence[str]) -> list[BuiltPassage]:
        return gist_texts(self.services.database, scope=self.scope, uids=uids)

    def _chunks(self, tokens: int) -> Sequence[Chunk]:
        """Return, for chosen documents, the chunks that only gists of several documents cover, within the tokens."""
        chunks, many = texts_without_gist(self.services.database, scope=self.scope, budget=tokens)
        if many > len(chunks):
            self.notes.append(
                f"memory showed {len(chunks)} of {counted(many, 'chunk', 'chunks')} without a gist of their own: "
                f"memory_tokens={self.config.memory_tokens:,}"
            )
        return chunks


@dataclass(slots=True, kw_only=True)
class OwnMemory(MemoryModel):
    """A memory of another package."""

    def write(self) -> None:
        """Take the clues that the memory writes, none where texts that it holds were deleted since it was formed."""
        name, kinds = self.config.memory, self.config.kinds
        memory = own_memories.remembered(self.services, name)
        if memory is None:
            command = own_memories.build_command(self.services, name)
            self.remarks.append(
                f"memory {name!r} may hold deleted texts and was not asked: {command} forms it without them"
            )
            return
        with timed("model", name):
            documents = self.scope.documents
            found = own_memories.asked(memory, self.question, name=name, kinds=kinds, documents=documents)
        draft = " ".join(found.pop("draft", ()))
        task = WriteClues(question=self.question, memory=(), kinds=kinds, most=self.config.most_clues)
        self._take(CluesReply.model_validate({"draft": draft, **found}), task)


def memory_model(name: str) -> type[MemoryModel]:
    """Return the memory model that `memory` of a config names."""
    built_in: Mapping[str, type[MemoryModel]] = {"gists": GistMemory, "full": FullText, "none": MemoryModel}
    return built_in.get(name, OwnMemory)
