"""The systems bm25 and hybrid: exact ranks from what the corpus alone holds, for words of any script."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from hgmem import Conversation, Document, HGMem, Message, UsageError
from hgmem.graph.database import Database
from hgmem.graph.full_text import MOST_DOCUMENTS, Ranking, worded_chunks
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.document_filters import choose
from hgmem.text.stems import stored_stems

TEXTS = {
    "bell": "The bell of the Aurora hangs in Nordhavn. The bell is old.",
    "ferry": "Captain Rhee steers the ferry Aurora to the harbour every day but Sunday, and rings for fog.",
    "party": "A party of guests came late.",
    "art": "Art lessons are dear to a party.",
}
K1, B = 1.5, 0.75


def documents(texts: Mapping[str, str]) -> list[Document]:
    return [Document(id=name, title=name, text=text) for name, text in texts.items()]


def found(client: HGMem, question: str, *, system: str = "bm25", **asking: object) -> list[tuple[str, float]]:
    """Return the titles and scores of the chunks that a question retrieves, best first."""
    answer = client.ask(question, system=system, answer=False, **asking)
    scores = {hit.uid: hit.score for hit in answer.steps[0].retrieved[0].chunks}
    titles = {one.chunk.uid: one.chunk.title for one in client.passages(answer.memory)}
    return [(titles[uid], score) for uid, score in scores.items()]


def by_hand(times: Mapping[str, Sequence[int]], *, k1: float = K1, b: float = B) -> dict[str, float]:
    """Return BM25 by the book: `times` is how often each text holds each word."""
    lengths = {name: len(stored_stems(text, "en")) for name, text in TEXTS.items() if name in times}
    usual = sum(lengths.values()) / len(lengths)
    scores = dict.fromkeys(times, 0.0)
    for at in range(len(next(iter(times.values())))):
        holding = sum(1 for each in times.values() if each[at])
        weight = math.log(1 + (len(TEXTS) - holding + 0.5) / (holding + 0.5))
        for name, each in times.items():
            scores[name] += weight * each[at] / (each[at] + k1 * (1 - b + b * lengths[name] / usual)) if each[at] else 0
    return scores


@pytest.fixture
def harbour(client: HGMem) -> HGMem:
    client.add(documents(TEXTS))
    return client


@pytest.mark.parametrize(("k1", "b"), [(K1, B), (0.0, B), (2.0, 0.0), (1.2, 1.0)])
def test_chunks_have_the_scores_of_bm25(harbour: HGMem, k1: float, b: float) -> None:
    scope = Scope(corpus=harbour.corpus, memory="", documents=None)
    ranking = Ranking(k=10, k1=k1, b=b, titles=False)
    ranked = worded_chunks(harbour._database, scope=scope, text="Which bell does the Aurora have?", ranking=ranking)
    scores = {chunk.title: score for chunk, score in ranked}

    wanted = by_hand({"bell": (2, 1), "ferry": (0, 1)}, k1=k1, b=b)
    assert scores == pytest.approx(wanted)
    assert list(scores) == ["bell", "ferry"]
    if (k1, b) == (K1, B):  # those of the systems
        alone = dict(found(harbour, "Which bell does the Aurora have?", settings={"titles": False}))
        assert scores == alone


@pytest.mark.parametrize("system", ["bm25", "hybrid", "hgmem", "hypermem", "memorag", "remindrag"])
def test_titles_that_are_off_count_in_no_search_of_chunks(
    client: HGMem, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [Message("Ann", text, f"2024-03-01T09:0{at}") for at, text in enumerate(TEXTS.values())]
    client.add([Conversation(id="talk", title="Aurora", messages=said)])
    if system in ("hypermem", "remindrag"):
        client.build(system)
    run, counted = Database.run, []

    def recorded(self: Database, name: str, /, **parameters: Any) -> Any:
        if "ranking" in parameters and any(layer["kind"] == "" for layer in parameters["layers"]):
            counted.append(parameters["ranking"]["titles"])
        return run(self, name, **parameters)

    monkeypatch.setattr(Database, "run", recorded)
    memory = {"memory": "none"} if system == "memorag" else {}
    off = {"retrieval.titles" if system == "hgmem" else "titles": False}
    answer = client.ask("Which bell does the Aurora have?", system=system, settings={**memory, **off})
    client.passages(answer.memory)
    assert set(counted) == {False}


def test_a_word_within_another_is_not_counted(harbour: HGMem) -> None:
    assert dict(found(harbour, "art", settings={"titles": False})) == pytest.approx(by_hand({"art": (1,)}))


@pytest.mark.parametrize("system", ["bm25", "hybrid"])
def test_what_another_corpus_holds_changes_no_score(
    open_client: Callable[..., HGMem], harbour: HGMem, system: str, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(harbour, "the bell of the Aurora", system=system)
    other = open_client(corpus=f"{corpus}x")
    other.add(documents({f"{name}{at}": f"{text} bell bell" for name, text in TEXTS.items() for at in range(30)}))

    assert found(harbour, "the bell of the Aurora", system=system) == before
    monkeypatch.setattr(f"hgmem.systems.{system}.Ranking", partial(Ranking, over=3))
    assert found(harbour, "the bell of the Aurora", system=system) == before


@pytest.mark.parametrize("system", ["bm25", "hybrid"])
def test_with_filters_other_documents_are_neither_found_nor_counted(harbour: HGMem, system: str) -> None:
    one = harbour.ask("Aurora", system=system, answer=False, filters={"title": "ferry"})

    assert [each.chunk.title for each in harbour.passages(one.memory)] == ["ferry"]
    if system == "bm25":
        score = one.steps[0].retrieved[0].chunks[0].score
        assert score == pytest.approx(math.log(1 + 0.5 / 1.5) / (1 + K1))  # the only chunk, of the usual length


@pytest.mark.slow
@pytest.mark.parametrize("scored", [None, 100])
def test_a_filter_of_many_documents_finds_and_counts_what_these_alone_hold(
    open_client: Callable[..., HGMem], client: HGMem, corpus: str, scored: int | None
) -> None:
    mine = {f"mine {at}": "The bell of this house rings at noon" for at in range(MOST_DOCUMENTS + 50)}
    mine |= {f"mine {at}": f"The clock of the bell tower is loud{' and old' * at}" for at in range(30)}
    others = {f"other {at}": "A clock, a bell" for at in range(250)}  # the index ranks short texts first
    client.add(documents(mine | others), graph=False)
    alone = open_client(corpus=f"{corpus}x")
    alone.add(documents(mine), graph=False)
    chosen = choose(client._database, {"title": ("mine *",)}, corpus=client.corpus).documents

    def best(one: HGMem, text: str, within: tuple[str, ...] | None = None) -> dict[str, float]:
        ranking = Ranking(k=20, over=200, scored=scored, titles=False)
        scope = Scope(corpus=one.corpus, documents=within)
        return {
            chunk.title: score for chunk, score in worded_chunks(one._database, scope=scope, text=text, ranking=ranking)
        }

    assert len(best(client, "clock", chosen)) == 20
    assert best(client, "clock", chosen) == pytest.approx(best(alone, "clock"))
    assert len(best(client, "bell", chosen)) == 20
    assert best(client, "clock bell", chosen).keys() == best(alone, "clock bell").keys()
    assert best(client, "clock", ()) == {}
    assert best(client, "guest", chosen) == {}


@pytest.mark.parametrize("system", ["bm25", "hybrid", "hgmem"])
def test_among_documents_of_one_title_the_words_of_their_texts_decide(client: HGMem, system: str) -> None:
    texts = [f"Item {at}: the board {'sold the bell' if at == 177 else 'met in its room'}." for at in range(250)]
    board = [Document(id=f"d{at}", title="Minutes of 3 May 1870", text=text) for at, text in enumerate(texts)]
    client.add(board, graph=False)
    answer = client.ask("Which minutes say that the board sold the bell?", system=system)
    first = client.passages(answer.memory)[0].chunk

    assert (first.title, first.date, first.text) == ("Minutes of 3 May 1870", "1870-05-03", texts[177])
    assert any("sold the bell" in citation.quote for citation in answer.citations)


@pytest.mark.parametrize(
    "question",
    ["bell AND NOT aurora", 'text:bell" OR (*:*', "bell~2 +layer_key:0 [a TO b] \\u0022 /.*/", "bell^9 && || !{}"],
)
def test_syntax_of_lucene_is_plain_words(harbour: HGMem, question: str) -> None:
    assert found(harbour, question)[0][0] == "bell"


@pytest.mark.parametrize("question", ["???", "…", "🦊", '+-&&||!(){}[]^"~*?:\\/'])
def test_a_question_without_words_finds_nothing_and_the_answer_says_so(harbour: HGMem, question: str) -> None:
    answer = harbour.ask(question, system="bm25")

    assert answer.steps[0].retrieved[0].chunks == ()
    assert answer.citations == ()
    assert "holds nothing" in answer.text


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Мельницу продал Иван.", "Кто продал мельницу?"),
        ("他卖掉了旧磨坊。", "谁卖掉了磨坊？"),
        ("昨日、水車小屋を売りました。", "水車小屋"),
        ("باع أحمد الطاحونة.", "من باع الطاحونة؟"),
        ("मोहन ने चक्की बेची।", "चक्की किसने बेची?"),
        ("Ο λόγος του Πέτρου ήταν σύντομος.", "Ποιος λόγος ήταν σύντομος;"),
        ("Die Straße führt nach Gießen.", "Welche Straße?"),
        ("יוסף מכר את הטחנה.", "מי מכר את הטחנה?"),
        ("그는 방앗간을 팔았다.", "방앗간을 누가 팔았다?"),
        ("เขาขายโรงสีเก่า", "ใครขายโรงสี"),
        ("The miller’s wife sold it at five o'clock.", "Which miller?"),
        ("The miller's wife sold it at five o'clock.", "the miller’s"),
        ("The miller's wife sold it at five o'clock.", "What happened at five o'clock?"),
    ],
)
def test_words_of_any_script_are_found(client: HGMem, text: str, question: str) -> None:
    client.add(documents({"it": text, "other": "Nothing else is told here."}))

    assert [title for title, _ in found(client, question)][:1] == ["it"]


def test_hybrid_adds_the_reciprocal_ranks_of_words_and_vector(harbour: HGMem) -> None:
    question = "Which bell does the Aurora have?"
    orders = [[title for title, _ in found(harbour, question, system=system)] for system in ("bm25", "naive")]

    fused = dict(found(harbour, question, system="hybrid"))

    assert fused == pytest.approx(
        {title: sum(1 / (60 + one.index(title) + 1) for one in orders if title in one) for title in TEXTS}
    )
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    assert len(found(harbour, question, system="hybrid", settings={"chunks": 2})) == 2


def test_hybrid_answers_a_question_without_words_by_its_vector(harbour: HGMem) -> None:
    assert [title for title, _ in found(harbour, "???", system="hybrid")] == [
        title for title, _ in found(harbour, "???", system="naive")
    ]


@pytest.mark.parametrize("wrong", [{"chunks": 0}, {"chunks": 10_001}, {"depth": 3}])
def test_options_out_of_range_or_unknown_are_refused(harbour: HGMem, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        harbour.ask("bell", system="bm25", settings=wrong)
