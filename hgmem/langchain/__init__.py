"""hgmem in LangChain: a retriever, a runnable, a tool, a chat history, and hgmem's embedder (docs/langchain.md).

>>> from hgmem.langchain import HGMemRetriever
>>> retriever = HGMemRetriever(client=hg, k=4)          # doctest: +SKIP
"""

try:
    import langchain_core  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "hgmem.langchain needs langchain-core, which is not installed: run pip install 'hgmem[langchain]'"
    ) from missing

from hgmem.langchain.embeddings import HGMemEmbeddings
from hgmem.langchain.history import HGMemChatMessageHistory
from hgmem.langchain.retriever import HGMemRetriever
from hgmem.langchain.runnable import HGMemRunnable
from hgmem.langchain.tool import HGMemTool
from hgmem.langchain.tracing import Tracing

__all__ = [
    "HGMemChatMessageHistory",
    "HGMemEmbeddings",
    "HGMemRetriever",
    "HGMemRunnable",
    "HGMemTool",
    "Tracing",
]
