"""What MkDocs is told while it builds the site: files of the repository as pages, equations, drawings.

Everything is done here, at build time: a page asks no other host for a script, a style, a font or a picture.
"""

import posixpath
import re
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SHOWN = {
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/PEERS.md": "peers.md",
    "benchmarks/FINDINGS.md": "findings.md",
}
_MARKS = re.compile(r"^<!-- (?:generated: \w+|end of what is generated) -->\n", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_EQUATION = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_DRAWING = re.compile(r'<img alt="([^"]*)" src="[^"]*?([\w-]+\.svg)"[^>]*/?>')
_FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """List the decisions where the navigation has them as a folder."""
    for section in config.nav:
        for item in next(iter(section.values())):
            if isinstance(item, dict) and item.get("Decisions") == "decisions/":
                folder = ROOT / "docs" / "decisions"
                numbered = sorted(path.name for path in folder.glob("[0-9]*.md"))
                item["Decisions"] = [f"decisions/{name}" for name in ("README.md", *numbered)]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files of the repository that are pages of the site too."""
    for source, page in SHOWN.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Turn equations into MathML, and lead links to where things are on the site."""
    place = page.file.src_uri
    told = next((source for source, shown in SHOWN.items() if shown == place), f"docs/{place}")
    drawn = _EQUATION.sub(lambda found: equation(found[1]), _MARKS.sub("", markdown + "\n"))
    parts = _FENCES.split(drawn)
    parts[::2] = [_LINK.sub(lambda found: _led(found, told, place, files), part) for part in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, **_: Any) -> str:
    """Put drawings into the page itself, where they take the page's colours."""
    return _DRAWING.sub(lambda found: drawing(found[2], found[1]), html)


def equation(tex: str) -> str:
    """Return a block of MathML."""
    return f'<div class="equation">{convert(" ".join(tex.split()), display="block")}</div>'


def drawing(name: str, said: str) -> str:
    """Return the SVG of docs/pictures without its own colours, which are for those who open it alone."""
    text = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
    bare = re.sub(r"<style>.*?</style>|<title>.*?</title>", "", text, flags=re.DOTALL)
    return bare.replace("<svg ", f'<svg class="drawing" role="img" aria-label="{escape(said)}" ', 1)


def _led(found: re.Match[str], told: str, place: str, files: Files) -> str:
    """Return the link as the site has it; what is in the repository alone becomes its path."""
    text, target, anchor = found[1], found[2], found[3] or ""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(told), target))
    if not (ROOT / meant).exists() and meant.removeprefix("docs/") not in files.src_uris:
        raise PluginError(f"{told} links to {target!r}, which is not there")
    uri = SHOWN.get(meant) or (meant.removeprefix("docs/") if meant.startswith("docs/") else "")
    if meant == "docs/decisions":
        uri = "decisions/README.md"
    if uri in files.src_uris:
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(place) or '.')}{anchor})"
    code = text.strip("`")
    return f"`{code}`" if code in meant else f"{text} (`{meant}`)"
