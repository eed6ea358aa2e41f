"""Convert files in a subprocess, so that one that hangs, crashes or exhausts memory harms nothing else.

The libraries for PDF, HTML and Word documents are large and read untrusted files. None of them limits its own time, and
a thread can't be stopped from outside, but a process can.
"""

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from hgmem.sources.files.items import Converted, FormatName, UnusableError

SECONDS = 60.0
STARTING = 120.0  # seconds that the start may take on a busy machine
MEMORY = 2_000_000_000  # bytes that the process may use
OUT_OF_MEMORY = 77  # exit code of the process when it needs more

# The child gets the parent's `sys.path`, so that it imports the same modules, and ignores the environment.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from hgmem.sources.files.converter_worker import serve
serve(memory=int(sys.argv[2]))
"""


class ConverterProcess:
    """Converts files one after the other in a subprocess.

    The subprocess is started for the first file, and again after a file that ended it.
    """

    def __init__(self, *, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._seconds = seconds
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "ConverterProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the subprocess, to be started again for the next file."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def converted(self, path: Path, format_name: FormatName) -> Converted:
        """Return the file's text and metadata, or raise `UnusableError`."""
        request = {"path": str(path), "format": format_name, "seconds": self._seconds}
        reply = json.loads(self._reply(json.dumps(request).encode() + b"\n"))
        if "reason" in reply:
            raise UnusableError(reply["reason"])
        return _loaded(reply)

    def _reply(self, request: bytes) -> bytes:
        if self._process is None:
            self._process = _started(self._memory)
            self._line(self._process, b"", seconds=STARTING)  # the first line says that it is ready
        return self._line(self._process, request, seconds=self._seconds)

    def _line(self, process: subprocess.Popen[bytes], request: bytes, *, seconds: float) -> bytes:
        """Send the request, and return the next line that the process writes."""
        expired = threading.Event()
        timer = threading.Timer(seconds, _end, (process, expired))
        timer.daemon = True
        timer.start()
        line = b""
        try:
            if process.stdin and process.stdout:
                process.stdin.write(request)
                process.stdin.flush()
                line = process.stdout.readline()
        except OSError:
            pass  # the process ended before it read the request
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            raise UnusableError(self._ended(process, seconds if expired.is_set() else 0))
        return line

    def _ended(self, process: subprocess.Popen[bytes], seconds: float) -> str:
        """Close the ended process, and return why it ended.

        `seconds` is the time limit if that was exceeded, else 0.
        """
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        code = process.poll()
        self.close()
        if seconds:
            return f"takes more than {seconds:g} s to read: raise HGMEM_MAX_FILE_SECONDS"
        if code == OUT_OF_MEMORY:
            return f"needs more than {self._memory:,} bytes of memory to read: split it"
        return f"crashed the converter (exit code {code}): it is damaged or needs too much memory"


def _started(memory: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(list(map(str, sys.path))), str(memory)]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise UnusableError(f"cannot start the converter ({error}): Python is {sys.executable!r}") from None


def _end(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _loaded(reply: dict[str, Any]) -> Converted:
    unread = {int(page): reason for page, reason in reply["unread"].items()}
    return Converted(text=reply["text"], title=reply["title"], metadata=reply["metadata"], unread=unread)
