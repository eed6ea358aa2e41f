"""Sessions of pages: a cookie that is made from a key, so that no page keeps the key itself."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from hgmem.client.serving import SESSION
from hgmem.errors import KeyRefusedError
from hgmem.service.callers import COOKIE, Keys, check_page, key_of
from hgmem.service.questions import json_of
from hgmem.values.access import Key, Scope

router = APIRouter(tags=["sessions"])


class Login(BaseModel):
    """A key to begin a session with."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"key": "hgm_…"}]})

    key: str = Field(max_length=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who asks: the owner, what the key may do, and the corpora that it reaches, or none for all."""

    owner: str
    scopes: tuple[Scope, ...]
    corpora: tuple[str, ...]


@router.post("/session", response_model=Session)
def begin_session(request: Request, login: Login) -> Response:
    """Begin a session of eight hours for a page: the answer sets a cookie that scripts cannot read.

    It ends with its key. The cookie is sent back to this host alone, and by https alone if it came by https.
    """
    keys: Keys = request.app.state.keys
    if not login.key.strip():
        raise KeyRefusedError("the key is empty: send its token as key")
    key = request.state.key = keys.known.find(login.key.strip())
    response = _shown(key)
    response.set_cookie(
        COOKIE,
        keys.known.store.begin_session(key),
        max_age=SESSION,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/session", response_model=Session)
def show_session(request: Request) -> Response:
    """Show whose session it is, or whose key."""
    return _shown(key_of(request))


@router.delete("/session", status_code=204)
def end_session(request: Request) -> Response:
    """End the session of the cookie, if there is one."""
    response = Response(status_code=204)
    if token := request.cookies.get(COOKIE):
        check_page(request)
        keys: Keys = request.app.state.keys
        keys.known.store.end_session(token)
        keys.known.forget(token, session=True)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _shown(key: Key) -> Response:
    return json_of(Session(owner=key.owner, scopes=key.scopes, corpora=key.corpora))
