"""Measure the recall of passages that support the answers: dense chunks, BM25, and HGMem step by step.

All passages of the questions go into one corpus, one document per passage; the embedder is the real one, the model
the extractive one. The indexed server is kept under `.hgmem/bench` and rebuilt when the code that indexes changes.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import bm25s
from kept import home

from hgmem import Document, HGMem, Passage
from hgmem.local import down, up
from hgmem.models.embedders import MINILM, SentenceTransformerEmbedder
from hgmem.settings import load

DEPTHS = (5, 10, 20)
CORPUS = "passages"
MOST = 60  # requested chunks: enough for 20 passages even if some have several chunks
NEEDED, DEPTH = 1.0, 10  # required share of the better baseline's recall at this depth, for all of HGMem

Rankings: TypeAlias = dict[str, list[list[str]]]  # by retrieval method: for each question its titles, best first


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, its kind, and the titles of the passages that support its answer."""

    text: str
    kind: str
    supporting: frozenset[str]

    def recall(self, titles: Sequence[str], depth: int) -> float:
        """Return the share of the supporting passages among the first `depth` titles."""
        return len(self.supporting.intersection(titles[:depth])) / len(self.supporting)


def main() -> None:
    """Print one JSON object; exit with 1 if HGMem finds less than the better baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.json and NAME_corpus.json")
    parser.add_argument("--name", default="hotpotqa_train", help="name of the two files (HippoRAG's format)")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--steps", type=int, help="maximum number of steps. Default: the recipe's")
    parser.add_argument("--most", type=int, default=1_000, help="ask the first N questions")
    parser.add_argument("--missed", action="store_true", help="also print passages that HGMem missed")
    options = parser.parse_args()
    passages = read_passages(options.data / f"{options.name}_corpus.json")
    questions = read_questions(options.data / f"{options.name}.json")[: options.most]
    with indexed(passages) as client:
        rankings: Rankings = {"naive": naive(client, questions), "bm25": words(passages, questions)}
        asked, figures = hgmem(client, questions, {"recipe": options.recipe, "steps": options.steps})
    rankings |= asked
    found = {"passages": len(passages), "recipe": options.recipe, **table(questions, rankings), "asked": figures}
    if options.missed:
        found["missed"] = list(missed(questions, rankings))
    print(json.dumps(found, indent=2, ensure_ascii=False))
    best = max(recall(questions, rankings[name], DEPTH) for name in ("naive", "bm25"))
    whole = recall(questions, rankings["hgmem"], DEPTH)
    if whole < NEEDED * best:
        raise SystemExit(f"recall@{DEPTH} of HGMem is {whole:.3f}, less than {NEEDED:g} times {best:.3f}")


def read_passages(path: Path) -> dict[str, str]:
    """Return the texts by title; a passage is a list of sentences or one text."""
    held = json.loads(path.read_text(encoding="utf-8"))
    return {title: text if isinstance(text, str) else "".join(text) for title, text in held.items()}


def read_questions(path: Path) -> list[Asked]:
    """Return the questions with the titles of their supporting facts."""
    return [
        Asked(
            text=one["question"],
            kind=one["type"],
            supporting=frozenset(title for title, _ in one["supporting_facts"]),
        )
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


@contextmanager
def indexed(passages: Mapping[str, str]) -> Iterator[HGMem]:
    """Yield a client on its own server, with the passages indexed; an interrupted run is resumed."""
    settings = load(data=home("quality", [MINILM, dict(passages)]))
    server = up(settings)
    access: dict[str, Any] = {"uri": server.uri, "username": server.username, "password": server.password}
    try:
        with HGMem.open(CORPUS, embedder=SentenceTransformerEmbedder(), model="extractive", **access) as client:
            client.add([Document(id=title, title=title, text=text) for title, text in passages.items()])
            yield client
    finally:
        down(settings)


def naive(client: HGMem, questions: Sequence[Asked]) -> list[list[str]]:
    """Return the titles of the chunks nearest to each question."""
    found = []
    for asked in questions:
        answer = client.ask(asked.text, system="naive", settings={"chunks": MOST}, answer=False)
        found.append(titles(client.passages(answer.memory, limit=MOST)))
        client.delete(memory=answer.memory)
    return found


def words(passages: Mapping[str, str], questions: Sequence[Asked]) -> list[list[str]]:
    """Return the titles that BM25 over title and text finds, without English stop words."""
    named = list(passages)
    index = bm25s.BM25()
    texts = [f"{title}\n{text}" for title, text in passages.items()]
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    asked = bm25s.tokenize([one.text for one in questions], stopwords="en", show_progress=False)
    rows = index.retrieve(asked, k=max(DEPTHS), show_progress=False).documents
    return [[named[at] for at in row] for row in rows]


def hgmem(client: HGMem, questions: Sequence[Asked], asking: Mapping[str, Any]) -> tuple[Rankings, dict[str, Any]]:
    """Return the passages of each question's memory after the first step and at the end, and the mean counts."""
    rankings: Rankings = {"hgmem's first step": [], "hgmem": []}
    steps, subqueries, points, passages = [], [], [], []
    for asked in questions:
        options: Any = {name: value for name, value in asking.items() if value is not None}
        answer = client.ask(asked.text, answer=False, **options)
        whole = client.passages(answer.memory, limit=MOST)
        rankings["hgmem's first step"].append(titles(client.passages(answer.memory, step=1, limit=MOST)))
        rankings["hgmem"].append(titles(whole))
        steps.append(len(answer.steps))
        subqueries.append(sum(len(step.retrieved) for step in answer.steps))
        points.append(sum(point.died is None for point in answer.points))
        passages.append(len(rankings["hgmem"][-1]))
        client.delete(memory=answer.memory)
    counts = {"steps": steps, "subqueries": subqueries, "living_points": points, "passages": passages}
    return rankings, {name: round(statistics.mean(each), 2) for name, each in counts.items()}


def titles(passages: Sequence[Passage]) -> list[str]:
    """Return the documents' titles, each at the position of its best chunk."""
    return list(dict.fromkeys(passage.chunk.title for passage in passages))


def table(questions: Sequence[Asked], rankings: Rankings) -> dict[str, Any]:
    """Return recall by retrieval method and depth, for all questions, each kind, and each half."""
    places = {"all": list(range(len(questions)))}
    places |= {kind: [at for at in places["all"] if questions[at].kind == kind] for kind in kinds(questions)}
    places |= {"odd": places["all"][::2], "even": places["all"][1::2]}
    return {
        part: {
            "questions": len(chosen),
            **{name: [row(questions, found, chosen, depth) for depth in DEPTHS] for name, found in rankings.items()},
        }
        for part, chosen in places.items()
    }


def kinds(questions: Sequence[Asked]) -> list[str]:
    """Return the kinds of questions."""
    return sorted({asked.kind for asked in questions})


def row(questions: Sequence[Asked], found: Sequence[Sequence[str]], chosen: Sequence[int], depth: int) -> float:
    """Return the mean recall of the chosen questions."""
    return round(recall([questions[at] for at in chosen], [found[at] for at in chosen], depth), 4)


def recall(questions: Sequence[Asked], found: Sequence[Sequence[str]], depth: int) -> float:
    """Return the mean recall."""
    return statistics.mean(asked.recall(each, depth) for asked, each in zip(questions, found, strict=True))


def missed(questions: Sequence[Asked], rankings: Rankings) -> Iterator[dict[str, Any]]:
    """Yield each supporting passage outside of HGMem's first ten, with its rank by each method (from 1)."""
    for at, asked in enumerate(questions):
        for title in sorted(asked.supporting.difference(rankings["hgmem"][at][:DEPTH])):
            places = {name: found[at].index(title) + 1 for name, found in rankings.items() if title in found[at]}
            yield {"question": asked.text, "at": at, "kind": asked.kind, "title": title, "found_at": places}


if __name__ == "__main__":
    main()
