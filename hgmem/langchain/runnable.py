"""The runnable: takes a question, returns the answer with its memory, and traces the steps as child runs."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

from langchain_core.callbacks.manager import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from hgmem.errors import UsageError
from hgmem.langchain.investigating import STRICT, Investigating
from hgmem.langchain.tool import HGMemTool
from hgmem.values.events import Event
from hgmem.values.records import Answer

QuestionInput: TypeAlias = str | Mapping[str, Any]


class HGMemRunnable(Investigating, RunnableSerializable[QuestionInput, Answer]):
    """Answers a question given as text, or as a mapping of `question` and ask options.

    `stream` and `astream` yield the events of `HGMem.stream`. Inside a chain, the answer is passed on whole.
    """

    model_config = STRICT

    def invoke(self, input: QuestionInput, config: RunnableConfig | None = None, **given: Any) -> Answer:  # noqa: A002
        """Return the answer."""
        return self._call_with_config(self._ask, input, config, **given)

    async def ainvoke(self, input: QuestionInput, config: RunnableConfig | None = None, **given: Any) -> Answer:  # noqa: A002
        """Return the answer without blocking the event loop.

        Cancelling it stops the work before its next model call.
        """
        return await self._acall_with_config(self._aask, input, config, **given)

    def stream(  # type: ignore[override]
        self,
        input: QuestionInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> Iterator[Event]:
        """Yield events while the question is answered.

        Closing the iterator stops the work before its next model call.
        """
        events: Any = self._transform_stream_with_config(
            iter([input]),
            self._events,  # type: ignore[arg-type]
            config,
            **given,
        )
        yield from events

    async def astream(  # type: ignore[override]
        self,
        input: QuestionInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of `stream` without blocking the event loop."""
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
        input: Iterator[QuestionInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> Iterator[Answer]:
        """Yield the answer to the complete input, for the next runnable of a chain."""
        yield self.invoke(_whole(list(input)), config, **given)

    async def atransform(
        self,
        input: AsyncIterator[QuestionInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **given: Any,
    ) -> AsyncIterator[Answer]:
        """Yield the result of `transform` without blocking the event loop."""
        yield await self.ainvoke(_whole([part async for part in input]), config, **given)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool that asks with the same options.

        Without a schema, it is an `HGMemTool`, which returns the answer's text. With `args_schema` or
        `arg_types`, it is LangChain's own tool, which takes those arguments and returns the `Answer`.
        """
        if args_schema is not None or arg_types is not None:
            return super().as_tool(args_schema, name=name, description=description, arg_types=arg_types)
        fields: dict[str, Any] = {one: getattr(self, one) for one in Investigating.model_fields}
        named = {"name": name or self.name, "description": description}
        return HGMemTool(**fields | {one: value for one, value in named.items() if value})

    def _ask(self, asked: QuestionInput, run_manager: CallbackManagerForChainRun, **given: Any) -> Answer:
        question, more = _split(asked, given)
        return self.client.ask(question, **self.options(run_manager, more))

    async def _aask(self, asked: QuestionInput, run_manager: AsyncCallbackManagerForChainRun, **given: Any) -> Answer:
        question, more = _split(asked, given)
        return await self.client.aask(question, **self.options(run_manager, more))

    def _events(
        self, inputs: Iterator[QuestionInput], run_manager: CallbackManagerForChainRun, **given: Any
    ) -> Generator[Event, None, None]:
        question, more = _split(_whole(list(inputs)), given)
        yield from self.client.stream(question, **self.options(run_manager, more))

    async def _aevents(
        self, inputs: AsyncIterator[QuestionInput], run_manager: AsyncCallbackManagerForChainRun, **given: Any
    ) -> AsyncGenerator[Event, None]:
        question, more = _split(_whole([part async for part in inputs]), given)
        async with aclosing(self.client.astream(question, **self.options(run_manager, more))) as events:
            async for event in events:
                yield event


async def _alone(asked: QuestionInput) -> AsyncIterator[QuestionInput]:
    yield asked


def _split(asked: QuestionInput, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the question and its ask options. Options of the call override those of the input."""
    if isinstance(asked, str):
        return asked, dict(given)
    if not isinstance(asked, Mapping):
        raise UsageError(f"a question must be a string or a mapping with 'question', not {type(asked).__name__}")
    if "question" not in asked and "memory" not in asked:
        raise UsageError(f"the input has no 'question', only {', '.join(map(repr, asked)) or 'nothing'}: add it")
    more = {name: value for name, value in asked.items() if name != "question"}
    return asked.get("question", ""), {**more, **given}


def _whole(parts: list[Any]) -> Any:
    """Return the sum of the streamed parts, or the last one if they can't be added."""
    whole = parts[0] if parts else ""
    for part in parts[1:]:
        try:
            whole = whole + part
        except TypeError:
            whole = part
    return whole
