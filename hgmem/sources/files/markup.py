"""Convert HTML to Markdown.

Headings, lists and tables stay; links and images become their texts.
"""

import codecs
import re
from typing import TYPE_CHECKING

from hgmem.sources.files.items import NULLS, Converted, UnusableError, heading, is_wide

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

MOST_DEPTH = 500  # of nested tags: the converter's time grows with its square
_DROPPED = [
    *("head", "script", "style", "nav", "noscript", "template", "svg", "math", "canvas", "audio", "video"),
    *("iframe", "frame", "object", "embed", "applet", "dialog", "button", "select", "textarea", "input"),
]
_BARE = ["a", "b", "strong", "i", "em", "u", "s", "del", "q", "sub", "sup", "kbd", "samp"]
_AUTHORS = ("author", "dc.creator", "dcterms.creator", "article:author")
_DATES = ("date", "dc.date", "dcterms.date", "dcterms.created", "article:published_time")
_DECLARED = re.compile(
    rb"""<(?:meta\b[^>]{0,500}?charset|\?xml\b[^>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I
)
_DECLARED_WITHIN = 4_096
# Encodings used on the web. Python has others that don't encode text, and one that takes quadratic time.
_KNOWN = re.compile(
    r"utf-8|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gb\w*|hz|big5\w*|shift_jis\w*|euc_\w+|iso2022_\w+|johab|tis-620"
)
_LATIN = {"ascii", "iso8859-1"}  # browsers treat these as cp1252
_BLANK_ENDS = re.compile(r"[ \t]+\n")
_WIDE_GAPS = re.compile(r"\n{3,}")


def convert(data: bytes) -> Converted:
    """Return the page's text, with the title from `<title>` or the first heading."""
    soup = _parsed(_decoded(data))
    title = soup.title.get_text() if soup.title else ""
    metadata = {"author": _meta(soup, _AUTHORS), "date": _meta(soup, _DATES)}
    text = _markdown(soup)
    return Converted(text=text, title=title if title.strip() else heading(text), metadata=metadata)


def markdown(html: str) -> str:
    """Return the Markdown of an HTML fragment."""
    return _markdown(_parsed(html))


def _parsed(html: str) -> "BeautifulSoup":
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "lxml")
    depths = {id(soup): 0}
    for tag in soup.find_all(True):
        depths[id(tag)] = depths[id(tag.parent)] + 1
        if depths[id(tag)] > MOST_DEPTH:
            raise UnusableError(f"nested deeper than {MOST_DEPTH}")
    return soup


def _decoded(data: bytes) -> str:
    """Decode by the byte-order mark, else the declared encoding, else UTF-8, else cp1252."""
    if is_wide(data):
        text = data.decode("utf-16", "replace")
    elif declared := _declared(data):
        text = data.decode(declared, "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    if "\0" in text:
        raise UnusableError(NULLS)
    return text


def _declared(data: bytes) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    found = _DECLARED.search(data[:_DECLARED_WITHIN])
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
    except (LookupError, UnicodeDecodeError):
        return ""
    if name in _LATIN:
        return "cp1252"
    return name if _KNOWN.fullmatch(name) else ""


def _meta(soup: "BeautifulSoup", names: tuple[str, ...]) -> str:
    """Return the page's metadata under the first of these names that has any."""
    contents = {
        str(tag.get("name") or tag.get("property") or "").lower(): str(tag.get("content") or "")
        for tag in reversed(soup("meta"))
    }
    return next((contents[name] for name in names if contents.get(name)), "")


def _markdown(soup: "BeautifulSoup") -> str:
    from bs4.element import PreformattedString
    from markdownify import MarkdownConverter

    for tag in soup(_DROPPED) + soup(hidden=True):
        tag.extract()
    for string in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
        string.extract()  # comments, declarations, processing instructions
    for picture in soup("img"):
        picture.replace_with(str(picture.get("alt") or ""))
    converter = MarkdownConverter(
        heading_style="atx",
        bullets="-",
        strip=_BARE,
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
    )
    text = _BLANK_ENDS.sub("\n", converter.convert_soup(soup))
    return _WIDE_GAPS.sub("\n\n", text).strip()
