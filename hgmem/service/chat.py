"""Questions in the form of OpenAI's chat completions, so that any chat page can use hgmem as its model.

The model is a system, or `system/recipe`. The question is the last message of the user; earlier ones are not read.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict

from hgmem.client.asking import answer_among
from hgmem.errors import UsageError
from hgmem.service.callers import Asker, Reader
from hgmem.service.problems import problem_of
from hgmem.service.questions import EVENTS, UNBUFFERED, begun, json_of, streamed, with_pauses
from hgmem.service.repetition import Repeat
from hgmem.service.shapes import ChatCompletion, ModelList
from hgmem.values.as_json import row
from hgmem.values.events import Answered, Event, EvidenceFound, Planned, QuestionAccepted
from hgmem.values.records import Answer

router = APIRouter(prefix="/v1", tags=["OpenAI's form"])


class Said(BaseModel):
    """A message: its text, or parts of which those of type `text` are read."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class Completion(BaseModel):
    """A request for a completion. Sampling and other options of language models have no effect."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "hgmem", "messages": [{"role": "user", "content": "Who owned the warehouse?"}]},
            ]
        }
    )

    model: str
    messages: list[Said]
    stream: bool = False


@router.get("/models", response_model=ModelList)
def chat_models(caller: Reader) -> Response:
    """List the systems, and each with each of its recipes, as models."""
    found = [one for one in caller.client.systems() if one.answers]
    names = [name for one in found for name in (one.name, *(f"{one.name}/{recipe}" for recipe in one.recipes))]
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "hgmem"} for name in names]
    return json_of({"object": "list", "data": data})


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"content": {EVENTS: {}}}},
)
async def complete(
    caller: Asker,
    asked: Completion,
    x_hgmem_corpus: Annotated[str | None, Header()] = None,
    repeat: Repeat = None,
) -> Response:
    """Answer the last message of the user from a corpus: that of the header, else the only one of the key."""
    corpus = x_hgmem_corpus or (caller.key.corpora[0] if len(caller.key.corpora) == 1 else "")
    if not corpus:
        raise UsageError("no corpus is named: send its name as header X-Hgmem-Corpus, or use a key of one corpus")
    said = [one.text for one in asked.messages if one.role == "user"]
    if not said:
        raise UsageError("the messages have none of role 'user': send the question as its content")
    system, _, recipe = asked.model.partition("/")
    options: Any = {"corpus": corpus, "system": system, **({"recipe": recipe} if recipe else {})}
    events = await begun(streamed(caller, said[-1], options, repeat=repeat))
    if asked.stream:
        pieces = _pieces(events, asked.model, admin=caller.key.is_admin)
        return StreamingResponse(pieces, media_type=EVENTS, headers=UNBUFFERED)
    answer = await answer_among(events)
    message = {"role": "assistant", "content": _with_sources(answer)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json_of({**_frame("chat.completion", asked.model, answer.memory), "choices": [choice], **_more(answer)})


async def _pieces(events: AsyncGenerator[Event, None], model: str, *, admin: bool) -> AsyncIterator[str]:
    """Yield the events as a streamed completion.

    The steps are said as reasoning. The answer comes at once, when its citations are checked.
    """
    memory = ""

    def piece(delta: Mapping[str, object], **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if not delta else None}
        return (
            f"data: {json.dumps({**_frame('chat.completion.chunk', model, memory), 'choices': [choice], **more})}\n\n"
        )

    try:
        async with aclosing(with_pauses(events)) as paused:  # type: ignore[type-var]
            async for event in paused:
                if isinstance(event, QuestionAccepted):
                    memory = event.memory
                    yield piece({"role": "assistant", "content": ""})
                elif isinstance(event, Answered):
                    role = {} if memory else {"role": "assistant"}  # an answer that is given again comes alone
                    memory = event.answer.memory
                    yield piece({**role, "content": _with_sources(event.answer)})
                    yield piece({}, **_more(event.answer))
                elif told := _step(event):
                    yield piece({"reasoning_content": told})
                elif event is None:
                    yield ": still here\n\n"
    except Exception as error:
        found = json.loads(bytes(problem_of(error, admin=admin).body))
        yield f"data: {json.dumps({'error': {**found, 'message': found['detail']}})}\n\n"
    yield "data: [DONE]\n\n"


def _step(event: Event | None) -> str:
    if isinstance(event, EvidenceFound):
        return f"Step {event.step} found {event.chunks} passages and {event.entities} entities.\n"
    if isinstance(event, Planned) and event.subqueries:
        return "".join(f"Next: {asked.text}\n" for asked in event.subqueries)
    return ""


def _frame(kind: str, model: str, memory: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{memory}", "object": kind, "created": int(time.time()), "model": model}


def _more(answer: Answer) -> dict[str, object]:
    sent, got = answer.usage.prompt_tokens, answer.usage.completion_tokens
    return {
        "usage": {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got},
        "hgmem": {"memory": answer.memory, "citations": [row(one) for one in answer.citations]},
    }


def _with_sources(answer: Answer) -> str:
    """Return the answer with its quotes, because chat pages show only its text."""
    quotes = [f"[{one.marker}] {one.title}: “{one.quote}”" for one in answer.citations]
    return "\n\n".join([answer.text, *(["\n".join(quotes)] if quotes else [])])
