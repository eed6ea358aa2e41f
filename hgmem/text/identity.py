"""Identity: keys of names, uids, hashes of texts. Pure and stable.

A change here makes every stored corpus unreadable: tests pin the values.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache

from hgmem.errors import UsageError

CORPUS_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def key(name: str) -> str:
    """Return the normalised form of a name: NFKC, whitespace collapsed, casefolded. It may be `''`.

    Casefolding can undo NFKC and vice versa, so both run twice: a key's key is itself.
    """
    once = _fold(_fold(name))
    return " ".join(once.split())


def uid(corpus: str, kind: str, *parts: str | int) -> str:
    """Return the uid, 32 hex characters, of an object with this corpus, kind and parts."""
    return _digest(corpus, kind, *parts, size=16)


def provisional_uid(memory: str, entity_uid: str) -> str:
    """Return the uid of a memory's provisional entity. In the corpus, it would have `entity_uid`."""
    return f"{memory}-{entity_uid}"


def is_provisional(text: str) -> bool:
    """Return whether the text has the form of a provisional entity's uid."""
    return re.fullmatch("m[0-9a-f]{16}-[0-9a-f]{32}", text) is not None


def build_uid(corpus: str, system: str) -> str:
    """Return the uid of a system's build."""
    return uid(corpus, "build", system)


def decision_uid(corpus: str, ends: tuple[str, str], by: str) -> str:
    """Return the uid of the decision of `by` on two entities (uids in order)."""
    return uid(corpus, "decision", *ends, by)


def unit_uid(corpus: str, system: str, *, stage: str, key: str) -> str:
    """Return the uid of a unit of a build."""
    return uid(corpus, "unit", system, stage, key)


def built_uid(corpus: str, system: str, *, kind: str, key: str) -> str:
    """Return the uid of a built row."""
    return uid(corpus, "built", system, kind, key)


def text_hash(text: str) -> str:
    """Return the SHA-256 of the text as 64 hex characters."""
    return hashlib.sha256(_bytes(text)).hexdigest()


@lru_cache(maxsize=256)
def layer_key(corpus: str, system: str, kind: str) -> str:
    """Return 16 hex characters for one kind of rows that a system builds of a corpus, safe in full-text queries."""
    return _digest(corpus, system, kind, size=8, person=b"layer_key")


def chunk_layer(corpus: str) -> str:
    """Return the `layer_key` of the corpus's chunks."""
    return layer_key(corpus, "", "")


def check_corpus_name(name: str) -> str:
    """Return a valid corpus name.

    Raises `UsageError` that names the rule.
    """
    if not isinstance(name, str) or not re.fullmatch(CORPUS_NAME, name):
        raise UsageError(f"invalid corpus name {name!r}: it must match {CORPUS_NAME}")
    return name


def _digest(*parts: str | int, size: int, person: bytes = b"") -> str:
    digest = hashlib.blake2b(digest_size=size, person=person)
    for part in parts:
        encoded = _bytes(str(part))
        digest.update(b"%d:%b," % (len(encoded), encoded))  # lengths first, so that ab+c differs from a+bc
    return digest.hexdigest()


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # unpaired surrogates must not fail here
