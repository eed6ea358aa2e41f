"""The demo: a real Neo4j, a small corpus, one question, its memory in the database. No key, no cost.

    python examples/demo.py                                       the affair of the Ravensund Orrery
    python examples/demo.py --files DIR --question "…"            your own documents
    python examples/demo.py --lightrag DIR --question "…"         a graph that LightRAG or HGMem's code wrote

It runs the commands that you would type, on its own server in `.hgmem/demo`, and leaves the server running for Neo4j
Browser. It ignores NEO4J_* and HGMEM_* variables and model keys of your shell.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from hgmem.local import find
from hgmem.settings import load

HERE = Path(__file__).parent
DATA = Path(".hgmem/demo")
SOME_SKIPPED = 1  # the exit code of `hgmem index` if files were skipped, and of every command that fails
FOREIGN = ("NEO4J_", "HGMEM_", "OPENAI_", "AZURE_", "ANTHROPIC_")


def main() -> int:
    """Return the exit code of the first command that fails, else 0. Files that could not be read fail nothing else."""
    options = arguments()
    began = time.perf_counter()
    for command in commands(options):
        print(f"\n$ hgmem {shlex.join(command)}", flush=True)
        code = subprocess.run([sys.executable, "-m", "hgmem", *command], env=environment(), check=False).returncode
        if code == SOME_SKIPPED and command[0] == "index" and indexed(named(options)):
            print("going on with what could be read", file=sys.stderr)
        elif code:
            return code
    print(farewell(options, seconds=time.perf_counter() - began))
    return 0


def indexed(corpus: str) -> bool:
    """Return whether there is such a corpus."""
    command = [sys.executable, "-m", "hgmem", "status", "--corpus", corpus]
    return not subprocess.run(command, env=environment(), capture_output=True, check=False).returncode


def arguments() -> argparse.Namespace:
    """Return the options: the affair, your own files, or a LightRAG directory."""
    parser = argparse.ArgumentParser(description="Index documents, ask a question, look at its memory.")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--files", type=Path, help="index your own file or folder")
    source.add_argument("--lightrag", type=Path, help="import a LightRAG working directory")
    parser.add_argument("--question", help="ask this question. Default: the first of questions.json")
    options = parser.parse_args()
    if options.question is None:
        if options.files or options.lightrag:
            parser.error("--question is needed with --files and --lightrag")
        options.question = json.loads((HERE / "questions.json").read_text(encoding="utf-8"))[0]["question"]
    return options


def commands(options: argparse.Namespace) -> list[list[str]]:
    """Return the commands, as a user would type them."""
    corpus = named(options)
    if options.lightrag:
        fill = ["import", "lightrag", str(options.lightrag)]
    else:
        fill = ["index", str(options.files or os.path.relpath(HERE / "affair"))]
    return [
        ["up"],
        [*fill, "--corpus", corpus],
        ["ask", options.question, "--corpus", corpus, "--show-memory"],
    ]


def named(options: argparse.Namespace) -> str:
    """Return a corpus name derived from the path, so that another path gets another corpus."""
    path = options.lightrag or options.files
    if path is None:
        return "affair"
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", path.resolve().name).strip("._-")
    return f"my-{plain}"[:64]


def environment() -> dict[str, str]:
    """Return the shell's environment without variables for other servers or models; it overrides `.env`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    own = {
        "NEO4J_URI": "",
        "NEO4J_DATABASE": "",
        "HGMEM_MODEL": "extractive",
        "HGMEM_EMBEDDING_MODEL": "all-MiniLM-L6-v2",
    }
    return {**kept, **own, "HGMEM_DATA": str(DATA.resolve())}


def farewell(options: argparse.Namespace, *, seconds: float) -> str:
    """Return the closing text: where to look, and the next commands."""
    server = find(load(data=DATA.resolve(), neo4j_uri=""))
    hgmem = f"HGMEM_DATA={DATA} {os.path.relpath(Path(sys.executable).parent / 'hgmem')}"
    lines = [f"\nDone in {seconds:.0f} s."]
    if server is not None:
        lines += [
            "Look at it in Neo4j Browser, in colours and with a guide:",
            f"  {hgmem} browser --corpus {named(options)}",
            f"  user {server.username}, password {server.password.get_secret_value()}",
            f"or open {server.browser} and paste the query above.",
        ]
    lines += ["Next:"]
    if not options.files and not options.lightrag:
        lines += [
            '  make demo FILES=path/to/documents QUESTION="…"     the same on your own files',
            '  make demo LIGHTRAG=path/to/workdir QUESTION="…"    the same on a graph that LightRAG wrote',
        ]
    return "\n".join([*lines, f"  {hgmem} down     stops the server; what it holds stays in {DATA}"])


if __name__ == "__main__":
    sys.exit(main())
