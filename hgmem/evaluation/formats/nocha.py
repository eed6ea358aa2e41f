"""NoCha (Karpinska et al., 2024): true and false claims in pairs on a novel, without evidence."""

from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Problems, check_pairs, text_document
from hgmem.sources.json_records import json_of, records

_CLAIMS = ".claims.json"


def read_nocha(path: Path) -> DataSet:
    """Return the novels and claims of a folder, or of one pair of files `NAME.txt` and `NAME.claims.json`."""
    alone = path if path.name.endswith(_CLAIMS) else path.with_name(f"{path.stem}{_CLAIMS}")
    named = sorted(path.glob(f"*{_CLAIMS}")) if path.is_dir() else [alone]
    if not named:
        raise UsageError(f"{str(path)!r} has no files NAME{_CLAIMS}: name a file or folder of NoCha")
    novels = [claims.with_name(f"{claims.name.removesuffix(_CLAIMS)}.txt") for claims in named]
    return DataSet(
        name=path.resolve().stem.removesuffix(".claims"),
        documents=tuple(map(text_document, novels)),
        questions=tuple(question for claims in named for question in _questions(claims)),
    )


def _questions(claims: Path) -> list[EvalQuestion]:
    novel = claims.name.removesuffix(_CLAIMS)
    problems = Problems(claims)
    found: list[EvalQuestion] = []
    for record in records(json_of(claims), claims, what="claim"):
        true = record.values.get("type")
        if not isinstance(true, bool):
            record.fail("it is not true or false", "type")
        pair = f"{novel}-{record.text('index')}"
        found.append(
            EvalQuestion(
                id=f"{pair}-{str(true).lower()}",
                kind="claim",
                question=f"True or false: {record.text('claim')}",
                answer=str(true),
                pair=pair,
            )
        )
    check_pairs(((0, question) for question in found), problems)
    problems.check()
    return found
