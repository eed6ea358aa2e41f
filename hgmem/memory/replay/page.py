"""The HTML page of a scene, with style, scripts and data inline and a strict content security policy."""

import base64
import hashlib
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.memory.replay.fetching import FILES, FOLDER, NAME, VERSION
from hgmem.memory.replay.scene import Scene

ASSETS = Path(__file__).resolve().parent / "assets"
# The program's files, each after those that it uses.
PROGRAM = ("memory", "elements", "walk", "picture", "layout", "captions", "telling", "controls", "beginning")


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The library's source and its licence."""

    text: str
    licence: str


def library() -> Library:
    """Return the library.

    Raises `UsageError`, with the remedy, if it is missing.
    """
    found: dict[str, str] = {}
    for name, digest in FILES.items():
        try:
            data = (FOLDER / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{NAME} {VERSION}, which the page needs, is missing from {str(FOLDER)!r}: fetch it with `python "
                "-m hgmem.memory.replay.fetching` (npm or Maven); wheels include it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{str(FOLDER / name)!r} does not match {NAME} {VERSION}: delete it, then fetch it again")
        found[name] = data.decode()
    text, licence = (found[name] for name in FILES)
    return Library(text=text, licence=licence)


def page(scene: Scene) -> str:
    """Return the page of a memory. Document text is embedded as JSON and rendered as text, never as markup."""
    source = library()
    program = _program()
    parts = {
        "title": escape(_title(scene)),
        "policy": _policy(source.text, program),
        "style": _asset("replay.css"),
        "licence": source.licence.replace("--", "- -"),
        "library": source.text,
        "program": program,
        "data": _data(scene),
    }
    before, *pieces = _asset("replay.html").split("{{")
    for piece in pieces:
        name, rest = piece.split("}}", 1)
        before += parts[name] + rest
    return before


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _program() -> str:
    """Return the files as one program in its own scope."""
    files = "\n".join(_asset(f"{name}.js") for name in PROGRAM)
    return f'"use strict";\n(() => {{\n{files}}})();\n'


def _title(scene: Scene) -> str:
    return f"{scene['question']} · hgmem"


def _data(scene: Scene) -> str:
    """Return JSON that can't close its HTML element or open a comment or another element."""
    text = json.dumps(scene, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts only, and no requests."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
