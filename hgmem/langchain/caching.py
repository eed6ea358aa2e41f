"""The response cache file as a LangChain cache."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from hgmem.models.llm.response_cache import Store
from hgmem.settings import load

PREFIX = "langchain:"


class HGMemCache(BaseCache):
    """A LangChain cache in `replies.sqlite` of the cache folder (`HGMEM_CACHE`), beside hgmem's response cache.

    Use it with any LangChain model: `HGMemChatModel(cache=HGMemCache())`. If the file is unusable, nothing is cached,
    and a warning says so.
    """

    def __init__(self, **settings: Any) -> None:
        self._store = Store(load(**settings).cache / "replies.sqlite")

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the cached generations for a prompt and model configuration, or None."""
        text = self._store.get(_key(prompt, llm_string))
        return None if text is None else [_generation(one) for one in json.loads(text)]

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Store the generations."""
        self._store.put(_key(prompt, llm_string), json.dumps(_plain(return_val)))

    def clear(self, **_: Any) -> None:
        """Delete LangChain's entries. hgmem's own replies stay."""
        self._store.drop(PREFIX)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        self._store.close()


def _key(prompt: str, llm_string: str) -> str:
    return PREFIX + hashlib.sha256(json.dumps([prompt, llm_string]).encode()).hexdigest()


def _plain(results: Sequence[Generation]) -> list[dict[str, Any]]:
    return [
        {"message": message_to_dict(one.message), "info": one.generation_info}
        if isinstance(one, ChatGeneration)
        else {"text": one.text, "info": one.generation_info}
        for one in results
    ]


def _generation(kept: dict[str, Any]) -> Generation:
    if "message" not in kept:
        return Generation(text=kept["text"], generation_info=kept["info"])
    (message,) = messages_from_dict([kept["message"]])
    return ChatGeneration(message=message, generation_info=kept["info"])
