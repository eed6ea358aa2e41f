"""All that a pipeline or a system is given: the database, the model, the embedder, and which corpus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hgmem.embed import CheckedEmbedder, Kind, Vectors
from hgmem.errors import BadReplyError, ModelError, UsageError
from hgmem.events import AnswerToken, Listener, Watcher
from hgmem.graph.corpus import CorpusRow, create_corpus, find_corpus
from hgmem.graph.database import Database
from hgmem.llm import LanguageModel
from hgmem.llm.replies import UnreadableError, read
from hgmem.meter import paused, timed
from hgmem.model import Task
from hgmem.reply import TextReply
from hgmem.settings import Settings

RE_EMBEDDING = "re-embedding"  # the status of a corpus while its vectors are made again

Reply = TypeVar("Reply")
Text = TypeVar("Text", bound=TextReply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What work on one corpus needs; nothing in it belongs to one question."""

    database: Database
    model: LanguageModel
    embedder: CheckedEmbedder
    settings: Settings
    corpus: str
    listener: Listener = field(default_factory=Listener)
    watcher: Watcher = field(default_factory=Watcher)

    @property
    def language(self) -> str:
        """The language to answer in; empty for that of the question."""
        return self.settings.answer_language

    def reply(self, task: Task[Reply]) -> Reply:
        """Return the model's reply, its call counted; one of another type is a `ModelError`."""
        self.listener.check()
        reply = self.watcher.call(task, lambda: self._replied(task))
        if not isinstance(reply, task.reply_type):
            raise ModelError(
                f"model {self.model.name!r} answered task {task.name!r} with {type(reply).__name__}, "
                f"not {task.reply_type.__name__}"
            )
        return reply

    def write(self, task: Task[Text]) -> Text:
        """Return the text that the model writes; a listener hears of its pieces as they come.

        Where what came piece by piece can't be used, it is asked for again, as a whole.
        """
        stream = getattr(self.model, "stream", None)
        if stream is None or not self.listener.hears:
            reply = self.reply(task)
            self.listener.tell(AnswerToken(text=reply.text))
            return reply
        self.listener.check()
        try:
            heard = self.watcher.call(task, lambda: self._heard(stream(task), task.name))
            return read(task.reply_type, heard)
        except (BadReplyError, UnreadableError) as error:
            return self.reply(task).noted([f"asked again: {error}"])

    def _replied(self, task: Task[Reply]) -> Reply:
        with timed("model", task.name):
            return self.model.reply(task)

    def _heard(self, pieces: Iterator[str], name: str) -> str:
        heard: list[str] = []
        with timed("model", name):
            for piece in pieces:
                heard.append(piece)
                with paused():  # a reader who is slow takes no time of the model's
                    self.listener.tell(AnswerToken(text=piece))
        return "".join(heard)

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return the texts' vectors: float32, (len(texts), dimensions), unit length."""
        return self.embedder.embed(texts, kind=kind)


def ready_corpus(services: Services) -> CorpusRow:
    """Return the corpus, or say why nothing can be embedded for it: unknown, being written, another embedder's."""
    row = readable_corpus(services)
    check_dimensions(services, row)
    return row


def readable_corpus(services: Services) -> CorpusRow:
    """Return the corpus, as `ready_corpus` does, but without loading the embedder."""
    row = settled_corpus(services)
    if services.embedder.name != row.embedding_model:
        raise UsageError(
            f"corpus {row.corpus!r} was embedded with {row.embedding_model!r}, not {services.embedder.name!r}: "
            f"set HGMEM_EMBEDDING_MODEL={row.embedding_model}, or change it with "
            f"`hgmem reembed --corpus {row.corpus} --model {services.embedder.name}`"
        )
    return row


def settled_corpus(services: Services) -> CorpusRow:
    """Return the corpus, whatever embedder it has, or say what is being done to it."""
    row = known_corpus(services)
    if row.status == RE_EMBEDDING:
        raise UsageError(
            f"corpus {row.corpus!r} is being re-embedded with {row.embedding_model!r}: wait until that is done, or go "
            f"on with `hgmem reembed --corpus {row.corpus} --model {row.embedding_model}`"
        )
    if row.status != "ready":
        raise UsageError(f"corpus {row.corpus!r} is {row.status}: wait until that is done, or start it again")
    return row


def known_corpus(services: Services) -> CorpusRow:
    """Return the corpus, whatever its status."""
    row = find_corpus(services.database, corpus=services.corpus)
    if row is None:
        raise UsageError(f"there is no corpus {services.corpus!r}: `hgmem corpora` lists them, `hgmem index` makes one")
    return row


def open_corpus(services: Services) -> CorpusRow:
    """Return the corpus to write to, created if it is new; one that is there is `readable_corpus`."""
    if find_corpus(services.database, corpus=services.corpus) is None:
        create_corpus(
            services.database,
            corpus=services.corpus,
            status="ready",
            embedder=(services.embedder.name, services.embedder.dimensions),
            settings={
                "chunk_tokens": services.settings.chunk_tokens,
                "chunk_overlap": services.settings.chunk_overlap,
                "chunk_restart": services.settings.chunk_restart,
                "description_characters": services.settings.description_characters,
            },
        )
    return readable_corpus(services)


def check_dimensions(services: Services, row: CorpusRow) -> None:
    """Refuse an embedder whose vectors have another length than the corpus's; the index would pass them over."""
    if services.embedder.dimensions != row.dimensions:
        raise UsageError(
            f"corpus {row.corpus!r} holds vectors of {row.dimensions} dimensions, {services.embedder.name!r} gives "
            f"{services.embedder.dimensions}: set HGMEM_EMBEDDING_MODEL to the model that it was made with, or use "
            f"`hgmem reembed --corpus {row.corpus} --model {services.embedder.name}`"
        )
