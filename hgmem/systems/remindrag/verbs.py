"""What ReMindRAG can do besides answering: learn and unlearn walks, and list what was learnt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hgmem.errors import NotFoundError, UsageError
from hgmem.memory.stored_memories import load_memory, load_stored
from hgmem.services import Services
from hgmem.sources.json_records import json_line, json_of, lines_of
from hgmem.systems.remindrag.answer import answer
from hgmem.systems.remindrag.recipes import DEFAULT, ReMindRAGConfig
from hgmem.systems.remindrag.touches import strong_trails
from hgmem.systems.remindrag.trails import Learnt, correct_walk, learn_walk, list_trails, unlearn
from hgmem.systems.remindrag.walk_record import SYSTEM, RecordedWalk, recorded_walk
from hgmem.systems.spec import loaded
from hgmem.systems.verbs import Verb
from hgmem.values.inputs import Question
from hgmem.values.records import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """What was learnt from a question, in the order of an owner's numbers."""

    number: int
    question: str
    trails: int
    effective: int
    memory: str
    owner: str
    learnt: str
    learning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What is learnt: the walk of a stored memory, or those of questions that are asked first."""

    memory: Annotated[str, "The memory whose walk is learnt."] = ""
    questions: Annotated[str, "A file of questions: those not learnt yet are asked and learnt. Lines or JSON."] = ""


def learn(services: Services, arguments: Lesson) -> Sequence[Learnt]:
    """Learn the walk of a memory, or ask questions and learn their walks."""
    if bool(arguments.memory) == bool(arguments.questions):
        raise UsageError("name one memory to learn from, or a file with questions= (--questions)")
    if arguments.memory:
        return _learn_memory(services, arguments.memory.strip())
    found: list[Learnt] = []
    known = {one.question for one in list_learnings(services)}
    for text in _questions(Path(arguments.questions), most=services.settings.max_question_characters):
        if text in known:
            continue
        known.add(text)
        done = answer(services, Question(text=text), replace(DEFAULT, learn=False), stored=None)
        if recorded_walk(done.steps) is not None:
            found += _learn_memory(services, done.memory)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """What is taken back. Without any of them, nothing is: name `everything`."""

    memory: Annotated[str, "Take back what was learnt from this memory."] = ""
    question: Annotated[str, "Take back what was learnt from this question, as it was asked."] = ""
    learning: Annotated[str, "Take back this learning (uid)."] = ""
    everything: Annotated[bool, "Take back all: with an owner the owner's own, else that of everybody."] = False
    wrong: Annotated[bool, "The memory's answer was wrong: its trails are recorded as useless, for the owner."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearnt:
    """How many learnings were taken back, and how many trails were recorded as useless."""

    learnings: int
    useless: int = 0


def take_back(services: Services, arguments: Unwanted) -> Unlearnt:
    """Undo learnings: their trails remember the others alone, as if these had never been."""
    given = {"memory": arguments.memory, "question": arguments.question, "learning": arguments.learning}
    wanted = {name: value.strip() for name, value in given.items() if value}
    if (several := len(wanted) + arguments.everything) != 1:
        what = "only one" if several else "what to unlearn"
        raise UsageError(f"name {what}: a memory, or one of question=, learning=, everything= (--question, …)")
    if arguments.wrong:
        return _correct(services, wanted.get("memory"))
    own = services.owner
    found = [one for one in _learnings(services, **wanted) if own in (None, one.owner)]
    if not found:
        command = f"`hgmem remindrag learnings --corpus {services.corpus}`"
        named = next((f" from {name} {value!r}" for name, value in wanted.items()), "")
        raise UsageError(f"nothing was learnt{named} by {own or 'anybody'}: {command} lists what was")
    gone = 0
    for owner, learnings in groupby(found, key=lambda one: one.owner):  # they are in order of owners
        uids = [one.learning for one in learnings]
        gone += services.database.write(unlearn, services, owner=owner, uids=uids)
    return Unlearnt(learnings=gone)


def _correct(services: Services, memory: str | None) -> Unlearnt:
    """Record the walk of a memory as one that misled the caller's owner, else the memory's."""
    if memory is None:
        raise UsageError("wrong= (--wrong) is about one answer: name its memory")
    taught = _learnings(services, memory=memory)
    try:
        answer, walk, owner, config = _walk_of(services, memory)
    except NotFoundError as error:
        if not any(services.owner in (None, one.owner) for one in taught):
            raise
        without = f"`hgmem remindrag unlearn {memory} --corpus {services.corpus}`"
        raise NotFoundError(f"{error}; {without} takes back what it taught") from None
    owner = owner if services.owner is None else services.owner
    before = sum(one.owner == owner for one in taught)
    return Unlearnt(learnings=before, useless=correct_walk(services, answer, walk, owner=owner, config=config).trails)


def list_learnings(services: Services, arguments: object = None) -> Sequence[Learning]:
    """Return what was learnt, in order."""
    return _learnings(services)


def _learnings(
    services: Services, *, memory: str | None = None, question: str | None = None, learning: str | None = None
) -> list[Learning]:
    """Return what was learnt, of a memory, a question or a uid if it is given."""
    rows = services.database.run(
        "learnings",
        corpus=services.corpus,
        owner=services.owner,
        memory=memory,
        question=question,
        learning=learning,
    )
    return [Learning(**row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Which trails are listed."""

    question: Annotated[str, "The strongest for this question. Default: the longest."] = ""
    limit: Annotated[int, Field(ge=1, le=10_000), "Maximum trails."] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """A trail: what it ties, how it is tied, its length ‖w‖, and its product q·w with the question, if there is one.

    `strong`: whether the question would follow it with the recipe `default`.
    """

    between: str
    tie: str
    length: float
    along: float | None
    strong: bool | None
    learnings: int
    owner: str


def trails(services: Services, arguments: Near) -> Sequence[Trail]:
    """Return the strongest trails, for a question or at all."""
    text = arguments.question.strip()
    query = services.embed([text], kind="query")[0] if text else None
    owners = None if services.owner is None else ("", services.owner)
    rows = list_trails(services.database, corpus=services.corpus, owners=owners, query=query, k=arguments.limit)
    asking = {row["owner"] if owners is None else owners[-1] for row in rows} if text else set()
    strong = {
        who: {
            trail.uid
            for trail in strong_trails(
                services.database,
                corpus=services.corpus,
                owners=list(dict.fromkeys(["", who])),
                query=query,
                config=DEFAULT,
            )
        }
        for who in asking
    }
    return [
        Trail(
            between=" — ".join(row["ends"]) if row["tie"] != "PASSAGE" else f"the passage {row['ends'][0]!r}",
            tie=row["tie"],
            length=round(row["length"], 3),
            along=round(row["along"], 3) if text else None,
            strong=row["uid"] in strong[row["owner"] if owners is None else owners[-1]] if text else None,
            learnings=row["learnings"],
            owner=row["owner"],
        )
        for row in rows
        if row["ends"]
    ]


def _learn_memory(services: Services, uid: str) -> Sequence[Learnt]:
    """Learn the walk of a stored memory."""
    answer, walk, owner, config = _walk_of(services, uid)
    if not owner and services.owner:
        raise UsageError(
            f"memory {uid!r} has no owner, so its trails are everybody's: learn it without an owner, or ask its "
            f"question as {services.owner!r}"
        )
    return [learn_walk(services, answer, walk, owner=owner, config=config)]


def _walk_of(services: Services, uid: str) -> tuple[Answer, RecordedWalk, str, ReMindRAGConfig]:
    """Return the latest answer of a memory, its walk, its owner and its config. Raises `UsageError` without a walk."""
    memory = load_memory(services, uid)
    if memory.corpus != services.corpus:
        raise UsageError(f"memory {uid!r} is of corpus {memory.corpus!r}: name that with --corpus (corpus=)")
    if memory.system != SYSTEM:
        raise UsageError(
            f"memory {uid!r} was made by system {memory.system!r}: only walks of {SYSTEM!r} are learnt, so ask its "
            "question with that system"
        )
    walk = recorded_walk(memory.steps)
    if not memory.answers or walk is None:
        raise UsageError(f"memory {uid!r} has no answered walk to learn from: ask its question again")
    return memory.answers[-1], walk, memory.owner, loaded(ReMindRAGConfig, load_stored(services, uid).settings)


def _questions(path: Path, *, most: int) -> list[str]:
    """Return the questions of a file: those of JSON or JSON Lines, else one a line. None may be longer than `most`."""
    if path.suffix == ".json":
        given = json_of(path)
        items = given if isinstance(given, list) else [given]
    elif path.suffix == ".jsonl":
        items = [json_line(line, number, path) for number, line in lines_of(path)]
    else:
        items = [line for _, line in lines_of(path)]
    if not items:
        raise UsageError(f"{path} has no questions: write one a line, or JSON with a field question")
    found: list[str] = []
    for number, item in enumerate(items, start=1):
        question = item.get("question") if isinstance(item, dict) else item
        if not isinstance(question, str) or not question.strip():
            raise UsageError(f"item {number} of {path} has no question: give it a field question")
        found.append(question.strip())
        if (length := len(found[-1])) > most:
            raise UsageError(f"question {number} of {path} has {length:,} characters, more than {most:,}: shorten it")
    return found


VERBS = (
    Verb(
        name="learn",
        summary="Learn what a walk found of use, so that similar questions follow its trails.",
        arguments=Lesson,
        run=learn,
        built=True,
        first="memory",
    ),
    Verb(
        name="unlearn",
        summary="Take back what was learnt.",
        arguments=Unwanted,
        run=take_back,
        first="memory",
    ),
    Verb(name="learnings", summary="List what was learnt, in order.", run=list_learnings, reads=True),
    Verb(
        name="trails",
        summary="List the strongest trails, for a question or at all.",
        arguments=Near,
        run=trails,
        first="question",
        reads=True,
    ),
)
