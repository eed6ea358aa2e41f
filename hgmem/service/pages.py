"""The page at `/`, and its files: packaged with hgmem, read once, under a name that changes with them."""

import hashlib
import html
from functools import cache

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from hgmem.errors import NotFoundError
from hgmem.text.resources import resource

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
ANEW = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}

router = APIRouter(include_in_schema=False)


@cache
def files() -> tuple[str, dict[str, bytes]]:
    """Return a digest of the page's files, and each file by its path."""
    root = resource("pages")
    paths = [path for folder in ("shared", "service", "library") for path in sorted((root / folder).glob("*.*"))]
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    digest = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]
    return digest, found


@router.get("/", response_class=HTMLResponse)
def home() -> Response:
    """Return the page. It needs no key: what it shows does."""
    digest, found = files()
    text = found["service/index.html"].decode().replace("{{files}}", html.escape(f"/page/{digest}"))
    return HTMLResponse(text, headers=ANEW)


@router.get("/page/{digest}/{name:path}")
def file(digest: str, name: str) -> Response:
    """Return a file of the page."""
    current, found = files()
    kind = TYPES.get(f".{name.rpartition('.')[2]}")
    if digest != current or name not in found or kind is None:
        raise NotFoundError(f"the page has no file {name!r} of version {digest!r}: load the page at / again")
    return Response(found[name], media_type=kind, headers=FOREVER)
