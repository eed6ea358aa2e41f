"""The runnable: a question goes in, the answer with its memory comes out, its steps as runs below."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

from langchain_core.callbacks.manager import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from hgmem.errors import UsageError
from hgmem.events import Event
from hgmem.langchain.investigating import STRICT, Investigating
from hgmem.langchain.tool import HGMemTool
from hgmem.model import Answer

Asked: TypeAlias = str | Mapping[str, Any]


class HGMemRunnable(Investigating, RunnableSerializable[Asked, Answer]):
    """Answers a question: text, or a mapping of `question` and whatever else `HGMem.ask` takes for this one.

    `stream` and `astream` yield the events of `HGMem.stream`. Inside a chain the answer alone is handed on, at once.
    """

    model_config = STRICT

    def invoke(self, input: Asked, config: RunnableConfig | None = None, **given: Any) -> Answer:  # noqa: A002
        """Return the answer."""
        return self._call_with_config(self._ask, input, config, **given)

    async def ainvoke(self, input: Asked, config: RunnableConfig | None = None, **given: Any) -> Answer:  # noqa: A002
        """Return the answer, without blocking the event loop; cancelled, the question ends before its next call."""
        return await self._acall_with_config(self._aask, input, config, **given)

    def stream(  # type: ignore[override]
        self,
        input: Asked,  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> Iterator[Event]:
        """Yield what happens while the question is answered; closing the iterator ends it before its next call."""
        events: Any = self._transform_stream_with_config(
            iter([input]),
            self._events,  # type: ignore[arg-type]
            config,
            **given,
        )
        yield from events

    async def astream(  # type: ignore[override]
        self,
        input: Asked,  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> AsyncGenerator[Event, None]:
        """Yield what `stream` yields, without blocking the event loop."""
        events: Any = self._atransform_stream_with_config(
            _alone(input),
            self._aevents,  # type: ignore[arg-type]
            config,
            **given,
        )
        async with aclosing(events):
            async for event in events:
                yield event

    def transform(
        self,
        input: Iterator[Asked],  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> Iterator[Answer]:
        """Yield the answer to what comes in, once that is whole: what follows in a chain wants an answer."""
        yield self.invoke(_whole(list(input)), config, **given)

    async def atransform(
        self,
        input: AsyncIterator[Asked],  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> AsyncIterator[Answer]:
        """Yield what `transform` yields, without blocking the event loop."""
        yield await self.ainvoke(_whole([part async for part in input]), config, **given)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool that asks the same way: without a schema an `HGMemTool`, whose text is the answer's.

        With `args_schema` or `arg_types`, LangChain's: it takes those arguments, and returns the `Answer`.
        """
        if args_schema is not None or arg_types is not None:
            return super().as_tool(args_schema, name=name, description=description, arg_types=arg_types)
        fields: dict[str, Any] = {one: getattr(self, one) for one in Investigating.model_fields}
        named = {"name": name or self.name, "description": description}
        return HGMemTool(**fields | {one: value for one, value in named.items() if value})

    def _ask(self, asked: Asked, run_manager: CallbackManagerForChainRun, **given: Any) -> Answer:
        question, more = _split(asked, given)
        return self.client.ask(question, **self.asking(run_manager, more))

    async def _aask(self, asked: Asked, run_manager: AsyncCallbackManagerForChainRun, **given: Any) -> Answer:
        question, more = _split(asked, given)
        return await self.client.aask(question, **self.asking(run_manager, more))

    def _events(
        self, inputs: Iterator[Asked], run_manager: CallbackManagerForChainRun, **given: Any
    ) -> Generator[Event, None, None]:
        question, more = _split(_whole(list(inputs)), given)
        yield from self.client.stream(question, **self.asking(run_manager, more))

    async def _aevents(
        self, inputs: AsyncIterator[Asked], run_manager: AsyncCallbackManagerForChainRun, **given: Any
    ) -> AsyncGenerator[Event, None]:
        question, more = _split(_whole([part async for part in inputs]), given)
        async with aclosing(self.client.astream(question, **self.asking(run_manager, more))) as events:
            async for event in events:
                yield event


async def _alone(asked: Asked) -> AsyncIterator[Asked]:
    yield asked


def _split(asked: Asked, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the question, and what else is said of it; what the call says goes before what the input says."""
    if isinstance(asked, str):
        return asked, dict(given)
    if not isinstance(asked, Mapping):
        raise UsageError(f"a question is text, or a mapping with 'question', not {type(asked).__name__}")
    if "question" not in asked and "memory" not in asked:
        raise UsageError(f"the input has no 'question', only {', '.join(map(repr, asked)) or 'nothing'}")
    more = {name: value for name, value in asked.items() if name != "question"}
    return asked.get("question", ""), {**more, **given}


def _whole(parts: list[Any]) -> Any:
    """Return what streamed parts are together; of parts that can't be added, the last."""
    whole = parts[0] if parts else ""
    for part in parts[1:]:
        try:
            whole = whole + part
        except TypeError:
            whole = part
    return whole
