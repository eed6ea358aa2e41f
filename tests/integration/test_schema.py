"""Connecting and the schema: created once, compared each time, and the errors if this fails."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import LiteralString, cast

import neo4j
import pytest
from dumping import driver
from letters import QUESTION

from hgmem import HGMem
from hgmem.errors import GraphError, HGMemError, UsageError
from hgmem.graph.database import Address, Database, Row, _probe, connect, wrap_driver
from hgmem.graph.schema import creating, declared, differing, ensure_schema, missing, show_indexes
from hgmem.local import Server
from hgmem.settings import Settings

SECONDS = 10


def address(server: Server, **changed: str) -> Address:
    given = {"uri": server.uri, "username": server.username, "password": server.password.get_secret_value()}
    return Address(**{**given, **changed})


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A database whose schema is complete before and after."""
    opened = connect(address(server), connect_timeout=5, statement_timeout=60)
    ensure_schema(opened)
    yield opened
    ensure_schema(opened)
    opened.close()


@pytest.fixture
def session(settings: Settings) -> Iterator[neo4j.Session]:
    with driver(settings) as opened, opened.session() as session:
        yield session


# The schema -----------------------------------------------------------------------------------------------------


def test_everything_declared_is_there_and_online(database: Database, session: neo4j.Session) -> None:
    found = show_indexes(database)
    assert missing(found) == []
    assert differing(found) == []
    assert {found[name.removeprefix("create_")]["state"] for name in creating()} == {"ONLINE"}
    constraints = {row["name"]: row["type"] for row in session.run("SHOW CONSTRAINTS")}
    assert {name for name in constraints if f"create_{name}" in creating()} == {
        name.removeprefix("create_") for name in creating() if name.endswith(("_uid", "_name", "_hash"))
    }


def test_vector_indexes_filter_by_corpus_in_full_precision(database: Database) -> None:
    found = show_indexes(database)
    vectors = {name: found[name] for name, one in declared().items() if one.type == "VECTOR"}
    assert len(vectors) == 7
    learnt = {"learning_vector", "trail_vector"}
    for name, row in vectors.items():
        config = row["options"]["indexConfig"]
        assert row["properties"][:2] == ["vector" if name in learnt else "embedding", "corpus"]
        assert config["vector.quantization.type"] == "NONE"
        assert config["vector.similarity_function"] == "COSINE"
        assert "vector.dimensions" not in config
    texts = {name: found[name] for name, one in declared().items() if one.type == "FULLTEXT"}
    assert {name: row["properties"] for name, row in texts.items()} == {"words": ["layer_key", "document", "stems"]}
    assert texts["words"]["options"]["indexConfig"]["fulltext.analyzer"] == "whitespace"


def test_a_second_time_changes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = database.run

    def noted(name: str, /, **parameters: object) -> list[Row]:
        ran.append(name)
        return run(name, **parameters)

    before = show_indexes(database)
    monkeypatch.setattr(database, "run", noted)
    ensure_schema(database)
    assert ran == ["show_indexes"]
    assert show_indexes(database) == before


def test_what_is_missing_is_made_again(database: Database, session: neo4j.Session) -> None:
    session.run("DROP INDEX words").consume()
    session.run("DROP CONSTRAINT answer_uid").consume()
    assert missing(show_indexes(database)) == ["answer_uid", "words"]
    ensure_schema(database)
    assert missing(show_indexes(database)) == []


def test_many_that_find_it_missing_at_once_make_it_together(server: Server, database: Database) -> None:
    names = [name.removeprefix("create_") for name in creating() if name.endswith("_corpus")]
    opened = [connect(address(server), connect_timeout=5, statement_timeout=60) for _ in range(8)]
    ready = threading.Barrier(len(opened))

    def make(one: Database) -> None:
        ready.wait()
        ensure_schema(one)

    for _ in range(3):
        for name in names:
            database._driver.execute_query(cast("LiteralString", f"DROP INDEX {name}"))
        with ThreadPoolExecutor(len(opened)) as pool:
            list(pool.map(make, opened))
        assert missing(show_indexes(database)) == []
    for one in opened:
        one.close()


PLAIN = "OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}}"
SEARCHED = "[n.layer_key, n.document, n.stems]"
BLANKS = "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}"
DIFFERENT = {
    "other filters": ("point_embedding", f"VECTOR INDEX point_embedding FOR (n:MemoryPoint) ON n.embedding {PLAIN}"),
    "quantized": (
        "chunk_embedding",
        "VECTOR INDEX chunk_embedding FOR (n:Chunk) ON n.embedding WITH [n.corpus, n.document, n.uid]",
    ),
    "of fixed dimension": (
        "chunk_embedding",
        "VECTOR INDEX chunk_embedding FOR (n:Chunk) ON n.embedding WITH [n.corpus, n.document, n.uid] "
        + PLAIN.replace("'none'", "'none', `vector.dimensions`: 64"),
    ),
    "by another distance": (
        "relation_embedding",
        "VECTOR INDEX relation_embedding FOR ()-[r:RELATES]-() ON r.embedding WITH [r.corpus, r.memory, r.uid] "
        + PLAIN.replace("cosine", "euclidean"),
    ),
    "of a node": ("relation_embedding", f"VECTOR INDEX relation_embedding FOR (n:Other) ON n.embedding {PLAIN}"),
    "without the layer": ("words", f"FULLTEXT INDEX words FOR (n:Chunk|Built) ON EACH [n.document, n.stems] {BLANKS}"),
    "by another analyzer": ("words", f"FULLTEXT INDEX words FOR (n:Chunk|Built) ON EACH {SEARCHED}"),
    "of one label": ("words", f"FULLTEXT INDEX words FOR (n:Chunk) ON EACH {SEARCHED} {BLANKS}"),
    "of another label": ("step_corpus", "INDEX step_corpus FOR (n:Other) ON (n.corpus)"),
    "of another property": ("step_corpus", "INDEX step_corpus FOR (n:Step) ON (n.number)"),
    "not text": ("words", "INDEX words FOR (n:Chunk) ON (n.position)"),
}


@pytest.mark.parametrize("how", DIFFERENT)
def test_an_index_of_the_same_name_that_is_different_is_refused_by_name(
    database: Database, session: neo4j.Session, how: str
) -> None:
    name, definition = DIFFERENT[how]
    session.run(f"CYPHER 25 DROP INDEX {name}").consume()
    session.run(f"CYPHER 25 CREATE {definition}").consume()
    try:
        with pytest.raises(
            GraphError, match=rf"index '{name}' exists with different options.*DROP INDEX {name}"
        ) as raised:
            ensure_schema(database)
        assert "\n" not in str(raised.value)
        assert differing(show_indexes(database)) == [name]
    finally:
        session.run(f"CYPHER 25 DROP INDEX {name}").consume()
        ensure_schema(database)


def test_a_uid_that_is_not_unique_is_refused_by_name(database: Database, session: neo4j.Session) -> None:
    session.run("DROP CONSTRAINT answer_uid").consume()
    session.run("CREATE INDEX answer_uid FOR (n:Answer) ON (n.uid)").consume()
    try:
        with pytest.raises(GraphError, match=r"'answer_uid'|statement 'create_answer_uid'"):
            ensure_schema(database)
        assert differing(show_indexes(database)) == ["answer_uid"]
    finally:
        session.run("DROP INDEX answer_uid").consume()
        ensure_schema(database)


def test_a_constraint_on_something_else_is_refused_by_name(database: Database, session: neo4j.Session) -> None:
    session.run("DROP CONSTRAINT answer_uid").consume()
    session.run("CREATE CONSTRAINT answer_uid FOR (n:Other) REQUIRE n.uid IS UNIQUE").consume()
    try:
        with pytest.raises(GraphError, match=r"constraint 'answer_uid' exists with different options.*DROP CONSTRAINT"):
            ensure_schema(database)
    finally:
        session.run("DROP CONSTRAINT answer_uid").consume()
        ensure_schema(database)


def test_an_index_that_is_missing_is_all_that_a_check_finds(letters: Callable[..., HGMem]) -> None:
    client = letters()
    client.ask(QUESTION)
    client._database._driver.execute_query("DROP INDEX words")
    try:
        found = client.check()
    finally:
        ensure_schema(client._database)
    assert [(one.name, one.uids) for one in found.findings] == [("schema", ("words",))]


# Connecting -----------------------------------------------------------------------------------------------------


class Old(Database):
    """A server of some version."""

    def __init__(self, version: str) -> None:
        self.address = Address(uri="bolt://old")
        self._version = version

    def run(self, name: str, /, **parameters: object) -> list[Row]:
        assert name == "server_version"
        return [{"version": self._version, "edition": "community"}]


class Reachable(neo4j.Driver):
    """A driver that can connect."""

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass

    def verify_connectivity(self, **config: object) -> None:
        pass


@pytest.mark.parametrize("version", ["5.26.31", "4.4.0", "2025.12.1", "2026.08.0"])
def test_a_server_below_the_floor_is_refused_in_one_line(version: str) -> None:
    with pytest.raises(GraphError) as raised:
        _probe(Old(version), Reachable())
    said = str(raised.value)
    assert "\n" not in said
    assert version in said
    assert "2026.09 or newer" in said
    assert "hgmem up" in said


@pytest.mark.parametrize("version", ["2026.09.0", "2026.9", "2026.10.1", "2027.01.0-rc1"])
def test_a_server_at_or_above_the_floor_is_taken(version: str) -> None:
    old = Old(version)
    _probe(old, Reachable())
    assert (old.version, old.edition) == (version, "community")


def refused(address: Address) -> str:
    """Return the one-line error of a connection that fails within seconds."""
    began = time.monotonic()
    with pytest.raises(HGMemError) as raised:
        connect(address, connect_timeout=2, statement_timeout=60)
    assert time.monotonic() - began < SECONDS
    said = str(raised.value)
    assert "\n" not in said
    return said


def test_a_wrong_password_is_said_and_not_repeated(server: Server) -> None:
    said = refused(address(server, password="wrong-password"))
    assert f"{server.uri!r} rejected the credentials of user 'neo4j'" in said
    assert "NEO4J_PASSWORD" in said
    assert "wrong-password" not in said


def test_an_unknown_database_is_named(server: Server) -> None:
    assert "no database 'elsewhere'" in refused(address(server, database="elsewhere"))


def test_a_server_that_is_not_there_is_said_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"bolt://127.0.0.1:{free.getsockname()[1]}"
    said = refused(Address(uri=uri, password="x"))
    assert repr(uri) in said
    assert "hgmem up" in said


def test_a_port_that_never_answers_is_given_up_within_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"bolt://127.0.0.1:{silent.getsockname()[1]}"
        assert repr(uri) in refused(Address(uri=uri, password="x"))


@pytest.mark.parametrize("uri", ["http://127.0.0.1:7474", "127.0.0.1:7687", "", "postgres://x", "bolt://"])
def test_an_address_that_is_none_of_neo4js_is_refused_by_name(uri: str) -> None:
    said = refused(Address(uri=uri, password="x"))
    assert repr(uri) in said


def test_a_port_that_is_no_number_is_refused() -> None:
    assert "bolt://127.0.0.1:x" in refused(Address(uri="bolt://127.0.0.1:x", password="x"))


def test_a_port_that_speaks_something_else_is_said_within_seconds(server: Server) -> None:
    uri = server.http.replace("http", "bolt")
    assert repr(uri) in refused(address(server, uri=uri))


def test_a_bad_address_is_the_callers_to_change() -> None:
    with pytest.raises(UsageError, match="bolt://host:7687"):
        connect(Address(uri="http://127.0.0.1:7474"), connect_timeout=1, statement_timeout=1)


def test_a_callers_driver_is_used_and_left_open(settings: Settings, corpus: str) -> None:
    with driver(settings) as own:
        client = HGMem.open(corpus, driver=own, embedding_model="deterministic")
        assert isinstance(client.corpora(), list)
        client.close()
        own.verify_connectivity()
        database = wrap_driver(own, database=None, statement_timeout=10)
        assert database.version.startswith("20")
        database.close()
        own.verify_connectivity()
