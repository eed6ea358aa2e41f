"""Files shipped with the package: statements, the Docker recipe, examples."""

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
