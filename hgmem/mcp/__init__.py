"""hgmem as a server of tools for assistants, by the Model Context Protocol (docs/mcp.md).

>>> from hgmem.mcp import make_server
>>> make_server(hg).run("stdio")             # doctest: +SKIP
"""

try:
    import mcp  # noqa: F401
except ImportError as missing:
    raise ImportError("hgmem.mcp needs mcp, which is not installed: run pip install 'hgmem[mcp]'") from missing

from hgmem.mcp.server import Server, make_server
from hgmem.mcp.transports import listening, serve_http, serve_stdio

__all__ = ["Server", "listening", "make_server", "serve_http", "serve_stdio"]
