"""Keys of the service: who may do what, with which corpora, and how much of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from hgmem.errors import ScopeError
from hgmem.values.arguments import LIMIT, Argument, Option, count

Scope: TypeAlias = Literal["read", "ask", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "ask", "write", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of the service, without its token. `state` is `active`, `revoked` or `expired`.

    `owner` owns what it asks. It reaches `corpora`, or all if that is empty. Its limits are None where it has none.
    """

    uid: str
    owner: str
    scopes: tuple[Scope, ...]
    corpora: tuple[str, ...] = ()
    created_at: str = ""
    expires_at: str = ""
    state: str = "active"
    questions_per_minute: int | None = None
    tokens_per_day: int | None = None
    bytes_per_day: int | None = None

    @property
    def is_admin(self) -> bool:
        """Whether it may do everything with its corpora, and sees the memories of all owners there."""
        return "admin" in self.scopes

    @property
    def is_limited(self) -> bool:
        """Whether its use is counted."""
        return (self.questions_per_minute, self.tokens_per_day, self.bytes_per_day) != (None, None, None)

    @property
    def sees(self) -> str | None:
        """Whose memories it sees, or None for all."""
        return None if self.is_admin else self.owner

    def may(self, scope: Scope) -> bool:
        """Whether it has this scope."""
        return self.is_admin or scope in self.scopes

    def check(self, scope: Scope) -> None:
        """Raise `ScopeError` unless it has this scope."""
        if not self.may(scope):
            raise ScopeError(f"this key lacks the scope {scope!r} (it has {', '.join(self.scopes)}): use another key")

    def reaches(self, corpus: str) -> bool:
        """Whether it may be used with this corpus."""
        return not self.corpora or corpus in self.corpora

    def check_corpus(self, corpus: str) -> str:
        """Return the name of a corpus. Raises `ScopeError` if the key does not reach it."""
        if not self.reaches(corpus):
            raise ScopeError(f"this key does not reach corpus {corpus!r}: use one that is made for it")
        return corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that any process of the service does: `index` or `import` an upload, `build`, `retry` failed chunks.

    `state` is `waiting`, `running`, `done`, `failed` or `cancelled`. `done` and `total` are its progress in this run,
    `attempts` the processes that have begun it, `result` its report. A `question` is only remembered.
    """

    uid: str
    kind: str
    corpus: str
    key: str
    owner: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    state: str = "waiting"
    attempts: int = 0
    done: int = 0
    total: int = 0
    error: str = ""
    result: Mapping[str, Any] | None = None
    created_at: str = ""
    ended_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What came of counting use: the limit that it is `over` or None, for `wait` seconds, and the tokens `left`."""

    over: str | None
    left: int | None
    wait: int


class KeyOptions(TypedDict, total=False):
    """Options of a key, by name.

    - `scopes`: some of `read`, `ask`, `write` and `admin`, which has all of them. Default: `read` and `ask`.
    - `corpora`: the names of the corpora that it reaches. Default: all.
    - `days`: after which it expires. Default: never.
    - `questions_per_minute`, `tokens_per_day`, `bytes_per_day` (of uploads): its limits. Default: none.
    """

    scopes: Sequence[Scope]
    corpora: Sequence[str]
    days: Annotated[int, Option("N", "Days until it expires. Default: never.", kind=int, least=1)]
    questions_per_minute: Annotated[int, Option("N", "Most questions a minute. Default: no limit.", kind=int, least=1)]
    tokens_per_day: Annotated[
        int, Option("N", "Most tokens of language models a day. Default: no limit.", kind=int, least=1)
    ]
    bytes_per_day: Annotated[int, Option("N", "Most bytes of uploads a day. Default: no limit.", kind=int, least=1)]


KEY_ARGUMENTS = {
    "days": Argument(lambda days: count(days) and days <= 36_500, "must be an integer from 1 to 36500, or omitted"),  # type: ignore[operator]
    **dict.fromkeys(("questions_per_minute", "tokens_per_day", "bytes_per_day"), LIMIT),
    "scopes": Argument(
        lambda given: not isinstance(given, str) and bool(given) and set(given) <= set(SCOPES),  # type: ignore[call-overload]
        f"are not scopes: choose from {', '.join(SCOPES)}",
    ),
}
