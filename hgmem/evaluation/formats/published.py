"""Readers of published data sets: LoCoMo, HotpotQA and MuSiQue in the form of HippoRAG, NoCha, and LooGLE."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import (
    DataSet,
    EvalQuestion,
    Evidence,
    Problems,
    at_place,
    check_pairs,
    first_place,
    read_documents,
)
from hgmem.sources.conversations.locomo import locomo_conversation
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.json_records import Record, distinct, json_of, line_record, lines_of, records
from hgmem.text.segmentation import Span
from hgmem.values.inputs import Document

# The categories of LoCoMo's paper by the numbers of its data.
KINDS = {"1": "several", "2": "time", "3": "open", "4": "single", "5": "adversarial"}
UNANSWERABLE = "Not mentioned in the conversation."
_TURN = re.compile(r"D:?(\d+):(\d+)")
_CORPUS = "_corpus.json"
_CLAIMS = ".claims.json"
_NONE = "none"  # stands for no questions, in LooGLE's summarization task


def read_locomo(path: Path) -> DataSet:
    """Return LoCoMo's conversations (Maharana et al., 2024) of a file, or of all JSON files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{str(path)!r} has no JSON files: name a file or folder of LoCoMo")
    samples: list[Record] = []
    for file in files:
        loaded = json_of(file)
        samples += records(loaded if isinstance(loaded, list) else [loaded], file, what="sample")
    talks = [(sample, document_of(locomo_conversation(sample))) for sample in samples]
    return DataSet(
        name=path.resolve().stem,
        documents=tuple(conversation for _, conversation in talks),
        questions=tuple(question for talk in talks for question in _asked_of_talk(*talk)),
    )


def _asked_of_talk(sample: Record, conversation: Document) -> Iterator[EvalQuestion]:
    places = {place.id: Span(place.start, place.end) for place in conversation.messages}
    for number, record in enumerate(records(sample.values.get("qa"), sample.path, what="question"), start=1):
        category = record.text("category")
        wanted = UNANSWERABLE if KINDS.get(category) == KINDS["5"] else None
        # Several ids may stand in one text, some are misspelt, and a few name no message.
        turns = [turn for text in record.texts("evidence") for turn in _TURN.finditer(text)]
        names = dict.fromkeys(f"D{int(turn[1])}:{int(turn[2])}" for turn in turns)
        yield EvalQuestion(
            id=f"{conversation.id}-{number}",
            kind=KINDS.get(category, category),
            question=record.text("question"),
            answer=record.text("answer", default=wanted),
            evidence=tuple(at_place(conversation, places[name], source=name) for name in names if name in places),
        )


def read_hippo(path: Path) -> DataSet:
    """Return the questions of `NAME.json` on the passages of `NAME_corpus.json`, as HippoRAG has them."""
    questions, corpus = _hippo_files(path)
    passages: dict[str, list[Document]] = {}  # by title, which several may share
    sentences: dict[str, Sequence[str]] = {}  # of passages that are given in sentences
    pairs = list(_titled(json_of(corpus), corpus))
    for id_, (title, parts) in zip(distinct(title for title, _ in pairs), pairs, strict=True):
        passages.setdefault(title, []).append(Document(id=id_, title=title, text="".join(parts)))
        if len(parts) > 1:
            sentences[title] = parts
    asked = list(records(json_of(questions), questions, what="question"))
    ids = distinct(record.text("_id", "id", default=str(number)) for number, record in enumerate(asked, start=1))
    return DataSet(
        name=questions.stem,
        documents=tuple(document for same_title in passages.values() for document in same_title),
        questions=tuple(
            EvalQuestion(
                id=id_,
                # MuSiQue's ids begin with the kind, such as `2hop`.
                kind=record.text("type", default=id_.split("__")[0] if "__" in id_ else "question"),
                question=record.text("question"),
                answer=record.text("answer"),
                evidence=tuple(dict.fromkeys(_standing(record, passages, sentences))),
            )
            for id_, record in zip(ids, asked, strict=True)
        ),
    )


def _hippo_files(path: Path) -> tuple[Path, Path]:
    if path.is_dir():
        found = sorted(path.glob(f"*{_CORPUS}"))
        if len(found) != 1:
            raise UsageError(f"{str(path)!r} has {len(found)} files *{_CORPUS}: name the file of questions")
        path = found[0]
    name = path.name.removesuffix(_CORPUS).removesuffix(".json")
    return path.with_name(f"{name}.json"), path.with_name(f"{name}{_CORPUS}")


def _titled(passages: Any, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the passages, by title or in a list, each as its sentences or as one text."""
    if isinstance(passages, dict):
        passages = [{"title": title, "text": text} for title, text in passages.items()]
    for record in records(passages, path, what="passage"):
        yield record.text("title"), record.texts("text")


def _standing(
    asked: Record, passages: Mapping[str, Sequence[Document]], sentences: Mapping[str, Sequence[str]]
) -> Iterator[Evidence]:
    """Yield a question's evidence where it stands in the passages."""
    musique = asked.has("paragraphs")
    field = "paragraphs" if musique else "supporting_facts"
    for title, words in _paragraphs(asked) if musique else _facts(asked, sentences):
        if title not in passages:
            asked.fail(f"passage {title!r} is not in the corpus", field)
        if words is None:
            continue
        places = (first_place(document, words) for document in passages[title])
        found = next((place for place in places if place), None)
        yield found or asked.fail(f"evidence {words[:40]!r} is not in passage {title!r}")


def _facts(asked: Record, sentences: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str | None]]:
    """Yield HotpotQA's evidence: titles of passages, each with the sentence of a supporting fact.

    A few of the published facts are beyond the passage: they have no sentence.
    """
    context = {title: parts for title, parts in asked.values.get("context") or [] if isinstance(parts, list)}
    for fact in asked.items("supporting_facts"):
        title, at = fact if isinstance(fact, list) and len(fact) == 2 else asked.fail("not pairs", "supporting_facts")
        parts = context.get(title) or sentences.get(title) or ()
        yield title, parts[at] if isinstance(at, int) and 0 <= at < len(parts) else None


def _paragraphs(asked: Record) -> Iterator[tuple[str, str]]:
    """Yield MuSiQue's evidence: titles of passages, each with its text as a supporting paragraph."""
    for value in asked.items("paragraphs"):
        paragraph = Record(value, path=asked.path, place=f"{asked.place}, paragraphs")
        if paragraph.values.get("is_supporting"):
            yield paragraph.text("title"), paragraph.text("paragraph_text", "text")


def read_nocha(path: Path) -> DataSet:
    """Return NoCha's true and false claims (Karpinska et al., 2024), in pairs on a novel, without evidence.

    They are those of a folder, or of one pair of files `NAME.txt` and `NAME.claims.json`.
    """
    alone = path if path.name.endswith(_CLAIMS) else path.with_name(f"{path.stem}{_CLAIMS}")
    named = sorted(path.glob(f"*{_CLAIMS}")) if path.is_dir() else [alone]
    if not named:
        raise UsageError(f"{str(path)!r} has no files NAME{_CLAIMS}: name a file or folder of NoCha")
    novels = [claims.with_name(f"{claims.name.removesuffix(_CLAIMS)}.txt") for claims in named]
    return DataSet(
        name=path.resolve().stem.removesuffix(".claims"),
        documents=tuple(document for novel in novels for document in read_documents(novel).values()),
        questions=tuple(question for claims in named for question in _claims(claims)),
    )


def _claims(file: Path) -> list[EvalQuestion]:
    problems = Problems(file)
    found: list[EvalQuestion] = []
    for record in records(json_of(file), file, what="claim"):
        true = record.values.get("type")
        if not isinstance(true, bool):
            record.fail("it is not true or false", "type")
        pair = f"{file.name.removesuffix(_CLAIMS)}-{record.text('index')}"
        found.append(
            EvalQuestion(
                id=f"{pair}-{str(true).lower()}",
                kind="claim",
                question=f"True or false: {record.text('claim')}",
                answer=str(true),
                pair=pair,
            )
        )
    check_pairs(((0, question) for question in found), problems)
    problems.check()
    return found


def read_loogle(path: Path) -> DataSet:
    """Return LooGLE's long documents (Li et al., 2023), each once, and their questions: a JSON line each."""
    lines = [line_record(text, number, path) for number, text in lines_of(path)]
    documents = _long_documents(lines)
    asked = [(record, documents[line.text("input", "context")]) for line in lines for record in _asked_of_line(line)]
    names = distinct(record.text("id", default=f"{document.id}-1") for record, document in asked)
    return DataSet(
        name=path.resolve().stem,
        documents=tuple(documents.values()),
        questions=tuple(
            EvalQuestion(
                id=name,
                kind=record.text("type", "task", default="question"),
                question=record.text("Q", "question"),
                answer=record.text("A", "answer"),
                evidence=tuple(_sentences(record, document)),
            )
            for name, (record, document) in zip(names, asked, strict=True)
        ),
    )


def _long_documents(lines: list[Record]) -> dict[str, Document]:
    """Return the documents by their texts. Several lines may ask about one."""
    texts = {line.text("input", "context"): line.text("title", "doc_id", default="") for line in reversed(lines)}
    titles = dict(reversed(texts.items()))
    ids = distinct(title or "document" for title in titles.values())
    return {
        text: Document(id=id_, title=title or id_, text=text)
        for id_, (text, title) in zip(ids, titles.items(), strict=True)
    }


def _asked_of_line(line: Record) -> Iterator[Record]:
    """Yield the questions of a line: a list, a list written as text, or the line itself."""
    if not line.has("qa_pairs"):
        yield line
        return
    pairs = _literal(line.values["qa_pairs"], line, "qa_pairs")
    if pairs == _NONE:
        return
    if not isinstance(pairs, list):
        line.fail("it is not a list", "qa_pairs")
    for number, value in enumerate(pairs, start=1):
        yield Record(value, path=line.path, place=f"{line.place}, qa_pairs {number}")


def _literal(value: Any, line: Record, field: str) -> Any:
    """Return what a text holds that was written as a Python literal or as JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            line.fail("it is a list that cannot be read", field)


def _sentences(record: Record, document: Document) -> Iterator[Evidence]:
    """Yield the evidence. Sentences that differ from the document, as some published ones do, have no place in it."""
    field = "S" if record.has("S") else "evidence"
    values = _literal(record.values.get(field), record, field)
    for words in Record({field: values}, path=record.path, place=record.place).texts(field):
        if words.strip():
            yield first_place(document, words) or Evidence(document=document.id, text=words.strip())
