"""Take texts in: the documents among a caller's items, messages to append, and LightRAG's directories."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from hgmem.client.connecting import can_use_gpu, worker_services
from hgmem.corpus.appending import append, check_conversation
from hgmem.corpus.importing import import_graph
from hgmem.corpus.indexing import index, retry_failed
from hgmem.errors import DocumentError, UsageError
from hgmem.models.metering import limited
from hgmem.resolution.resolving import apply_rules
from hgmem.services import Services, watched
from hgmem.settings import Settings
from hgmem.sources.conversations.reading import load_conversations
from hgmem.sources.conversations.reading import messages_in as messages_in
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.files import USABLE, load
from hgmem.sources.files.items import SUFFIXES
from hgmem.sources.lightrag import read_lightrag
from hgmem.values.arguments import AppendOptions, IndexOptions
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document, Skipped
from hgmem.values.reports import AppendReport, IndexReport, Report, counting

PathLike: TypeAlias = str | os.PathLike[str]
LONGEST_NAME = 200  # characters of the name of an upload
Done = TypeVar("Done", IndexReport, AppendReport)


def loaded(items: Any, settings: Settings) -> Iterator[Document | Skipped]:
    """Yield the documents among the items, then those that the paths contain."""
    paths: list[PathLike] = []
    for item in [items] if isinstance(items, Document | Conversation | Skipped | str | os.PathLike) else items:
        if isinstance(item, Conversation):
            yield document_of(item)
        elif isinstance(item, Document | Skipped):
            yield item
        else:
            paths.append(item)
    if paths:
        yield from load(
            paths,
            max_bytes=settings.max_file_bytes,
            max_seconds=settings.max_file_seconds,
            text_field=settings.text_field,
        )


def check_upload(name: str) -> None:
    """Raise `DocumentError` if a file of this name can't be read, or is no name of a file."""
    if not name or len(name) > LONGEST_NAME or name != os.path.basename(name) or not name.isprintable():
        raise DocumentError(
            f"{name[:LONGEST_NAME]!r} is no name of a file: use one without slashes, such as letters.pdf"
        )
    if not name.lower().endswith(SUFFIXES):
        raise DocumentError(f"suffix {Path(name).suffix!r} is not supported: use {USABLE}")


@contextmanager
def stored(name: str, data: bytes) -> Iterator[Path]:
    """Yield the path of a file with uploaded bytes, which is gone afterwards. Errors name it without its folder."""
    with tempfile.TemporaryDirectory(prefix="hgmem-upload.") as folder:
        path = Path(folder).resolve() / name
        path.write_bytes(data)
        try:
            yield path
        except (DocumentError, UsageError) as error:
            raise type(error)(str(error).replace(f"{path.parent}{os.sep}", "")) from None


def uploaded(name: str, data: bytes, settings: Settings) -> list[Document | Skipped]:
    """Return the documents of an uploaded file, with its name in place of a path."""
    check_upload(name)
    with stored(name, data) as path:
        prefix = f"{path.parent}{os.sep}"
        found = list(loaded(path, settings))
    named: list[Document | Skipped] = []
    for one in found:
        if isinstance(one, Skipped):
            named.append(replace(one, path=one.path.removeprefix(prefix)))
        else:
            named.append(replace(one, id=one.id.removeprefix(prefix), source=one.source.removeprefix(prefix)))
    return named


@watched("index")
def add(services: Services, items: Any, options: IndexOptions, *, graph: bool, report: Report) -> IndexReport:
    """Index the documents among the items, join by rules what is one thing, and return what was done."""
    documents = loaded(items, services.settings)
    if options.get("stages"):
        if not graph:
            raise UsageError("stages= makes a graph, which graph=False excludes: omit one of them")
        if options.get("ray"):
            done = _on_ray(services, items, options, report=report)
        else:
            done = _in_stages(services, documents, options, report=report)
    else:
        done = index(services, documents, graph=graph, report=report)
    return _resolved(services, done, graph=graph)


def _in_stages(
    services: Services, documents: Iterator[Document | Skipped], options: IndexOptions, *, report: Report
) -> IndexReport:
    try:
        from hgmem.stages.running import index_in_stages  # loads pyarrow
        from hgmem.stages.writing import WRITERS
    except ImportError as error:
        raise UsageError(f"stages need {error.name}: pip install 'hgmem[stages]'") from error
    writers = options.get("writers") or WRITERS
    return index_in_stages(services, documents, address=str(options["stages"]), report=report, writers=writers)


def check_ray(options: IndexOptions, *, own: Mapping[str, object], made: Iterable[object]) -> None:
    """Raise `UsageError` for what can't be on a Ray cluster: limits of one process, and objects not `made` here."""
    if not options.get("stages"):
        raise UsageError("--ray needs --stages DIR, a folder that all workers see: pass it too")
    if options.get("max_calls") or options.get("max_tokens"):
        raise UsageError("--max-calls and --max-tokens count in one process: omit them with --ray")
    for role, used in own.items():
        if not any(used is each for each in made):
            raise UsageError(f"{role}= is an object, which stays in this process: with ray=, name one in settings")


def _on_ray(services: Services, items: Any, options: IndexOptions, *, report: Report) -> IndexReport:
    try:
        from hgmem.distributed.running import Input, index_on_ray, job_of
        from hgmem.stages.writing import WRITERS
    except ImportError as error:
        raise UsageError(f"--ray needs {error.name}: pip install 'hgmem[ray]'") from error
    given = [items] if isinstance(items, Document | Conversation | Skipped | str | os.PathLike) else list(items)
    paths = [item for item in given if isinstance(item, str | os.PathLike)]
    others = [item for item in given if not isinstance(item, str | os.PathLike)]
    job = job_of(services, str(options["stages"]), worker_services, gpu=can_use_gpu(services.settings))
    writers = options.get("writers") or WRITERS
    found = Input(documents=loaded(others, services.settings), paths=paths, writers=writers)
    return index_on_ray(services, found, job=job, address=str(options["ray"]), report=report)


@watched("retry")
def retry(services: Services, *, report: Report) -> IndexReport:
    """Extract failed chunks again, join by rules what is one thing, and return what was done."""
    return _resolved(services, retry_failed(services, report=report), graph=True)


def _resolved(services: Services, done: Done, *, graph: bool) -> Done:
    if graph and services.settings.resolve:  # also where a run before was cut short after its last document
        done.joined = apply_rules(services)
    return done


def loaded_conversations(
    paths: PathLike | Iterable[PathLike], settings: Settings, *, fields: Mapping[str, str] | None
) -> list[Document | Skipped]:
    """Return the conversations of files and folders as documents, and the files that can't be used."""
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return list(load_conversations(named, fields=fields, max_bytes=settings.max_file_bytes))


@watched("append")
def append_messages(
    services: Services,
    conversation: str | Conversation,
    messages: Message | Iterable[Message],
    *,
    options: AppendOptions,
    report: Report,
) -> AppendReport:
    """Append messages to a conversation, and return what was done."""
    if isinstance(conversation, str):
        conversation = Conversation(id=conversation)
    if not isinstance(conversation, Conversation):
        raise UsageError(f"conversation {conversation!r} is no text: pass the conversation's id, or a Conversation")
    if conversation.messages:
        raise UsageError(f"conversation {conversation.id!r} has messages itself: pass them as messages to append")
    if not conversation.id:
        raise UsageError("conversation '' has no id: pass one that identifies it across runs")
    given: Sequence[Any] = [messages]  # other values are refused by name
    if isinstance(messages, Iterable) and not isinstance(messages, str | Mapping):
        given = list(messages)
    if options.get("existing"):
        check_conversation(services, conversation.id)
    with limited(max_calls=options.get("max_calls"), max_tokens=options.get("max_tokens")):
        graph = options.get("graph", False)
        return _resolved(services, append(services, conversation, given, graph=graph, report=report), graph=graph)


def import_lightrag(services: Services, directory: str | Path, *, report: Report) -> bool:
    """Import a LightRAG working directory into an empty corpus. Return whether anything was written."""
    given = read_lightrag(directory)
    return import_graph(services, given, report=counting(report, "entities and relations"))
