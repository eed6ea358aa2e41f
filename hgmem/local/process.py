"""A server that is a process of this machine: a Java with Neo4j's jars, detached from whoever started it."""

import contextlib
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psutil

from hgmem.errors import GraphError
from hgmem.local import java
from hgmem.local.machine import HOST, Sizes
from hgmem.local.state import EngineKind, Home, Record, Report, write_secret
from hgmem.settings import Settings

STOP_SECONDS = 30.0
KILL_SECONDS = 10.0
PASSWORD_SECONDS = 120.0
KEEP_ALIVE = 5  # seconds between the signs of life that a server sends while it works; Neo4j's own are 60
PROBES = 3  # of them missing, and a driver gives the connection up; `docker/compose.yaml` has the same numbers
MAIN = "org.neo4j.server.Neo4jCommunity"
ADMIN = "org.neo4j.cli.AdminTool"  # `neo4j-admin` would start it in a second Java, for all to see in `ps`

OPTIONS = (
    "-XX:+UseG1GC",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:+TrustFinalNonStaticFields",
    "-XX:+DisableExplicitGC",
    "-Djdk.nio.maxCachedBufferSize=1024",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.leakDetection.level=DISABLED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "-Dlog4j2.disable.jmx=true",
    "-Dfile.encoding=UTF-8",
)
# Nothing of the caller's environment, whose keys are none of the server's business; and without a locale Java could
# not open a path that has more than ASCII in it.
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
# Stack frames, and what Java says after every failure to start.
NOISE = ("at ", "... ", "Error: Could not create the Java", "Error: A fatal exception has occurred")
VECTOR_OPTIONS = (
    "--add-modules=jdk.incubator.vector",
    "-Dorg.neo4j.shaded.lucene9.vectorization.upperJavaFeatureVersion=25",
)


@dataclass(frozen=True, slots=True)
class JavaEngine:
    """Runs servers as processes, with the Java of this machine and the jars of the cache."""

    kind: ClassVar[EngineKind] = "maven"  # its name in `server.json`
    settings: Settings

    def prepare(self, report: Report) -> None:
        """Get together what a start needs, or raise what is missing."""
        java.fetch_jars(self.settings, java=java.find(self.settings), report=report)

    def launch(self, home: Home, *, record: Record, sizes: Sizes) -> None:
        """Start the server, without waiting until it is ready."""
        runtime = java.find(self.settings)
        lib = java.fetch_jars(self.settings, java=runtime, report=lambda line: None)
        (home.path / "conf" / "neo4j.conf").write_text(configuration(record, sizes))
        if not home.has_databases():
            set_password(home, record.password, runtime=runtime, lib=lib)
        arguments = server_arguments(home, sizes, runtime=runtime, lib=lib)
        write_secret(arguments_file(home), quoted(arguments))
        _detach([str(runtime.executable), f"@{arguments_file(home)}"], home)

    def pid(self, home: Home) -> int | None:
        """Return the server's process, or None where it is gone."""
        server = _server(home)
        return server.pid if server else None

    def running(self, home: Home) -> bool:
        """Whether the server's process lives."""
        return self.pid(home) is not None

    def stop(self, home: Home) -> bool:
        """Stop the server, by force if it does not end, and return whether it ran."""
        server = _server(home)
        if server is None:
            return False
        for end, seconds in ((server.terminate, STOP_SECONDS), (server.kill, KILL_SECONDS)):
            try:
                end()
            except psutil.NoSuchProcess:  # it ended by itself
                pass
            except psutil.AccessDenied as error:
                raise GraphError(f"Neo4j (process {server.pid}) is another user's: stop it as that user") from error
            if _gone(server, seconds):
                pid_file(home).unlink(missing_ok=True)
                return True
        raise GraphError(f"Neo4j (process {server.pid}) does not stop: kill it by hand")

    def last_words(self, home: Home) -> str:
        """Return the line of the log that says best why the server ended."""
        try:
            lines = home.log.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return meaningful(lines)

    def log(self, home: Home) -> str:
        """Return where to read on."""
        return str(home.log)


def configuration(record: Record, sizes: Sizes) -> str:
    """Return `neo4j.conf`: loopback only, nothing told to anybody, the least of transaction logs.

    While a statement runs, the server sends a sign of life every five seconds, and tells drivers to give a connection
    up once three are missing. Without the last line a stop takes ten seconds more, in which Bolt waits for calls that
    can't come.
    """
    return f"""server.default_listen_address={HOST}
server.bolt.listen_address={HOST}:{record.bolt}
server.bolt.advertised_address={HOST}:{record.bolt}
server.bolt.connection_keep_alive_for_requests=ALL
server.bolt.connection_keep_alive={KEEP_ALIVE}s
server.bolt.connection_keep_alive_streaming_scheduling_interval={KEEP_ALIVE}s
server.bolt.connection_keep_alive_probes={PROBES}
server.http.listen_address={HOST}:{record.http}
server.http.advertised_address={HOST}:{record.http}
server.http.x_forward.enabled=false
server.https.enabled=false
server.fleet_discovery.enabled=false
dbms.fleet_manager.enabled=false
dbms.usage_report.enabled=false
db.query.default_language=CYPHER_25
server.memory.pagecache.size={sizes.pagecache}
db.tx_log.rotation.retention_policy=keep_none
internal.dbms.bolt.netty_server_shutdown_quiet_period_duration=0s
"""


def server_arguments(home: Home, sizes: Sizes, *, runtime: java.Java, lib: Path) -> list[str]:
    """Return everything that Java is told to run the server."""
    path = home.path
    return [
        "-cp",
        f"{path}/plugins/*:{path}/conf/*:{lib}/*",
        "-Xms256m",
        f"-Xmx{sizes.heap}",
        *OPTIONS,
        *(["--sun-misc-unsafe-memory-access=allow"] if runtime.version >= 24 else []),
        *(VECTOR_OPTIONS if runtime.vectors else []),
        MAIN,
        f"--home-dir={path}",
        f"--config-dir={path}/conf",
        "--console-mode",
    ]


def set_password(home: Home, password: str, *, runtime: java.Java, lib: Path) -> None:
    """Set the password for the first start, through a file that no process list shows."""
    arguments = home.path / "run" / "password.args"
    write_secret(arguments, quoted(["-cp", f"{lib}/*", ADMIN, "dbms", "set-initial-password", password]))
    try:
        done = subprocess.run(
            [str(runtime.executable), f"@{arguments}"],
            env={**ENVIRONMENT, "NEO4J_HOME": str(home.path), "NEO4J_CONF": str(home.path / "conf")},
            capture_output=True,
            text=True,
            timeout=PASSWORD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraphError(
            "Neo4j's password tool timed out: try again when this machine is less busy", retryable=True
        ) from None
    finally:
        arguments.unlink(missing_ok=True)
    if done.returncode != 0:
        raise GraphError(f"Neo4j's password could not be set: {meaningful(done.stderr.splitlines())}")


def quoted(arguments: Iterable[str]) -> str:
    """Return the arguments as Java reads them from a file."""
    escaped = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    return "".join(f'"{argument}"\n' for argument in escaped)


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line of the process, empty if it ended or belongs to another user."""
    try:
        # A process that starts a program has none for a moment.
        for _ in range(20):
            if line := process.cmdline():
                return line
            time.sleep(0.01)
    except psutil.Error:
        pass
    return []


def meaningful(lines: list[str]) -> str:
    """Return the line that names the cause: the innermost one, else the last error, else the last line."""
    said = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(NOISE)]
    for mark in ("Caused by:", "ERROR", "Exception"):
        if found := [line for line in said if mark in line]:
            said = found
            break
    # The time and the level of a log line say nothing more than the sentence around them.
    return re.sub(r"^[0-9-]{10} [0-9:.+]+ +[A-Z]+ +", "", said[-1]) if said else "no output"


def _detach(command: list[str], home: Home) -> None:
    # A shell in a session of its own starts the server and leaves: the server belongs to nobody then, no
    # terminal takes it down, and its number is on disk even if we die in this very moment.
    line = 'log=$1 number=$2; shift 2; "$@" >"$log" 2>&1 & echo $! >"$number"'
    subprocess.run(
        ["/bin/sh", "-c", line, "sh", str(home.log), str(pid_file(home)), *command],
        env=ENVIRONMENT,
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )


def _server(home: Home) -> psutil.Process | None:
    """Return the server's process. What psutil does to it, it does to no other that gets its number later."""
    try:
        process = psutil.Process(int(pid_file(home).read_text()))
    except (OSError, ValueError, psutil.Error):
        return None
    # After a crash the number may belong to somebody else: the command line tells.
    return process if f"@{arguments_file(home)}" in command_line(process) else None


def _gone(process: psutil.Process, seconds: float) -> bool:
    """Return whether the process ends in time. A zombie counts as ended."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(psutil.NoSuchProcess):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
    return True


def pid_file(home: Home) -> Path:
    """Return the file with the number of the process that works on the home."""
    return home.path / "run" / "neo4j.pid"


def arguments_file(home: Home) -> Path:
    """Return the file with that process's arguments, by which it is recognized."""
    return home.path / "run" / "server.args"
