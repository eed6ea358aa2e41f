"""The first stage: documents and their chunks, a part for each batch of documents, and back from parts to documents."""

import json
from collections.abc import Mapping

from hgmem.corpus.documents import chunk_options, cut, derived, description_of, digest_of
from hgmem.extraction.tasks import Condense, Extract, Glean
from hgmem.graph.documents import OpenChunk, chunk_rows
from hgmem.graph.values import dumped_messages, loaded_messages, to_json
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import read_prompt
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.stages.files import Folder, Header
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import DocumentUid
from hgmem.values.inputs import Document

DESCRIBED = ["uid", "title", "date", "type"]  # what an extraction is told of a document


def header_of(services: Services, *, language: str, dimensions: int | None = None) -> Header:
    """Return the header of a folder for these services, whose corpus has this language.

    With `dimensions`, the embedder is not loaded to tell them.
    """
    given = services.settings
    return Header(
        corpus=services.corpus,
        embedder=services.embedder.name,
        dimensions=dimensions or services.embedder.dimensions,
        model=serving(services.model, Extract.name).name,
        prompts={task.name: read_prompt(task.prompt_file).version for task in (Extract, Glean, Condense)},
        chunking=str(chunk_options(given)),
        entity_types=given.entity_types,
        gleaning=given.gleaning,
        condense=given.condense,
        description_characters=given.description_characters,
        language=language,
    )


def part_name(documents: Mapping[DocumentUid, Document], settings: Settings) -> str:
    """Return the name of the part of these documents, which follows from what they and their chunks are."""
    rows = [[uid, *digest_of(each, settings), description_of(each)] for uid, each in documents.items()]
    return text_hash(to_json(rows))[:32]


def read_part(folder: Folder, header: Header, documents: Mapping[DocumentUid, Document], *, settings: Settings) -> str:
    """Write the documents and their chunks, unless they are there, and return the name of their part."""
    name = part_name(documents, settings)
    if folder.part("documents", name) and folder.part("chunks", name):
        return name
    rows, chunks = [], []
    for uid, document in documents.items():
        sha256, chunking = digest_of(document, settings)
        row = {
            "uid": uid,
            **description_of(document),
            **derived(document, language=header.language),
            "sha256": sha256,
            "chunking": chunking,
            "messages": len(document.messages) or None,
            "text": document.text,
            "places": dumped_messages(document.messages),
        }
        rows.append(row)
        found = cut(document, settings, corpus=header.corpus, uid_=uid)
        chunks += chunk_rows(found, corpus=header.corpus, language=header.language)
    folder.put("documents", name, [rows])
    folder.put("chunks", name, [chunks])
    return name


def documents_in(folder: Folder, part: str) -> dict[DocumentUid, Document]:
    """Return the documents of a part by uid, as they were read."""
    return {
        row["uid"]: Document(
            id=row["id"],
            title=row["title"],
            source=row["source"],
            metadata=json.loads(row["metadata"]),
            text=row["text"],
            messages=loaded_messages(row["places"]),
        )
        for row in folder.rows("documents", part)
    }


def chunks_in(folder: Folder, part: str) -> list[OpenChunk]:
    """Return the chunks of a part in order, as an extraction takes them."""
    told = {row["uid"]: row for row in folder.rows("documents", part, DESCRIBED)}
    return [
        OpenChunk(
            uid=row["uid"],
            document=row["document"],
            text=row["text"],
            status="pending",
            position=row["position"],
            **{name: told[row["document"]][name] for name in DESCRIBED[1:]},
        )
        for row in folder.rows("chunks", part, ["uid", "document", "position", "text"])
    ]
