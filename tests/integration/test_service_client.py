"""A typed client that a generator makes from the service's description, used against a process of the service.

This generator knows one form of an answer, so the events of questions are left out of what it reads.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, QUESTION
from serving import serving

from hgmem import HGMem
from hgmem.client.serving import ServiceStore

pytest.importorskip("clientele", reason="clientele is not installed")
GENERATE = "from clientele.cli import cli_group; cli_group()"


def filled(model: Any, **given: object) -> Any:
    """Return a model with null for what may be left out: this generator takes that for required."""
    return model(**{**{name: None for name, one in model.model_fields.items() if one.is_required()}, **given})


def test_a_generated_client_gets_typed_answers(client: HGMem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client.add_graph(LETTERS)
    token, key = ServiceStore(client).make_key("anna", scopes=["read", "ask", "write"], corpora=[client.corpus])
    with serving(client) as service:
        with service.http() as http:
            described = http.get("/openapi.json").json()
        for operation in (one for path in described["paths"].values() for one in path.values()):
            operation["responses"].get("200", {}).get("content", {}).pop("text/event-stream", None)
        (tmp_path / "openapi.json").write_text(json.dumps(described), encoding="utf-8")
        command = [sys.executable, "-c", GENERATE, "start-api", "-f", "openapi.json", "-o", "typed_service"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        monkeypatch.setenv("BASE_URL", service.address)
        monkeypatch.setenv("HEADERS", json.dumps({"Authorization": f"Bearer {token}"}))
        monkeypatch.setenv("TIMEOUT", "120")
        monkeypatch.syspath_prepend(tmp_path)
        api, schemas = (importlib.import_module(f"typed_service.{name}") for name in ("client", "schemas"))

        answer = api.ask(corpus=client.corpus, data=filled(schemas.Asked, question=QUESTION, steps=1))
        assert isinstance(answer, schemas.Answer)
        assert client.memory(answer.memory).answers[0].text == answer.answer
        memory = api.memory(memory=answer.memory)
        assert isinstance(memory.points[0], schemas.MemoryPoint)
        assert [one.uid for one in memory.points] == [one.uid for one in client.memory(answer.memory).points]
        assert isinstance(api.lineage(point=memory.points[0].uid), schemas.Lineage)
        assert [one.uid for one in api.memories(corpus=client.corpus).items] == [answer.memory]
        fork = api.fork(memory=answer.memory, step=1)
        assert (fork.forked_from, fork.forked_at) == (answer.memory, 1)
        diff = api.diff(memory=answer.memory, other=fork.memory)
        assert isinstance(diff, schemas.MemoryDiff)
        assert [pair.after.uid for pair in diff.kept] == [one.uid for one in fork.points]
        found = api.search(corpus=client.corpus, data=filled(schemas.Sought, question=QUESTION, limit=2))
        assert [one.chunk.uid for one in found.items] == [one.chunk.uid for one in client.search(QUESTION, limit=2)]
        job = api.begin_job(corpus=client.corpus, data=filled(schemas.Wanted, kind="retry"))
        assert api.job(job=job.uid).kind == "retry"
        none = api.memory(memory="m0")
        assert isinstance(none, schemas.Problem)
        assert (none.status, none.detail.startswith("memory, point or answer")) == (404, True)
    ServiceStore(client).revoke_key(key.uid)
