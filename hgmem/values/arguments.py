"""Arguments of calls: checks, whose errors name the argument and the remedy, and what questions and builds may take."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict
from unicodedata import category

from hgmem.errors import UsageError
from hgmem.values.events import Watcher
from hgmem.values.inputs import Filters, assignments, typed_filters

LONGEST_OWNER = 200  # characters of an owner's name
_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of a pair, separators of lines


@dataclass(frozen=True, slots=True)
class Argument:
    """A named argument: `fits` checks its value, `otherwise` ends the error message.

    None means "not given", unless `optional` is False.
    """

    fits: Callable[[object], bool]
    otherwise: str
    optional: bool = True


@dataclass(frozen=True, slots=True)
class Option:
    """Marks a keyword argument that is an option of a command too: its value's name in the help, and the help.

    `flags` are its names there if those are others, `kind` its type, `least` its smallest value. `read` returns the
    argument's value for what was typed.
    """

    metavar: str
    help: str
    flags: tuple[str, ...] = ()
    kind: Any = str
    least: int | None = None
    read: Callable[[Any], object] = lambda typed: typed


def check(given: Mapping[str, object], known: Mapping[str, Argument]) -> None:
    """Check the values of known arguments and ignore other names.

    Raises `UsageError` for the first invalid value.
    """
    for name, value in given.items():
        argument = known.get(name)
        if argument is None or (value is None and argument.optional):
            continue
        if not argument.fits(value):
            raise UsageError(f"{name}={value!r} {argument.otherwise}")


def text(value: object) -> bool:
    """Whether the value is a string."""
    return isinstance(value, str)


def flag(value: object) -> bool:
    """Whether the value is a boolean."""
    return isinstance(value, bool)


def whole(value: object) -> bool:
    """Whether the value is an integer, but not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def count(value: object) -> bool:
    """Whether the value is an integer of at least 1."""
    return isinstance(value, int) and whole(value) and value >= 1


def named(value: object) -> bool:
    """Whether the value is a mapping with string keys."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def owner_name(value: object) -> bool:
    """Whether the value names an owner of memories: at most 200 characters, none of them a control character."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_OWNER:
        return False
    return not any(category(letter) in _UNSHOWN for letter in value)


OWNER = Argument(
    owner_name,
    f"is not an owner: use 1 to {LONGEST_OWNER} characters without control characters, or omit it",
)
UID = Argument(text, "is not a memory uid: pass one, such as answer.memory", optional=False)
STEP = Argument(count, "is not a valid step: use an integer of at least 1")


Recipe: TypeAlias = object  # a recipe's name, a config of the system, or None


def typed_changes(given: Iterable[str]) -> dict[str, str]:
    """Return recipe options such as `retrieval.hops=2` by name."""
    return dict(assignments(given, otherwise="invalid --set {!r}: use KEY=VALUE, such as --set retrieval.hops=2"))


CHANGES = Option(
    "KEY=VALUE",
    "Recipe option, such as retrieval.hops=2. Repeatable.",
    flags=("--set",),
    kind=list[str],
    read=typed_changes,
)


MaxCalls: TypeAlias = Annotated[
    int | None,
    Option("N", "Stop after N calls of language models; embedders and rerankers don't count.", kind=int, least=1),
]
MaxTokens: TypeAlias = Annotated[
    int | None,
    Option("N", "Stop after N tokens of language models; embedders and rerankers don't count.", kind=int, least=1),
]


class CallLimits(TypedDict, total=False):
    """Limits of a run: requests to a language model, and its tokens."""

    max_calls: MaxCalls
    max_tokens: MaxTokens


class IndexOptions(CallLimits, total=False):
    """Options of indexing: the folder for what each stage makes, how many write that, and the cluster that works."""

    stages: Annotated[
        str | None,
        Option("DIR", "Keep what each stage makes as Parquet files in this folder, a path or an address, and resume."),
    ]
    writers: Annotated[
        int | None, Option("N", "With --stages: writers that fill an empty corpus. Default: 2.", kind=int, least=1)
    ]
    ray: Annotated[
        str | None,
        Option("ADDRESS", "With --stages: work on this Ray cluster: HOST:PORT, auto, or local, which starts one."),
    ]


class AppendOptions(CallLimits, total=False):
    """Options of appending to a conversation: whether to extract a graph, and to refuse a new conversation."""

    graph: Annotated[bool, Option("", "Extract entities and relations too.", flags=("--graph",), kind=bool)]
    existing: Annotated[bool, Option("", "Refuse to create a conversation.", flags=("--existing",), kind=bool)]


class AskOptions(TypedDict, total=False):
    """Options of a question, by name, from the caller to the system that answers.

    - `system`: a name of `HGMem.systems()`. The default is the system of `memory`, else `HGMEM_SYSTEM`.
    - `recipe`: a name, or a config of the system such as an `HGMemConfig`. `settings` override single fields of it, as
      in `{"retrieval.hops": 2}`.
    - `steps`: maximum of new steps. By default a continued question that was interrupted takes those
      that the recipe leaves it, at least one.
    - `filters`: select the documents to search by `source`, `title`, `document` (uid) or metadata, as in `{"year":
      2020, "author": ["Doyle", "Poe"]}`. All names must match, with any one value each. `*` in a text matches anything.
      Raises `UsageError` if no document matches.
    - `owner`: whose memory it is. Only that owner and callers without an owner see it, and only the owner's own and
      everybody's memories can be continued. The default is the client's owner, else everybody.
    - `memory`: uid of the memory to continue. `at_step` answers from that memory as of a step, without new steps.
    - `max_calls`, `max_tokens`: limits on calls and tokens of language models that hgmem calls over HTTP or through
      LangChain. Embedders, rerankers, cached replies and custom model objects are not counted.
    - `answer=False`: build the memory without an answer. Continue it with `memory` to get one.
    - `learn=True`: learn from the question once it is answered, in a system that can.
    - `watcher`: tracing hooks, called while the question is answered.
    """

    corpus: Annotated[str | None, Option("NAME", "The corpus. Default: default.", flags=("--corpus", "-c"))]
    steps: Annotated[int | None, Option("N", "Maximum new steps. Default: the recipe's.", kind=int)]
    system: Annotated[
        str | None, Option("NAME", "System, see `hgmem systems`. Default: that of the memory, else HGMEM_SYSTEM.")
    ]
    recipe: Annotated[
        Recipe,
        Option(
            "NAME",
            "Preset of the system. Of hgmem: default, paper, code, or an ablation: global-only, local-only, no-update, "
            "no-merge.",
        ),
    ]
    settings: Annotated[Mapping[str, object] | None, CHANGES]
    filters: Annotated[
        Filters | None,
        Option(
            "KEY=VALUE",
            "Search only documents whose KEY (document, title, source, metadata) is VALUE; * is any text. Repeatable.",
            flags=("--where",),
            kind=list[str],
            read=typed_filters,
        ),
    ]
    owner: Annotated[str | None, Option("NAME", "Make a memory that only this owner sees. Default: everybody sees it.")]
    memory: Annotated[
        str | None,
        Option(
            "MEMORY",
            "Continue this memory: with a new question, or from where it was interrupted.",
            flags=("--continue",),
        ),
    ]
    at_step: Annotated[
        int | None, Option("N", "With --continue: answer from memory as of step N, without new steps.", kind=int)
    ]
    max_calls: MaxCalls
    max_tokens: MaxTokens
    answer: bool
    learn: Annotated[
        bool,
        Option("", "Learn from the question once it is answered, in a system that can.", flags=("--learn",), kind=bool),
    ]
    watcher: Watcher | None


class BuildOptions(TypedDict, total=False):
    """Options of a build, by name.

    - `recipe`: a name, or a config of the system. `settings` override single fields of it by name. Without either, a
      build is made anew with the options that it was made with before.
    - `retry_failed`: make units again that failed with the same inputs.
    - `max_calls`, `max_tokens`: limits as in `AskOptions`. A plan has none.
    """

    corpus: str | None
    recipe: Annotated[Recipe, Option("NAME", "Preset of the system.")]
    settings: Annotated[Mapping[str, object], CHANGES]
    retry_failed: Annotated[bool, Option("", "Make failed units again.", flags=("--retry-failed",), kind=bool)]
    max_calls: MaxCalls
    max_tokens: MaxTokens


LIMIT = Argument(count, "must be an integer of at least 1, or omitted")
SKIP = Argument(lambda value: value == 0 or count(value), "must be an integer of at least 0")
ARGUMENTS: Mapping[str, Argument] = {
    "corpus": Argument(text, "is not a corpus name: pass a string, or omit it"),
    "system": Argument(text, "is not a system name: pass a string, or omit it"),
    "settings": Argument(named, 'must map option names to values, such as {"retrieval.hops": 2}'),
    "steps": LIMIT,
    "owner": OWNER,
    "memory": Argument(text, "is not a memory uid: pass one, such as answer.memory, or omit it"),
    "at_step": STEP,
    "max_calls": LIMIT,
    "max_tokens": LIMIT,
    "answer": Argument(flag, "must be True or False", optional=False),
    "learn": Argument(flag, "must be True or False", optional=False),
    "watcher": Argument(
        lambda one: isinstance(one, Watcher), "is not a tracing hook: pass an hgmem.values.events.Watcher, or omit it"
    ),
}
"""Checks of the option values. Those of `recipe` and `filters` are checked where they are used."""


def check_ask_options(
    given: Mapping[Any, object], *, more: Mapping[str, Argument] | None = None, without: Collection[str] = ()
) -> None:
    """Check ask options.

    `more` are arguments that the caller accepts in addition, `without` the names that it rejects. Raises `UsageError`
    for an unknown name or an invalid value.
    """
    known = [name for name in (*(more or ()), *AskOptions.__annotations__) if name not in without]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a valid argument: choose from {', '.join(known)}")
    check(given, {**ARGUMENTS, **(more or {})})


def check_at_step(options: AskOptions) -> None:
    """Raise `UsageError` if `at_step` is combined with an option that it excludes, or lacks its memory."""
    if options.get("at_step") is None:
        return
    if options.get("steps") is not None:
        raise UsageError("at_step= (--at-step) and steps= (--steps) cannot be combined: drop one")
    if options.get("memory") is None:
        raise UsageError("at_step= (--at-step) needs a memory: pass memory= (--continue) as well")
    if options.get("filters"):
        raise UsageError("at_step= (--at-step) and filters= (--where) cannot be combined: drop one")
    if not options.get("answer", True):
        raise UsageError("at_step= and answer=False cannot be combined: drop one")
