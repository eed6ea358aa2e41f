"""Verbs of systems as methods: `hg.<system>.<verb>()`, and `hg.<system>.a<verb>()` to await."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import Parameter, Signature, cleandoc, signature
from typing import TYPE_CHECKING, Any

from hgmem.services import Services
from hgmem.systems.registry import names, room
from hgmem.systems.verbs import Note, Verb, method_name, run_verb
from hgmem.values.systems import SystemInfo


class SystemVerbs:
    """The verbs of one system as methods. Each takes its arguments by name, and `corpus=`."""

    def __init__(self, name: str, services: Callable[[str | None], Services], *, note: Note) -> None:
        self._name = name
        self._services = services
        self._note = note

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method for a verb, or its async variant. Raises `AttributeError` if there is none."""
        if not name.startswith("_"):
            methods = self._methods()
            if name in methods:
                return self._method(methods[name], name)
            if name[:1] == "a" and name[1:] in methods:
                return self._async_variant(methods[name[1:]], name)
        raise AttributeError(f"system {self._name!r} has no verb {name!r}: `hgmem systems` lists the verbs")

    def __dir__(self) -> list[str]:
        """Return the names of the methods."""
        return sorted({*object.__dir__(self), *(f"{prefix}{name}" for name in self._methods() for prefix in ("", "a"))})

    def _methods(self) -> dict[str, Verb[Any]]:
        return {method_name(verb.name): verb for verb in room(self._name).verbs}

    def _run(self, verb: Verb[Any], /, *, corpus: str | None = None, **arguments: Any) -> Any:
        return run_verb(self._services(corpus), verb, system=self._name, given=arguments, note=self._note)

    def _method(self, verb: Verb[Any], name: str) -> Callable[..., Any]:
        def called(**arguments: Any) -> Any:
            return self._run(verb, **arguments)

        return _described(called, verb, name)

    def _async_variant(self, verb: Verb[Any], name: str) -> Callable[..., Awaitable[Any]]:
        async def awaited(**arguments: Any) -> Any:
            return await asyncio.to_thread(partial(self._run, verb, **arguments))

        return _described(awaited, verb, name)


class SystemAttributes:
    """Access to the verbs of systems as attributes of a client, `hg.<system>`."""

    if not TYPE_CHECKING:  # a type checker would take every misspelt method for a system

        def __getattr__(self, name: str) -> SystemVerbs:
            """Return the verbs of the system of this name, whose hyphens are underscores here."""
            if not name.startswith("_"):
                for system_name in names():
                    if method_name(system_name) == name:
                        return self.verbs(system_name)
            raise AttributeError(f"{type(self).__name__!r} has no attribute and knows no system {name!r}")

        def __dir__(self) -> list[str]:
            """Return the names of the attributes and of the systems."""
            return sorted({*object.__dir__(self), *map(method_name, names())})


def with_verbs(name: str) -> SystemInfo | None:
    """Return the system of this name if it has verbs. Raises `UsageError` if it cannot be loaded."""
    found = room(name).info if name in names() else None
    return found if found and found.verbs else None


def _described(method: Callable[..., Any], verb: Verb[Any], name: str) -> Callable[..., Any]:
    """Give a method the name, the help and the arguments of its verb."""
    lines = [f"- `{one.name}`: {one.help}" for one in verb.info.arguments]
    method.__name__ = method.__qualname__ = name
    method.__doc__ = "\n".join([cleandoc(verb.summary), *([""] if lines else []), *lines])
    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature(verb.arguments).parameters.values()]
    corpus = Parameter("corpus", Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
    method.__signature__ = Signature([*own, corpus])  # type: ignore[attr-defined]
    return method
