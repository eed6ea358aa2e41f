"""Build links that open Neo4j Browser connected to a server.

Browser asks for the password itself.
"""

from urllib.parse import quote, urlencode


def link(browser: str, *, uri: str, username: str, database: str | None = None, guide: str = "") -> str:
    """Return the address of a Browser with server, user and database filled in.

    With `guide`, Browser plays that guide.
    """
    scheme, _, rest = uri.partition("://")
    given = {"dbms": f"{scheme}://{quote(username, safe='')}@{rest}"}
    if database:
        given["db"] = database
    if guide:
        given |= {"cmd": "play", "arg": guide}
    return f"{browser}?{urlencode(given, safe=':/@')}"
