"""Let a server plan the statements of a question while it starts, so that its first question need not wait for plans.

`hgmem up` runs this file as a process of its own, which goes on where `up` has waited long enough.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hgmem.graph.database import Address, connect
from hgmem.graph.schema import ensure_schema
from hgmem.graph.server import ping
from hgmem.graph.statements import KEPT, statements
from hgmem.local import find
from hgmem.settings import load

PATIENCE = 2.0  # seconds that `up` waits once the server answers
ANSWERING = 2.0  # seconds that a server has to answer
LONGEST = (
    3_600.0  # seconds until the process gives up: the first `up` of a machine downloads the server before it starts
)
PAUSE = 0.2


@contextmanager
def warmed(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process that plans beside the block, which starts the server of this data directory.

    At the end of the block, wait for it for at most `PATIENCE` seconds. If the block fails, the process ends too.
    """
    command = [sys.executable, "-m", "hgmem.local.warming", str(data)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield process
    except BaseException:
        process.kill()
        raise
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)


def main(data: Path) -> None:
    """Wait for the server of the data directory, create its schema, and let it plan, the longest statements first.

    Ends without a server once the process that starts it has ended.
    """
    settings, parent = load(data=data), os.getppid()
    while (server := find(settings)) or os.getppid() == parent:
        if server:
            password = server.password.get_secret_value()
            if ping(server.uri, username=server.username, password=password, timeout=ANSWERING):
                address = Address(uri=server.uri, username=server.username, password=password)
                limits = {"connect_timeout": settings.connect_timeout, "statement_timeout": settings.statement_timeout}
                with closing(connect(address, **limits)) as database:
                    ensure_schema(database)
                    kept = [one for one in statements().values() if KEPT in one.query]
                    for statement in sorted(kept, key=lambda one: len(one.query), reverse=True):
                        database.explain(statement.name)  # one at a time, which leaves a core to Java's compiler
                return
        time.sleep(PAUSE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
