"""Forks, continues, compares and deletes memories at random: originals stay as they are, and differences compose.

    python tests/long/forks.py [--forks 1000] [--most 24] [--seed N]

A scripted model writes at random: points on entities of the corpus and on others, revisions, merges, retirements. Some
documents go and come back. After each fork, the fork has to read as its original did at that step, and every property
of the original's data has to be what it was; that of all memories is compared now and then. Of each three memories at
random steps, the first does not differ from itself, and one difference after the other is the difference of the ends.
Integrity checks have to find nothing, and at the end the corpus moves through an archive.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from dumping import driver
from letters import NAMES, QUESTION, SENTENCES, wanting
from moving import moved
from neo4j import Session
from servers import alone

from hgmem import HGMem, Memory
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    Retirement,
    Revision,
)
from hgmem.testing import ScriptedModel
from hgmem.values import as_json
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

CORPUS = "forks"
STRANGERS = ("Old Tom", "Gale", "The Lamp")  # entities that the corpus lacks
QUESTIONS = (QUESTION, "What did Cleo leave?", "Who counts the lamps?")
EVERY = 50  # forks after which all is checked
HELD = """
MATCH (n) WHERE n.corpus = $corpus AND n.memory = $memory
RETURN labels(n) AS labels, properties(n) AS properties,
       COLLECT { MATCH (n)-[r]-(x)
                 RETURN [type(r), startNode(r) = n, coalesce(x.uid, x.number), properties(r)] } AS ties
"""


class FailedError(Exception):
    """The test failed."""


def expect(holds: bool, what: str) -> None:
    """Raise an error unless it holds."""
    if not holds:
        raise FailedError(what)


def document(at: int) -> Given:
    """Return the graph of one of the letters' sentences as a document of its own."""
    text = SENTENCES[at]
    names = [name for name in NAMES if name.casefold() in text.casefold().rstrip(".").split()]
    return Given(
        documents=(Document(id=f"d{at}", title=f"Letter {at}", text=text),),
        chunks=(GivenChunk(id=f"c{at}", document=f"d{at}", text=text),),
        entities=tuple(
            GivenEntity(name=name, type="person", description=f"{name} of letter {at}.", chunks=(f"c{at}",))
            for name in names
        ),
        relations=tuple(
            GivenRelation(source=names[0], target=name, description=f"{names[0]}, {name}.", chunks=(f"c{at}",))
            for name in names[1:2]
        ),
    )


def playing(chance: random.Random) -> ScriptedModel:
    """Return a model that writes at random. It says few things, so that memories say the same at times."""

    def named() -> tuple[str, ...]:
        return tuple(chance.sample((*NAMES, *STRANGERS), chance.randint(1, 3)))

    def said() -> str:
        return f"Statement {chance.randrange(60)}."

    def one_of(points: int) -> tuple[int, ...]:
        return (chance.randrange(points),) if points and chance.random() < 0.2 else ()

    def evolve(task: Any) -> EvolveReply:
        points = len(task.memory.points)
        return EvolveReply(
            insert=tuple(
                Insertion(entities=named(), description=said(), chunks=(chance.randrange(4),))
                for _ in range(chance.randint(1, 3))
            ),
            update=tuple(Revision(point=at, entities=named(), description=said()) for at in one_of(points)),
            retire=tuple(Retirement(point=at, reason="It says nothing.") for at in one_of(points)),
        )

    def merge(task: Any) -> MergeReply:
        points = len(task.memory.points)
        if points < 2 or chance.random() < 0.5:
            return MergeReply()
        return MergeReply(merge=(Joining(points=tuple(chance.sample(range(points), 2)), description=said()),))

    def plan(task: Any) -> PlanReply:
        concerns = tuple(Concern(text=f"Concern {chance.randrange(99)}.", points=(at,)) for at in (0, 1))
        return PlanReply(judgement=chance.choice(("local", "global")), concerns=concerns)

    def describe(task: Any) -> Extraction:
        entities = tuple(ExtractedEntity(name=name, type="thing", description=f"{name}.") for name in task.names)
        relations = (
            ExtractedRelation(source=source, target=target, description="Tied.") for source, target in task.pairs
        )
        return Extraction(entities=entities, relations=tuple(relations))

    return wanting(evolve=evolve, merge=merge, plan=plan, describe=describe)


def told(memory: Memory) -> str:
    """Return what a memory says in the words of every fork: uids of its own begin alike."""
    found = as_json.row(memory)
    for name in ("created_at", "status", "forked_from", "forked_at"):
        del found[name]
    for point in found["points"]:  # alive at that step
        del point["died"], point["retired"]
    for subquery in (subquery for step in found["steps"] for subquery in step["subqueries"]):
        subquery["retrieved"]["relations"] = len(subquery["retrieved"]["relations"])  # their uids are hashes
    return json.dumps(found).replace(memory.uid, "M")


@dataclass(kw_only=True)
class Play:
    """Memories of a corpus, each with what its data was when it was last written."""

    client: HGMem
    session: Session
    chance: random.Random
    most: int
    stored: dict[str, Counter[str]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # documents
    done: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def held(self, memory: str) -> Counter[str]:
        """Return all data of a memory with all its properties and relationships."""
        rows = self.session.run(HELD, corpus=CORPUS, memory=memory).data()
        return Counter(
            json.dumps([sorted(row["labels"]), row["properties"], sorted(map(str, row["ties"]))], default=str)
            for row in rows
        )

    def run(self, name: str, act: Callable[[], None]) -> None:
        """Do one thing, and count it."""
        began = time.monotonic()
        act()
        self.done[name] += 1
        self.seconds[name] += time.monotonic() - began

    def any_memory(self) -> str:
        return self.chance.choice(sorted(self.stored))

    def ask(self) -> None:
        options: dict[str, Any] = {"recipe": self.chance.choice(("default", "code", "paper"))}
        answer = self.client.ask(self.chance.choice(QUESTIONS), steps=self.chance.randint(1, 3), **options)
        self.stored[answer.memory] = self.held(answer.memory)

    def fork(self) -> None:
        """Fork a memory at a step: the fork reads as it did, and nothing of it has changed."""
        original = self.any_memory()
        last = self.client.memory(original).step
        step = self.chance.choice((last, self.chance.randint(1, last)))
        fork = self.client.fork(original, step=step)
        then = self.client.memory(original, step=step)
        expect(told(fork) == told(then), f"fork {fork.uid} is not {original} at step {step}")
        expect(self.held(original) == self.stored[original], f"forking changed {original}")
        self.stored[fork.uid] = self.held(fork.uid)
        self.done["steps of forks"] += step
        self.done["points of forks"] += len(fork.points)

    def go_on(self) -> None:
        """Continue a memory with another question, or from where it stopped."""
        memory = self.any_memory()
        if self.client.memory(memory).step > 8:
            return
        question = self.chance.choice(("", *QUESTIONS))
        self.client.ask(question, memory=memory, steps=self.chance.randint(1, 2))
        self.stored[memory] = self.held(memory)

    def compare(self) -> None:
        """Compare three memories at random steps."""
        named = [self.any_memory() for _ in range(3)]
        a, b, c = [(uid, self.chance.randint(1, self.client.memory(uid).step)) for uid in named]

        def diff(one: tuple[str, int], other: tuple[str, int]) -> Any:
            return self.client.diff(one[0], other[0], step=one[1], other_step=other[1])

        there, on, whole = diff(a, b), diff(b, c), diff(a, c)
        expect(diff(a, a).is_empty, f"{a} differs from itself")
        expect(there.then(on) == whole, f"differences of {a}, {b}, {c} do not compose")
        for name in ("kept", "gained", "lost", "revised"):
            self.done[f"points {name}"] += len(getattr(whole, name))

    def delete(self) -> None:
        """Delete a memory, which may be another's original, or all but the answers of one."""
        memory = self.any_memory()
        self.client.delete(memory=memory)
        del self.stored[memory]

    def rewrite(self) -> None:
        """Delete a document, or add it again: memories keep what they had of it, marked."""
        at = self.chance.randrange(len(SENTENCES))
        if at in self.gone:
            self.client.add_graph(document(at))
        elif len(self.gone) < 3:
            self.client.delete(document=f"d{at}")
        self.gone ^= {at} if at in self.gone or len(self.gone) < 3 else set()
        self.stored = {memory: self.held(memory) for memory in self.stored}

    def check(self) -> None:
        """Check all memories and the corpus."""
        for memory, stored in self.stored.items():
            expect(self.held(memory) == stored, f"memory {memory} has changed")
        found = self.client.check()
        expect(not found.findings, f"the integrity check found {found.findings}")
        listed = {one.uid for one in self.client.memories()}
        expect(listed == self.stored.keys(), "other memories are there")

    def round(self) -> None:
        """Do a few things at random, the last of them a fork."""
        if not self.stored or self.chance.random() < 0.04:
            self.run("questions", self.ask)
        if self.chance.random() < 0.4:
            self.run("continuations", self.go_on)
        if self.chance.random() < 0.25:
            self.run("comparisons of three", self.compare)
        if self.chance.random() < 0.02:
            self.run("documents deleted or added", self.rewrite)
        self.run("forks", self.fork)
        while len(self.stored) > self.most or (len(self.stored) > 4 and self.chance.random() < 0.3):
            self.run("deletions", self.delete)


def moves(client: HGMem, folder: Path) -> None:
    """Move the corpus through an archive."""
    before = moved(client.settings, CORPUS)
    archive = folder / "forks.jsonl.gz"
    client.export(archive)
    client.delete()
    client.import_archive(archive)
    expect(moved(client.settings, CORPUS) == before, "the archive has changed the corpus")
    expect(not client.check().findings, "the integrity check of the imported corpus found something")


def main() -> int:
    """Run the rounds and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forks", type=int, default=1_000)
    parser.add_argument("--most", type=int, default=24, help="memories that are there at a time")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    chance, began = random.Random(options.seed), time.monotonic()
    print(f"seed {options.seed}", flush=True)
    with alone() as own:
        given = {**own.settings.model_dump(exclude_none=True), "model": playing(chance)}
        with (
            HGMem.open(CORPUS, **given) as client,
            driver(own.settings) as opened,
            opened.session() as session,
        ):
            for at in range(len(SENTENCES)):
                client.add_graph(document(at))
            play = Play(client=client, session=session, chance=chance, most=options.most)
            try:
                for number in range(1, options.forks + 1):
                    play.round()
                    if number % EVERY == 0 or number == options.forks:
                        play.run("checks of everything", play.check)
                        spent = timedelta(seconds=int(time.monotonic() - began))
                        print(f"{spent}  {number} forks, {len(play.stored)} memories", flush=True)
                play.run("archives", lambda: moves(client, Path.cwd()))
            except FailedError as error:
                print(f"FAILED after {play.done['forks']} forks (--seed {options.seed}): {error}")
                return 1
    for name, number in sorted(play.done.items()):
        print(f"{number:6,} {name}" + (f", {play.seconds[name]:.1f} s" if name in play.seconds else ""))
    print(f"all held, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
