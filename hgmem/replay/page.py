"""One HTML file from a scene: style, program, library and data inside it, and a policy that lets nothing else run."""

import base64
import hashlib
import json
from html import escape

from hgmem.replay.library import library
from hgmem.replay.scene import Scene
from hgmem.resources import PACKAGE

ASSETS = PACKAGE / "replay" / "assets"
# The program's files, in the order in which each finds what it needs of those before it.
PROGRAM = ("memory", "elements", "picture", "layout", "captions", "telling", "controls", "beginning")


def page(scene: Scene) -> str:
    """Return the page of a memory. Text of documents is data in it: read as JSON, written as text, never as markup."""
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
    """Return the files as one program, whose names nothing else in the page can see."""
    files = "\n".join(_asset(f"{name}.js") for name in PROGRAM)
    return f'"use strict";\n(() => {{\n{files}}})();\n'


def _title(scene: Scene) -> str:
    return f"{scene['question']} · hgmem"


def _data(scene: Scene) -> str:
    """Return JSON in which nothing ends the element that it stands in, or opens a comment or another element."""
    text = json.dumps(scene, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _policy(*scripts: str) -> str:
    """Return a content security policy: these scripts alone, no request to anywhere."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
