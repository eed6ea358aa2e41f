"""The image of the service and its compose file: linted, read, and its entry point run as a process."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving import serving
from typer.testing import CliRunner
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from hgmem import HGMem
from hgmem.cli import app
from hgmem.client.serving import ServiceStore
from hgmem.local import java
from hgmem.settings import Settings
from hgmem.text.resources import resource

DOCKERFILE = resource("docker", "Dockerfile")


def instruction(name: str) -> list[str]:
    """Return the words of the last instruction of this name that is given as a list."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return list(json.loads(re.findall(rf"^{name}\b[^\[\n]*(\[.*\])$", text, re.MULTILINE)[-1]))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(resource("docker", "service.yaml").read_text())
    return found


def test_the_dockerfile_has_no_findings() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(__file__).parents[2] / ".venv" / "bin"))
    if linter is None:
        pytest.skip("hadolint is not installed")
    found = subprocess.run([linter, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_image_runs_as_an_ordinary_user_and_is_asked_for_its_health() -> None:
    text = DOCKERFILE.read_text()
    assert [int(uid) for uid in re.findall(r"^USER (\S+)$", text, re.MULTILINE)] == [10001]
    assert text.index("USER 10001") > text.rindex("RUN ")
    assert instruction("HEALTHCHECK")[0] == "python"
    extras = re.findall(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)[0].split(",")
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", declared, re.MULTILINE) for extra in extras)


def test_the_compose_file_names_the_tested_server_known_settings_and_no_open_port() -> None:
    services = compose()["services"]
    assert services["neo4j"]["image"] == f"neo4j:{java.VERSION}"
    known = {name.upper() for name in Settings.model_fields} | {
        f"HGMEM_{name.upper()}" for name in Settings.model_fields
    }
    assert services["hgmem"]["environment"].keys() <= known | {"FORWARDED_ALLOW_IPS"}  # uvicorn's
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one.get("ports", ()))
    assert services["neo4j"]["healthcheck"]["test"][0] == "CMD"
    assert services["hgmem"]["depends_on"] == {"neo4j": {"condition": "service_healthy"}}
    assert services["neo4j"]["user"].split(":")[0] not in ("0", "root")
    mounted = {volume.partition(":")[0] for one in services.values() for volume in one["volumes"]}
    assert mounted == compose()["volumes"].keys()


@pytest.mark.parametrize(("peer", "scheme"), [("172.18.0.1", "https"), ("203.0.113.9", "http")])
def test_the_container_believes_a_proxy_of_its_machine_that_a_request_came_by_https(peer: str, scheme: str) -> None:
    believed = compose()["services"]["hgmem"]["environment"]["FORWARDED_ALLOW_IPS"]
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["scheme"])

    scope = {"type": "http", "scheme": "http", "client": (peer, 1), "headers": [(b"x-forwarded-proto", b"https")]}
    trusting = ProxyHeadersMiddleware(app, believed.removeprefix("${FORWARDED_ALLOW_IPS:-").removesuffix("}"))
    asyncio.run(trusting(scope, None, None))  # type: ignore[arg-type]
    assert seen == [scheme]


def test_both_servers_of_ours_are_kept_alive_alike() -> None:
    def alive(name: str) -> list[str]:
        return sorted(re.findall(r"NEO4J_server_bolt_connection__keep.*", resource("docker", name).read_text()))

    assert alive("service.yaml") == alive("compose.yaml") != []


def test_the_entry_point_is_refused_without_a_key_and_serves_a_healthy_process_with_one(
    open_client: Callable[..., HGMem], environment: dict[str, str]
) -> None:
    entry, command = instruction("ENTRYPOINT"), instruction("CMD")
    assert entry == ["hgmem"]
    assert compose()["services"]["hgmem"]["command"][: len(command)] == command
    options = [*command[1:-1], "0"]  # any free port
    client = open_client()
    if not any(key.state == "active" for key in ServiceStore(client).service_keys()):
        refused = CliRunner().invoke(app, ["serve", *options], env=environment)
        assert refused.exit_code != 0
        assert "without keys, everybody" in refused.stderr
    _, key = ServiceStore(client).make_key("ops", scopes=["admin"])
    with serving(client, *options) as service:
        port = service.address.rpartition(":")[2]
        check = [word.replace(":8000/", f":{port}/") for word in instruction("HEALTHCHECK")]
        assert subprocess.run(check, check=False, timeout=60).returncode == 0
    ServiceStore(client).revoke_key(key.uid)
