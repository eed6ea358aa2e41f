"""Tracing: a question's steps and model calls as LangChain runs below the run that asks.

All callbacks run in the thread that answers the question, even if another thread reads its events.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import CallbackManager
from langchain_core.callbacks.manager import (
    AsyncParentRunManager,
    CallbackManagerForChainRun,
    CallbackManagerForLLMRun,
    ParentRunManager,
)
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables.config import patch_config, set_config_context
from pydantic import BaseModel

from hgmem.models.llm import LanguageModel
from hgmem.models.llm.chat import chat_below
from hgmem.models.llm.langchain_chat import ENDPOINT, messages_of
from hgmem.models.metering import measuring
from hgmem.models.prompts import prompt_of
from hgmem.values.events import AnswerToken, Event, EvidenceFound, OperationApplied, Planned, StepStarted, Watcher
from hgmem.values.evidence import Subquery
from hgmem.values.task import Task
from hgmem.values.usage import Usage

Done = TypeVar("Done")


class Tracing(Watcher):
    """Traces one question: a chain run per step, a chat-model run per model call.

    Steps are tagged `hgmem:step:N`, calls `hgmem:task:NAME`. A call is a child of its step, or of `manager`'s run
    outside a step, as for the answer. LangChain chat models create their own runs in the same place.
    """

    def __init__(self, manager: ParentRunManager | AsyncParentRunManager, model: LanguageModel) -> None:
        synchronous: Any = manager.get_sync() if isinstance(manager, AsyncParentRunManager) else manager
        self._root: ParentRunManager = synchronous
        self._model = model
        self._traces_itself = str(getattr(chat_below(model), "endpoint", "")).startswith(ENDPOINT)
        self._step: CallbackManagerForChainRun | None = None
        self._done: dict[str, Any] = {}  # outputs of the current step
        self._calling: CallbackManagerForLLMRun | None = None

    def question(self, work: Callable[[], Done], /) -> Done:
        """Run the work of a whole question. If it fails, the current step's run ends with the error."""
        try:
            return work()
        except BaseException as error:
            if step := self._ending():
                step.on_chain_error(error)
            raise

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Run one model call as a run of its own."""
        child = (self._step or self._root).get_child(f"hgmem:task:{task.name}")
        if self._traces_itself or not child.handlers:
            return _inside(child, work)
        name = self._model.name
        child.add_metadata({"ls_provider": "hgmem", "ls_model_name": name, "ls_model_type": "chat"}, inherit=False)
        asked: list[BaseMessage] = list(messages_of(prompt_of(task).filled(task.fields())))
        (run,) = child.on_chat_model_start({"name": name}, [asked], name=task.name)
        self._calling = run
        try:
            with measuring() as meter:
                done = _inside(child, work)
        except BaseException as error:
            run.on_llm_error(error, response=LLMResult(generations=[]))
            raise
        finally:
            self._calling = None
        run.on_llm_end(_result(done, meter.usage(), name))
        return done

    def hear(self, event: Event, /) -> None:
        """Start and end the runs of steps, and pass on streamed tokens."""
        match event:
            case StepStarted():
                asked = {"step": event.step, "subqueries": _texts(event.subqueries)}
                manager = self._root.get_child(f"hgmem:step:{event.step}")
                self._step = manager.on_chain_start({"name": "hgmem step"}, asked, name=f"step {event.step}")
                self._done = {"operations": []}
            case EvidenceFound():
                self._done["strategy"] = event.strategy
                self._done |= {name: getattr(event, name) for name in ("entities", "relations", "chunks")}
                if event.built:
                    self._done["built"] = [{"kind": hit.kind, "text": hit.text} for hit in event.built]
            case OperationApplied():
                operation = event.operation
                self._done["operations"].append(
                    {"kind": operation.kind, "point": operation.point, "description": event.description}
                )
            case Planned() if step := self._ending():
                leads = {"judgement": event.judgement, "subqueries": _texts(event.subqueries)}
                step.on_chain_end({**self._done, **leads, "notes": list(event.notes)})
            case AnswerToken() if self._calling is not None:
                piece = ChatGenerationChunk(message=AIMessageChunk(content=event.text))
                self._calling.on_llm_new_token(event.text, chunk=piece)

    def _ending(self) -> CallbackManagerForChainRun | None:
        """Return the current step's run and forget it, so that it is ended only once even if a callback raises."""
        step, self._step = self._step, None
        return step


def _inside(child: CallbackManager, work: Callable[[], Done]) -> Done:
    """Run the work in LangChain's context, so that LangChain runs inside it become children."""
    with set_config_context(patch_config(None, callbacks=child)) as context:
        return context.run(work)


def _texts(subqueries: Sequence[Subquery]) -> list[str]:
    return [one.text for one in subqueries]


def _result(done: object, usage: Usage, model: str) -> LLMResult:
    text = done.model_dump_json() if isinstance(done, BaseModel) else str(done)
    metadata: dict[str, Any] = {"model_name": model}
    estimated = sum(counts.get("estimated", 0) for counts in usage.tokens.values())
    if estimated:
        metadata["estimated_tokens"] = estimated
    message = AIMessage(content=text, usage_metadata=_counted(usage), response_metadata=metadata)
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def _counted(usage: Usage) -> UsageMetadata | None:
    """Return the token counts in LangChain's form, or None for a model without any."""
    if not usage.tokens:
        return None
    return UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=usage.cached_tokens),
    )
