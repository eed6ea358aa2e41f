"""Measure what classes of entities change in retrieval without a language model, on the invented papers.

Imports the papers with their graph on a server of its own, asks every question, decides by rules which entities are the
same, and asks again. `--also FILE` imports further decisions.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from evaluating import PAPERS, evaluated
from kept import BENCH

from hgmem import HGMem
from hgmem.local import up
from hgmem.settings import load

SYSTEMS = (
    'name = "hgmem"\nrecipe = "default"\n',
    'name = "hgmem"\nrecipe = "paper"\n',
    'name = "remindrag"\nsettings = { trails = false, evidence_tokens = 7500 }\n',
    'name = "remindrag"\nlabel = "remindrag, walk alone"\nsettings = { trails = false, fill = false }\n',
)


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--also", type=Path, help="a file of decisions, as `hgmem resolve export` writes it")
    options = parser.parse_args()
    folder = BENCH / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "neo4j"
    up(load(data=data))
    environment = {"HGMEM_DATA": str(data)}
    with HGMem.open("pellowick", data=data) as client:
        if "pellowick" not in {row["corpus"] for row in client.corpora()}:
            client.import_archive(PAPERS / "graph.jsonl.gz")
        client.build("remindrag")
    asked = f'[[data]]\npath = "{PAPERS}"\ncorpus = "pellowick"\n'
    for name in ("without", "with"):
        if name == "with":
            decide = [["--rules-only", "--yes"], *([["import", str(options.also)]] if options.also else [])]
            for command in decide:
                call = [sys.executable, "-m", "hgmem", "resolve", *command, "--corpus", "pellowick"]
                subprocess.run(call, env={**os.environ, **environment}, check=True)
        plan = folder / f"{name}.toml"
        tables = "".join(f"[[systems]]\n{one}" for one in SYSTEMS)
        plan.write_text(f'output = "{name}"\n{asked}{tables}', encoding="utf-8")
        if failed := evaluated(plan, folder / name, environment):
            return failed
    return 0


if __name__ == "__main__":
    sys.exit(main())
