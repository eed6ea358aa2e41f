"""OpenAI's chat form, asked by OpenAI's own client."""

from collections.abc import Iterator

import httpx
import openai
import pytest
from letters import LETTERS, QUESTION
from serving import Service, serving

from hgmem import HGMem, Settings
from hgmem.client.serving import ServiceStore

CORPUS = "service-chat"


@pytest.fixture(scope="module")
def chat(settings: Settings) -> Iterator[tuple[HGMem, Service, str]]:
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        client.add_graph(LETTERS)
        token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
        with serving(client) as service:
            yield client, service, token
        ServiceStore(client).revoke_key(key.uid)
        client.delete()


def opened(service: Service, token: str, **more: str) -> openai.OpenAI:
    transport = httpx.Client(trust_env=False, timeout=120)
    return openai.OpenAI(
        base_url=f"{service.address}/v1", api_key=token, max_retries=0, http_client=transport, default_headers=more
    )


def test_openais_client_lists_models_and_gets_an_answer_with_its_quotes(chat: tuple[HGMem, Service, str]) -> None:
    client, service, token = chat
    ai = opened(service, token)
    names = [model.id for model in ai.models.list()]
    assert {"hgmem", "hgmem/paper", "hybrid"} <= set(names)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    done = ai.chat.completions.create(model="hybrid", messages=messages, temperature=0.1)  # type: ignore[call-overload]
    memory = done.id.removeprefix("chatcmpl-")
    answer = client.memory(memory).answers[-1]
    assert (answer.question, client.memory(memory).owner, client.memory(memory).system) == (QUESTION, "anna", "hybrid")
    text = done.choices[0].message.content
    assert text.startswith(answer.text)
    assert answer.citations
    assert all(one.quote in text for one in answer.citations)


def test_a_stream_says_the_steps_and_then_the_answer(chat: tuple[HGMem, Service, str]) -> None:
    client, service, token = chat
    pieces = list(
        opened(service, token).chat.completions.create(
            model="hgmem/default", messages=[{"role": "user", "content": QUESTION}], stream=True
        )
    )
    deltas = [piece.choices[0].delta for piece in pieces]
    text = "".join(delta.content or "" for delta in deltas)
    assert any("Step 1 found" in getattr(delta, "reasoning_content", "") for delta in deltas)
    assert text.startswith(client.memory(pieces[-1].id.removeprefix("chatcmpl-")).answers[-1].text)
    assert pieces[-1].choices[0].finish_reason == "stop"


def test_a_completion_that_is_repeated_with_its_idempotency_key_asks_no_second_question(
    chat: tuple[HGMem, Service, str],
) -> None:
    client, service, token = chat
    completions = opened(service, token, **{"Idempotency-Key": "again"}).chat.completions
    said = [{"role": "user", "content": QUESTION}]
    before = len(client.memories())
    first, second = (completions.create(model="hybrid", messages=said) for _ in range(2))  # type: ignore[call-overload]
    pieces = list(completions.create(model="hybrid", messages=said, stream=True))  # type: ignore[call-overload]
    assert len(client.memories()) == before + 1
    assert {one.id for one in (second, *pieces)} == {first.id}
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
    assert first.choices[0].message.content == second.choices[0].message.content == text
    assert pieces[0].choices[0].delta.role == "assistant"
    with pytest.raises(openai.ConflictError, match="was sent with another request"):
        completions.create(model="hgmem", messages=said)  # type: ignore[call-overload]


def test_what_is_missing_is_said(chat: tuple[HGMem, Service, str]) -> None:
    client, service, token = chat
    said = [{"role": "user", "content": QUESTION}]
    with pytest.raises(openai.BadRequestError, match="'none'"):
        opened(service, token).chat.completions.create(model="none", messages=said)  # type: ignore[arg-type]
    with pytest.raises(openai.PermissionDeniedError, match="does not reach corpus 'other'"):
        opened(service, token, **{"X-Hgmem-Corpus": "other"}).chat.completions.create(model="hybrid", messages=said)  # type: ignore[arg-type]
    with pytest.raises(openai.UnprocessableEntityError, match="messages: Input should be"):
        opened(service, token).chat.completions.create(model="hybrid", messages=5)  # type: ignore[arg-type]
    with pytest.raises(openai.BadRequestError, match="none of role 'user'"):
        opened(service, token).chat.completions.create(model="hybrid", messages=[])
    every, key = ServiceStore(client).make_key("anna")
    with pytest.raises(openai.BadRequestError, match="no corpus is named"):
        opened(service, every).chat.completions.create(model="hybrid", messages=said)  # type: ignore[arg-type]
    ServiceStore(client).revoke_key(key.uid)
    with pytest.raises(openai.AuthenticationError, match="not known"):
        opened(service, "hgm_no").models.list()
