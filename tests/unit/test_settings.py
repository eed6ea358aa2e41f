"""Settings: their sources, precedence, and errors for invalid ones."""

from pathlib import Path

import pytest

from hgmem.errors import UsageError
from hgmem.settings import load, portable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_argument_goes_before_the_environment_then_env_file_then_toml(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "hgmem.toml").write_text('neo4j_uri = "bolt://toml"\nchunk_overlap = 7\nchunk_tokens = 70\n')
    assert load().neo4j_uri == "bolt://toml"
    (folder / ".env").write_text("NEO4J_URI=bolt://file\nHGMEM_CHUNK_TOKENS=80\n")
    assert (load().neo4j_uri, load().chunk_tokens, load().chunk_overlap) == ("bolt://file", 80, 7)
    monkeypatch.setenv("NEO4J_URI", "bolt://environment")
    assert load().neo4j_uri == "bolt://environment"
    assert load(neo4j_uri="bolt://argument").neo4j_uri == "bolt://argument"


def test_the_older_name_of_the_user_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_USER", "bob")
    assert load().neo4j_username == "bob"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"chunk_tokens": "many"}, "chunk_tokens"),
        ({"pasword": "x"}, "pasword"),
        ({"heartbeat": 100.0}, "heartbeat"),
        (
            {"language": "welsh"},
            "'language': a language is a code of two small letters, such as de, or empty, got 'welsh'",
        ),
        ({"neo4j_uri": "bolt://user:secret@host"}, "neo4j_uri"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line_without_its_secret(given: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named) as raised:
        load(**given)
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content"), [("hgmem.toml", b"neo4j_uri = bolt"), ("hgmem.toml", b"\xff"), (".env", b"\xff")]
)
def test_a_file_that_cannot_be_read_is_named(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        load()


def test_the_password_is_in_no_repr() -> None:
    assert "hunter2" not in repr(load(neo4j_password="hunter2"))


@pytest.mark.parametrize(
    ("written", "types"),
    [("person, ship ,person", ("person", "ship")), ('["person", "old ship"]', ("person", "old ship"))],
)
def test_types_of_entities_are_json_or_separated_by_commas(
    monkeypatch: pytest.MonkeyPatch, folder: Path, written: str, types: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HGMEM_ENTITY_TYPES", written)
    assert load().entity_types == types
    monkeypatch.delenv("HGMEM_ENTITY_TYPES")
    (folder / "hgmem.toml").write_text(f"entity_types = {list(types)}\n".replace("'", '"'))
    assert load().entity_types == types
    assert load(entity_types=written).entity_types == types


@pytest.mark.parametrize("written", ["", " ", "person,,ship", "[", "[1]", "[]", '{"a": 1}'])
def test_types_of_entities_without_a_name_are_refused(written: str) -> None:
    with pytest.raises(UsageError, match="entity_types") as raised:
        load(entity_types=written)
    assert "\n" not in str(raised.value)


def test_settings_for_other_machines_hold_no_secret_and_keys_come_from_a_file_there(tmp_path: Path) -> None:
    here = load(model="m", openai_api_key="sk-of-this-machine", neo4j_password="secret", neo4j_uri="bolt://h:7687")
    told = portable(here)
    assert not {"sk-of-this-machine", "secret", "bolt://h:7687"} & set(map(str, told.values()))
    assert not {"data", "cache", "neo4j_uri", "neo4j_password"} & told.keys()
    keys = tmp_path / "keys.env"
    keys.write_text("OPENAI_API_KEY=sk-of-that-machine\nHGMEM_MODEL=another\n")
    there = load(str(keys), **told)
    assert there.openai_api_key is not None
    assert (there.openai_api_key.get_secret_value(), there.model) == ("sk-of-that-machine", "m")
