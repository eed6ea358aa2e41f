"""Download of the pages' graph library when a wheel is built: from npm or Maven, which carry the same file.

It imports only the standard library, because builds run it by path, before the package can be imported.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

_PAGES = Path(__file__).resolve().parent / "hgmem" / "pages"
FOLDER = _PAGES / "library"
_LIBRARY = json.loads((_PAGES / "library.json").read_text(encoding="utf-8"))
NAME, VERSION, FILES = _LIBRARY["name"], _LIBRARY["version"], _LIBRARY["files"]
PROGRAM, LICENCE = FILES
_WITHIN = {PROGRAM: f"dist/{PROGRAM}", LICENCE: LICENCE}
_SECONDS = 120


def present(folder: Path = FOLDER) -> bool:
    """Whether the files exist with the expected digests."""
    return all((folder / name).is_file() and _digest((folder / name).read_bytes()) == FILES[name] for name in FILES)


def fetch(folder: Path = FOLDER) -> str:
    """Download the files into the folder if they are missing. Return the reason for a failure, or `''`."""
    if present(folder):
        return ""
    tried = []
    with tempfile.TemporaryDirectory() as place:
        for tool, download in (("npm", _npm), ("mvn", _maven)):
            if not (command := shutil.which(tool)):
                tried.append(f"{tool}: not found")
                continue
            try:
                files = download(command, Path(place))
            except (OSError, subprocess.SubprocessError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
                tried.append(f"{tool}: {_message(error)}")
                continue
            if odd := [name for name in FILES if _digest(files[name]) != FILES[name]]:
                tried.append(f"{tool}: unexpected checksum of {', '.join(odd)}")
                continue
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in files.items():
                (folder / name).write_bytes(data)
            return ""
    return f"{NAME} {VERSION} could not be fetched ({'; '.join(tried)})"


def _npm(command: str, place: Path) -> dict[str, bytes]:
    _run([command, "pack", "--silent", f"{NAME}@{VERSION}", "--pack-destination", str(place)], place)
    with tarfile.open(place / f"{NAME}-{VERSION}.tgz") as archive:
        return {name: _member(archive.extractfile, f"package/{inside}") for name, inside in _WITHIN.items()}


def _maven(command: str, place: Path) -> dict[str, bytes]:
    artifact = f"org.webjars.npm:{NAME}:{VERSION}"
    _run([command, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={place}"], place)
    with zipfile.ZipFile(place / f"{NAME}-{VERSION}.jar") as archive:
        root = f"META-INF/resources/webjars/{NAME}/{VERSION}"
        return {name: archive.read(f"{root}/{inside}") for name, inside in _WITHIN.items()}


def _run(command: list[str], place: Path) -> None:
    subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, timeout=_SECONDS)


def _member(read: Callable[[str], object], name: str) -> bytes:
    stream = read(name)
    if stream is None:
        raise KeyError(name)
    return stream.read()  # type: ignore[attr-defined,no-any-return]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _message(error: Exception) -> str:
    text = (getattr(error, "stderr", "") or str(error) or type(error).__name__).strip()
    return text.splitlines()[-1][:200] if text else type(error).__name__


if __name__ == "__main__":
    sys.exit(fetch() or 0)
