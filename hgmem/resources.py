"""Files that travel with the package: statements, the Docker recipe, examples."""

from pathlib import Path

from hgmem.errors import UsageError

PACKAGE = Path(__file__).resolve().parent


def resource(*parts: str) -> Path:
    """Return the path of a shipped file or folder, `resource("docker", "compose.yaml")`.

    A wheel carries these folders inside the package; in a source checkout they lie beside it.
    """
    for root in (PACKAGE, PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    name = "/".join(parts)
    raise UsageError(f"{name!r} is missing from this installation of hgmem in {PACKAGE}: install it again")
