"""What HyperMem can do besides answering: list what it knows and what changed, and forget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from pydantic import Field

from hgmem.corpus.deletion import forget_messages
from hgmem.errors import UsageError
from hgmem.graph.corpus import corpus_language
from hgmem.graph.documents import document_states
from hgmem.graph.full_text import MOST_TERMS
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.hypermem.answer import FIRST, Depths, recall, with_speaker
from hgmem.systems.hypermem.dialogues import sortable, until
from hgmem.systems.hypermem.names import other_names
from hgmem.systems.hypermem.standing import LAST, Recalled, Standing, standings, to_recalled
from hgmem.systems.verbs import Verb
from hgmem.text.stems import searched_stems
from hgmem.values.reports import Forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsWanted:
    """Which facts are listed."""

    about: Annotated[
        str, "Only facts with these words, in any form; of a name, with its other names. Default: all."
    ] = ""
    as_of: Annotated[str, "Only what held at this time, by what was said until then, such as 2023-05-01."] = ""
    since: Annotated[str, "Only facts of messages from this time on, such as 2023-05-01."] = ""
    until: Annotated[str, "Only facts of messages up to this time; a day counts to its end."] = ""
    speaker: Annotated[str, "Only what this person said."] = ""
    limit: Annotated[int, Field(ge=1, le=10_000), "Maximum facts."] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact: what it says, who said it when, when and where it is, and the conversation and messages (ids).

    It holds from `since`, when it was said first, to `until`, empty where nothing has ended it. `notes` tell what ended
    it, what it replaced, and what contradicts it; "it seems" marks guesses of rules.
    """

    fact: str
    speakers: tuple[str, ...]
    said_at: str
    since: str
    until: str
    notes: tuple[str, ...]
    event_time: str
    place: str
    conversation: str
    message_ids: tuple[str, ...]
    confidence: float


def facts(services: Services, arguments: FactsWanted) -> Sequence[KnownFact]:
    """Return facts with the words asked for, those that fit best first, or else the newest of all.

    Raises `UsageError` if the corpus has no message of the speaker.
    """
    speaker = arguments.speaker.strip()
    with_speaker(services, Scope(corpus=services.corpus), speaker)
    as_of = _time("as_of", arguments.as_of, until)
    last = min(_time("until", arguments.until, until) or LAST, as_of or LAST)
    wanted = replace(
        _DEPTHS,
        since=_time("since", arguments.since, sortable) or (FIRST if last != LAST else ""),
        until=last,
        speaker=speaker,
    )
    limit = arguments.limit
    depth = max(PROPOSED_NEAREST, limit)
    while True:  # what no longer held makes room for more
        found = _found(services, arguments.about.strip(), replace(wanted, facts=depth, depth=depth, over=depth))
        scope, uids = Scope(corpus=services.corpus), [row.uid for row in found]
        how = standings(services.database, scope=scope, uids=uids, until=as_of or LAST)
        held = [row for row in found if not as_of or _holds(how[row.uid], as_of)]
        if len(held) >= limit or len(found) < depth:
            break
        depth *= 4
    ids = _conversations(services, held[:limit])
    return [_known(row, how[row.uid], now=as_of or LAST, ids=ids) for row in held[:limit]]


_DEPTHS = Depths(topics=0, episodes=0, facts=0, inherit=0, depth=0, over=0)


def _holds(standing: Standing, at: str) -> bool:
    """Return whether a fact holds at a time, and does not only repeat another that does."""
    return not standing.until(at) and not standing.repeats


def _found(services: Services, about: str, depths: Depths) -> Sequence[Recalled]:
    """Return the facts with words, in any form, or with those of another name of the same, or the newest of all."""
    if not about:
        rows = services.database.run("list_facts", corpus=services.corpus, limits=asdict(depths))
        return [to_recalled(row, "Fact") for row in rows if row["row"]["uid"] is not None]
    language = corpus_language(services.database, corpus=services.corpus)
    names = [about, *other_names(services, [about])]
    stems = [tuple(f" {stem} " for stem in searched_stems(name, language, most=MOST_TERMS)) for name in names]
    asked = (" ".join(names), services.embed([about], kind="query")[0])
    depths = replace(depths, stems=tuple(stems))
    return recall(services.database, scope=Scope(corpus=services.corpus), asked=asked, depths=depths, given={})["Fact"]


def _conversations(services: Services, found: Sequence[Recalled]) -> Mapping[str, str]:
    """Return the ids of the conversations of facts, by uid."""
    uids = list(dict.fromkeys(row.properties["document"] for row in found))
    documents = document_states(services.database, corpus=services.corpus, uids=uids)
    return {uid: state.source or state.title for uid, state in documents.items()}


def _known(row: Recalled, standing: Standing, *, now: str, ids: Mapping[str, str]) -> KnownFact:
    values = row.properties
    first = standing.repeats[0].fact.properties["said_at"] if standing.repeats else values["said_at"]
    return KnownFact(
        fact=values["content"],
        speakers=tuple(values["speakers"]),
        said_at=values["said_at"],
        since=first,
        until=standing.until(now),
        notes=tuple(standing.notes()),
        event_time=values["event_time"],
        place=values["place"],
        conversation=ids.get(values["document"], ""),
        message_ids=tuple(values["message_ids"]),
        confidence=values["confidence"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesWanted:
    """Which changes are listed."""

    about: Annotated[str, "Only changes of facts with these words, in any form. Default: all, the newest first."] = ""
    since: Annotated[str, "Only what changed from this time on, such as 2023-05-01."] = ""
    until: Annotated[str, "Only what changed up to this time; a day counts to its end."] = ""
    limit: Annotated[int, Field(ge=1, le=10_000), "Maximum changes."] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change: what holds `since` when, what held before, and where it was said.

    `kind` is `supersedes`, or `contradicts` where both stand. A `guess` is one of rules, without a language model.
    """

    fact: str
    before: str
    kind: str
    since: str
    said_at: str
    guess: bool
    conversation: str
    message_ids: tuple[str, ...]


def changes(services: Services, arguments: ChangesWanted) -> Sequence[Change]:
    """Return what superseded or contradicted what, the newest first."""
    language = corpus_language(services.database, corpus=services.corpus)
    rows = services.database.run(
        "list_changes",
        corpus=services.corpus,
        stems=[f" {stem} " for stem in searched_stems(arguments.about.strip(), language, most=MOST_TERMS)],
        since=_time("since", arguments.since, sortable),
        until=_time("until", arguments.until, until) or LAST,
        limit=arguments.limit,
    )
    found = [to_recalled({"row": row["newer"], "score": 0.0, "chunks": ()}, "Fact") for row in rows]
    ids = _conversations(services, found)
    return [
        Change(
            fact=row["newer"]["content"],
            before=row["before"],
            kind=row["type"].lower(),
            since=row["since"],
            said_at=row["newer"]["said_at"],
            guess=row["guess"],
            conversation=ids.get(row["newer"]["document"], ""),
            message_ids=tuple(row["newer"]["message_ids"]),
        )
        for row in rows
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
        reads=True,
    ),
    Verb(
        name="changes",
        summary="List what changed, and what held before.",
        arguments=ChangesWanted,
        run=changes,
        built=True,
        reads=True,
    ),
    Verb(
        name="forget", summary="Forget a message, a conversation or what somebody said.", arguments=ToForget, run=forget
    ),
)
