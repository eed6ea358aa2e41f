"""A chat history for LangChain whose messages are a conversation of a corpus, and can be asked about at once."""

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from hgmem.client import HGMem
from hgmem.errors import UsageError
from hgmem.values.conversations import Conversation, Message

NAMES = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool"}
WORDLESS = "(no text)"  # what is indexed of a message that has none, such as a call of a tool


class HGMemChatMessageHistory(BaseChatMessageHistory):
    """The messages of a conversation, in order. Adding some indexes them, without a call of a model.

    `names` say who speaks by the type of a message where that has no name: by default Human, AI, System and Tool. A
    message without an id gets one, and one with an id that is stored is not added twice. The title counts for a new
    conversation.
    """

    def __init__(
        self,
        client: HGMem,
        conversation: str,
        *,
        title: str = "",
        corpus: str | None = None,
        names: dict[str, str] | None = None,
    ) -> None:
        self.client = client
        self.conversation = conversation
        self.title = title
        self.corpus = corpus
        self.names = {**NAMES, **(names or {})}

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages as they were added."""
        return messages_from_dict([_restored(message) for message in self._stored()])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages to the conversation."""
        named = any(message.id for message in messages)
        known = {message.id for message in self._stored()} if named else set()
        new = [self._to_store(message) for message in messages if message.id not in known]
        if new:
            self.client.append(Conversation(id=self.conversation, title=self.title), new, corpus=self.corpus)

    def clear(self) -> None:
        """Delete the conversation, if there is one."""
        if self._stored():
            self.client.delete(document=self.conversation, corpus=self.corpus)

    def _stored(self) -> tuple[Message, ...]:
        try:
            return self.client.messages(self.conversation, corpus=self.corpus)
        except UsageError:  # neither the corpus nor the conversation exists before the first message
            return ()

    def _to_store(self, message: BaseMessage) -> Message:
        plain = message_to_dict(message)
        plain["data"]["id"] = message.id or uuid.uuid4().hex
        return Message(
            speaker=message.name or self.names.get(message.type, message.type),
            text=str(message.text).strip() or WORDLESS,
            time=datetime.now(UTC),
            id=plain["data"]["id"],
            metadata={"langchain": json.dumps(plain, ensure_ascii=False)},
        )


def _restored(message: Message) -> dict[str, object]:
    """Return a message as LangChain wrote it. One that came in otherwise is a chat message of its speaker."""
    written = (message.metadata or {}).get("langchain")
    if isinstance(written, str):
        return dict(json.loads(written))
    return {"type": "chat", "data": {"role": message.speaker, "content": message.text, "id": message.id}}
