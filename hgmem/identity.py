"""Who is who: keys of names, uids of things, hashes of texts. Pure, and stable for ever.

A change here makes every stored corpus unreadable: the tests hold the values.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache

from hgmem.errors import UsageError

CORPUS_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def key(name: str) -> str:
    """Return what two spellings of a name share: NFKC, whitespace collapsed, casefolded; may be `''`.

    Casefolding can undo NFKC and the other way round, so both are repeated: a key's key is itself.
    """
    once = _fold(_fold(name))
    return " ".join(once.split())


def uid(corpus: str, kind: str, *parts: str | int) -> str:
    """Return 32 hex characters for the thing of this kind in this corpus; other parts give others."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (corpus, kind, *parts):
        encoded = _bytes(str(part))
        digest.update(b"%d:%b," % (len(encoded), encoded))  # the length goes first, so that ab+c is not a+bc
    return digest.hexdigest()


def provisional_uid(memory: str, entity_uid: str) -> str:
    """Return the uid under which a memory keeps an entity of its own that the corpus would have at `entity_uid`."""
    return f"{memory}-{entity_uid}"


def text_hash(text: str) -> str:
    """Return the SHA-256 of the text as 64 hex characters."""
    return hashlib.sha256(_bytes(text)).hexdigest()


@lru_cache(maxsize=64)
def corpus_key(corpus: str) -> str:
    """Return 16 hex characters for the corpus, safe inside a full-text query where its name is not."""
    return hashlib.blake2b(_bytes(corpus), digest_size=8, person=b"corpus_key").hexdigest()


def check_corpus_name(name: str) -> str:
    """Return the name, or raise `UsageError` that names the rule."""
    if not isinstance(name, str) or not re.fullmatch(CORPUS_NAME, name):
        raise UsageError(f"corpus name {name!r} is not allowed: it must match {CORPUS_NAME}")
    return name


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # half a surrogate pair is no reason to fail
