"""The results of reading: documents, skipped items, and the reasons."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.values.inputs import Document, Scalar, Skipped

Item: TypeAlias = Document | Skipped
Name: TypeAlias = str | os.PathLike[str]

_REASON_LENGTH = 300


class UnusableError(Exception):
    """Why a file or a record is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The text of a converted file.

    `unread` holds the reasons for skipped pages, by page number.
    """

    text: str
    title: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    unread: Mapping[int, str] = field(default_factory=dict)


def printable(path: Name) -> str:
    """Return the path as text that can be encoded."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def why(error: OSError) -> str:
    """Return the operating system's message."""
    return error.strerror or type(error).__name__


def one_line(text: str) -> str:
    """Return the text as one line that can be encoded, truncated to `_REASON_LENGTH`."""
    return printable(" ".join(text.split())[:_REASON_LENGTH])
