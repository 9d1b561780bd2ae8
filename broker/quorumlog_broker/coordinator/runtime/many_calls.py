"""Requests about several names: each has an answer or an error of its own, in the order of the request.

All calls are begun before the first answer is awaited, some in each turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer

CALLS_A_TURN = 32  # begun in one turn of the loop, such as the descriptions of so many groups

Name = TypeVar("Name")
Found = TypeVar("Found")
Owner = TypeVar("Owner")


async def ask_each(
    names: Sequence[Name], begin: Callable[[Name], PendingAnswer], refused: Callable[[Name, ApiError], Found]
) -> list[Found]:
    """begin: raises the ApiError of one name, as its answer does. refused: what is answered then."""
    begun: list[PendingAnswer | ApiError] = []
    for name in names:
        try:
            begun.append(begin(name))
        except ApiError as error:
            begun.append(error)
        if len(begun) % CALLS_A_TURN == 0:
            await asyncio.sleep(0)
    return [await _answer_of(name, one, refused) for name, one in zip(names, begun, strict=True)]


async def _answer_of(name: Name, begun: PendingAnswer | ApiError, refused: Callable[[Name, ApiError], Found]) -> Found:
    try:
        if isinstance(begun, ApiError):
            raise begun
        found: Found = await begun
    except ApiError as error:
        return refused(name, error)
    return found


async def all_or_none(owners: Iterable[Owner], listed: Callable[[Owner], Awaitable[Iterable[Found]]]) -> list[Found]:
    """What all of them list, without those that have left.

    Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) if one of them loads: a client that asks every broker must not take
    what it gets for everything.
    """
    found: list[Found] = []
    for owner in owners:
        try:
            found += await listed(owner)
        except ApiError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
    return found
