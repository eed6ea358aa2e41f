"""The services that pipelines and systems share: database, models, and corpus."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hgmem.errors import BadReplyError, ModelError, NotFoundError, UsageError
from hgmem.graph.corpus import (
    SCHEMA_VERSION,
    CorpusRow,
    all_corpora,
    corpus_identity,
    corpus_language,
    create_corpus,
    find_corpus,
    set_language,
)
from hgmem.graph.database import Database
from hgmem.models.embedding import CheckedEmbedder, TextKind, Vectors
from hgmem.models.llm import LanguageModel
from hgmem.models.llm.reply_parsing import UnreadableError, parse_reply
from hgmem.models.metering import paused, timed
from hgmem.models.reply import Reply as OwnReply
from hgmem.models.reply import TextReply
from hgmem.models.reranking import CheckedReranker
from hgmem.settings import Settings
from hgmem.text.identity import uid
from hgmem.text.language import language_of, similar
from hgmem.values.events import AnswerToken, Listener, Watcher
from hgmem.values.inputs import ONCE, Repeatable
from hgmem.values.task import Task

LANGUAGE_TEXTS, LANGUAGE_SAMPLE = 20, 2_000  # texts whose beginnings tell the language, and their characters
RE_EMBEDDING = "re-embedding"  # the status of a corpus while its vectors are made again

Reply = TypeVar("Reply")
Text = TypeVar("Text", bound=TextReply)
Noted = TypeVar("Noted", bound=OwnReply)
Found = TypeVar("Found")
P = ParamSpec("P")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services for work on one corpus, without any state of a question.

    With an `owner`, only that owner's and everybody's memories are seen, and new ones are the owner's.
    """

    database: Database
    model: LanguageModel
    embedder: CheckedEmbedder
    settings: Settings
    corpus: str
    reranker: CheckedReranker | None = None
    owner: str | None = None
    repeatable: Repeatable = ONCE
    listener: Listener = field(default_factory=Listener)
    watcher: Watcher = field(default_factory=Watcher)

    @property
    def language(self) -> str:
        """The answer language, or empty for that of the question."""
        return self.settings.answer_language

    def reply(self, task: Task[Reply]) -> Reply:
        """Return the model's reply, and count the call.

        Raises `ModelError` if the reply has another type than the task's.
        """
        self.listener.check()
        reply = self.watcher.call(task, lambda: self._replied(task))
        if not isinstance(reply, task.reply_type):
            raise ModelError(
                f"model {self.model.name!r} returned {type(reply).__name__} for task {task.name!r}, not "
                f"{task.reply_type.__name__}"
            )
        return reply

    def attempt(self, task: Task[Noted]) -> tuple[Noted | None, list[str]]:
        """Return the model's reply, or None if it is unusable, and notes on what was left out."""
        try:
            reply = self.reply(task)
        except BadReplyError as error:
            return None, [f"{task.name}: no usable reply ({error})"]
        return reply, [f"{task.name}: {note}" for note in reply.notes]

    def write(self, task: Task[Text]) -> Text:
        """Return the text that the model writes, streaming its tokens to the listener.

        If the streamed text is invalid, the task is asked again without streaming.
        """
        stream = getattr(self.model, "stream", None)
        if stream is None or not self.listener.is_listening:
            reply = self.reply(task)
            self.listener.emit(AnswerToken(text=reply.text))
            return reply
        self.listener.check()
        try:
            received = self.watcher.call(task, lambda: self._streamed(stream(task), task.name))
            return parse_reply(task.reply_type, received)
        except (BadReplyError, UnreadableError) as error:
            return self.reply(task).noted([f"asked again: {error}"])

    def _replied(self, task: Task[Reply]) -> Reply:
        with timed("model", task.name):
            return self.model.reply(task)

    def _streamed(self, pieces: Iterator[str], name: str) -> str:
        received: list[str] = []
        with timed("model", name):
            for piece in pieces:
                received.append(piece)
                with paused():  # do not count a slow listener as the model's time
                    self.listener.emit(AnswerToken(text=piece))
        return "".join(received)

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the texts' unit vectors: float32, shape (len(texts), dimensions)."""
        return self.embedder.embed(texts, kind=kind)

    def check_rerank(self, most: int) -> None:
        """Raise `UsageError` if a recipe's `rerank` needs a reranker that is not there."""
        if most and self.reranker is None:
            raise UsageError(
                f"rerank={most} needs a reranker: set HGMEM_RERANKER to the name or path of a CrossEncoder, or to a "
                "model of the server at HGMEM_RERANKER_BASE_URL, or use rerank=0"
            )

    def reranked(
        self, query: str, found: Sequence[Found], *, most: int, text: Callable[[Found], str]
    ) -> list[tuple[Found, float | None]]:
        """Return what was found, its first `most` by the scores of the reranker, best first, and the rest without.

        With `most` 0, the order stays. Raises `UsageError` if there is no reranker.
        """
        self.check_rerank(most)
        scores: list[float] = []
        if self.reranker and most:
            self.listener.check()
            scores = self.reranker.rerank(query, [text(one) for one in found[:most]])
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        return [*((found[at], scores[at]) for at in order), *((one, None) for one in found[len(scores) :])]


def watched(
    name: str,
) -> Callable[[Callable[Concatenate[Services, P], Done]], Callable[Concatenate[Services, P], Done]]:
    """Return what lets the services' watcher run a function, as work of this name."""

    def around(work: Callable[Concatenate[Services, P], Done]) -> Callable[Concatenate[Services, P], Done]:
        @wraps(work)
        def run(services: Services, /, *arguments: P.args, **named: P.kwargs) -> Done:
            return services.watcher.work(name, lambda: work(services, *arguments, **named))

        return run

    return around


def ready_corpus(services: Services) -> CorpusRow:
    """Return the corpus, or raise `UsageError` if the services' embedder can't be used with it."""
    row = readable_corpus(services)
    check_dimensions(services, row)
    return row


def readable_corpus(services: Services) -> CorpusRow:
    """Return the corpus as `ready_corpus` does, but without loading the embedder."""
    row = settled_corpus(services)
    if services.embedder.name != row.embedding_model:
        raise UsageError(
            f"corpus {row.corpus!r} was embedded with {row.embedding_model!r}, not {services.embedder.name!r}: set "
            f"HGMEM_EMBEDDING_MODEL={row.embedding_model}, or pass embedder=… in Python if it is an object of your "
            f"own; or re-embed with `hgmem reembed --corpus {row.corpus} --model {services.embedder.name}`"
        )
    return row


def settled_corpus(services: Services) -> CorpusRow:
    """Return the corpus with any embedder, or raise `UsageError` if it is not ready or of another version of hgmem."""
    row = known_corpus(services)
    check_schema(row)
    if row.status == RE_EMBEDDING:
        raise UsageError(
            f"corpus {row.corpus!r} is being re-embedded with {row.embedding_model!r}: wait until that is done, or "
            f"resume with `hgmem reembed --corpus {row.corpus} --model {row.embedding_model}`"
        )
    if row.status != "ready":
        raise UsageError(
            f"corpus {row.corpus!r} is not ready (status {row.status}): wait until that operation ends, or run it again"
        )
    return row


def check_schema(row: CorpusRow) -> None:
    """Raise `UsageError` if the corpus was written by a version of hgmem with another schema."""
    if row.schema_version != SCHEMA_VERSION:
        raise UsageError(
            f"corpus {row.corpus!r} has schema version {row.schema_version}, but this hgmem uses {SCHEMA_VERSION}: "
            "index its documents again into a new corpus, or use the version of hgmem that wrote it"
        )


def known_corpus(services: Services) -> CorpusRow:
    """Return the corpus with any status, or raise `UsageError` if there is none."""
    row = find_corpus(services.database, corpus=services.corpus)
    if row is None:
        near = similar(services.corpus, (str(found["corpus"]) for found in all_corpora(services.database)))
        raise NotFoundError(
            f"corpus {services.corpus!r} not found{near}: list corpora with `hgmem corpora`, or create it with "
            "`hgmem index`"
        )
    return row


def open_corpus(services: Services) -> CorpusRow:
    """Return the corpus to write to, creating it if necessary. An embedder that fails creates none.

    Raises `UsageError` as `readable_corpus` does, and `ModelError` as the embedder.
    """
    if find_corpus(services.database, corpus=services.corpus) is None:
        services.embed([services.corpus], kind="document")
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


def build_files(services: Services, system: str = "") -> Path:
    """Return the folder of this machine for what the corpus's builds, or a system's, keep beside the database."""
    identity = corpus_identity(services.database, corpus=services.corpus)
    return services.settings.data / "builds" / f"{services.corpus}-{uid(services.corpus, 'files', identity)}" / system


def writing_language(services: Services, texts: Iterable[str]) -> str:
    """Return the corpus's language. The first texts decide it, unless HGMEM_LANGUAGE is set."""
    if known := corpus_language(services.database, corpus=services.corpus):
        return known
    sample = "\n".join(text[:LANGUAGE_SAMPLE] for text in islice(texts, LANGUAGE_TEXTS))
    language = services.settings.language or language_of(sample)
    return set_language(services.database, corpus=services.corpus, language=language)


def check_dimensions(services: Services, row: CorpusRow) -> None:
    """Raise `UsageError` if the embedder's vectors have other dimensions than the corpus's.

    The vector index would ignore them.
    """
    if services.embedder.dimensions != row.dimensions:
        raise UsageError(
            f"corpus {row.corpus!r} has {row.dimensions}-dimensional vectors, but {services.embedder.name!r} "
            f"returns {services.embedder.dimensions}: set HGMEM_EMBEDDING_MODEL to the corpus's model, or re-embed "
            f"with `hgmem reembed --corpus {row.corpus} --model {services.embedder.name}`"
        )
