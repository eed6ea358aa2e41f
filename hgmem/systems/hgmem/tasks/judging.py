"""How a plan judges memory: once for a step, as the official code does, or for each concern by itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Strategies: TypeAlias = Literal["adaptive", "local", "global"]
Judging: TypeAlias = Literal["step", "concern"]
_Kind: TypeAlias = Literal["step", "concern", "local", "global"]

_ENOUGH = (
    '"sufficient" if memory answers each part of the question and has checked what the question takes for granted '
    "(where that proved false, saying so is the answer)"
)
_POINTS = "`points` are the numbers of the points to look into"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    """What a prompt says of the judgement and of where a concern is looked for.

    `verdicts` are those beside "sufficient"; the first is the example's.
    """

    judging: str
    where: str
    verdicts: tuple[str, ...]
    shown: tuple[Literal["local", "global"], ...]  # concerns of the example
    each: bool = False  # whether a concern has a strategy of its own


# "step" is the choice of the official code's plan: dig into points (2.1) or explore beyond memory (2.2).
_WORDINGS: Mapping[_Kind, _Wording] = {
    "concern": _Wording(
        judging=f'{_ENOUGH}, else "open".',
        where=(
            '`strategy` says where to look: "local" if a person, place or thing that it is about is among the entities '
            'of memory, `points` being the numbers of the points that have it; "global" if none is, or if looking '
            "around those points has found nothing: entities of memory are then left out of the search, and `points` "
            "is empty. Each concern is judged by itself."
        ),
        verdicts=("open",),
        shown=("local", "global"),
        each=True,
    ),
    "step": _Wording(
        judging=(
            f'{_ENOUGH}; "local" if points of memory should be looked into more deeply; "global" if something beyond '
            "memory should be explored."
        ),
        where=f"{_POINTS} if the judgement is local, else empty.",
        verdicts=("local", "global"),
        shown=("local",),
    ),
    "local": _Wording(judging=f'{_ENOUGH}, else "local".', where=f"{_POINTS}.", verdicts=("local",), shown=("local",)),
    "global": _Wording(
        judging=f'{_ENOUGH}, else "global".',
        where="Each is something that memory does not touch yet, and `points` is empty.",
        verdicts=("global",),
        shown=("global",),
    ),
}
# Concerns of the prompts' example, and their sub-queries.
_EXAMPLES = {
    "local": ("What happened to the Holm ferry under Ida Berg.", "Holm ferry in June under Ida Berg"),
    "global": ("Why the Vik bridge was closed, of which memory has nothing.", "Vik bridge closed in June"),
}


def judging_fields(
    strategies: Strategies, judging: Judging, *, concerns: int, subqueries: bool = False
) -> dict[str, str]:
    """Return what the placeholders on judgement and concerns stand for.

    `subqueries` is whether a concern brings its sub-query.
    """
    wording = _WORDINGS[judging if strategies == "adaptive" else strategies]
    example = [_concern(one, wording, told=_EXAMPLES[one], subqueries=subqueries) for one in wording.shown]
    form = _concern(wording.shown[0], wording, told=("…", "…"), subqueries=subqueries)
    return {
        "judging": wording.judging,
        "where": wording.where,
        "concerns": str(concerns),
        "form": _written(wording.verdicts[0], [form]),
        "example": _written(wording.verdicts[0], example),
    }


def narrowed(schema: dict[str, Any], strategies: Strategies, judging: Judging) -> dict[str, Any]:
    """Return the schema of a plan's reply with the judgements and strategies that its prompt names, and no others."""
    wording = _WORDINGS[judging if strategies == "adaptive" else strategies]
    concerns = schema["properties"]["concerns"]
    concern = concerns["items"]
    fields = {name: part for name, part in concern["properties"].items() if wording.each or name != "strategy"}
    if wording.each:
        fields["strategy"] = {"type": "string", "enum": list(wording.shown)}
    held = {**concern, "properties": fields, "required": list(fields)}
    judgement = {"type": "string", "enum": ["sufficient", *wording.verdicts]}
    parts = {**schema["properties"], "judgement": judgement, "concerns": {**concerns, "items": held}}
    return {**schema, "properties": parts}


def _concern(
    strategy: str, wording: _Wording, *, told: tuple[str, str], subqueries: bool
) -> dict[str, str | list[int]]:
    text, subquery = told
    return {
        "text": text,
        **({"strategy": strategy} if wording.each else {}),
        "points": [0] if strategy == "local" else [],
        **({"subquery": subquery} if subqueries else {}),
    }


def _written(verdict: str, concerns: list[dict[str, str | list[int]]]) -> str:
    """Return the fields of a reply as JSON, without the braces around them: others may stand before them."""
    return json.dumps({"judgement": verdict, "concerns": concerns}, ensure_ascii=False)[1:-1]


def rounds(done: int, of: int) -> str:
    """Return which round of a question this is, and whether the next is the last."""
    left = of - done
    if left == 1:
        return f"Round {done} of {of}: one round is left, the last. Ask for what the answer needs most."
    return f"Round {done} of {of}: {left} rounds are left."
