"""The configured model of hgmem as a LangChain chat model, with the same server, key, limits and retries."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, replace
from typing import Any, Self

from langchain_core.callbacks.manager import CallbackManagerForLLMRun
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field, SecretStr, model_validator

from hgmem.client import HGMem
from hgmem.client.connecting import find_chat
from hgmem.errors import UsageError
from hgmem.langchain.conversation import conversation, response_of, until, usage_of
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.chat import Chat, Completion, Request, Sampling, chat_below
from hgmem.settings import load
from hgmem.values.arguments import Argument, check, count, number, text, whole

TASK = "langchain"  # task name under which requests are counted
_NAMES = {"model": "model", "base_url": "openai_base_url", "api_key": "openai_api_key", "timeout": "model_timeout"}
_SAMPLING = tuple(field.name for field in fields(Sampling))
_GIVEN: Mapping[str, Argument] = {
    "temperature": Argument(
        lambda one: number(one) and 0 <= one <= 2, "is not a valid temperature: use a number from 0 to 2"
    ),
    "top_p": Argument(
        lambda one: number(one) and 0 < one <= 1, "is not a valid top_p: use a number above 0 and at most 1"
    ),
    "max_tokens": Argument(count, "is not a valid number of tokens: use an integer of at least 1"),
    "seed": Argument(whole, "is not an integer: use one, or omit it"),
    "stop": Argument(
        lambda one: isinstance(one, list | tuple) and all(map(text, one)), "is not a list of strings: pass one"
    ),
}


class HGMemChatModel(BaseChatModel):
    """A LangChain chat model for OpenAI-compatible servers. Missing arguments come from hgmem's settings.

    Input and output are text, whole or streamed, with the server's token counts. Tools and images are not supported.
    Requests respect `HGMEM_WORKERS`, `HGMEM_REQUESTS_PER_MINUTE` and `HGMEM_TOKENS_PER_MINUTE`. `of(client)` shares
    these limits and the connections with the client. Stop sequences are applied locally and not sent.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str = ""
    base_url: str | None = None
    api_key: SecretStr | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, gt=0)
    seed: int | None = None
    timeout: float | None = Field(None, gt=0)
    max_retries: int | None = Field(None, ge=0)
    stop: list[str] | None = None
    chat: Any = Field(None, exclude=True, repr=False)

    @classmethod
    def of(cls, client: HGMem, **given: Any) -> Self:
        """Return a chat model over the client's chat.

        Raises `UsageError` if the client's model has no chat.
        """
        chat = chat_below(client.model)
        if chat is None:
            raise UsageError(f"the client's model is {client.model.name!r}, which is not a chat model: set HGMEM_MODEL")
        usual = {name: getattr(client.settings, name) for name in _SAMPLING}
        return cls(**{**usual, **given, "chat": chat, "model": chat.name})

    @model_validator(mode="after")
    def _found(self) -> Self:
        if self.chat is not None:
            return self
        given: dict[str, Any] = {ours: getattr(self, name) or None for name, ours in _NAMES.items()}
        if self.max_retries is not None:
            given["model_attempts"] = self.max_retries + 1
        settings = load(**given)
        if settings.model == ExtractiveModel.name:
            raise UsageError("no language model is set: pass model=, or set HGMEM_MODEL")
        for name in (name for name in _SAMPLING if name not in self.model_fields_set):
            setattr(self, name, getattr(settings, name))
        self.model, self.base_url, self.api_key = settings.model, settings.openai_base_url, settings.openai_api_key
        self.chat = find_chat(settings, settings.model)
        return self

    @property
    def _llm_type(self) -> str:
        return "hgmem"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model": self.model, "endpoint": self._chat.endpoint, **asdict(self._sampling({}))}

    @property
    def _chat(self) -> Chat:
        chat: Chat = self.chat
        return chat

    def _get_ls_params(self, stop: list[str] | None = None, **given: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **given)
        params["ls_provider"] = "hgmem"
        return params

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **given: Any,
    ) -> ChatResult:
        stops = self._stops(stop)
        completion = self._chat.complete(self._request(messages, given))
        text = "".join(part for part in until([completion.text], stops) if isinstance(part, str))
        whole = text == completion.text
        metadata = response_of(completion if whole else replace(completion, cut=False), self.model)
        message = AIMessage(content=text, usage_metadata=usage_of(completion), response_metadata=metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **given: Any,
    ) -> Iterator[ChatGenerationChunk]:
        stops = self._stops(stop)
        heard: Any = self._chat.stream(self._request(messages, given))
        done = Completion(text="")  # of a reply that a stop sequence ends: its tokens are unknown
        with closing(heard):
            for piece in until(heard, stops):
                if isinstance(piece, Completion):
                    done = piece
                    continue
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
                if run_manager:
                    run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
        metadata = response_of(done, self.model)
        last = AIMessageChunk(
            content="", usage_metadata=usage_of(done), response_metadata=metadata, chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    def _stops(self, stop: Sequence[str] | None) -> list[str]:
        check({"stop": stop}, _GIVEN)
        return [one for one in (stop or self.stop or ()) if one]

    def _request(self, messages: Sequence[BaseMessage], given: Mapping[str, Any]) -> Request:
        unknown = given.keys() - set(_SAMPLING)
        if unknown:
            raise UsageError(f"this chat model does not support {min(unknown)!r}: use {', '.join(_SAMPLING)} and stop")
        check(given, _GIVEN)
        return Request(task=TASK, messages=conversation(messages), sampling=self._sampling(given))

    def _sampling(self, given: Mapping[str, Any]) -> Sampling:
        values = {name: given.get(name, getattr(self, name)) for name in _SAMPLING}
        values["max_tokens"] = values["max_tokens"] or Sampling().max_tokens
        return Sampling(**values)
