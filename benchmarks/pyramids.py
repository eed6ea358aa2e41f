"""Measure the build of gists on a large corpus, and MemoRAG: near-copies of a text, and a scripted model.

The names in each copy are others. Prints the estimate, the build's seconds and peak memory, the levels, what one
changed document makes anew, and the tokens of an ask's prompts.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from measures import peak_megabytes, timed
from running import access, running

from hgmem import HGMem
from hgmem.models.prompts import prompt_of
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.testing import DeterministicEmbedder
from hgmem.text.tokens import count
from hgmem.values.inputs import Document

NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")


class Script:
    """A model that answers at once: a gist is the first words of its passage, clues look into the first gist."""

    name = "scripted"

    def __init__(self) -> None:
        self.sent: list[int] = []

    def reply(self, task: Any) -> Any:
        """Return the task's reply."""
        if task.name == "gist":
            words = " ".join(text for _, text in task.texts).split()
            return TextReply(text=" ".join(words[: round(0.6 * task.tokens)]) + ".")
        self.sent.append(sum(count(message.content) for message in prompt_of(task).filled(task.fields())))
        if task.name == "clues":
            return CluesReply(spans=tuple(gist.text[:200] for gist in task.memory[:5]), look=(0, 1))
        return AnswerReply(text="It is said so [1].")


def copy(text: str, number: int) -> Document:
    """Return a document like the text, in which each name has another ending."""
    changed = NAME.sub(lambda name: f"{name[0]}{'aeiou'[(len(name[0]) + number) % 5]}{number}", text)
    return Document(id=f"copy{number}", title=f"Copy {number}", text=changed)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--characters", type=int, default=10_000_000)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")
    number = -(-options.characters // len(text))
    with running() as (server, _):
        opened = HGMem.open("pyramids", model=Script(), embedder=DeterministicEmbedder(), **access(server))
        with opened as client:
            print(json.dumps(figures(client, text, number), indent=2))


def figures(client: HGMem, text: str, number: int) -> dict[str, Any]:
    """Return what was measured."""
    documents = [copy(text, at) for at in range(number)]
    found: dict[str, Any] = {"characters": sum(len(one.text) for one in documents), "documents": number}
    found["index_seconds"] = timed(lambda: client.add(documents, graph=False))
    plan = client.plan_build("gists")
    found["estimate"] = {
        "calls": sum(stage.calls for stage in plan.stages),
        "prompt_tokens": sum(stage.prompt_tokens for stage in plan.stages),
    }
    before = peak_megabytes()
    found["build_seconds"] = timed(lambda: client.build("gists"))
    found["peak_mb"] = {"before": before, "after": peak_megabytes()}
    found["levels"] = [[one.level, one.gists, one.tokens, one.ratio] for one in client.gists.levels()]
    found["second_build_seconds"] = timed(lambda: client.build("gists"))
    paragraphs = documents[0].text.split("\n\n")
    paragraphs[len(paragraphs) // 2] = "A stranger came that night and left before the moons had set."
    client.add(Document(id="copy0", title="Copy 0", text="\n\n".join(paragraphs)), graph=False)
    found["made_anew_after_one_paragraph"] = client.build("gists").made
    script: Any = client.model
    script.sent.clear()
    found["ask_seconds"] = timed(lambda: client.ask("What are they all afraid of?", system="memorag"))
    found["ask_prompt_tokens"] = script.sent
    return found


if __name__ == "__main__":
    main()
