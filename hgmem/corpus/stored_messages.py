"""Read the messages of a stored conversation back."""

from hgmem.errors import UsageError
from hgmem.extraction.message_chunks import messages_in, words_of
from hgmem.graph.conversations import conversation_chunks, conversation_end
from hgmem.services import Services, known_corpus
from hgmem.text.identity import uid
from hgmem.values.conversations import Message


def stored_messages(services: Services, conversation: str) -> tuple[Message, ...]:
    """Return the messages of a conversation in order.

    Runs of blanks and line breaks in their texts have become one space. Raises `UsageError` if there is no such
    conversation.
    """
    document = uid(known_corpus(services).corpus, "document", conversation)
    chunks = conversation_chunks(services.database, corpus=services.corpus, uid=document)
    if not chunks and conversation_end(services.database, corpus=services.corpus, uid=document) is None:
        raise UsageError(
            f"corpus {services.corpus!r} has no conversation {conversation!r}: `hgmem status --corpus "
            f"{services.corpus}` lists their ids"
        )
    return tuple(
        Message(
            speaker=place.speaker,
            text=words_of(held, id_),
            time=place.time or None,
            id=id_,
            metadata=dict(place.metadata) or None,
        )
        for id_, (place, held) in messages_in(chunks).items()
    )
