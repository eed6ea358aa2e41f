"""The tool: an agent asks a question and gets the answer's text, with the `Answer` as artifact."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from langchain_core.callbacks.manager import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.tools import ArgsSchema, BaseTool, ToolException
from pydantic import BaseModel, Field

from hgmem.errors import HGMemError
from hgmem.langchain.investigating import STRICT, Investigating
from hgmem.values.records import Answer

DESCRIPTION = (
    "Answers a question from a collection of documents. It investigates in several steps, so it can answer questions "
    "whose facts lie far apart; ask one whole question, in plain words. [1], [2] … mark what is quoted from a document."
)


class HGMemInput(BaseModel):
    """The arguments of the tool."""

    question: str = Field(description="The whole question, in plain words.")
    memory: str | None = Field(
        None, description="The uid of an earlier question's memory, to go on with what it knows."
    )


class HGMemTool(Investigating, BaseTool):
    """Answers questions for an agent. With `handle_tool_error=True`, the agent reads errors instead of failing."""

    model_config = STRICT

    name: str = "hgmem"
    description: str = DESCRIPTION
    args_schema: ArgsSchema | None = HGMemInput
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(
        self, question: str, memory: str | None = None, *, run_manager: CallbackManagerForToolRun | None = None
    ) -> tuple[str, Answer]:
        with _as_tool_errors():
            answer = self.client.ask(question, **self.options(run_manager, {"memory": memory or self.memory}))
        return answer.text, answer

    async def _arun(
        self, question: str, memory: str | None = None, *, run_manager: AsyncCallbackManagerForToolRun | None = None
    ) -> tuple[str, Answer]:
        with _as_tool_errors():
            answer = await self.client.aask(question, **self.options(run_manager, {"memory": memory or self.memory}))
        return answer.text, answer


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Raise hgmem's errors as tool errors that name the memory to continue."""
    try:
        yield
    except HGMemError as error:
        on = f" (continue with memory {error.memory!r})" if error.memory else ""
        raise ToolException(f"{error}{on}") from error
