"""The chat history for LangChain: messages come back as they were added, and are found."""

import asyncio

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from conversing import conversation, messages
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from hgmem import HGMem, UsageError
from hgmem.langchain import HGMemChatMessageHistory

CALL = {"name": "search", "args": {"q": "lamp"}, "id": "c1", "type": "tool_call"}
SAID: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("What colour\n\n  has the lamp?", name="Ann"),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("red", tool_call_id="c1"),
    AIMessage("The lamp of Nordhavn is red.", id="a1"),
]


def test_messages_come_back_as_they_were_added(client: HGMem) -> None:
    history = HGMemChatMessageHistory(client, "chat", title="Talk")
    history.clear()
    history.add_messages(SAID[:2])
    history.add_messages(SAID[2:])
    found = history.messages
    assert [(one.type, one.content, one.name) for one in found] == [(one.type, one.content, one.name) for one in SAID]
    assert [one.tool_calls for one in found if isinstance(one, AIMessage)] == [[CALL], []]
    assert len({one.id for one in found}) == 5
    history.add_messages([SAID[4]])
    assert len(history.messages) == 5
    answer = client.ask("What colour has the lamp of Nordhavn?", system="bm25")
    assert "AI" in {one.speaker for one in answer.citations}
    assert client.check().ok
    history.clear()
    assert history.messages == []
    assert client.status().documents == 0


def test_a_history_is_awaited(client: HGMem) -> None:
    history = HGMemChatMessageHistory(client, "chat", names={"human": "Bob"})

    async def talk() -> list[BaseMessage]:
        await history.aadd_messages([HumanMessage("Yes."), AIMessage("No.")])
        found = await history.aget_messages()
        await history.aclear()
        return found

    assert [one.content for one in asyncio.run(talk())] == ["Yes.", "No."]
    assert history.messages == []
    history.add_messages([])
    with pytest.raises(UsageError, match=r"has no conversation 'chat': `hgmem status --corpus \w+` lists their ids"):
        client.messages("chat")


def test_a_runnable_keeps_its_history(client: HGMem) -> None:
    def replied(said: list[BaseMessage]) -> AIMessage:
        return AIMessage(f"{len(said)} messages before this.")

    runnable = RunnableWithMessageHistory(
        RunnableLambda(replied), lambda session_id: HGMemChatMessageHistory(client, session_id)
    )
    for count in (1, 3):
        said = runnable.invoke([HumanMessage("And now?")], {"configurable": {"session_id": "one"}})
        assert said.content == f"{count} messages before this."
    assert [one.speaker for one in client.messages("one")] == ["Human", "AI"] * 2


def test_messages_of_other_sources_are_chat_messages_of_their_speaker(client: HGMem) -> None:
    client.add(conversation(messages(3)), graph=False)
    found = HGMemChatMessageHistory(client, "chat").messages
    assert [one.content for one in found] == [one.text for one in messages(3)]
    assert {one.type for one in found} == {"chat"}
    assert [(one.id, one.text, one.speaker) for one in client.messages("chat")] == [
        (one.id, one.text, one.speaker) for one in messages(3)
    ]
