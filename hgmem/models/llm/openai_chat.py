"""The chat of any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp, gateways."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from hgmem.errors import ModelError
from hgmem.models.llm.chat import Completion, Format, Request, Sampling, UnavailableError
from hgmem.models.llm.server_errors import Place, full, refused_parameter, translated
from hgmem.text.segmentation import sound

Limit: TypeAlias = Literal["max_tokens", "max_completion_tokens"]

_CONNECTING = 10.0  # seconds to wait for a connection
_DROPPABLE = ("temperature", "top_p", "seed", "stream_options")
_LEARNT = {*_DROPPABLE, "max_tokens", "max_completion_tokens"}
_LIMITS: dict[Limit, Limit] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class OpenAIChat:
    """The model `name` of the OpenAI-compatible server at `base_url`. `timeout` is in seconds. Safe between threads.

    Parameters that the server rejects are omitted or renamed from then on. `api_key` may be empty.
    """

    formats: tuple[Format, ...] = ("json_schema", "json_object", "text")

    def __init__(self, name: str, *, base_url: str, api_key: str, timeout: float = 120.0) -> None:
        self.name = name
        self._place = Place(model=name, endpoint=base_url, key=api_key.strip(), timeout=timeout)
        self._opened: Any = None
        self._dropped: frozenset[str] = frozenset()
        self._limit: Limit = "max_tokens"
        self._renamed = False
        self._lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        """The server's base URL."""
        return self._place.endpoint

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request. Raises like `Chat.complete`."""
        with self._translating(request):
            answered = self._created(request, {})
            if answered is None:
                return Completion(text="", cut=True)
            self._check_sound(answered)
            choices = getattr(answered, "choices", None)
            if not choices or getattr(choices[0], "message", None) is None:
                raise ModelError(f"{self._place} returned an invalid chat completion: check OPENAI_BASE_URL")
            message = choices[0].message
            self._check(choices[0].finish_reason, getattr(message, "refusal", None))
            return _completion(_text(message.content), choices[0].finish_reason, answered.usage)

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion, then the completion. Raises like `Chat.complete`."""
        with self._translating(request):
            pieces = self._created(request, {"stream": True, "stream_options": {"include_usage": True}})
            if pieces is None:
                yield Completion(text="", cut=True)
                return
            if not hasattr(pieces, "response"):
                raise ModelError(f"{self._place} returned an invalid stream: check OPENAI_BASE_URL")
            try:
                yield from self._heard(pieces)
            finally:
                pieces.response.close()

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def check(self) -> frozenset[str]:
        """Return the names of the models that the server lists, without calling a model. Empty if it has no list.

        Raises `ModelError` if the server does not answer, or rejects the key.
        """
        import openai

        request = Request(task="check", messages=(), sampling=Sampling())
        with self._translating(request):
            try:
                listed = self._client().models.list(timeout=_CONNECTING)
                return frozenset(str(model.id) for model in listed.data)
            except (openai.NotFoundError, openai.APIResponseValidationError, AttributeError, TypeError):
                return frozenset()

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
                text = _text(getattr(delta, "content", None))
                if text:
                    texts.append(text)
                    yield text
        if finish is None:
            raise UnavailableError(f"{self._place} closed the connection during a reply: ask again")
        yield _completion("".join(texts), finish, usage)

    def _check_sound(self, answered: Any) -> None:
        """Raise the error that some gateways return with status 200."""
        import openai

        wrapped = getattr(answered, "error", None)
        if wrapped:
            nowhere: Any = None
            raise openai.APIError(str(wrapped), nowhere, body=wrapped)

    def _check(self, finish: str | None, refusal: str | None) -> None:
        if refusal:
            raise ModelError(f"{self._place} refused to answer: {refusal}")
        if finish == "content_filter":
            raise ModelError(f"{self._place} withheld the reply: its content filter rejected the text or the prompt")

    def _created(self, request: Request, more: Mapping[str, Any]) -> Any:
        """Return the server's response, or None if a model's thinking used up the token limit."""
        import openai

        while True:
            arguments = self._arguments(request, more)
            try:
                return self._client().chat.completions.create(**arguments)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if full(error):
                    return None
                if not self._learnt(refused_parameter(error, arguments.keys() & _LEARNT), arguments):
                    raise

    def _arguments(self, request: Request, more: Mapping[str, Any]) -> dict[str, Any]:
        sampling = request.sampling
        wanted = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed, **more}
        with self._lock:
            dropped, limit = self._dropped, self._limit
        arguments = {name: value for name, value in wanted.items() if value is not None and name not in dropped}
        messages = [{"role": message.role, "content": sound(message.content)} for message in request.messages]
        arguments |= {"model": self.name, "messages": messages, limit: sampling.max_tokens}
        if request.format == "json_schema":
            schema = {"name": request.task, "strict": True, "schema": dict(request.schema or {})}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.format == "json_object":
            arguments["response_format"] = {"type": "json_object"}
        return arguments

    def _learnt(self, refused: str | None, sent: Mapping[str, Any]) -> bool:
        """Adapt to a rejected parameter: omit or rename it. Return whether a retry makes sense."""
        with self._lock:
            if refused in _LIMITS:
                if refused == self._limit:
                    if self._renamed:
                        return False
                    self._limit, self._renamed = _LIMITS[self._limit], True
                return True
            if refused in _DROPPABLE and refused in sent:
                self._dropped |= {refused}
                return True
            return False

    def _client(self) -> Any:
        import openai

        with self._lock:
            if self._opened is None:
                # The client's default pool holds 100 connections and allows 1,000, more than any caller needs.
                self._opened = openai.OpenAI(
                    base_url=self.endpoint,
                    api_key=self._place.key or "none",
                    timeout=openai.Timeout(self._place.timeout, connect=min(self._place.timeout, _CONNECTING)),
                    max_retries=0,
                )
            return self._opened

    @contextmanager
    def _translating(self, request: Request) -> Iterator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:
            found = translated(error, request, self._place)
            if found is None:
                raise
            # The server's error, and its causes, may contain the key.
            raise found from (None if self._place.secret(error) else error)


def _text(content: Any) -> str:
    """Return the text of a message. Some servers return it in parts, thinking among them."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else getattr(part, "__dict__", {}) for part in content]
        return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")
    return content if isinstance(content, str) else ""


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
