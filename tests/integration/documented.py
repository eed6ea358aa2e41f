"""The fenced blocks of README.md and docs/, and the environment to run a page's blocks unchanged.

Blocks of `bash`, `console`, `python` or `cypher` run with their page, in order. A comment on the line above excludes a
block: `<!-- not run: REASON -->`, or `<!-- run by tests … -->` if a separate test runs it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = {"bash", "console", "python", "cypher"}
SHOWN = {"text", "toml", "json", "math", "yaml"}  # blocks that are never run
OURS = {
    "docs/graphrag.md": "test_adopting.py",
    "docs/langchain.md": "test_docs.py",
    "README.md": "test_docs.py",
    "docs/systems.md": "test_verbs.py",
    "docs/write-a-system.md": "test_own_system.py",
    "docs/evaluation.md": "test_docs.py",
}

_BLOCK = re.compile(r"(?P<above>[^\n]*)\n```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_ELSEWHERE = re.compile(r"<!-- (example: )?run by tests.* -->")
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; `line` is that of its first line, `above` the line above its fence."""

    page: str
    line: int
    language: str
    text: str
    above: str

    @property
    def elsewhere(self) -> bool:
        return _ELSEWHERE.fullmatch(self.above) is not None

    @property
    def reason(self) -> str:
        """The reason for not running it, or an empty string."""
        found = _NOT_RUN.fullmatch(self.above)
        return found["reason"] if found else ""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.elsewhere and not self.reason

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return the documents, except those that notebooks generate, because the notebooks have their own tests."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = [path.relative_to(ROOT).as_posix() for path in found if path.is_file()]
    return [name for name in named if not name.startswith("docs/notebooks/")]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = "\n" + (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("text")),
            language=found["language"].strip(),
            text=found["text"],
            above=found["above"].strip(),
        )
        for found in _BLOCK.finditer(text)
    ]


def wrong(block: Block) -> Iterator[str]:
    """Yield the errors of blocks that are neither run nor validly excluded."""
    marked = block.above.startswith("<!--")
    if block.language not in RUN | SHOWN:
        yield f"{block}: a block of {block.language!r} is neither run nor one of {', '.join(sorted(SHOWN))}"
    elif block.language in RUN and marked and not (block.elsewhere or block.reason):
        yield f"{block}: the comment above is no marker: {block.above}"
    if block.reason and len(block.reason.split()) < 2:
        yield f"{block}: {block.reason!r} is no reason"
    if block.elsewhere and Path(block.page).name not in _runner(block.page):
        yield f"{block}: no test of its own runs it"


def _runner(page: str) -> str:
    """Return the test file that runs a page's marked blocks."""
    return (Path(__file__).parent / OURS[page]).read_text(encoding="utf-8") if page in OURS else ""


HGMEM = r"""#!/usr/bin/env bash
# hgmem of this Python. `hgmem browser` serves until it is interrupted: here until it says that it does.
if [[ ${1-} != browser || " $* " == *" --save "* ]]; then exec "$TESTED_PYTHON" -m hgmem "$@"; fi
said=$(mktemp)
"$TESTED_PYTHON" -m hgmem "$@" >"$said" 2>&1 &
for _ in {1..600}; do
  if grep -q "until Ctrl-C" "$said" || ! kill -0 $! 2>/dev/null; then break; fi
  sleep 0.1
done
served=$(grep -c "until Ctrl-C" "$said")
kill -TERM $! 2>/dev/null
wait $!
code=$?
cat "$said"
if [[ $served == 1 ]]; then exit $code; else exit 1; fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A folder for commands, and their environment; `says` maps texts of the documents to actual values."""

    folder: Path
    environment: Mapping[str, str]
    says: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, environment: Mapping[str, str], says: Mapping[str, str]) -> "Shell":
        command = folder / ".bin" / "hgmem"
        command.parent.mkdir()
        command.write_text(HGMEM, encoding="utf-8")
        command.chmod(0o755)
        added = {
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "TESTED_PYTHON": sys.executable,
            "BROWSER": "true",  # open no browser
            "HGMEM_CACHE": str(folder / ".cache"),
        }
        return cls(folder=folder, environment={**environment, **added}, says=says)

    def put(self, text: str) -> str:
        """Return the text with actual uids and addresses."""
        for written, meant in self.says.items():
            text = text.replace(written, meant)
        return text

    def run(self, block: Block) -> str:
        """Run the commands, each of which must succeed; return their output."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.put(block.text)],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def check(self, block: Block) -> None:
        """Run a `console` block: each command must print the lines below it in this order; `…` matches any text."""
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            text = Block(page=block.page, line=block.line, language="bash", text=command, above="")
            printed = iter([" ".join(line.split()) for line in self.run(text).splitlines()])
            for line in filter(None, shown):
                pieces = [re.escape(piece.strip()) for piece in " ".join(line.split()).split("…")]
                assert any(re.fullmatch(".*".join(pieces), each) for each in printed), f"{block}: not printed: {line}"
