"""The HTML page of a scene, with style, scripts and data inline and a strict content security policy."""

import base64
import hashlib
import json
from html import escape
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.memory.replay.scene import Scene

FOLDER = Path(__file__).resolve().parent / "library"  # filled by builds
ASSETS = Path(__file__).resolve().parent / "assets"
LIBRARY = ASSETS / "library.json"  # name and version of the graph library, and the digests of its files
# The program's files, each after those that it uses.
PROGRAM = ("memory", "elements", "walk", "picture", "layout", "captions", "telling", "controls", "beginning")


def library() -> tuple[str, str]:
    """Return the library's source and its licence. Raises `UsageError`, with the remedy, if it is missing."""
    wanted = json.loads(LIBRARY.read_text(encoding="utf-8"))
    called = f"{wanted['name']} {wanted['version']}"
    found: dict[str, str] = {}
    for name, digest in wanted["files"].items():
        try:
            data = (FOLDER / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{called}, which the page needs, is missing from {str(FOLDER)!r}: install hgmem again where npm or "
                "Maven is at hand, or run `python replay_library.py` in a checkout; wheels include it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{str(FOLDER / name)!r} does not match {called}: delete it, then fetch it again")
        found[name] = data.decode()
    text, licence = found.values()
    return text, licence


def page(scene: Scene) -> str:
    """Return the page of a memory. Document text is embedded as JSON and rendered as text, never as markup."""
    text, licence = library()
    files = "\n".join(_asset(f"{name}.js") for name in PROGRAM)
    program = f'"use strict";\n(() => {{\n{files}}})();\n'  # one program in its own scope
    parts = {
        "title": escape(f"{scene['question']} · hgmem"),
        "policy": _policy(text, program),
        "style": _asset("replay.css"),
        "licence": licence.replace("--", "- -"),
        "library": text,
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


def _data(scene: Scene) -> str:
    """Return JSON that can't close its HTML element or open a comment or another element."""
    text = json.dumps(scene, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts only, and no requests."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
