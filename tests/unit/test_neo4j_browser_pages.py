"""Parts of `hgmem browser` without a browser: link, favourites, guide, and their server."""

import http.client
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from histories import history

from hgmem import Memory
from hgmem.errors import DocumentError, GraphError, UsageError
from hgmem.graph.database import Address
from hgmem.graph.painting import Pictured
from hgmem.graph.server import link
from hgmem.memory.browser.favourites import Favourite, check_captions, favourite_fault, favourites
from hgmem.memory.browser.guide import guide, newest_merge
from hgmem.memory.browser.view import Drawing, browser_of, checked, origins, save, serving
from hgmem.values.built import BuiltKind
from hgmem.values.systems import SystemInfo

HOSTILE = "</pre><script>alert(1)</script>' OR true //\n{{style}}"
FAVOURITES = favourites()
SYSTEM = SystemInfo(name="hgmem", summary="Builds a memory.", continues=True)
EVERYTHING = Pictured(
    lives=((1, None),), births=(1, 2, 3), lineage=True, evidence=True, bridges=True, uncovered=True, overview=True
)


class Server:
    """A fake database with a server's settings."""

    def __init__(self, uri: str, **said: str) -> None:
        self.address = Address(uri=uri)
        self.said = said

    def run(self, name: str, /, names: list[str]) -> list[dict[str, str]]:
        assert name == "server_settings"
        if not self.said:
            raise GraphError("not allowed")
        given = {f"server.{key.replace('__', '.')}": value for key, value in self.said.items()}
        return [{"name": key, "value": value} for key, value in given.items() if key in names]


@pytest.mark.parametrize(
    ("uri", "said", "expected"),
    [
        ("bolt://127.0.0.1:7687", {"http__advertised_address": "127.0.0.1:7474"}, "http://127.0.0.1:7474/browser/"),
        ("bolt://db.local:7687", {"http__advertised_address": "localhost:7474"}, "http://db.local:7474/browser/"),
        ("bolt://db.local", {"http__advertised_address": "graph.example:80"}, "http://graph.example:80/browser/"),
        ("bolt://[::1]:7687", {"http__advertised_address": "localhost:7474"}, "http://[::1]:7474/browser/"),
    ],
)
def test_browser_is_where_the_server_says_seen_from_here(uri: str, said: dict[str, str], expected: str) -> None:
    assert browser_of(Server(uri, http__enabled="true", **said)) == expected  # type: ignore[arg-type]


def test_browser_goes_by_https_where_there_is_no_http() -> None:
    server = Server(
        "neo4j+s://db.local", http__enabled="false", https__enabled="true", https__advertised_address="localhost:7473"
    )
    assert browser_of(server) == "https://db.local:7473/browser/"  # type: ignore[arg-type]


def test_aura_is_looked_at_in_the_hosted_browser() -> None:
    assert browser_of(Server("neo4j+s://abc.databases.neo4j.io")) == "https://browser.neo4j.io"  # type: ignore[arg-type]


@pytest.mark.parametrize("said", [{}, {"http__enabled": "false", "https__enabled": "false"}])
def test_a_server_that_does_not_say_where_is_named_with_the_remedy(said: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"bolt://db\.local.*--browser"):
        browser_of(Server("bolt://db.local", **said))  # type: ignore[arg-type]


def test_the_link_names_server_user_database_and_guide_and_no_password() -> None:
    to = {"uri": "bolt://127.0.0.1:7687", "username": "ann@corp", "database": "sales"}
    parts = urlsplit(link("http://127.0.0.1:7474/browser/", **to, guide="http://localhost:1/guide.html"))
    assert parse_qs(parts.query) == {
        "dbms": ["bolt://ann%40corp@127.0.0.1:7687"],
        "db": ["sales"],
        "cmd": ["play"],
        "arg": ["http://localhost:1/guide.html"],
    }


@pytest.mark.parametrize("given", ["db:7474", "http://", "http://h:port/browser/", "ftp://h/", "", "http://h:0/"])
def test_an_address_that_is_none_is_named(given: str) -> None:
    with pytest.raises(UsageError, match="invalid Neo4j Browser address"):
        checked(given)


def test_an_address_is_taken_without_what_a_link_adds() -> None:
    assert checked("https://h:7473/browser/?x=1#y") == "https://h:7473/browser/"


def test_a_browser_of_this_machine_goes_by_several_names() -> None:
    assert origins("http://127.0.0.1:7474/browser/") >= {"http://localhost:7474", "http://127.0.0.1:7474"}
    assert origins("https://browser.neo4j.io") == {"https://browser.neo4j.io"}


@pytest.mark.parametrize("one", FAVOURITES.values(), ids=FAVOURITES)
def test_a_favourite_begins_with_its_title_and_names_its_parameters(one: Favourite) -> None:
    first, second, *_ = one.text.splitlines()
    assert first.startswith("// ")
    assert 4 < len(one.title) < 100
    named = tuple(re.findall(r":param (\w+) =>", second))
    assert sorted(named) == sorted(one.parameters)
    assert one.parameters == () or "memory" in one.parameters
    filled = one.filled(memory="m1", other="m2", since=1, step=2, point="")
    assert "$" not in filled


def test_values_stay_within_their_quotes() -> None:
    one = replace(FAVOURITES["bridges"], query="RETURN $memory")
    assert one.filled(memory='a\'b\\c\n"d"') == "RETURN 'a\\'b\\\\c\\n\"d\"'"


def test_the_guide_walks_through_each_step() -> None:
    memory = history(points=12, steps=3).memory
    text = guide(memory, EVERYTHING, style="http://localhost:1/hgmem.grass", system=SYSTEM)
    blocks = [unescape(block) for block in re.findall(r'runnable">(.*?)</pre>', text, re.DOTALL)]
    assert 3 <= text.count("<slide") <= 6
    assert ":style http://localhost:1/hgmem.grass" in blocks
    for step in (1, 2, 3):
        assert any(f"p.born <= {step} " in block for block in blocks)
    assert any(newest_merge(memory) in block for block in blocks)
    assert "{{" not in text


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (replace(history().memory, answers=()), "Each step of the investigation is stored"),
        (replace(history().memory, steps=(), points=(), status="pruned"), "This memory was pruned"),
        (replace(history().memory, steps=(), points=(), answers=(), status="running"), "has no steps yet"),
    ],
    ids=["unanswered", "pruned", "empty"],
)
def test_a_memory_that_lacks_something_has_a_guide_too(memory: Memory, said: str) -> None:
    text = guide(memory, EVERYTHING if memory.points else Pictured(), style="x", system=SYSTEM)
    slides = 3 + bool(memory.steps) + bool(memory.points) + bool(memory.answers)
    assert text.count("<slide") == text.count("</slide>") == slides
    assert f"{slides} slides walk through it" in text
    assert said in text
    assert ("--continue" in text) == (memory.status != "pruned")


def test_text_of_documents_is_no_markup_in_the_guide() -> None:
    text = guide(history(text=HOSTILE).memory, EVERYTHING, style="x", system=SYSTEM)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.fixture
def served() -> Iterator[tuple[str, int]]:
    texts = {"guide.html": "<p>ü</p>"}
    with serving(lambda _: texts, origins=frozenset({"http://localhost:7474"})) as address:
        yield address, int(address.rpartition(":")[2])


def asked(port: int, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def test_the_texts_are_for_browser_alone(served: tuple[str, int]) -> None:
    address, port = served
    got = asked(port, "GET", "/guide.html?x=1", Host=f"localhost:{port}", Origin="http://localhost:7474")
    assert (got.status, got.read().decode()) == (200, "<p>ü</p>")
    assert got.headers["Access-Control-Allow-Origin"] == "http://localhost:7474"
    stranger = asked(port, "GET", "/guide.html", Host=f"localhost:{port}", Origin="http://evil.example")
    assert stranger.headers["Access-Control-Allow-Origin"] is None
    assert asked(port, "GET", "/guide.html", Host=f"evil.example:{port}").status == 404  # DNS rebinding
    assert asked(port, "GET", "/../etc/passwd", Host=f"localhost:{port}").status == 404
    before = asked(port, "OPTIONS", "/guide.html", Origin="http://localhost:7474")
    assert (before.status, before.headers["Access-Control-Allow-Private-Network"]) == (204, "true")
    assert address == f"http://localhost:{port}"


def test_a_port_that_is_taken_is_named(served: tuple[str, int]) -> None:
    with (
        pytest.raises(UsageError, match=f"port {served[1]} cannot be used"),
        serving(lambda _: {}, origins=frozenset(), port=served[1]),
    ):
        pass


def test_after_the_block_nothing_is_served() -> None:
    with serving(lambda _: {}, origins=frozenset()) as address:
        pass
    with pytest.raises(ConnectionRefusedError):
        asked(int(address.rpartition(":")[2]), "GET", "/")


def test_style_and_favourites_are_saved_to_import_them_by_hand(tmp_path: Path) -> None:
    saved = save(tmp_path / "browser", Drawing())
    assert saved[0].name == "hgmem.grass"
    assert len(saved) == 1 + len(FAVOURITES)
    assert all(path.read_text(encoding="utf-8").strip() for path in saved)
    (tmp_path / "file").write_text("")
    with pytest.raises(DocumentError, match="cannot write"):
        save(tmp_path / "file", Drawing())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("// Topics\nMATCH (t {corpus: $corpus}) SET t.seen = true RETURN t", "has 'SET': only read in it"),
        ("// Topics\nMATCH (t {corpus: $corpus}) detach delete t", "has 'detach': only read in it"),
        ("// Topics\nCALL apoc.cypher.doIt($corpus, {})", "has 'CALL apoc': only read in it"),
        ("// Topics\nMATCH (t:Topic) RETURN t", "uses neither $corpus nor $memory: start from one of them"),
        (
            "// Topics\nMATCH (t {corpus: $corpus, step: $step}) RETURN t",
            "uses $step: use $corpus and $memory alone",
        ),
        ("// Topics\nMATCH (t {corpus: $corpus}) RETURN t; MATCH (n) RETURN n", "has more than one statement"),
        ("MATCH (t {corpus: $corpus}) RETURN t", "has no title: begin it with one as a comment"),
    ],
)
def test_what_is_wrong_with_a_favourite_of_a_system_is_told(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "topics.cypher"
    path.write_text(text, encoding="utf-8")
    assert favourite_fault(Favourite.read(path)).startswith(why)


def test_words_in_texts_and_names_of_a_favourite_are_no_clauses(tmp_path: Path) -> None:
    path = tmp_path / "2-topics.cypher"
    path.write_text(
        "// Topics that someone may set\n// :param corpus => 'c'\nMATCH (t:Topic {corpus: $corpus}) // merge\n"
        "WHERE t.set <> 'DELETE' AND t.`create` IS NULL\nCALL (t) { MATCH (t)--(c:Chunk) RETURN c }\nRETURN t, c;\n"
    )
    assert favourite_fault(Favourite.read(path)) == ""
    assert Favourite.read(path).name == "topics"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (BuiltKind(name="Topic", caption="my text"), "the caption 'my text' of kind 'Topic' is not the name"),
        (BuiltKind(name="Topic", colour="red"), "invalid colour 'red' of kind 'Topic': use, for example, '#7FB069'"),
    ],
)
def test_a_caption_that_no_style_can_have_is_refused(kind: BuiltKind, why: str) -> None:
    with pytest.raises(UsageError, match=f"^{why}"):
        check_captions([kind])
