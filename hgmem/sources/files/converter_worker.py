"""What runs in the converter's process: bytes become text with third-party libraries, and failures one line."""

import json
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hgmem.sources.files import markup, pdf, word
from hgmem.sources.files.converter_process import OUT_OF_MEMORY
from hgmem.sources.files.items import Converted, UnusableError, one_line, title_line, why
from hgmem.text.segmentation import sound
from hgmem.values.inputs import Scalar

MOST_CHARACTERS = 20_000_000
_RECURSION = 20_000  # documents nest deeper than Python's default limit; Python frames don't use the C stack
_GRACE = 5  # extra seconds before the process ends itself, in case the parent is gone
_REFUSED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile", "urllib.")

_CONVERTERS: dict[str, Callable[[bytes], Converted]] = {
    "html": markup.convert,
    "docx": word.convert,
    "pdf": pdf.convert,
}


def serve(*, memory: int) -> None:
    """Convert a file for each request line on stdin, and write a reply line to stdout."""
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # for anything that a library prints
    _confine(memory)
    replies.write(b"\n")  # ready
    replies.flush()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        _expire(request["seconds"])
        replies.write(json.dumps(reply(Path(request["path"]), request["format"])).encode() + b"\n")
        replies.flush()
        _expire(0)


def reply(path: Path, format_name: str) -> dict[str, Any]:
    """Return the fields of `Converted`, or the reason for a failure."""
    try:
        return asdict(checked(_CONVERTERS[format_name](path.read_bytes())))
    except UnusableError as error:
        reason = str(error)
    except OSError as error:
        reason = why(error)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)  # the process may be unusable now
    except RecursionError:
        reason = "nested too deeply"
    except Exception as error:  # libraries raise anything for malformed files
        reason = f"damaged: {str(error) or type(error).__name__}"
    return {"reason": one_line(reason)}


def checked(found: Converted) -> Converted:
    """Return the conversion with unpaired surrogates replaced.

    Raises `UnusableError` if there is no text or too much.
    """
    text = sound(found.text)
    if not text.strip():
        raise UnusableError("empty")
    if len(text) > MOST_CHARACTERS:
        raise UnusableError(f"{len(text):,} characters of text are above the limit of {MOST_CHARACTERS:,}: split it")
    return replace(
        found,
        text=text,
        title=title_line(sound(found.title)),
        metadata={name: _one_line_value(value) for name, value in found.metadata.items() if value != ""},
        unread={page: one_line(reason) for page, reason in found.unread.items()},
    )


def _one_line_value(value: Scalar) -> Scalar:
    return title_line(sound(value)) if isinstance(value, str) else value


def _confine(memory: int) -> None:
    """Limit memory, ignore Ctrl-C, and block network and process calls."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setrecursionlimit(_RECURSION)
    warnings.simplefilter("ignore")
    logging.disable()
    _bound(memory)
    sys.addaudithook(_refuse)


def _bound(memory: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _refuse(event: str, _: object) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"{event} is not for documents")


def _expire(seconds: float) -> None:
    if sys.platform != "win32":
        signal.alarm(int(seconds) + _GRACE if seconds else 0)
