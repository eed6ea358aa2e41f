"""Measure retrieval of several systems without a language model: invented papers, a novel, HotpotQA, conversations.

Writes a plan for `hgmem eval run` under `.hgmem/bench/eval`, runs it on a server of its own, and prints the report. The
questions on the novel are in gods_of_mars.jsonl; their evidence is given by places in the text, which is not ours to
ship. A run that was interrupted goes on.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kept import BENCH

from hgmem.evaluation.formats import read_data
from hgmem.evaluation.results import RESULTS
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
    {"name": "hypermem", "recipe": "no-fact-context"},
    {"name": "hypermem", "recipe": "paper"},
    {"name": "hypermem", "recipe": "paper-no-fact-context"},
    {"name": "hypermem", "recipe": "paper-no-episode-context"},
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
SEARCHING = (
    {"name": "bm25", "settings": "{ chunks = 40, titles = %s }"},
    {"name": "hybrid", "settings": "{ chunks = 40, titles = %s }"},
    {"name": "memorag", "settings": "{ titles = %s }"},
    {"name": "hgmem", "settings": '{ "retrieval.titles" = %s }'},
    {"name": "remindrag", "settings": "{ trails = false, evidence_tokens = 7500, titles = %s }"},
)
BY_TITLES = tuple(
    {**system, "label": f'"{system["name"]}{title}"', "settings": system["settings"] % count}
    for system in SEARCHING
    for count, title in (("true", ""), ("false", " without titles"))
)
ON_CLASSES = (
    {"name": "hgmem", "recipe": "default"},
    {"name": "hgmem", "recipe": "paper"},
    {"name": "remindrag", "settings": ALONE},
    {"name": "remindrag", "label": '"remindrag, walk alone"', "settings": "{ trails = false, fill = false }"},
)
LOCOMO = ("conv-26", "conv-30")
UNANSWERABLE = "adversarial"


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {NOVEL}/, hotpotqa/, locomo/")
    parser.add_argument("--only", choices=("papers", "novel", "hotpotqa", *LOCOMO), nargs="+")
    parser.add_argument("--systems", nargs="+", help="names of systems, of those that are asked. Default: all")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--walks", action="store_true", help="the recipes of remindrag too")
    which.add_argument("--titles", action="store_true", help="all systems, with and without words of titles")
    which.add_argument("--classes", action="store_true", help="with and without classes of entities")
    parser.add_argument("--also", type=Path, help="with --classes: more decisions on the papers' entities")
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
    environment = {"HGMEM_DATA": str(data), "HGMEM_EMBEDDING_MODEL": options.embedder}
    for name in options.only or sets:
        kind, listed = _asked(name, options)
        systems = [one for one in listed if not options.systems or one["name"] in options.systems]
        path, form = sets[name]
        output = f"{name}{own}{kind}"
        limit = f"limit = {options.limit}\n" if options.limit else ""
        if name in LOCOMO:  # those that the conversation answers
            asked_for = [one.id for one in read_data(path, format=form).questions if one.kind != UNANSWERABLE]
            limit += f"ids = {asked_for[: options.limit]}\n"
        asked = f'[[data]]\npath = "{path.resolve()}"\nformat = "{form}"\n'
        text = f"{limit}{asked}{''.join(map(_table, systems))}"
        if not options.classes:
            _run(folder, output, text, environment)
            continue
        _run(folder, f"{output}-first", f"limit = 1\n{asked}{_table(SYSTEMS[0])}", environment)  # indexes or imports
        corpus = _corpus(folder / f"{output}-first")
        _resolve(environment, "--rules-only", "--yes", "--corpus", corpus)
        if options.also and name == "papers":
            _resolve(environment, "import", str(options.also.resolve()), "--corpus", corpus)
        _run(folder, f"{output}-with", text, environment)
        for who in ("rule", "person", "model"):
            _resolve(environment, "undo", "--by", who, "--corpus", corpus)
        _run(folder, f"{output}-without", text, environment)
    return 0


def _asked(name: str, options: argparse.Namespace) -> tuple[str, tuple[dict[str, str], ...]]:
    """Return what the names of a data set's results end in, and the systems that are asked."""
    if options.titles:
        return "-titles", (*BY_TITLES, ON_CONVERSATIONS[4]) if name in LOCOMO else BY_TITLES
    if options.classes:
        return "-classes", ON_CLASSES
    if name in LOCOMO:
        return "", ON_CONVERSATIONS
    return ("-walks", WALKS) if options.walks else ("", SYSTEMS)


def _table(system: Mapping[str, str]) -> str:
    return "[[systems]]\n" + "".join(f"{key} = {_toml(text)}\n" for key, text in system.items())


def _run(folder: Path, output: str, text: str, environment: Mapping[str, str]) -> None:
    plan = folder / f"{output}.toml"
    plan.write_text(f'output = "{output}"\n{text}', encoding="utf-8")
    evaluated(plan, folder / output, environment)


def evaluated(plan: Path, output: Path, environment: Mapping[str, str]) -> None:
    """Run a plan and print its report; leave the program if that fails. A run that was interrupted is resumed."""
    for command in (["run", str(plan), "--yes"], ["report", str(output)]):
        _call(environment, "eval", *command)


def _corpus(results: Path) -> str:
    """Return the corpus that the results of one data set are of."""
    [name] = {json.loads(line)["corpus"] for line in (results / RESULTS).read_text().splitlines()}
    return name


def _resolve(environment: Mapping[str, str], *command: str) -> None:
    _call(environment, "resolve", *command)


def _call(environment: Mapping[str, str], *command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "hgmem", *command], env={**os.environ, **environment})
    if done.returncode:
        sys.exit(done.returncode)


def _toml(text: str) -> str:
    return text if text.startswith(("{", '"')) else f'"{text}"'


if __name__ == "__main__":
    sys.exit(main())
