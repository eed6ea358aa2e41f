"""Measure retrieval of several systems without a language model: the invented papers, a novel, and HotpotQA.

Writes a plan for `hgmem eval run` under `.hgmem/bench/eval`, runs it on a server of its own, and prints the report. The
questions on the novel are in gods_of_mars.jsonl; their evidence is given by places in the text, which is not ours to
ship. A run that was interrupted goes on.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from kept import BENCH

from hgmem.local import up
from hgmem.settings import load

HERE = Path(__file__).resolve().parent
PAPERS = HERE.parent / "examples" / "eval" / "pellowick-papers"
NOVEL = "gods_of_mars"
SYSTEMS = """
[[systems]]
name = "naive"
settings = { chunks = 40 }

[[systems]]
name = "bm25"
settings = { chunks = 40 }

[[systems]]
name = "hybrid"
settings = { chunks = 40 }

[[systems]]
name = "hgmem"
recipe = "default"

[[systems]]
name = "hgmem"
recipe = "compact"
"""


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {NOVEL}/ and hotpotqa/")
    parser.add_argument("--only", choices=("papers", "novel", "hotpotqa"), nargs="+")
    parser.add_argument("--limit", type=int, help="ask the first N questions of each data set")
    options = parser.parse_args()
    folder = BENCH / "eval"
    novel = folder / NOVEL
    novel.mkdir(parents=True, exist_ok=True)
    (novel / "graph.txt").write_text(str((options.data / NOVEL).resolve()), encoding="utf-8")
    (novel / "questions.jsonl").write_bytes((HERE / f"{NOVEL}.jsonl").read_bytes())
    sets = {"papers": (PAPERS, "hgmem"), "novel": (novel, "hgmem"), "hotpotqa": (options.data / "hotpotqa", "hotpotqa")}
    settings = load(data=folder / "neo4j")
    up(settings)
    for name in options.only or sets:
        path, form = sets[name]
        plan = folder / f"{name}.toml"
        limit = f"limit = {options.limit}\n" if options.limit else ""
        data = f'[[data]]\npath = "{path.resolve()}"\nformat = "{form}"\n'
        plan.write_text(f'output = "{name}"\n{limit}{data}{SYSTEMS}', encoding="utf-8")
        for command in (["run", str(plan), "--yes"], ["report", str(folder / name)]):
            done = subprocess.run(
                [sys.executable, "-m", "hgmem", "eval", *command],
                env={**os.environ, "HGMEM_DATA": str(folder / "neo4j")},
            )
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
