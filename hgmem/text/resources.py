"""Files shipped with the package: statements, the Docker recipe, examples, lists of words."""

import tomllib
from pathlib import Path

from hgmem.errors import UsageError

PACKAGE = Path(__file__).resolve().parents[1]


def resource(*parts: str) -> Path:
    """Return the path of a shipped file or folder, as in `resource("docker", "compose.yaml")`.

    A wheel has these folders inside the package, a source checkout beside it. Raises `UsageError` if it is missing.
    """
    for root in (PACKAGE, PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    name = "/".join(parts)
    raise UsageError(f"{name!r} is missing from this installation of hgmem in {PACKAGE}: reinstall hgmem")


def word_lists(file: Path) -> dict[str, frozenset[str]]:
    """Return the words of each text in a TOML file, by name."""
    return {name: frozenset(text.split()) for name, text in tomllib.loads(file.read_text(encoding="utf-8")).items()}
