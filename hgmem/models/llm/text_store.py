"""A persistent key-value store of texts: replies of language models, and what they are known to support."""

from pathlib import Path

from hgmem.models.cache_file import CacheFile

_CREATE = "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"


class Store(CacheFile):
    """Texts by key in the file at `path`."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, create=_CREATE, kept="responses")

    def get(self, key: str) -> str | None:
        """Return the text of a key, or None."""
        rows = self.run("SELECT text FROM texts WHERE key = ?", [key])
        return str(rows[0][0]) if rows else None

    def put(self, key: str, text: str) -> None:
        """Store a text, replacing the key's former one."""
        self.run("INSERT OR REPLACE INTO texts VALUES (?, ?)", [key, text])

    def drop(self, prefix: str) -> None:
        """Delete all keys with a prefix."""
        self.run("DELETE FROM texts WHERE substr(key, 1, length(?1)) = ?1", [prefix])
