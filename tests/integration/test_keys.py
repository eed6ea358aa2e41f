"""Keys of the service: made once, hashed, scoped, revoked, and apart from the corpora."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dumping import driver
from typer.testing import CliRunner

from hgmem import HGMem, UsageError
from hgmem.cli import app
from hgmem.client.serving import ServiceStore
from hgmem.errors import NotFoundError


@pytest.fixture
def store(client: HGMem) -> ServiceStore:
    return ServiceStore(client)


def stored(client: HGMem, uid: str) -> dict[str, object]:
    with driver(client.settings) as neo4j, neo4j.session() as session:
        return dict(
            session.run("MATCH (k:Key {uid: $uid}) RETURN properties(k) AS row", uid=uid).single(strict=True)[0]
        )


def test_a_key_is_found_by_its_token_alone_and_its_token_is_not_stored(client: HGMem, store: ServiceStore) -> None:
    token, key = store.make_key(" anna ", corpora=["a", "b"], scopes=["ask", "ask"], days=2, tokens_per_day=5)
    assert (key.owner, key.corpora, key.scopes, key.state) == ("anna", ("a", "b"), ("ask",), "active")
    assert (key.tokens_per_day, key.questions_per_minute) == (5, None)
    assert key.created_at < key.expires_at
    assert store.key_of(token) == key
    assert store.key_of(token[:-1]) is store.key_of("") is store.key_of("\ud83d") is None
    assert token.encode() not in json.dumps(stored(client, key.uid), default=str).encode()
    assert token not in repr(key)


def test_a_scope_and_a_corpus_allow_what_they_say() -> None:
    from hgmem.values.access import Key

    reader = Key(uid="k", owner="anna", scopes=("read",), corpora=("a",))
    admin = Key(uid="k", owner="root", scopes=("admin",))
    assert [reader.may(scope) for scope in ("read", "ask", "write", "admin")] == [True, False, False, False]
    assert all(admin.may(scope) for scope in ("read", "ask", "write", "admin"))
    assert (reader.reaches("a"), reader.reaches("b"), admin.reaches("b")) == (True, False, True)


def test_a_revoked_and_an_expired_key_say_so(client: HGMem, store: ServiceStore) -> None:
    token, key = store.make_key("anna")
    other, short = store.make_key("ben", days=1)
    store.revoke_key(key.uid)
    with driver(client.settings) as neo4j, neo4j.session() as session:
        session.run("MATCH (k:Key {uid: $uid}) SET k.expires_at = datetime() - duration('PT1S')", uid=short.uid)
    assert [store.key_of(one).state for one in (token, other)] == ["revoked", "expired"]  # type: ignore[union-attr]
    assert {one.uid: one.state for one in store.service_keys()}[key.uid] == "revoked"
    with pytest.raises(NotFoundError, match="key 'k0' not found: list keys with `hgmem keys list`"):
        store.revoke_key("k0")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scopes": ["all"]}, r"scopes=\['all'\] are not scopes: choose from read, ask, write, admin"),
        ({"scopes": []}, "are not scopes"),
        ({"corpora": ["a b"]}, "invalid corpus name 'a b'"),
        ({"days": 0}, "days=0 must be an integer from 1 to 36500"),
        ({"owner": "a\nb"}, "is not an owner"),
    ],
)
def test_a_wrong_key_is_refused_and_nothing_is_written(
    store: ServiceStore, wrong: dict[str, object], said: str
) -> None:
    before = {one.uid for one in store.service_keys()}
    with pytest.raises(UsageError, match=said):
        store.make_key(**{"owner": "anna", **wrong})  # type: ignore[arg-type]
    assert {one.uid for one in store.service_keys()} == before


def test_keys_are_in_no_archive_and_outlive_their_corpus(
    open_client: Callable[..., HGMem], tmp_path: Path, store: ServiceStore
) -> None:
    client = open_client()
    client.add(_text(tmp_path))
    token, key = store.make_key("anna", corpora=[client.corpus])
    archive = tmp_path / "one.jsonl"
    client.export(archive)
    with gzip.open(archive, "rt") as lines:
        text = lines.read()
    assert "lighthouse" in text
    assert not any(secret in text for secret in (token, key.uid, str(stored(client, key.uid)["hash"])))
    client.delete()
    assert store.key_of(token) == key


def _text(folder: Path) -> Path:
    file = folder / "a.txt"
    file.write_text("Corrie Vane kept the key of the lighthouse.")
    return file


def test_the_commands_make_list_and_revoke(store: ServiceStore, environment: dict[str, str]) -> None:
    runner = CliRunner()

    def run(*words: str) -> tuple[int, str, str]:
        done = runner.invoke(app, ["keys", *words], env=environment)
        return done.exit_code, done.stdout, done.stderr

    code, out, err = run("make", "anna", "--corpus", "a", "--scope", "read", "--questions-per-minute", "3")
    key = store.key_of(out.strip())
    assert code == 0
    assert key
    assert key.questions_per_minute == 3
    told = f"key {key.uid} of anna: keep the token, it is not shown again"
    assert err.splitlines() == [told, "corpus 'a' does not exist yet: check the name (`hgmem corpora`)"]
    assert key.uid in run("list")[1]
    assert out.strip() not in run("list", "--json")[1]
    assert run("revoke", key.uid)[:2] == (0, f"revoked key {key.uid}\n")
    assert store.key_of(out.strip()).state == "revoked"  # type: ignore[union-attr]
    for words in (["make", "anna"], ["make", "anna", "--corpus", "a", "--every-corpus"]):
        assert "pass either --corpus NAME, or --every-corpus" in run(*words)[2]
    assert run("revoke", "k0")[0] == 1
    assert "choose from read, ask" in run("make", "anna", "--every-corpus", "--scope", "all")[2]
