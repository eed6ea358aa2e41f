"""The tool: an agent asks a question, and gets the answer's text, with the answer itself as artifact."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from langchain_core.callbacks.manager import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.tools import ArgsSchema, BaseTool, ToolException
from pydantic import BaseModel, Field

from hgmem.errors import HGMemError
from hgmem.langchain.investigating import STRICT, Investigating
from hgmem.model import Answer

DESCRIPTION = (
    "Answers a question from a collection of documents. It investigates in several steps, so it can answer questions "
    "whose facts lie far apart; ask one whole question, in plain words. [1], [2] … mark what is quoted from a document."
)


class HGMemInput(BaseModel):
    """What the tool is called with."""

    question: str = Field(description="The whole question, in plain words.")
    memory: str | None = Field(
        None, description="The uid of an earlier question's memory, to go on with what it knows."
    )


class HGMemTool(Investigating, BaseTool):
    """Answers questions for an agent; `handle_tool_error=True` lets it read errors instead of failing."""

    model_config = STRICT

    name: str = "hgmem"
    description: str = DESCRIPTION
    args_schema: ArgsSchema | None = HGMemInput
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(
        self, question: str, memory: str | None = None, *, run_manager: CallbackManagerForToolRun | None = None
    ) -> tuple[str, Answer]:
        with _told():
            answer = self.client.ask(question, **self.asking(run_manager, {"memory": memory or self.memory}))
        return answer.text, answer

    async def _arun(
        self, question: str, memory: str | None = None, *, run_manager: AsyncCallbackManagerForToolRun | None = None
    ) -> tuple[str, Answer]:
        with _told():
            answer = await self.client.aask(question, **self.asking(run_manager, {"memory": memory or self.memory}))
        return answer.text, answer


@contextmanager
def _told() -> Iterator[None]:
    """Raise our errors as those of tools, with the memory that can be gone on with."""
    try:
        yield
    except HGMemError as error:
        on = f" (memory {error.memory!r} can be gone on with)" if error.memory else ""
        raise ToolException(f"{error}{on}") from error
