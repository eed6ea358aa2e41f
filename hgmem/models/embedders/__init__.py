"""Embedders: sentence-transformers models on this machine, servers with OpenAI's interface, LangChain embeddings."""

from hgmem.models.embedders.langchain import LangChainEmbedder as LangChainEmbedder
from hgmem.models.embedders.openai import OpenAIEmbedder as OpenAIEmbedder
from hgmem.models.embedders.sentence_transformer import MINILM as MINILM
from hgmem.models.embedders.sentence_transformer import Backend as Backend
from hgmem.models.embedders.sentence_transformer import SentenceTransformerEmbedder as SentenceTransformerEmbedder
