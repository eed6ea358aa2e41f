"""The service: questions, memories, documents and jobs over HTTP, for whoever has a key."""

from hgmem.service.app import Place as Place
from hgmem.service.app import serve as serve
