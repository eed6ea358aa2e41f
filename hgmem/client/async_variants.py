"""Async variants of methods: the same work in a thread, awaited."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def async_variant(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """Return the async variant of a method, which runs it in a thread without blocking the event loop."""

    @wraps(method)
    async def awaited(self: S, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *arguments, **named)

    return awaited
