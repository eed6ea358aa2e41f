"""Asynchronous twins of methods: the same work in a thread, awaited."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def twin(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """Return a method that takes what `method` takes and returns it awaited, without blocking the event loop."""

    @wraps(method)
    async def awaited(self: S, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *arguments, **named)

    return awaited
