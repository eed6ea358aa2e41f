"""Embedders: sentence-transformers models on this machine, servers with OpenAI's interface, LangChain embeddings."""

from hgmem.models.embedders.requested import LangChainEmbedder as LangChainEmbedder
from hgmem.models.embedders.requested import OpenAIEmbedder as OpenAIEmbedder
from hgmem.models.embedders.sentence_transformer import MINILM as MINILM
from hgmem.models.embedders.sentence_transformer import Backend as Backend
from hgmem.models.embedders.sentence_transformer import SentenceTransformerEmbedder as SentenceTransformerEmbedder
