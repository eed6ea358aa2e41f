"""The client: all operations of hgmem as methods of one object."""

from hgmem.client.client import HGMem

__all__ = ["HGMem"]
