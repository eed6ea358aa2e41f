"""The link that opens Neo4j Browser on a server: connected, but for the password, which Browser asks for."""

from urllib.parse import quote, urlencode


def link(browser: str, *, uri: str, username: str, database: str | None = None, guide: str = "") -> str:
    """Return the address of a Browser with server, user and database filled in; it plays the guide, if one is given."""
    scheme, _, rest = uri.partition("://")
    given = {"dbms": f"{scheme}://{quote(username, safe='')}@{rest}"}
    if database:
        given["db"] = database
    if guide:
        given |= {"cmd": "play", "arg": guide}
    return f"{browser}?{urlencode(given, safe=':/@')}"
