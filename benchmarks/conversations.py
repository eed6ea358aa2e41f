"""Measure questions to one of very many conversations in one corpus, beside the same conversation alone.

Without a language model. The others are stretches of LoCoMo's conversations, each with names of its own. Prints for
each system how much of the evidence the answer's prompt shows alone and among the others, the milliseconds of a
question, and whether the prompts show anything of another conversation.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from measures import peak_megabytes, timed
from running import access, running

from hgmem import Conversation, HGMem, Message
from hgmem.evaluation.asking import ANSWER, Prompts
from hgmem.evaluation.formats import EvalQuestion, read_data
from hgmem.evaluation.quotes import plain, plain_prompt, stands

ASKED = "conv-30"
NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")
OTHERS = re.compile(r"\b(?:Caroline|Melanie|Jon|Gina)\d+\b")
SYSTEMS = (
    ("hypermem", "default"),
    ("hypermem", "paper"),
    ("hgmem", "default"),
    ("hybrid", None),
)


def talk(path: Path) -> Conversation:
    """Return the conversation of a LoCoMo file."""
    (document,) = read_data(path, format="locomo").documents
    said = [Message(m.speaker, document.text[m.start : m.end], m.time, id=m.id) for m in document.messages]
    return Conversation(id=document.id, title=document.title, messages=said)


def others(sources: list[Conversation], number: int, length: int) -> Iterator[Conversation]:
    """Yield so many stretches of conversations of so many messages, each with other names."""
    runs = [
        source.messages[at : at + length]
        for source in sources
        for at in range(0, len(source.messages) - length + 1, length)
    ]
    for at in range(number):
        said = [
            Message(f"{m.speaker}{at}", NAME.sub(rf"\g<0>{at}", m.text), m.time, id=f"{at}-{i}")
            for i, m in enumerate(runs[at % len(runs)])
        ]
        yield Conversation(id=f"other-{at}", title=f"Conversation {at}", messages=said)


def asked(client: HGMem, questions: list[EvalQuestion], system: str, recipe: str | None) -> dict[str, Any]:
    """Return the share of evidence, what is shown of others, and the milliseconds of questions to the conversation."""
    shares, times, strangers, shown = [], [], 0, []
    for question in questions:
        prompts = Prompts()
        began = time.perf_counter()
        client.ask(question.question, system=system, recipe=recipe, filters={"document": ASKED}, watcher=prompts)
        times.append(1_000 * (time.perf_counter() - began))
        text = plain_prompt("\n".join(said for task, said in prompts.found if task == ANSWER))
        shares.append(statistics.mean(stands(plain(one.text), text) for one in question.evidence))
        strangers += any(OTHERS.search(said) for _, said in prompts.found)
        shown.append(len(text))
    return {
        "evidence": round(statistics.mean(shares), 3),
        "milliseconds": round(statistics.median(times)),
        "prompts_with_others": strangers,
        "characters": round(statistics.mean(shown)),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with locomo/")
    parser.add_argument("--number", type=int, default=1_000, help="of conversations")
    parser.add_argument("--messages", type=int, default=10, help="of each other conversation")
    options = parser.parse_args()
    path = options.data / "locomo" / f"{ASKED}.json"
    sources = [talk(options.data / "locomo" / name) for name in ("conv-26.json", "conv-30.json")]
    questions = [
        one for one in read_data(path, format="locomo").questions if one.evidence and one.kind != "adversarial"
    ]
    found: dict[str, Any] = {"questions": len(questions)}
    with running() as (server, _):
        for name, number in (("alone", 0), ("among", options.number - 1)):
            with HGMem.open(name, **access(server)) as client:
                talks = [sources[1], *others(sources, number, options.messages)]
                index = timed(partial(client.add, talks))
                found[name] = {"index_seconds": index, "build_seconds": timed(partial(client.build, "hypermem"))}
                print(json.dumps(found), flush=True)
                for system, recipe in SYSTEMS:
                    if recipe == "paper":
                        client.build("hypermem", recipe="paper")
                    found[name][f"{system} {recipe or ''}"] = asked(client, questions, system, recipe)
                    print(json.dumps(found), flush=True)
    print(json.dumps(found | {"peak_mb": peak_megabytes()}, indent=2))


if __name__ == "__main__":
    main()
