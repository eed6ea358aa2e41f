"""The chat of any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp, gateways."""

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from hgmem.errors import ModelError
from hgmem.models.llm.chat import Completion, Format, FormatRefusedError, Request, UnavailableError, text_of
from hgmem.models.llm.openai_server import LONGEST_MESSAGE, OpenAIServer, SettingNames, message_of
from hgmem.text.segmentation import sound
from hgmem.text.tokens import count

_FORMAT = re.compile(r"response[ _]format|json_schema|json_object|structured output|grammar", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens", re.IGNORECASE
)
# What OpenAI reports, as an error, where thinking used up the token limit.
_FULL = re.compile(r"could not finish the message because", re.IGNORECASE)
_TOO_MUCH = re.compile(r"too (?:large|high|big)|at most|exceed|(?:less|greater) than|must be", re.IGNORECASE)
_FORMAT_STATUSES = {400, 404, 415, 422, 500, 501}
_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
_NAMES = SettingNames()
_REFUSABLE = {"temperature", "top_p", "seed", "stream_options", _OLD_LIMIT}


def refused_parameter(error: Exception, sent: Collection[str]) -> str | None:
    """Return the sent parameter that the server rejects, if its message names one."""
    error_text = message_of(error)[:LONGEST_MESSAGE]
    if _CONTEXT.search(error_text):
        return None
    param = getattr(error, "param", None)
    name = next(
        (each for each in sorted(sent) if each == param or (not param and re.search(rf"\b{each}\b", error_text))), None
    )
    if name == _OLD_LIMIT and _TOO_MUCH.search(error_text):
        return None  # the server knows it, but wants a smaller value
    return name


class OpenAIChat:
    """The model `name` of the OpenAI-compatible server at `base_url`. `timeout` is in seconds. Safe between threads.

    Parameters that the server rejects are omitted or renamed from then on. `api_key` may be empty.
    """

    formats: tuple[Format, ...] = ("json_schema", "json_object", "text")

    def __init__(
        self, name: str, *, base_url: str, api_key: str, timeout: float = 120.0, names: SettingNames = _NAMES
    ) -> None:
        self.name, self.endpoint = name, base_url
        self._server = OpenAIServer(who=f"model {name!r}", endpoint=base_url, key=api_key, timeout=timeout, names=names)
        self._refused: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request. Raises like `Chat.complete`."""
        import openai

        with self._translating(request):
            answered = self._created(request, {})
            if answered is None:
                return Completion(text="", cut=True)
            if wrapped := getattr(answered, "error", None):  # some gateways return errors with status 200
                nowhere: Any = None
                raise openai.APIError(str(wrapped), nowhere, body=wrapped)
            choices = getattr(answered, "choices", None)
            if not choices or getattr(choices[0], "message", None) is None:
                raise self._server.invalid()
            message = choices[0].message
            self._check(choices[0].finish_reason, getattr(message, "refusal", None))
            return _completion(text_of(message.content), choices[0].finish_reason, answered.usage)

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion, then the completion. Raises like `Chat.complete`."""
        with self._translating(request):
            pieces = self._created(request, {"stream": True, "stream_options": {"include_usage": True}})
            if pieces is None:
                yield Completion(text="", cut=True)
                return
            if not hasattr(pieces, "response"):
                raise self._server.invalid("stream")
            try:
                yield from self._heard(pieces)
            finally:
                pieces.response.close()

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        self._server.close()

    def _heard(self, pieces: Any) -> Iterator[str | Completion]:
        texts: list[str] = []
        finish: str | None = None
        usage: Any = None
        for piece in pieces:
            usage = getattr(piece, "usage", None) or usage
            for choice in (getattr(piece, "choices", None) or ())[:1]:
                finish = choice.finish_reason or finish
                delta = choice.delta
                self._check(finish, getattr(delta, "refusal", None))
                text = text_of(getattr(delta, "content", None))
                if text:
                    texts.append(text)
                    yield text
        if finish is None:
            raise UnavailableError(f"{self._server} closed the connection during a reply: ask again")
        yield _completion("".join(texts), finish, usage)

    def _check(self, finish: str | None, refusal: str | None) -> None:
        if refusal:
            raise ModelError(f"{self._server} refused to answer: {refusal}")
        if finish == "content_filter":
            raise ModelError(f"{self._server} withheld the reply: its content filter rejected the text or the prompt")

    def _created(self, request: Request, more: Mapping[str, Any]) -> Any:
        """Return the server's response, or None if a model's thinking used up the token limit."""
        import openai

        while True:
            arguments = self._arguments(request, more)
            try:
                return self._server.client().chat.completions.create(**arguments)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if _FULL.search(message_of(error)):
                    return None
                refused = refused_parameter(error, arguments.keys() & _REFUSABLE)
                if refused is None:
                    raise
                with self._lock:
                    self._refused |= {refused}

    def _arguments(self, request: Request, more: Mapping[str, Any]) -> dict[str, Any]:
        sampling = request.sampling
        wanted = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed, **more}
        refused = self._refused
        limit = _NEW_LIMIT if _OLD_LIMIT in refused else _OLD_LIMIT
        arguments = {name: value for name, value in wanted.items() if value is not None and name not in refused}
        messages = [{"role": message.role, "content": sound(message.content)} for message in request.messages]
        arguments |= {"model": self.name, "messages": messages, limit: sampling.max_tokens}
        if request.format == "json_schema":
            schema = {"name": request.task, "strict": True, "schema": dict(request.schema or {})}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.format == "json_object":
            arguments["response_format"] = {"type": "json_object"}
        return arguments

    def _translating(self, request: Request) -> AbstractContextManager[None]:
        return self._server.translating(f"the request of task {request.task!r}", partial(self._special, request))

    def _special(self, request: Request, error: Exception, status: int) -> ModelError | None:
        """Return the error for a prompt that is too long, or a format that is refused."""
        error_text = message_of(error)
        if getattr(error, "code", None) == "context_length_exceeded" or (
            status in (400, 413, 422) and _CONTEXT.search(error_text)
        ):
            tokens = sum(count(message.content) for message in request.messages)
            return ModelError(
                f"the prompt of {request.task!r} (about {tokens:,} tokens) and a reply of "
                f"{request.sampling.max_tokens:,} exceed the context of {self._server}: lower a recipe option "
                "(overview_tokens, memory_tokens, evidence_tokens or answer_tokens) or HGMEM_MAX_TOKENS, or in "
                f"indexing HGMEM_CHUNK_TOKENS ({self._server.reason(error)})"
            )
        about_format = str(getattr(error, "param", "")).startswith("response_format") or _FORMAT.search(
            error_text[:LONGEST_MESSAGE]
        )
        if request.format != "text" and status in _FORMAT_STATUSES and about_format:
            reason = self._server.reason(error)
            return FormatRefusedError(f"{self._server} does not support the response format {request.format}: {reason}")
        return None


def _completion(text: str, finish: str | None, usage: Any) -> Completion:
    details = getattr(usage, "prompt_tokens_details", None)
    return Completion(
        text=text,
        cut=finish == "length",
        prompt_tokens=_counted(usage, "prompt_tokens"),
        completion_tokens=_counted(usage, "completion_tokens"),
        cached_tokens=_counted(details, "cached_tokens") or 0,
    )


def _counted(usage: Any, name: str) -> int | None:
    number = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
    return number if isinstance(number, int) else None
