"""Tests of the statements: one caller each, parameters, limits to the corpus, and plans without scans."""

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest
from planning import forced

import hgmem
from hgmem import HGMem
from hgmem.corpus.aggregation import ENTITY, RELATION
from hgmem.corpus.checking import BROKEN
from hgmem.corpus.pruning import Age
from hgmem.corpus.reembedding import CLEARING, FILLINGS
from hgmem.errors import GraphError
from hgmem.graph.database import _statement
from hgmem.graph.memory import Lease
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.schema import OURS, SERVICE, creating
from hgmem.graph.statement_checks import NOISE, beside_the_corpus, fault
from hgmem.graph.statements import parse, statements
from hgmem.local import Server
from hgmem.memory.browser.favourites import Favourite, favourite_fault
from hgmem.systems.registry import installed
from hgmem.testing import DeterministicEmbedder
from hgmem.text.resources import resource

PACKAGE = Path(hgmem.__file__).parent
ALL = statements()
TENANTS = {name: statement for name, statement in ALL.items() if statement.mode != "schema"}

# Statements that need not name $corpus, each with its reason.
WITHOUT_CORPUS = {
    "corpora": "lists the tenants",
    "corpus_of": "finds the corpus of a uid by unique seek; every later statement then takes it",
    "create_names": "makes names known, of which data needs not exist",
    "server_settings": "touches no data",
    "server_version": "touches no data",
    **{name: "is of the service, which has no corpus" for name, one in ALL.items() if one.file == "service.cypher"},
    # Data of another program has no corpora; these statements exclude hgmem's data of all corpora.
    **dict.fromkeys(
        ("foreign_nodes", "foreign_documents", "foreign_chunks", "foreign_entities", "foreign_relations"),
        "reads a graph to adopt",
    ),
    **dict.fromkeys(("foreign_labels", "foreign_twice"), "says what there is to adopt"),
}
# Statements that match a :Memory of another owner too, each with its reason.
HOLDER = "the run that it names holds the lease, which `lease_memory` or `claim_old_memories` gave it"
WHOLE_CORPUS = "is of the whole corpus, which belongs to whoever operates the database"
FORKED = "copies from a memory that `begin_fork` has found for the same caller, in its transaction"
IMPORTED = "completes a memory of an archive that is being imported"
FOR_EVERY_OWNER = {
    **dict.fromkeys(("renew_memory", "release_memory", "write_step", "write_answer"), HOLDER),
    **dict.fromkeys(("empty_memories", "keep_answers", "delete_emptied"), HOLDER),
    "retrieve": "reads the points of the question's own memory, which its run holds",
    "scopes": "reads the points of the question's own memory, which its run holds",
    "pictured": "says what can be drawn of a memory that `find_memory` has found for the same caller",
    "count_corpus": "counts, and tells nothing of a memory",
    "delete_corpus_contents": "deletes the whole corpus",
    **dict.fromkeys(("memory_uids", "read_memory"), f"an archive {WHOLE_CORPUS}"),
    **dict.fromkeys(("leased_memories", "interrupt_memories"), f"re-embedding {WHOLE_CORPUS}"),
    **{name: f"a check {WHOLE_CORPUS}" for name, one in ALL.items() if one.file == "invariants.cypher"},
    **{name: IMPORTED for name, one in ALL.items() if one.file == "restoring.cypher"},
    **{
        name: FORKED
        for name, one in ALL.items()
        if one.file == "forking.cypher" and ":Memory" in one.text and name != "begin_fork"
    },
}
# Their names come with their first build.
OF_SYSTEMS = ("gists.cypher", "hypermem.cypher", "memorag.cypher", "remindrag.cypher")
# Statements that take the corpus and name a node beyond it, each with its reason.
BEYOND_THE_CORPUS = {
    **{name: ["(other)"] for name in ("crossings", "leaks")},  # they look for links to other corpora
    # Those with parts/names count the chunks that mention an entity, and read none of them.
    **{name: ["()"] for name in ("retrieve", "neighbours", "overview", "memory_points", "find_entities")},
    "list_things": ["()"] * 3,
    **{
        name: ["()"]
        for name in ("class_names", "classes_of_chunks", "mentioned_entities", "seeds", "starts", "replay", "ways")
    },
}
# Statements that run in a loop over their names, or are named in a table, with the parameters that the loop passes.
LOOPED = {
    **dict.fromkeys(creating(), ()),
    **dict.fromkeys(BROKEN, ("corpus", "most")),
    **dict.fromkeys(CLEARING, ("corpus", "most")),
    **dict.fromkeys(("stored_entities", "stored_relations"), ("corpus", "uids", "dimensions")),
    **dict.fromkeys(("indexed_entities", "indexed_relations"), ("corpus", "uids", "vector", "most")),
    **dict.fromkeys((filling.missing for _, filling in FILLINGS), ("corpus", "uids")),
    **dict.fromkeys((name for kind in (ENTITY, RELATION) for name in (kind.known, kind.read)), ("corpus", "uids")),
    **dict.fromkeys(
        (name for kind in (ENTITY, RELATION) for name in (kind.touch, kind.create, kind.write)), ("corpus", "rows")
    ),
}
# Values that are spread into the parameters of a call.
SPREAD = {"asdict(lease)": Lease, "asdict(age)": Age}
# Functions that run the statement whose name they are given: what they add to the keywords of a call, and take away.
RUNNERS: dict[str, tuple[set[str], set[str]]] = {
    "run": (set(), set()),
    "uids_of": (set(), set()),
    "by_uid": (set(), set()),
    "uids_by_kind": (set(), set()),
    "listing": ({"corpus", "after", "most"}, set()),
    "records": ({"corpus"}, set()),
    "vector_writer": ({"corpus", "rows"}, set()),
    "write_leased": (set(), set()),
    "write_held": ({"corpus", "uid", "run"}, set()),
    "_indexed": ({"corpus", "uids", "vector", "most"}, set()),
    "_rows_near": ({"corpus", "documents", "vector"}, set()),
}
SCANS = {  # allowed
    "corpora": ["NodeByLabelScan"],  # the one label scan that is allowed: of :Corpus
    "list_keys": ["NodeByLabelScan"],  # whoever lists keys wants all of them
}


# Callers --------------------------------------------------------------------------------------------------------


def callers() -> dict[str, list[frozenset[str]]]:
    """Return the parameters that each call of a statement passes, by the statement's name."""
    found: dict[str, list[frozenset[str]]] = {name: [] for name in ALL}
    for name, passed in LOOPED.items():
        found[name].append(frozenset(passed))
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = _run(call)
            if name in ALL:
                found[name].append(_passed(call))
    return found


def _runner(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _run(call: ast.Call) -> str | None:
    """Return the statement's name in `database.run(name, …)`, another method, or `runner(database, name, …)`."""
    if _runner(call) not in RUNNERS:
        return None
    named = [one.value for one in call.args[:2] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return named[0] if named else None


def _passed(call: ast.Call) -> frozenset[str]:
    passed = set()
    for keyword in call.keywords:
        if keyword.arg is None:
            spread = SPREAD.get(ast.unparse(keyword.value))
            assert spread, f"only {', '.join(SPREAD)} may be spread into parameters"
            passed |= {field.name for field in dataclasses.fields(spread)}
        else:
            passed.add(keyword.arg)
    added, taken = RUNNERS[_runner(call)]
    return frozenset((passed | added) - taken)


CALLERS = callers()


def test_there_is_something_to_check() -> None:
    assert len(ALL) > 200
    assert len([one for one in ALL.values() if one.mode == "write" and "run" in one.parameters]) > 10


def test_a_statement_is_run_in_one_place() -> None:
    assert {name: len(found) for name, found in CALLERS.items() if len(found) != 1} == {}


def test_a_call_passes_exactly_the_parameters() -> None:
    assert {name: found for name, found in CALLERS.items() if found != [frozenset(ALL[name].parameters)]} == {}


def test_a_write_locks_what_is_claimed_before_it_looks_who_holds_it() -> None:
    writes = [one for one in ALL.values() if one.mode == "write" and "run" in one.parameters]
    assert [one.name for one in writes if not locks_first(one.text)] == []


def locks_first(text: str) -> bool:
    """Whether a statement locks a corpus or memory before it compares the run that holds it, if it does."""
    looked = re.search(r"(?:WHERE|WITH)[^\n]*\b(?P<variable>[km])\.run\b", text)
    if not looked:
        return True  # creating a memory needs no lease
    held = looked["variable"]
    locks = re.compile(rf"SET {held}\.(?P<property>name|uid) = {held}\.(?P=property)\b")
    return bool(locks.search(text, 0, looked.start()))


@pytest.mark.parametrize(
    ("text", "locked"),
    [
        ("MATCH (k:Corpus {name: $corpus})\nSET k.name = k.name\nWITH k WHERE k.run = $run", True),
        ("MATCH (k:Corpus {name: $corpus})\nWHERE k.run = $run\nSET k.name = k.name", False),
        ("MATCH (m:Memory {uid: $memory})\nSET m.steps = 1\nWITH m WHERE m.run = $run", False),
    ],
)
def test_a_write_that_looks_before_it_locks_is_noticed(text: str, locked: bool) -> None:
    assert locks_first(text) == locked


@pytest.mark.parametrize("parameters", [{}, {"corpus": "c", "more": 1}, {"corpora": "c"}])
def test_running_a_statement_with_other_parameters_is_a_type_error(parameters: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"'find_corpus' takes \('corpus',\)"):
        _statement("find_corpus", parameters)


def test_every_header_is_understood_and_every_statement_is_one() -> None:
    headers = [
        line
        for path in resource("cypher").glob("*.cypher")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*//\s*name\b", line)
    ]
    assert len(headers) == len(ALL)
    assert not [name for name, statement in ALL.items() if ";" in NOISE.sub("", statement.text)]
    assert not [name for name, statement in ALL.items() if not statement.text.startswith("CYPHER 25")]


# The loader -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "body", "said"),
    [
        ("one(a, b) read", "RETURN $a;", r"'one' declares and uses different parameters \(\$b\): name in its"),
        ("one(a) read", "RETURN $a, $b;", r"'one' declares and uses different parameters \(\$b\): name in its"),
        ("one(a) read", "RETURN '$a' // $a\n;", r"'one' declares and uses different parameters \(\$a\): name in its"),
        ("one() reads", "RETURN 1;", r"'one' has invalid mode 'reads': use one of read, write, schema, auto"),
    ],
)
def test_a_block_that_breaks_its_header_is_refused_by_name(tmp_path: Path, header: str, body: str, said: str) -> None:
    path = tmp_path / "some.cypher"
    path.write_text(f"// name: {header}\n{body}\n", encoding="utf-8")
    with pytest.raises(GraphError, match=rf"some\.cypher: statement {said}"):
        parse(path)


def test_a_line_that_names_a_part_stands_for_its_text(tmp_path: Path) -> None:
    path = tmp_path / "some.cypher"
    path.write_text(
        "// name: one(corpus) read\n// Says so.\nCALL () {\n  // part: bm25\n}\nRETURN 1;\n", encoding="utf-8"
    )
    with pytest.raises(GraphError, match=r"different parameters \(\$documents, \$layers, \$ranking\)"):
        parse(path)
    path.write_text(path.read_text(encoding="utf-8").replace("corpus", "corpus, documents, layers, ranking"))

    (statement,) = parse(path)
    assert "UNWIND $in.layers AS layer" in statement.query
    assert statement.doc == "Says so."


def test_every_part_is_in_several_statements() -> None:
    parts = [path.stem for path in (resource("cypher") / "parts").iterdir()]
    texts = [path.read_text(encoding="utf-8") for path in resource("cypher").glob("*.cypher")]
    for part in parts:
        assert sum(len(re.findall(rf"^ *// part: {part}$", text, re.MULTILINE)) for text in texts) > 1


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("a.cypher", "b.cypher"):
        (tmp_path / file).write_text("// name: same() read\nRETURN 1;\n", encoding="utf-8")
    monkeypatch.setattr("hgmem.graph.statements.resource", lambda _: tmp_path)
    with pytest.raises(GraphError, match=r"b\.cypher: statement 'same' already exists in a\.cypher"):
        statements.__wrapped__()


def test_a_block_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "some.cypher"
    path.write_text("// A file.\n\n// name: one(a) write\n// Says\n// so.\nRETURN $a // this\n;\n", encoding="utf-8")
    (statement,) = parse(path)
    assert (statement.name, statement.parameters, statement.mode) == ("one", ("a",), "write")
    assert (statement.doc, statement.text, statement.file) == ("Says so.", "RETURN $a // this", "some.cypher")


def test_a_query_has_one_parameter_and_keeps_what_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "some.cypher"
    text = "// name: odd(a, b) read\nRETURN $a + '$a' + \"$b\" + $b AS `$a` /* don't\n$a */ // of $a"
    path.write_text(text, encoding="utf-8")
    assert parse(path)[0].query == "RETURN $in.a + '$a' + \"$b\" + $in.b AS `$a` /* don't\n$a */ // of $a"


def test_no_query_is_planned_anew_for_other_types_or_sizes_of_its_parameters() -> None:
    for one in ALL.values():
        used = set(re.findall(r"\$(\w+)", NOISE.sub("''", one.query)))
        assert used == ({"in"} if one.parameters else set()), one.name


# The corpus -----------------------------------------------------------------------------------------------------


def test_every_statement_but_the_exceptions_takes_the_corpus() -> None:
    assert {name for name, statement in TENANTS.items() if "corpus" not in statement.parameters} == set(WITHOUT_CORPUS)


def test_a_statement_reaches_nothing_of_another_corpus() -> None:
    found = {name: beside_the_corpus(one.text) for name, one in TENANTS.items() if name not in WITHOUT_CORPUS}
    assert {name: loose for name, loose in found.items() if loose} == BEYOND_THE_CORPUS


def test_what_the_service_keeps_is_beside_the_corpora() -> None:
    ours = set(SERVICE)
    for one in TENANTS.values():
        named = set(re.findall(r":\s*(\w+)", " ".join(re.findall(r"\(\w*:[^)]*\)", NOISE.sub("''", one.text)))))
        if one.file == "service.cypher":
            assert named & OURS <= ours, one.name
            assert not re.search(r"-\s*\[|--|\]\s*-", NOISE.sub("''", one.text)), one.name
        else:
            assert not named & ours, one.name
    assert not ours & RECORD_TYPES.keys()  # which archives have


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("MATCH (e:Entity {uid: $uid}) RETURN e", ["(e:Entity {uid: $uid})"]),
        ("MATCH (e:Entity) RETURN e", ["(e:Entity)"]),
        ("MATCH (:Entity {corpus: 'other'}) RETURN 1", ["(:Entity {corpus: ''})"]),
        ("MATCH (k:Corpus {corpus: $corpus}) RETURN k", ["(k:Corpus {corpus: $corpus})"]),
        ("MATCH (e:Entity {corpus: $other}) // corpus: $corpus\nRETURN e", ["(e:Entity {corpus: $other})"]),
        ("MERGE (e:Entity {uid: $uid}) RETURN e", ["(e:Entity {uid: $uid})"]),
        ("MATCH (e:Entity {corpus: $corpus})-[:FROM_CHUNK]->(c:Chunk) RETURN c", ["(c:Chunk)"]),
        ("MATCH (e:Entity {corpus: $corpus})-[:FROM_CHUNK]->(c) RETURN c", ["(c)"]),
        ("MATCH (e:Entity {corpus: $corpus})<-[:INVOLVES]-() RETURN e", ["()"]),
        ("MATCH (e:Entity {corpus: $corpus})-[:FROM_CHUNK]->(c) WHERE e.corpus = $corpus RETURN c", ["(c)"]),
        ("MATCH ()-[r:RELATES {uid: $uid}]->() RETURN r", ["[r:RELATES {uid: $uid}]"]),
        ("MATCH (c:Chunk) SEARCH c IN (VECTOR INDEX i FOR $v LIMIT 5) RETURN c", ["(c:Chunk)"]),
        ("MATCH (a:Entity), (a:Entity) WHERE a.corpus = $corpus RETURN a", ["(a:Entity)"]),
        ("RETURN COUNT { MATCH (c:Chunk) } AS n", ["(c:Chunk)"]),
        ("MATCH (n) WHERE n.uid = $uid AND $corpus <> '' RETURN n", ["(n)"]),
        ("match (n) return n", ["(n)"]),
        ("MATCH (n) RETURN count(*) AS n", ["(n)"]),
        ("CREATE (n {corpus: $other}) SET n:$($labels)", ["(n {corpus: $other})"]),
        ("MATCH p = (n) RETURN p", ["(n)"]),
        ("MATCH (a:Chunk {corpus: $corpus}), (n) RETURN n", ["(n)"]),
        ("MATCH (c:Chunk WHERE c.uid = $uid) RETURN c", ["(c:Chunk WHERE c.uid = $uid)"]),
        ("MATCH (c:Chunk|Built) RETURN c", ["(c:Chunk|Built)"]),
        ("MATCH (c:Corpus|Chunk {name: $corpus}) RETURN c", ["(c:Corpus|Chunk {name: $corpus})"]),
        ("MATCH (c:(Chunk|Built)) RETURN c", ["(c:(Chunk|Built)"]),
        ("MATCH (c IS Chunk) RETURN c", ["(c IS Chunk)"]),
        ("MATCH (`c`:Chunk) RETURN 1", ["(`c`:Chunk)"]),
        ("MATCH (a:Chunk {corpus: $corpus})-[:NEXT_CHUNK]->(:$($label)) RETURN a", ["(:$($label)"]),
        ("MATCH (c:Chunk {corpus: $corpus}) MATCH ((c)-[:NEXT_CHUNK]->(d)){1,3} RETURN d", ["(d)"]),
        *(
            (f"MATCH (c:Chunk) {condition} RETURN c", ["(c:Chunk)"])
            for condition in (
                "WHERE c.corpus = $corpus OR true",
                "WHERE true OR (c.corpus = $corpus)",
                "WHERE (c.corpus = $corpus OR c.tokens > 0)",
                "WHERE NOT c.corpus = $corpus",
                "WHERE NOT (c.tokens > 0 AND c.corpus = $corpus)",
                "WHERE (c.corpus = $corpus) = false",
                "WHERE coalesce(c.corpus = $corpus, true)",
                "WHERE all(x IN [] WHERE c.corpus = $corpus)",
                "WITH c, c.corpus = $corpus AS ours WHERE ours OR true",
                "WITH c, c.corpus = $corpus AS ours",
            )
        ),
    ],
)
def test_the_scanner_sees_what_is_bound_to_no_corpus(text: str, loose: list[str]) -> None:
    assert beside_the_corpus(text) == loose


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (k:Corpus {name: $corpus}) RETURN k",
        "MATCH (e:Entity {uid: $uid, corpus: $corpus}) RETURN e",
        "MATCH (c:Chunk) SEARCH c IN (VECTOR INDEX i FOR $v WHERE c.corpus = $corpus LIMIT 5) RETURN c",
        "MATCH ()-[r:RELATES]->() SEARCH r IN (VECTOR INDEX i FOR $v WHERE r.corpus = $corpus LIMIT 5) RETURN r",
        "MATCH ()-[r:RELATES {corpus: $corpus}]->() RETURN r",
        "UNWIND $kept AS e MATCH (e)-[:FROM_CHUNK]->(c:Chunk {corpus: $corpus}) RETURN count(c)",
        "UNWIND $kept AS e MATCH (e)-[:FROM_CHUNK]->(c) WHERE c.corpus = $corpus RETURN count(c)",
        "MATCH (c:Chunk WHERE c.corpus = $corpus) RETURN c",
        "CREATE (n {corpus: $corpus}) SET n:$($labels)",
        "MATCH (c:Chunk|Built) WHERE c.corpus = $corpus AND (c.tokens > 0 OR c.key = '') RETURN c",
        "MATCH (c:Chunk&Built {corpus: $corpus}) RETURN (c.tokens + 1), (c)",
        "MATCH (n) WHERE (n.corpus = $corpus AND n.a) AND NOT n.b RETURN n",
        "MATCH (c:Chunk) WHERE EXISTS { (c)--(:Chunk {corpus: $corpus}) } AND c.corpus = $corpus RETURN c",
        "UNWIND $kept AS e MATCH (e)-[r:RELATES]-(u) WITH r, u, r.corpus = $corpus AS ours WHERE ours AND u.a RETURN u",
    ],
)
def test_the_scanner_passes_what_is_bound_to_the_corpus(text: str) -> None:
    assert beside_the_corpus(text) == []


# Systems of other packages --------------------------------------------------------------------------------------

TOY = Path(__file__).parents[1] / "toy" / "toy_system"
HEADINGS = resource("examples", "own-system") / "headings_system"


@pytest.mark.parametrize("path", [TOY / "toy.cypher", HEADINGS / "headings.cypher"], ids=["toy", "headings"])
def test_the_statements_of_the_packages_for_tests_and_documents_stay_within_the_corpus(path: Path) -> None:
    assert {statement.name: why for statement in parse(path) if (why := fault(statement))} == {}


def test_the_favourites_of_systems_only_read_a_corpus_or_a_memory() -> None:
    ours = [favourite for one in installed() for favourite in one.favourites]
    others = [Favourite.read(TOY / "topics.cypher"), Favourite.read(HEADINGS / "outline.cypher")]
    assert ours
    assert {favourite.name: why for favourite in (*ours, *others) if (why := favourite_fault(favourite))} == {}


# Owners ---------------------------------------------------------------------------------------------------------

MEMORY = re.compile(r"\(\w*:Memory\b")
OWNED = re.compile(r"\$owner IS NULL OR (?:coalesce\(m\.owner, ''\) IN \['', \$owner\]|m\.owner = \$owner)")


def sees_other_owners(text: str) -> bool:
    """Whether a statement reads a :Memory and does not ask whose it is in the clause that matches it."""
    code = re.sub(r"//[^\n]*", "", text)
    read = [found for found in MEMORY.finditer(code) if not re.search(r"\bCREATE \s*$", code[: found.start()])]
    if not read or not OWNED.search(code):
        return bool(read)
    first = OWNED.search(code)
    between = code[read[-1].end() : first.start()] if first else ""
    return bool(re.search(r"\b(?:SET|RETURN|CREATE|DELETE|CALL)\b", between))


def test_a_statement_shows_no_memory_of_another_owner() -> None:
    assert {name for name, one in TENANTS.items() if sees_other_owners(one.text)} <= set(FOR_EVERY_OWNER)


def test_only_statements_that_show_memories_of_every_owner_are_exempt() -> None:
    files = ("invariants.cypher", "restoring.cypher")  # exempt as a whole
    named = [name for name in FOR_EVERY_OWNER if ALL[name].file not in files]
    assert [name for name in named if not sees_other_owners(ALL[name].text)] == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("MATCH (m:Memory {uid: $memory}) RETURN m", True),
        ("MATCH (:Memory {corpus: $corpus}) // $owner IS NULL OR m.owner = $owner\nRETURN 1", True),
        ("MATCH (m:Memory {uid: $memory}) RETURN m.uid, $owner IS NULL OR m.owner = $owner", True),
        ("MATCH (m:Memory {uid: $memory}) WHERE $owner IS NULL OR m.owner = $owner RETURN m", False),
        ("MATCH (m:Memory) WHERE $owner IS NULL OR coalesce(m.owner, '') IN ['', $owner] RETURN m", False),
        ("CREATE (m:Memory {uid: $memory, owner: $owner})", False),
    ],
)
def test_a_statement_that_does_not_ask_for_the_owner_is_seen(text: str, seen: bool) -> None:
    assert sees_other_owners(text) == seen


# Plans ----------------------------------------------------------------------------------------------------------


# Forty chunks in a chain, with an entity, a memory and a build's row for each.
FILLED = """
CREATE (k:Corpus {name: 'plans'})
CREATE (b:Build {uid: 'b', corpus: 'plans'})-[:HAS_UNIT]->(u:Unit {uid: 'u', corpus: 'plans'})
WITH u UNWIND range(1, 40) AS n
WITH u, {uid: toString(n), corpus: 'plans', memory: '', name: 'n' + n, text: 'a text', embedding: [0.5, 0.5]} AS row
CREATE (c:Chunk)-[:FROM_DOCUMENT]->(d:Document), (c)<-[:FROM_CHUNK]-(e:Entity),
       (u)-[:MADE]->(o:Built)-[:RESTS_ON {build: row.uid}]->(c),
       (m:Memory)-[:HAS_STEP]->(s:Step)-[:ASKED]->(q:SubQuery)-[:RETRIEVED]->(c),
       (m)-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(e), (p)-[:SUPPORTED_BY]->(c),
       (m)-[:HAS_ANSWER]->(a:Answer)-[:HAS_CITATION]->(t:Citation)-[:CITES]->(c)
FOREACH (node IN [c, d, e, o, m, s, q, p, a, t] | SET node += row)
WITH collect(e) AS entities, collect(c) AS chunks
UNWIND range(1, 39) AS n
WITH chunks[n - 1] AS one, chunks[n] AS next, entities[n - 1] AS a, entities[n] AS b, n
CREATE (one)-[:NEXT_CHUNK]->(next), (a)-[:RELATES {uid: toString(n), corpus: 'plans', memory: ''}]->(b)
"""


@pytest.fixture(scope="module")
def session(another_server: Server) -> Iterator[neo4j.Session]:
    """A session on a server with some of everything, because all plans cost the same on an empty server."""
    username, password = another_server.username, another_server.password.get_secret_value()
    access = {"uri": another_server.uri, "username": username, "password": password, "data": another_server.data}
    driving = neo4j.GraphDatabase.driver(
        another_server.uri, auth=(username, password), notifications_min_severity="WARNING"
    )
    with (
        HGMem.open("plans", embedder=DeterministicEmbedder(), **access),
        driving as driver,
        driver.session() as session,
    ):
        session.run(FILLED).consume()
        session.run("CALL db.prepareForReplanning()").consume()
        yield session


def plan_of(session: neo4j.Session, query: str) -> dict[str, Any]:
    done = session.run(forced(query), {"in": {}}).consume()
    assert done.plan
    unknown = [one for one in done.gql_status_objects if one.raw_classification == "UNRECOGNIZED"]
    return {**done.plan, "unknown": unknown}


def operators(plan: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield plan["operatorType"].partition("@")[0], plan
    for child in plan.get("children", []):
        yield from operators(child)


def faults(plan: dict[str, Any], text: str) -> list[str]:
    """Return the plan's operators whose cost grows with the data of other corpora."""
    found = [name for name, _ in operators(plan) if "Scan" in name]
    for name, node in operators(plan):
        if name == "CartesianProduct" and not all(_unique(child) for child in node["children"]):
            found.append("CartesianProduct")
    sought = Counter(
        variable
        for name, node in operators(plan)
        if "UniqueIndexSeek" in name
        for variable in re.findall(r"(\w+):\w+\(", node["args"]["Details"])
    )
    named = Counter(re.findall(r"[(\[](\w*):\w+ \{uid: ", _matched(text)))
    return found + [
        f"{variable or 'a node'} is not looked up by its uid"
        for variable in named
        if named[variable] > sought[variable]
    ]


def _unique(plan: dict[str, Any]) -> bool:
    name = plan["operatorType"].partition("@")[0]
    return "UniqueIndexSeek" in name or (name == "Filter" and _unique(plan["children"][0]))


def _matched(text: str) -> str:
    """Return the text without its CREATE clauses, which name only new nodes."""
    return re.sub(r"\bCREATE\b(?:(?!\bMATCH\b|\bCALL\b|\bSET\b|\bWITH\b)[\s\S])*", "", NOISE.sub("''", text))


@pytest.mark.server
def test_a_plan_neither_scans_nor_multiplies(session: neo4j.Session) -> None:
    plans = {name: plan_of(session, one.query) for name, one in TENANTS.items()}
    found = {name: faults(plan, TENANTS[name].text) for name, plan in plans.items()}
    assert {name: operators for name, operators in found.items() if operators not in ([], SCANS.get(name))} == {}
    unknown = {name for name, plan in plans.items() if plan["unknown"] and ALL[name].file not in OF_SYSTEMS}
    assert unknown == set()  # else a plan is made again once the first corpus or memory has the name


@pytest.mark.server
def test_the_server_takes_every_schema_statement(session: neo4j.Session) -> None:
    for name in creating():
        session.run(f"EXPLAIN {ALL[name].query}").consume()


@pytest.mark.server
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("MATCH (n) RETURN n", "AllNodesScan"),
        ("MATCH (e:Entity) RETURN e", "NodeByLabelScan"),
        ("MATCH ()-[r:RELATES]->() RETURN r", "DirectedRelationshipTypeScan"),
        ("RETURN COUNT { MATCH (e:Entity) WHERE e.name STARTS WITH 'a' } AS n", "NodeByLabelScan"),
        ("MATCH (a:Entity {corpus: $in.corpus}), (b:Entity {corpus: $in.corpus}) RETURN a, b", "CartesianProduct"),
        (
            "UNWIND $in.uids AS uid MATCH (e:Entity {uid: uid, corpus: $in.corpus}) "
            "USING INDEX e:Entity(corpus) RETURN e",
            "e is not looked up by its uid",
        ),
    ],
)
def test_a_plan_that_scans_or_multiplies_is_seen(session: neo4j.Session, text: str, fault: str) -> None:
    plan = plan_of(session, f"CYPHER 25 {text}")
    assert fault in faults(plan, text)
