"""A tiny data set for tests of runs, its reader, and the command line with that reader in a process of its own."""

import json
import sys
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation import formats as data
from hgmem.evaluation.formats import DataSet, EvalQuestion, Evidence
from hgmem.evaluation.formats.data_set import Sources
from hgmem.values.inputs import Document

DOCUMENTS = {
    "mill": "Anna sold the mill to Bo in spring. Dag burned the mill at night, and Eve saw him run.",
    "boat": "Bo bought a boat from Cleo. Cleo left the harbour in May, and nobody has seen her since.",
    "pier": "Eve counts the lamps of the pier. One lamp is missing since the storm of March.",
}
QUESTIONS = (
    ("q1", "single", "Who sold the mill?", "Anna sold it to Bo.", (("mill", "Anna sold the mill to Bo in spring."),)),
    (
        "q2",
        "several",
        "Who had to do with the mill and the boat?",
        "Bo had both.",
        (("mill", "Anna sold the mill to Bo"), ("boat", "Bo bought a boat from Cleo.")),
    ),
    ("q3", "single", "What does Eve count?", "The lamps.", (("pier", "Eve counts the lamps of the pier."),)),
    ("q4", "open", "What are they all afraid of?", "Nothing is said of fear.", ()),
)


def write_data(folder: Path) -> Path:
    """Write the data set to a file in a form that only these tests read."""
    file = folder / "tiny.json"
    file.write_text(json.dumps({"documents": DOCUMENTS, "questions": QUESTIONS}), encoding="utf-8")
    return file


def read_tiny(
    path: Path,
    *,
    format: str = "hgmem",  # noqa: A002
    graph: Path | None = None,
    given: Sources | None = None,
) -> DataSet:
    """Return the data set of such a file."""
    if format != "hgmem":
        raise UsageError(f"unknown format {format!r}: use hgmem")
    values = json.loads(path.read_text(encoding="utf-8"))
    return DataSet(
        name="tiny",
        graph=graph,
        documents=tuple(Document(id=name, title=name, text=text) for name, text in values["documents"].items()),
        questions=tuple(
            EvalQuestion(
                id=name,
                kind=kind,
                question=question,
                answer=answer,
                evidence=tuple(Evidence(document=one, text=text) for one, text in evidence),
                held_back=name == "q3",
            )
            for name, kind, question, answer, evidence in values["questions"]
        ),
    )


if __name__ == "__main__":
    from hgmem.cli import main

    data.read_data = read_tiny
    sys.argv[0] = "hgmem"
    main()
