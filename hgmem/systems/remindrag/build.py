"""The build of ReMindRAG, stage by stage: anchors, their vectors and chain, names of entities, and synonyms."""

from collections.abc import Mapping

from hgmem.builds.stages import Build, Kind, Stage
from hgmem.systems.remindrag import anchors, synonyms
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.reembedding import renewed_vectors
from hgmem.systems.remindrag.tasks import TitlePassage

LEARNT = ("Trail", "Learning", "Summary", "TrailScope")
"""Kinds of rows that questions write, and no unit makes."""

_AROUND = 200  # tokens of a prompt beside its passage


def _prompt(config: ReMindRAGConfig) -> int:
    return config.passage_tokens + _AROUND


def _as_anchors(numbers: Mapping[str, int], config: ReMindRAGConfig) -> int:
    return numbers[anchors.STAGE]


BUILD: Build[ReMindRAGConfig] = Build(
    kinds=[
        Kind(name=anchors.ANCHOR, caption="title", colour="#3E7CB1", replaced_vectors=True),
        Kind(name=anchors.NAME, caption="text", colour="#A9A9A9"),
        Kind(name=synonyms.SYNONYM, caption="similarity", colour="#81A4CD"),
        Kind(name="Trail", caption="strength", colour="#DB8A2B"),
        Kind(name="Learning", caption="question", colour="#B5446E"),
        Kind(name="Summary", caption="summary", colour="#9D8189"),
        Kind(name="TrailScope", caption="owner", colour="#6C757D"),
    ],
    relationships=["MENTIONS", "NEXT_ANCHOR", "NAMES", "SYNONYM_OF", "BETWEEN", "TOUCHED", "SUMMARISES"],
    reembed=renewed_vectors,
    stages=[
        Stage(
            name=anchors.STAGE,
            units=anchors.passages,
            make=anchors.make_anchor,
            settings=["passage_tokens"],
            prompts=[TitlePassage.prompt_file],
            calls=1,
            prompt_tokens=_prompt,
        ),
        Stage(
            name="vectors",
            units=anchors.titled,
            make=anchors.give_vector,
            vectors=True,
            most_units=_as_anchors,
        ),
        Stage(name="chain", units=anchors.pairs, make=anchors.tie_next, most_units=_as_anchors),
        Stage(name="entities", units=anchors.mentioned, make=anchors.tie_entities, most_units=_as_anchors),
        Stage(
            name="synonyms",
            units=synonyms.alike,
            make=synonyms.tie_synonyms,
            settings=["synonym"],
            vectors=True,
            most_units=_as_anchors,
        ),
    ],
)
