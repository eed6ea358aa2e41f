"""Digests of a unit's inputs. Of contents alone: a unit made anew with an equal result stops a change there."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hgmem.builds.stages import Stage
from hgmem.builds.units import Output, StoredRow, Unit
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import read_prompt
from hgmem.services import Services
from hgmem.text.identity import text_hash


def stage_key(services: Services, stage: Stage[Any], settings: Mapping[str, Any]) -> str:
    """Return what all units of a stage depend on: its version, settings, prompts, models, embedder.

    The rule-based model answers by vectors, so the embedder counts for each stage that it serves.
    """
    prompts = [read_prompt(path) for path in stage.prompts]
    models = [serving(services.model, prompt.name).name for prompt in prompts]
    return _json(
        [
            stage.version,
            {name: settings[name] for name in stage.settings},
            [[prompt.name, prompt.version, model] for prompt, model in zip(prompts, models, strict=True)],
            services.embedder.name if stage.vectors or ExtractiveModel.name in models else "",
        ]
    )


def unit_digest(common: str, unit: Unit, *, before: Sequence[Output]) -> str:
    """Return the digest of a unit's inputs. `before` are the outputs of the units that it comes after."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (
        common,
        _json([[chunk.uid, chunk.title, text_hash(chunk.text)] for chunk in unit.chunks]),
        _json([_contents(row) for row in unit.rows]),
        _json([[output.uid, output.document, output.value] for output in (*unit.outputs, *before)]),
        _json(unit.values),
    ):
        hashed.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def _contents(row: StoredRow) -> list[Any]:
    return [row.uid, row.document, row.text, dict(row.properties)]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
