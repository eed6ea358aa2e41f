"""A small town of documents, and models that walk through it as a test says."""

from collections.abc import Callable, Sequence
from typing import Any

from dumping import driver

from hgmem import HGMem
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.remindrag.tasks import MoveReply, UsefulReply
from hgmem.testing import ScriptedModel
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

SMALL = {"passage_tokens": 128}
PEOPLE = ("Anna", "Bruno", "Clara", "Doris", "Emil", "Felix")
FILLER = "The weather of that week was mild and the harbour was quiet, as the ledger says on every page. "


def told(name: str, at: int) -> str:
    """Return a chunk of about a hundred tokens that names a person, the next one, and a number."""
    after = PEOPLE[(PEOPLE.index(name) + 1) % len(PEOPLE)]
    return f"{name} gave the key number {at} to {after} in the mill. {FILLER * 4}"


def town(*, chunks_each: int = 3) -> Given:
    """Return a document for each person with so many chunks, each of which tells of the next person too."""
    documents, chunks, relations = [], [], []
    mentions: dict[str, list[str]] = {name: [] for name in PEOPLE}
    for name in PEOPLE:
        texts = [told(name, at) for at in range(chunks_each)]
        documents.append(Document(id=name, title=f"Ledger of {name}", text="".join(texts)))
        after = PEOPLE[(PEOPLE.index(name) + 1) % len(PEOPLE)]
        for at, text in enumerate(texts):
            chunks.append(GivenChunk(id=f"{name}{at}", document=name, text=text, start=sum(map(len, texts[:at]))))
            mentions[name].append(f"{name}{at}")
            mentions[after].append(f"{name}{at}")
        relations.append(
            GivenRelation(source=name, target=after, description=f"{name} gave keys to {after}.", chunks=(f"{name}0",))
        )
    entities = tuple(
        GivenEntity(name=name, type="person", description=f"{name} of the town.", chunks=tuple(held))
        for name, held in mentions.items()
    )
    return Given(documents=tuple(documents), chunks=tuple(chunks), entities=entities, relations=tuple(relations))


class Guide:
    """Goes to the wanted passage or person when it is offered, else the first way, and knows when it is enough."""

    def __init__(self, goal: str, *, useful: Sequence[int] | None = None) -> None:
        self.goal = goal
        self.useful = useful
        self.offered: list[int] = []

    def model(self, **more: Any) -> ScriptedModel:
        """Return the model."""
        replies: dict[str, Any] = {
            "anchor_title": lambda task: TextReply(text=" ".join(task.text.split()[:6])),
            "passage_summary": lambda task: TextReply(text="a summary"),
            "clues": lambda task: CluesReply(),
            "move": self.move,
            "useful": self.judge,
            "answer": self.answer,
        }
        return ScriptedModel(replies | more)

    def move(self, task: Any) -> MoveReply:
        """Return that it is enough once the goal was read, else the way that names it, or the first."""
        self.offered.append(len(task.options))
        if any(self.goal in seen.text for seen in (*task.known, *task.fresh) if seen.title):
            return MoveReply(found=f"it says {self.goal}", enough=True)
        named = [at for at, way in enumerate(task.options) if self.goal.split()[0] in way.node.text]
        return MoveReply(found="", next=(named or [0])[0], why="the name")

    def judge(self, task: Any) -> UsefulReply:
        """Return what the answer cites, or the numbers given."""
        return UsefulReply(useful=task.cited if self.useful is None else self.useful)

    def answer(self, task: Any) -> AnswerReply:
        """Cite the passages that have the goal."""
        marks = [f"[{at}]" for at, chunk in enumerate(task.passages, start=1) if self.goal in chunk.text]
        return AnswerReply(text=f"So it is {' '.join(marks)}.")


def walked_town(open_client: Callable[..., HGMem], model: Any = None) -> HGMem:
    """Return a client on the town with its build."""
    client = open_client(model=model or Guide("nothing").model())
    client.add_graph(town())
    client.build("remindrag", settings=SMALL)
    return client


def edges(answer: Any) -> list[tuple[str, str]]:
    """Return the ways of a walk as texts: from which place to which, a passage to itself."""
    hits = [hit for step in answer.steps for one in step.retrieved for hit in one.built]
    names = {hit.uid: hit.text for hit in hits if hit.kind != "Passage"}
    return [(names[hit.source], hit.kind if hit.kind == "Passage" else hit.text) for hit in hits if hit.source]


def nodes(client: HGMem, label: str) -> list[dict[str, Any]]:
    """Return all properties of the nodes of a label, ordered by uid."""
    query = f"MATCH (n:{label} {{corpus: $corpus}}) RETURN properties(n) AS row ORDER BY n.uid"
    with driver(client.settings) as opened:
        return [record["row"] for record in opened.execute_query(query, corpus=client.corpus).records]
