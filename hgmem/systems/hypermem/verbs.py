"""What HyperMem can do besides answering: list what it knows, and forget."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import PositiveInt

from hgmem.corpus.deletion import forget_messages
from hgmem.errors import UsageError
from hgmem.graph.corpus import corpus_language
from hgmem.graph.documents import document_states
from hgmem.graph.full_text import MOST_TERMS
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.hypermem.answer import FIRST, LAST, Depths, Recalled, recall, to_recalled
from hgmem.systems.hypermem.dialogues import sortable, until
from hgmem.systems.verbs import Verb
from hgmem.text.stems import searched_stems
from hgmem.values.reports import Forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsWanted:
    """Which facts are listed."""

    about: Annotated[str, "Only facts with these words, in any form. Default: everything, the newest first."] = ""
    since: Annotated[str, "Only facts of messages from this time on, such as 2023-05-01."] = ""
    until: Annotated[str, "Only facts of messages up to this time; a day counts to its end."] = ""
    speaker: Annotated[str, "Only what this person said."] = ""
    limit: Annotated[PositiveInt, "Maximum facts."] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact: what it says, who said it when, when and where it is, and the conversation and messages (ids)."""

    fact: str
    speakers: tuple[str, ...]
    said_at: str
    event_time: str
    place: str
    conversation: str
    message_ids: tuple[str, ...]
    confidence: float


def facts(services: Services, arguments: FactsWanted) -> Sequence[KnownFact]:
    """Return facts with the words asked for, those that fit best first, or else the newest of all."""
    about = arguments.about.strip()
    language = corpus_language(services.database, corpus=services.corpus)
    depths = Depths(
        topics=0,
        episodes=0,
        facts=arguments.limit,
        inherit=0,
        depth=max(PROPOSED_NEAREST, arguments.limit),
        over=max(PROPOSED_NEAREST, arguments.limit),
        since=_time("since", arguments.since, sortable) or (FIRST if arguments.until.strip() else ""),
        until=_time("until", arguments.until, until) or LAST,
        speaker=arguments.speaker.strip(),
        stems=tuple(f" {stem} " for stem in searched_stems(about, language, most=MOST_TERMS)),
    )
    if about:
        asked = (about, services.embed([about], kind="query")[0])
        scope = Scope(corpus=services.corpus)
        found: Sequence[Recalled] = recall(services.database, scope=scope, asked=asked, depths=depths, given={})["Fact"]
    else:
        rows = services.database.run("list_facts", corpus=services.corpus, limits=asdict(depths))
        found = [to_recalled(row, "Fact") for row in rows if row["row"]["uid"] is not None]
    uids = list(dict.fromkeys(row.properties["document"] for row in found))
    documents = document_states(services.database, corpus=services.corpus, uids=uids)
    ids = {uid: state.source or state.title for uid, state in documents.items()}
    return [
        KnownFact(
            fact=values["content"],
            speakers=tuple(values["speakers"]),
            said_at=values["said_at"],
            event_time=values["event_time"],
            place=values["place"],
            conversation=ids.get(values["document"], ""),
            message_ids=tuple(values["message_ids"]),
            confidence=values["confidence"],
        )
        for values in (row.properties for row in found)
    ]


def _time(name: str, text: str, read: Callable[[str], str]) -> str:
    try:
        return read(text.strip())
    except ValueError as error:
        raise UsageError(f"invalid {name}={text!r}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToForget:
    """What is forgotten."""

    conversation: Annotated[str, "The id of the conversation. Alone, all of it is forgotten."] = ""
    message: Annotated[str, "The id of a message of the conversation."] = ""
    speaker: Annotated[str, "Everything that this person said, in the conversation if one is named."] = ""
    everywhere: Annotated[bool, "Delete the memories of questions too that were shown these words."] = False


def forget(services: Services, arguments: ToForget) -> Forgotten:
    """Delete messages with everything that rests on them alone, and return how much went."""
    return forget_messages(
        services,
        conversation=arguments.conversation or None,
        message=arguments.message or None,
        speaker=arguments.speaker or None,
        everywhere=arguments.everywhere,
    )


VERBS = (
    Verb(
        name="facts",
        summary="List what is known, about something or the newest.",
        arguments=FactsWanted,
        run=facts,
        built=True,
    ),
    Verb(
        name="forget", summary="Forget a message, a conversation or what somebody said.", arguments=ToForget, run=forget
    ),
)
