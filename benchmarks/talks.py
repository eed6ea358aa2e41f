"""Measure HyperMem on a long conversation: near-copies of a shorter one, day after day, without a language model.

Prints the seconds of indexing, the build, a second build, appends with the next build, and questions, the peak memory,
and what recipes cost by a scripted model: calls and prompt characters for a message and an episode.
"""

import argparse
import json
import re
import statistics
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from measures import peak_megabytes, prompt_characters, timed
from running import access, running

from hgmem import Conversation, HGMem, Message
from hgmem.evaluation.formats import read_data
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.hypermem import replies
from hgmem.testing import DeterministicEmbedder

BOAT = Path(__file__).resolve().parents[1] / "examples" / "eval" / "boat-conversation"
NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")
ANSWERS = {
    "divide": lambda task: replies.StartsReply(starts=tuple(range(0, len(task.messages), 8))),
    "boundary": lambda task: replies.BoundaryReply(should_end=len(task.history) >= 7),
    "episode": lambda task: replies.EpisodeReply(
        subject="A talk",
        summary=" ".join(said.text for said in task.messages)[:200],
        narrative=" ".join(said.text for said in task.messages)[:800],
        facts=_facts(task) if task.with_facts else (),
    ),
    "facts": lambda task: replies.FactsReply(facts=_facts(task)),
    "fact_changes": lambda task: replies.ComparisonsReply(),
    "fact_roles": lambda task: replies.RolesReply(
        roles=tuple(replies.RoleReply(number=at, role="core") for at in range(len(task.facts)))
    ),
    "topic_match": lambda task: replies.MatchesReply(matches=(0,)),
    "topic_matches": lambda task: replies.EpisodesMatchedReply(
        episodes=tuple(
            replies.EpisodeMatchedReply(number=at, matches=(0,))
            for at in range(len(task.topics), len(task.topics) + len(task.episodes))
        )
    ),
    "topic_text": lambda task: replies.TopicTextReply(title="A matter", summary="It goes on. " * 20),
    "topic": lambda task: replies.TopicReply(title="A matter", summary="It goes on. " * 20),
    "answer": lambda task: AnswerReply(text="It is said so [1]."),
}


def _facts(task: Any) -> tuple[replies.FactReply, ...]:
    return tuple(
        replies.FactReply(content=said.text, messages=(at,), role="core") for at, said in enumerate(task.messages[:6])
    )


class Script:
    """A model that answers at once, and counts what it was sent."""

    name = "scripted"

    def __init__(self) -> None:
        self.calls = self.characters = 0

    def reply(self, task: Any) -> Any:
        """Return the task's reply."""
        self.calls += 1
        self.characters += prompt_characters(task)
        return ANSWERS[task.name](task)


def messages(number: int) -> list[Message]:
    """Return so many messages: the invented conversation again and again, with other names and days."""
    (document,) = read_data(BOAT).documents
    said = [(place.speaker, document.text[place.start : place.end], place.time) for place in document.messages]
    found = []
    for at in range(number):
        copy, place = divmod(at, len(said))
        speaker, text, time_ = said[place]
        changed = NAME.sub(rf"\g<0>{copy or ''}", text)
        when = datetime.fromisoformat(time_) + timedelta(days=400 * copy)
        found.append(Message(speaker, changed, when, id=f"m{at}"))
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    options = parser.parse_args()
    with running() as (server, _):
        at = access(server)
        with HGMem.open("talks", cached_vectors=0, **at) as client:
            found = long_talk(client, messages(options.messages))
        for recipe in ("default", "paper"):
            script = Script()
            with HGMem.open(f"cost-{recipe}", model=script, embedder=DeterministicEmbedder(), **at) as client:
                found[f"cost of {recipe}"] = cost(client, script, recipe)
    print(json.dumps(found, indent=2))


def long_talk(client: HGMem, said: list[Message]) -> dict[str, Any]:
    """Return seconds and memory of one long conversation."""
    found: dict[str, Any] = {"messages": len(said)}
    talk = Conversation(id="talk", messages=said[:-50])
    found["index_seconds"] = timed(lambda: client.add(talk, graph=False))
    before = peak_megabytes()
    found["build_seconds"] = timed(lambda: client.build("hypermem"))
    found["peak_mb"] = {"before": before, "after": peak_megabytes()}
    found["rows"] = {kind: client.builds()[0].rows[kind] for kind in ("Topic", "Episode", "Fact")}
    found["second_build_seconds"] = timed(lambda: client.build("hypermem"))
    appends = [timed(lambda one=one: client.append("talk", one)) for one in said[-50:]]
    found["append_seconds"] = {"median": round(statistics.median(appends), 3), "most": max(appends)}
    found["build_after_appends_seconds"] = timed(lambda: client.build("hypermem"))
    questions = ("Who repaired the boat?", "When did they sail to the island?", "What was planned for the summer?")
    asked = [timed(lambda text=text: client.ask(text, system="hypermem")) for text in questions * 3]
    found["ask_seconds"] = {"first": asked[0], "median of the others": round(statistics.median(asked[1:]), 3)}
    return found


def cost(client: HGMem, script: Script, recipe: str) -> dict[str, Any]:
    """Return calls and prompt characters of a build of 400 messages."""
    said = messages(400)
    client.add(Conversation(id="talk", messages=said), graph=False)
    client.build("hypermem", recipe=recipe)
    episodes = client.builds()[0].rows["Episode"]
    return {
        "episodes": episodes,
        "calls for a message": round(script.calls / len(said), 3),
        "calls for an episode": round(script.calls / episodes, 2),
        "characters for a message": round(script.characters / len(said)),
    }


if __name__ == "__main__":
    main()
