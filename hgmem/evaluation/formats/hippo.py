"""HotpotQA and MuSiQue in the form of HippoRAG: `NAME.json` with questions, `NAME_corpus.json` with passages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence, first_place
from hgmem.sources.json_records import Record, distinct, json_of, records
from hgmem.values.inputs import Document

_CORPUS = "_corpus.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The documents, by title (several may share one), and the sentences of those that are given in sentences."""

    documents: Mapping[str, list[Document]]
    sentences: Mapping[str, Sequence[str]]


def read_hippo(path: Path, *, evidence_of: Callable[[Record, Passages], Iterator[Evidence]]) -> DataSet:
    """Return the questions and passages of a file or folder. `evidence_of` reads a question's evidence."""
    questions, corpus = _files(path)
    passages = _passages(corpus)
    asked = list(records(json_of(questions), questions, what="question"))
    ids = distinct(record.text("_id", "id", default=str(number)) for number, record in enumerate(asked, start=1))
    return DataSet(
        name=questions.stem,
        documents=tuple(document for same_title in passages.documents.values() for document in same_title),
        questions=tuple(
            EvalQuestion(
                id=id_,
                # MuSiQue's ids begin with the kind, such as `2hop`.
                kind=record.text("type", default=id_.split("__")[0] if "__" in id_ else "question"),
                question=record.text("question"),
                answer=record.text("answer"),
                evidence=tuple(dict.fromkeys(evidence_of(record, passages))),
            )
            for id_, record in zip(ids, asked, strict=True)
        ),
    )


def _files(path: Path) -> tuple[Path, Path]:
    if path.is_dir():
        found = sorted(path.glob(f"*{_CORPUS}"))
        if len(found) != 1:
            raise UsageError(f"{str(path)!r} has {len(found)} files *{_CORPUS}: name the file of questions")
        path = found[0]
    name = path.name.removesuffix(_CORPUS).removesuffix(".json")
    return path.with_name(f"{name}.json"), path.with_name(f"{name}{_CORPUS}")


def _passages(path: Path) -> Passages:
    documents: dict[str, list[Document]] = {}
    sentences: dict[str, Sequence[str]] = {}
    pairs = list(_titled(json_of(path), path))
    for id_, (title, parts) in zip(distinct(title for title, _ in pairs), pairs, strict=True):
        documents.setdefault(title, []).append(Document(id=id_, title=title, text="".join(parts)))
        if len(parts) > 1:
            sentences[title] = parts
    return Passages(documents=documents, sentences=sentences)


def _titled(passages: Any, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the passages, by title or in a list, each as its sentences or as one text."""
    if isinstance(passages, dict):
        passages = [{"title": title, "text": text} for title, text in passages.items()]
    for record in records(passages, path, what="passage"):
        yield record.text("title"), record.texts("text")


def supporting_facts(asked: Record, passages: Passages) -> Iterator[Evidence]:
    """Yield HotpotQA's evidence: the sentences of the supporting facts."""
    context = {title: parts for title, parts in asked.values.get("context") or [] if isinstance(parts, list)}
    for fact in asked.items("supporting_facts"):
        title, at = fact if isinstance(fact, list) and len(fact) == 2 else asked.fail("not pairs", "supporting_facts")
        parts = context.get(title) or passages.sentences.get(title) or ()
        if title not in passages.documents:
            asked.fail(f"passage {title!r} is not in the corpus", "supporting_facts")
        if isinstance(at, int) and 0 <= at < len(parts):  # a few of the published facts are beyond the passage
            yield _standing(asked, parts[at], passages.documents[title])


def supporting_paragraphs(asked: Record, passages: Passages) -> Iterator[Evidence]:
    """Yield MuSiQue's evidence: the supporting paragraphs, each a whole passage."""
    for value in asked.items("paragraphs"):
        paragraph = Record(value, path=asked.path, place=f"{asked.place}, paragraphs")
        if paragraph.values.get("is_supporting"):
            title = paragraph.text("title")
            if title not in passages.documents:
                asked.fail(f"passage {title!r} is not in the corpus", "paragraphs")
            yield _standing(asked, paragraph.text("paragraph_text", "text"), passages.documents[title])


def _standing(asked: Record, words: str, documents: Sequence[Document]) -> Evidence:
    found = (first_place(document, words) for document in documents)
    evidence = next((place for place in found if place), None)
    return evidence or asked.fail(f"evidence {words[:40]!r} is not in passage {documents[0].title!r}")
