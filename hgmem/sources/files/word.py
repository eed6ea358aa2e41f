"""Convert Word documents to Markdown by way of HTML."""

import io
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo

from hgmem.sources.files import markup
from hgmem.sources.files.items import Converted, UnusableError, heading

MOST_PARTS = 10_000
MOST_XML = 100_000_000  # bytes of all unpacked XML: the parser needs many times that
MOST_RATIO = 200  # maximum compression ratio of a large part
_LARGE = 1_000_000
_TITLES = "p.Title => h1:fresh\np[style-name='Title'] => h1:fresh"
_CORE = "docProps/core.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_BEFORE_MARKUP = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"


def convert(data: bytes) -> Converted:
    """Return the document's text, with the title from its properties or its first heading."""
    import mammoth

    properties = _checked(data)
    found = mammoth.convert_to_html(
        io.BytesIO(data),  # bytes have no folder, so linked files can't be opened
        convert_image=lambda _: [],
        style_map=_TITLES,
        include_embedded_style_map=False,
        external_file_access=False,
    )
    text = markup.markdown(found.value)
    title = properties.get(f"{_DC}title", "")
    metadata = {"author": properties.get(f"{_DC}creator", ""), "date": properties.get(f"{_TERMS}created", "")}
    return Converted(text=text, title=title if title.strip() else heading(text), metadata=metadata)


def _checked(data: bytes) -> dict[str, str]:
    """Return the document's properties.

    Raises `UnusableError` for an archive that is malicious or not a Word document.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                raise UnusableError(f"{len(parts):,} parts are above the limit of {MOST_PARTS:,}")
            unpacked = 0
            for part in parts:
                unpacked += _check_part(archive, part, left=MOST_XML - unpacked)
            return _properties(archive)
    except BadZipFile as error:
        raise UnusableError(
            f"not a Word document ({error}): damaged, an old .doc, or encrypted; save it as .docx without a password"
        ) from None
    except expat.ExpatError as error:
        raise UnusableError(f"damaged: its XML is invalid ({error})") from None


def _check_part(archive: ZipFile, part: ZipInfo, *, left: int) -> int:
    """Return the part's size if it is XML, else 0, and raise if it is too large."""
    if part.flag_bits & 1:
        raise UnusableError("encrypted: save it without a password")
    if part.file_size > _LARGE and part.file_size > MOST_RATIO * part.compress_size:
        raise UnusableError(f"{part.filename!r} unpacks to more than {MOST_RATIO} times its size")
    with archive.open(part) as opened:
        if not opened.read(64).lstrip(_BEFORE_MARKUP).startswith(b"<"):
            return 0
    if part.file_size > left:
        raise UnusableError(f"its XML is above the limit of {MOST_XML:,} bytes: split it")
    _check_xml(archive, part)
    return part.file_size


def _check_xml(archive: ZipFile, part: ZipInfo) -> None:
    """Raise for a document type declaration.

    The format forbids it, and entities that expand or lead outside need one.
    """
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    with archive.open(part) as opened:
        parser.ParseFile(opened)


def _refuse_doctype(*_: object) -> None:
    raise UnusableError("its XML has a document type declaration, which Word documents must not have")


def _properties(archive: ZipFile) -> dict[str, str]:
    try:
        core = archive.read(_CORE)
    except KeyError:
        return {}
    return {child.tag: child.text or "" for child in ElementTree.fromstring(core)}  # noqa: S314 no document type
