"""Measure retrieval of several systems without a language model: invented papers, a novel, HotpotQA, conversations.

Writes a plan for `hgmem eval run` under `.hgmem/bench/eval`, runs it on a server of its own, and prints the report. The
questions on the novel are in gods_of_mars.jsonl; their evidence is given by places in the text, which is not ours to
ship. A run that was interrupted goes on.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kept import BENCH

from hgmem.evaluation.formats import read_data
from hgmem.local import up
from hgmem.models.embedders import MINILM
from hgmem.settings import load

HERE = Path(__file__).resolve().parent
PAPERS = HERE.parent / "examples" / "eval" / "pellowick-papers"
NOVEL = "gods_of_mars"
CHUNKS = "{ chunks = 40 }"
SYSTEMS = (
    {"name": "naive", "settings": CHUNKS},
    {"name": "bm25", "settings": CHUNKS},
    {"name": "hybrid", "settings": CHUNKS},
    {"name": "hgmem", "recipe": "default"},
)
FEWER = "{ chunks = 28 }"  # of a conversation: about as many characters as hypermem shows
ON_CONVERSATIONS = (
    {"name": "naive", "settings": FEWER},
    {"name": "bm25", "settings": FEWER},
    {"name": "hybrid", "settings": FEWER},
    {"name": "hgmem", "recipe": "default"},
    {"name": "hypermem", "recipe": "default"},
    {"name": "hypermem", "recipe": "no-topics"},
    {"name": "hypermem", "recipe": "no-topics-no-episodes"},
    {"name": "hypermem", "recipe": "no-chunk-search"},
    {"name": "hypermem", "label": '"hypermem default, messages alone"', "settings": '{ show = ["messages"] }'},
    {"name": "hypermem", "recipe": "paper"},
    {"name": "hypermem", "recipe": "no-fact-context"},
    {"name": "hypermem", "recipe": "no-episode-context"},
    {"name": "hypermem", "recipe": "no-propagation"},
)
ALONE = "{ trails = false, evidence_tokens = 7500 }"  # about as many characters as 40 chunks have
WALKS = (
    *SYSTEMS,
    {"name": "remindrag", "label": '"remindrag default"', "settings": ALONE},
    {
        "name": "remindrag",
        "label": '"remindrag default, learning from each question before"',
        "settings": "{ learn = true, evidence_tokens = 7500 }",
    },
    {"name": "remindrag", "label": '"remindrag default, walk alone"', "settings": "{ trails = false, fill = false }"},
    {"name": "remindrag", "label": '"remindrag no-chain"', "recipe": "no-chain", "settings": ALONE},
    {"name": "remindrag", "label": '"remindrag no-synonyms"', "recipe": "no-synonyms", "settings": ALONE},
    {"name": "remindrag", "label": '"remindrag paper"', "recipe": "paper", "settings": "{ trails = false }"},
)
LOCOMO = ("conv-26", "conv-30")
UNANSWERABLE = "adversarial"


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {NOVEL}/, hotpotqa/, locomo/")
    parser.add_argument("--only", choices=("papers", "novel", "hotpotqa", *LOCOMO), nargs="+")
    parser.add_argument("--systems", nargs="+", help="names of systems, of those that are asked. Default: all")
    parser.add_argument("--walks", action="store_true", help="the recipes of remindrag too")
    parser.add_argument("--embedder", default=MINILM, help="all-MiniLM-L6-v2:int8 for weights of 8 bits")
    parser.add_argument("--limit", type=int, help="ask the first N questions of each data set")
    options = parser.parse_args()
    folder = BENCH / "eval"
    novel = folder / NOVEL
    novel.mkdir(parents=True, exist_ok=True)
    (novel / "graph.txt").write_text(str((options.data / NOVEL).resolve()), encoding="utf-8")
    (novel / "questions.jsonl").write_bytes((HERE / f"{NOVEL}.jsonl").read_bytes())
    sets = {"papers": (PAPERS, "hgmem"), "novel": (novel, "hgmem"), "hotpotqa": (options.data / "hotpotqa", "hotpotqa")}
    sets |= {name: (options.data / "locomo" / f"{name}.json", "locomo") for name in LOCOMO}
    own = re.sub(r"[^a-z0-9]+", "-", options.embedder.removeprefix(MINILM).lower())
    data = folder / f"neo4j{own}"
    up(load(data=data))
    for name in options.only or sets:
        listed = ON_CONVERSATIONS if name in LOCOMO else WALKS if options.walks else SYSTEMS
        systems = [one for one in listed if not options.systems or one["name"] in options.systems]
        path, form = sets[name]
        output = f"{name}{own}{'-walks' if options.walks else ''}"
        plan = folder / f"{output}.toml"
        limit = f"limit = {options.limit}\n" if options.limit else ""
        if name in LOCOMO:  # those that the conversation answers
            asked_for = [one.id for one in read_data(path, format=form).questions if one.kind != UNANSWERABLE]
            limit += f"ids = {asked_for[: options.limit]}\n"
        asked = f'[[data]]\npath = "{path.resolve()}"\nformat = "{form}"\n'
        tables = "".join(
            "[[systems]]\n" + "".join(f"{key} = {_toml(text)}\n" for key, text in one.items()) for one in systems
        )
        plan.write_text(f'output = "{output}"\n{limit}{asked}{tables}', encoding="utf-8")
        environment = {"HGMEM_DATA": str(data), "HGMEM_EMBEDDING_MODEL": options.embedder}
        if failed := evaluated(plan, folder / output, environment):
            return failed
    return 0


def evaluated(plan: Path, output: Path, environment: Mapping[str, str]) -> int:
    """Run a plan and print its report, and return the exit code. A run that was interrupted is resumed."""
    for command in (["run", str(plan), "--yes"], ["report", str(output)]):
        done = subprocess.run([sys.executable, "-m", "hgmem", "eval", *command], env={**os.environ, **environment})
        if done.returncode:
            return done.returncode
    return 0


def _toml(text: str) -> str:
    return text if text.startswith(("{", '"')) else f'"{text}"'


if __name__ == "__main__":
    sys.exit(main())
