"""Synthetic memories for pictures: any number of points over shared entities, with revisions and merges.

`fetching` is the script that fetches the graph library of the replay page.
"""

import random
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from hgmem.graph.memory import StoredPoint
from hgmem.memory.stored_memories import History
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import Answer, Citation, Memory, MemoryPoint, Operation, OperationKind, Step

TYPES = ("person", "place", "vessel", "event", "paper")
fetching = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "replay_library.py")))
MEMORY = "m0123456789abcdef"


def history(*, points: int = 12, steps: int = 3, text: str = "", seed: int = 1) -> History:
    """Return a memory with `points` points, born over `steps` steps; `text` is part of every written text."""
    chance = random.Random(seed)
    entities = [
        Entity(uid=f"e{number}", name=f"Name {number} {text}".strip(), type=TYPES[number % 5], description=text)
        for number in range(max(6, points * 3 // 2))
    ]
    chunks = tuple(
        Chunk(uid=f"c{number}", document=f"d{number}", position=0, text=f"Passage {number}. {text}", tokens=9,
              title=f"Document {number} {text}".strip())
        for number in range(5)
    )  # fmt: skip
    stored: dict[str, StoredPoint] = {}
    operations: dict[int, list[Operation]] = {number: [] for number in range(1, steps + 1)}

    def bear(step: int, kind: OperationKind, parts: tuple[str, ...], tied: tuple[Entity, ...]) -> None:
        uid = f"{MEMORY}-{step}-{len(operations[step]) + 1}"
        names = ", ".join(entity.name for entity in tied[:3])
        point = MemoryPoint(uid=uid, description=f"What is known of {names}. {text}", entities=tied,
                            chunks=(f"c{len(stored) % 5}",), born=step)  # fmt: skip
        merges, revises = (parts, ()) if kind == "merge" else ((), parts)
        stored[uid] = StoredPoint(point=point, revises=revises, merges=merges)
        operations[step].append(Operation(kind=kind, point=uid, parts=parts))
        for part in parts:
            old = stored[part]
            stored[part] = replace(old, point=replace(old.point, died=step))

    while len(stored) < points:
        step = 1 + len(stored) * steps // points
        older = [one.point for one in stored.values() if one.point.died is None and one.point.born < step]
        act = chance.random()
        if len(older) > 1 and act < 0.2:
            one, other = chance.sample(older, 2)
            tied = tuple({entity.uid: entity for entity in (*one.entities, *other.entities)}.values())
            bear(step, "merge", (one.uid, other.uid), tied)
        elif older and act < 0.35:
            one = chance.choice(older)
            bear(step, "revise", (one.uid,), one.entities)
        else:
            bear(step, "insert", (), tuple(chance.sample(entities, chance.randint(2, 5))))
    done = tuple(
        Step(
            number=number,
            question=f"Who did it? {text}".strip(),
            strategy="global" if number % 2 else "local",
            judgement="sufficient" if number == steps else "local",
            retrieved=(
                Retrieved(
                    subquery=Subquery(text=f"Where was it in step {number}? {text}", concern=f"the place {text}"),
                    entities=(Hit(uid="e1", rank=1, name=entities[1].name),),
                    chunks=(Hit(uid="c1", rank=1),),
                ),
            ),
            operations=tuple(operations[number]),
            notes=(f"a note {text}",),
        )
        for number in range(1, steps + 1)
    )
    answer = Answer(
        uid=f"{MEMORY}-a", question=done[-1].question, text=f"It was Name 1 [1]. {text} And not Name 2 [7].",
        status="answered", corpus="harbour", system="hgmem", memory=MEMORY, model="extractive", step=steps,
        citations=(Citation(marker=1, chunk="c1", document="d1", title=f"Document 1 {text}".strip(),
                            quote=f"Passage 1. {text}".strip(), start=0, end=10),),
    )  # fmt: skip
    memory = Memory(
        uid=MEMORY, corpus="harbour", system="hgmem", model="extractive", status="answered",
        created_at="2026-01-02T03:04:05Z", step=steps, steps=done, answers=(answer,),
        points=tuple(one.point for one in stored.values() if one.point.died is None),
    )  # fmt: skip
    return History(question=done[-1].question, memory=memory, points=tuple(stored.values()), chunks=chunks)
