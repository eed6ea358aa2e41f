"""Lines of an archive: a record as JSON, its last field a digest over the record and the digest of the line before."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

Record: TypeAlias = Mapping[str, Any]

BYTES = 16  # of a digest
_TAIL = re.compile(rb',"digest":"([0-9a-f]{32})"\}\n')
_TAIL_LENGTH = len(',"digest":""}\n') + 2 * BYTES


class LineError(ValueError):
    """An invalid line. The reader of the file adds the file and the line number."""


class Chain:
    """The digests of the lines so far. It shows damage, not forgery: whoever changes a file can make it anew."""

    def __init__(self) -> None:
        self._digest = bytes(BYTES)

    @property
    def digest(self) -> str:
        """The digest of everything so far."""
        return self._digest.hex()

    def line(self, record: Record) -> bytes:
        """Return the next line, for this record."""
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        content = text.encode()[:-1]
        self._extend(content)
        return b'%b,"digest":"%b"}\n' % (content, self.digest.encode())

    def record(self, line: bytes) -> dict[str, Any]:
        """Return the record of the next line, or raise `LineError` if the line was changed."""
        tail = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_LENGTH))
        if tail is None:
            raise LineError("no digest at the end: the file is not an archive, or it is truncated")
        content = line[: -len(tail[0])]
        self._extend(content)
        if tail[1].decode() != self.digest:
            raise LineError("the digest does not match: the file was damaged, reordered or changed")
        return _parsed(content + b"}")

    def _extend(self, content: bytes) -> None:
        self._digest = hashlib.blake2b(self._digest + content, digest_size=BYTES).digest()


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(text.decode(), object_pairs_hook=_distinct, parse_constant=_refused)
    except RecursionError:
        raise LineError("JSON nested too deeply") from None
    except LineError:
        raise
    except ValueError as error:  # no JSON, no UTF-8, a number of thousands of digits
        raise LineError(f"not JSON: {str(error)[:200]}") from None
    if not isinstance(parsed, dict):
        raise LineError("not a JSON object")
    return parsed


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise LineError(f"duplicate field {name[:80]!r}")
        found[name] = value
    return found


def _refused(constant: str) -> NoReturn:
    raise LineError(f"{constant} is not a JSON number")
