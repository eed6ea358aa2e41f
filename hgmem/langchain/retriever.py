"""The retriever: builds a question's memory and returns the supporting chunks as documents."""

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.callbacks.manager import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from hgmem.langchain.investigating import STRICT, Investigating
from hgmem.values.arguments import Argument, AskOptions, count
from hgmem.values.records import Answer, Passage


class HGMemRetriever(Investigating, BaseRetriever):
    """Returns the `k` chunks, best first, that an answer to the question would be drawn from, without writing one.

    A question creates its own memory in Neo4j, or continues `memory`. Every field but the client can also be given for
    one call: `retriever.invoke(question, k=3, steps=1)`. Document metadata is that of the indexed file, with `memory`,
    `corpus`, `chunk`, `document` (uids), `title`, `source`, `source_id`, `rank`, `score`, `step`, `start`, `end` and
    `points` of `hgmem.Passage`. A chunk of a conversation has `messages`: id, speaker and time of each.
    """

    model_config = STRICT
    MORE: ClassVar[Mapping[str, Argument]] = {
        "k": Argument(count, "is not a valid number of documents: use an integer of at least 1")
    }
    REFUSED: ClassVar[Mapping[str, str]] = {
        **Investigating.REFUSED,
        "answer": "it never writes an answer; write it later with HGMem.ask(memory=…), or use HGMemRunnable",
        "at_step": "get the chunks of an earlier step from HGMem.passages(memory, step=…)",
    }

    k: int = Field(4, ge=1)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        k, options = self._options(run_manager, given)
        answer = self.client.ask(query, **options)
        passages = self.client.passages(answer.memory, limit=k, owner=options.get("owner"))
        return [_document(passage, answer) for passage in passages]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        k, options = self._options(run_manager, given)
        answer = await self.client.aask(query, **options)
        passages = await self.client.apassages(answer.memory, limit=k, owner=options.get("owner"))
        return [_document(passage, answer) for passage in passages]

    def _options(self, manager: Any, given: dict[str, Any]) -> tuple[int, AskOptions]:
        options: Any = self.options(manager, given)
        k: int = options.pop("k", self.k)
        options["answer"] = False
        named = options.get("system") or ("" if options.get("memory") else self.client.settings.system)
        passage_option = self.client.system(named).passage_option if named else ""
        if passage_option:
            options["settings"] = {passage_option: k, **options.get("settings", {})}
        return k, options


def _document(passage: Passage, answer: Answer) -> Document:
    chunk = passage.chunk
    places = [{"id": place.id, "speaker": place.speaker, "time": place.time} for place in chunk.messages]
    return Document(
        id=chunk.uid,
        page_content=chunk.text,
        metadata={
            **passage.metadata,
            "memory": answer.memory,
            "corpus": answer.corpus,
            "chunk": chunk.uid,
            "document": chunk.document,
            "title": chunk.title,
            "source": passage.source,
            "source_id": chunk.source_id,
            "start": chunk.start,
            "end": chunk.end,
            "rank": passage.rank,
            "score": passage.score,
            "step": passage.step,
            **({"messages": places} if places else {}),
            "points": [{"uid": point.uid, "description": point.description} for point in passage.points],
        },
    )
