"""Questions limited to some documents, chosen by source, title and metadata before the search."""

import json
from collections.abc import Callable, Iterator

import pytest
from dumping import driver
from typer.testing import CliRunner

from hgmem import Answer, Document, HGMem, Settings, UsageError
from hgmem.cli import app
from hgmem.evaluation.asking import Prompts

Open = Callable[..., HGMem]

DOCUMENTS = (
    Document(
        id="log",
        title="Log of the Aurora",
        source="/ships/aurora.txt",
        metadata={"year": 1921, "draft": False},
        text="Captain Rhee commands the ferry Aurora of the Nordhavn Line.\n\nRhee sold its bell to Doctor Moe.",
    ),
    Document(
        id="letter",
        title="A letter",
        source="/letters/moe.txt",
        metadata={"year": "1922", "author": "Moe"},
        text="Doctor Moe keeps the bell of the Aurora in Nordhavn.\n\nMoe owes Captain Rhee ten crowns.",
    ),
    Document(
        id="ledger",
        title="Ledger",
        source="/letters/ledger.txt",
        metadata={"year": 1922, "author": "Lind"},
        text="The Nordhavn Line paid Captain Rhee forty crowns.\n\nOlga Lind wrote the ledger of the Nordhavn Line.",
    ),
)
QUESTION = "What became of the bell of the Aurora?"


@pytest.fixture
def harbour(client: HGMem) -> Iterator[HGMem]:
    """A client whose corpus has three documents that share entities."""
    client.add(DOCUMENTS)
    yield client
    client.delete()


def sources(client: HGMem, answer: Answer, settings: Settings) -> set[str]:
    """Return the ids of all documents that the answer's steps and citations use."""
    chunks = {hit.uid for step in answer.steps for one in step.retrieved for hit in one.chunks}
    chunks |= {citation.chunk for citation in answer.citations}
    chunks |= {chunk for point in answer.points for chunk in point.chunks}
    with driver(settings) as opened:
        rows = opened.execute_query(
            "MATCH (c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT]->(d) WHERE c.uid IN $chunks RETURN d.title AS title",
            corpus=client.corpus,
            chunks=sorted(chunks),
        ).records
    titles = {document.title: document.id for document in DOCUMENTS}
    return {titles[row["title"]] for row in rows}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"source": "/letters/moe.txt"}, {"letter"}),
        ({"source": "/letters/*"}, {"letter", "ledger"}),
        ({"source": "moe.txt"}, {"letter"}),
        ({"document": ["letter", "log"]}, {"letter", "log"}),
        ({"title": "Ledger"}, {"ledger"}),
        ({"year": 1922}, {"letter", "ledger"}),
        ({"year": "1922", "author": ["Lind", "Doyle"]}, {"ledger"}),
        ({"year": [1921, 1922]}, {"log", "letter", "ledger"}),
        ({"draft": False}, {"log"}),
        ({}, {"log", "letter", "ledger"}),
    ],
)
@pytest.mark.parametrize("system", ["hgmem", "naive"])
def test_a_question_draws_on_the_chosen_documents_alone(
    harbour: HGMem, settings: Settings, system: str, filters: dict[str, object], wanted: set[str]
) -> None:
    answer = harbour.ask(QUESTION, system=system, filters=filters)
    found = sources(harbour, answer, settings)

    assert found
    assert found <= wanted
    if len(wanted) < 3 or system == "naive":
        assert found == wanted


@pytest.mark.parametrize("system", ["hgmem", "hgmem/paper", "hgmem/code", "remindrag", "memorag", "hybrid"])
def test_no_prompt_shows_what_other_documents_say_of_a_thing_that_both_name(harbour: HGMem, system: str) -> None:
    prompts = Prompts()
    name, _, recipe = system.partition("/")
    if name == "remindrag":
        harbour.build("gists")
        harbour.build("remindrag")
    only = {"title": "Log of the Aurora"}
    settings = {"memory": "none"} if name == "memorag" else {}
    harbour.ask(QUESTION, system=name, recipe=recipe or None, settings=settings, filters=only, watcher=prompts)
    shown = "\n".join(text for _, text in prompts.found)
    assert "sold its bell" in shown
    for other in ("keeps the bell", "ten crowns", "forty crowns", "wrote the ledger"):
        assert other not in shown


def test_entities_and_relations_without_a_chunk_that_counts_are_not_found(harbour: HGMem, settings: Settings) -> None:
    wide = {"retrieval.entities": 5, "retrieval.relations": 5}
    answer = harbour.ask(
        "Who is Olga Lind, and what did the Nordhavn Line pay?", filters={"title": "Log*"}, settings=wide
    )
    named = {hit.name for step in answer.steps for one in step.retrieved for hit in one.entities}
    related = [hit.uid for step in answer.steps for one in step.retrieved for hit in one.relations]
    with driver(settings) as opened:
        rows = opened.execute_query(
            "MATCH ()-[r:RELATES {corpus: $corpus}]->() WHERE r.uid IN $uids "
            "RETURN COLLECT { UNWIND r.chunks AS uid MATCH (:Chunk {uid: uid})-->(d) RETURN d.title } AS titles",
            corpus=harbour.corpus,
            uids=related,
        ).records

    assert named
    assert "Olga Lind" not in named
    assert rows
    assert all("Log of the Aurora" in row["titles"] for row in rows)


def test_words_are_searched_within_the_chosen_documents(open_client: Open) -> None:
    client = open_client()
    client.add([Document(id=f"d{n}", text=f"The bell rang twice in harbour number {n}.") for n in range(300)])
    client.add(Document(id="last", text="The bell rang twice and then it fell.", metadata={"kind": "last"}))
    answer = client.ask("Which bell rang twice?", steps=1, filters={"kind": "last"})

    assert len(answer.steps[0].retrieved[0].chunks) == 1
    assert answer.citations[0].quote == "The bell rang twice and then it fell."
    client.delete()


def test_a_memory_keeps_its_filters_until_others_are_given(harbour: HGMem, settings: Settings) -> None:
    first = harbour.ask(QUESTION, steps=1, filters={"source": "/letters/*"})
    second = harbour.ask("Who is Rhee?", memory=first.memory, steps=1)
    third = harbour.ask("Who commands the Aurora?", memory=first.memory, steps=1, filters={})
    stored = harbour.memory(first.memory)

    assert [step.filters for step in stored.steps] == [{"source": ("/letters/*",)}] * 2 + [{}]
    assert sources(harbour, second, settings) <= {"letter", "ledger"}
    assert "log" in sources(harbour, third, settings)


def test_documents_that_do_not_count_are_not_cited_from_older_points(harbour: HGMem, settings: Settings) -> None:
    first = harbour.ask(QUESTION, steps=2)
    answer = harbour.ask("What became of the bell?", memory=first.memory, steps=1, filters={"author": "Moe"})

    assert answer.citations
    assert {citation.title for citation in answer.citations} == {"A letter"}


@pytest.mark.parametrize("system", ["hgmem", "naive"])
def test_a_filter_that_no_document_fits_is_refused_with_the_values_there_are(harbour: HGMem, system: str) -> None:
    with pytest.raises(UsageError) as error:
        harbour.ask(QUESTION, filters={"author": ["Nobody", "No*"], "year": 1900}, system=system)

    assert str(error.value) == (
        f"no document of corpus {harbour.corpus!r} has author 'No*' or 'Nobody' and year '1900': "
        "the values of author are 'Lind', 'Moe'; the values of year are '1921', '1922'. "
        "`*` matches any text, as in 'rep*'"
    )
    with pytest.raises(UsageError, match="the values of document are 'ledger', 'letter', 'log'"):
        harbour.ask(QUESTION, filters={"document": "lettre"}, system=system)
    with pytest.raises(UsageError, match="has author 'Moe' and year '1921': each is found, but in no one document"):
        harbour.ask(QUESTION, filters={"author": "Moe", "year": 1921}, system=system)
    assert harbour.memories() == []


def test_a_memory_whose_documents_are_gone_is_continued_from_what_it_holds(harbour: HGMem) -> None:
    first = harbour.ask(QUESTION, steps=1, filters={"author": "Moe"})
    for gone in ("letter", "ledger"):  # the latter alone has still the name
        harbour.delete(document=gone)
        answer = harbour.ask(f"Who is Rhee, without the {gone}?", memory=first.memory, steps=1)
        assert (answer.status, answer.citations) == ("answered", ())


def test_a_name_that_no_document_has_is_refused_before_anything_is_written(harbour: HGMem) -> None:
    with pytest.raises(UsageError, match=r"'auther'.*author, document, draft, source, title, year"):
        harbour.ask(QUESTION, filters={"auther": "Moe"})
    assert harbour.memories() == []


def test_the_command_line_takes_filters(harbour: HGMem, environment: dict[str, str]) -> None:
    def ask(*where: str) -> tuple[int, str, str]:
        given = ["ask", QUESTION, "-c", harbour.corpus, "--steps", "1", "--json", *where]
        done = CliRunner().invoke(app, given, env=environment)
        return done.exit_code, done.stdout, done.stderr

    code, out, _ = ask("--where", "author=Moe", "--where", "author=Lind", "--where", "year=1922")
    answer = json.loads(out)
    assert code == 0
    assert answer["steps"][0]["filters"] == {"author": ["Lind", "Moe"], "year": ["1922"]}
    assert {citation["title"] for citation in answer["citations"]} <= {"A letter", "Ledger"}
    code, out, error = ask("--where", "author")
    assert (code, out) == (1, "")
    assert "KEY=VALUE" in error
