"""A typed client that a generator makes from the service's description, used against a process of the service."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from letters import LETTERS, QUESTION
from serving import serving

from hgmem import HGMem
from hgmem.client.serving import ServiceStore

GENERATE = "from clientele.cli import cli_group; cli_group()"


def test_a_generated_client_gets_typed_answers(client: HGMem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client.add_graph(LETTERS)
    token, key = ServiceStore(client).make_key("anna", scopes=["read", "ask", "write"], corpora=[client.corpus])
    with serving(client) as service:
        with service.http() as http:
            (tmp_path / "openapi.json").write_bytes(http.get("/openapi.json").content)
        command = [sys.executable, "-c", GENERATE, "start-api", "-f", "openapi.json", "-o", "typed_service"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        monkeypatch.setenv("BASE_URL", service.address)
        monkeypatch.setenv("HEADERS", json.dumps({"Authorization": f"Bearer {token}"}))
        monkeypatch.setenv("TIMEOUT", "120")
        monkeypatch.syspath_prepend(tmp_path)
        api, schemas = (importlib.import_module(f"typed_service.{name}") for name in ("client", "schemas"))

        answer = api.ask(client.corpus, data=schemas.Asked(question=QUESTION, steps=1))
        assert isinstance(answer, schemas.Answer)
        assert client.memory(answer.memory).answers[0].text == answer.answer
        memory = api.memory(answer.memory)
        assert isinstance(memory.points[0], schemas.MemoryPoint)
        assert [one.uid for one in memory.points] == [one.uid for one in client.memory(answer.memory).points]
        assert isinstance(api.lineage(memory.points[0].uid), schemas.Lineage)
        assert [one.uid for one in api.memories(client.corpus).items] == [answer.memory]
        found = api.search(client.corpus, data=schemas.Sought(question=QUESTION, limit=2))
        assert [one.chunk.uid for one in found.items] == [one.chunk.uid for one in client.search(QUESTION, limit=2)]
        job = api.begin_job(client.corpus, data=schemas.Wanted(kind="retry"))
        assert api.job(job.uid).kind == "retry"
        api.delete_memory(answer.memory)
        gone = api.memory(answer.memory)
        assert isinstance(gone, schemas.Problem)
        assert (gone.status, gone.detail.startswith("memory, point or answer")) == (404, True)
    ServiceStore(client).revoke_key(key.uid)
