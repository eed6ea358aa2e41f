"""Questions of our own format: their ids, evidence and pairs."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from hgmem.evaluation.data_set import EvalQuestion, Evidence, Problems
from hgmem.evaluation.formats.evidence import Sources, UnknownEvidenceError
from hgmem.evaluation.formats.own_lines import QuestionLine, read_lines

# Kinds of questions that the documents answer in so many words, so that a question without evidence is a mistake.
NEEDING_EVIDENCE = frozenset({"single", "several", "compare", "cause", "knowledge", "identity", "time"})
_VERDICT = re.compile(r"\W*(true|false)\b", re.IGNORECASE)


def read_questions(path: Path, sources: Sources) -> tuple[EvalQuestion, ...]:
    """Return the questions of a file, their evidence as words of the documents. Raises `DocumentError`."""
    problems = Problems(path)
    found = dict(read_lines(path, QuestionLine, problems))
    _check_ids(found.items(), problems)
    questions = tuple(_question(line, number, sources, problems) for number, line in found.items())
    check_pairs(zip(found, questions, strict=True), problems)
    if not found:
        problems.add("it has no valid question")
    problems.check()
    return questions


def check_pairs(questions: Iterable[tuple[int, EvalQuestion]], problems: Problems) -> None:
    """Note the pairs that are not a true and a false claim, each at the line of its first question."""
    pairs: dict[str, list[tuple[int, EvalQuestion]]] = defaultdict(list)
    for number, one in questions:
        if one.pair:
            pairs[one.pair].append((number, one))
    for name, members in pairs.items():
        verdicts = sorted(verdict(one) for _, one in members)
        if verdicts != ["false", "true"]:
            told = ", ".join(verdicts) if all(verdicts) else "another answer"
            problems.add(f"pair {name!r} is not one true and one false claim: {told}", line=members[0][0], field="pair")


def verdict(question: EvalQuestion) -> str:
    """Return 'true' or 'false' if the reference answer begins with it, else `''`."""
    found = _VERDICT.match(question.answer)
    return found[1].lower() if found else ""


def _check_ids(lines: Iterable[tuple[int, QuestionLine]], problems: Problems) -> None:
    seen: Counter[str] = Counter()
    for number, line in lines:
        seen[line.id] += 1
        if seen[line.id] == 2:
            problems.add(f"id {line.id!r} is a duplicate: ids must be unique", line=number, field="id")


def _question(line: QuestionLine, number: int, sources: Sources, problems: Problems) -> EvalQuestion:
    evidence: list[Evidence] = []
    for at, one in enumerate(line.evidence):
        try:
            evidence.append(sources.resolve(one))
        except UnknownEvidenceError as error:
            problems.add(str(error), line=number, field=f"evidence.{at}")
    if not line.evidence and line.kind in NEEDING_EVIDENCE:
        problems.add(f"a question of kind {line.kind!r} needs evidence", line=number, field="evidence")
    return EvalQuestion(
        id=line.id,
        kind=line.kind,
        question=line.question,
        answer=line.answer,
        evidence=tuple(evidence),
        pair=line.pair,
        held_back=line.held_back,
    )
