"""Requests about several names: the order and the errors of their answers, and how many calls a turn begins."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.many_calls import CALLS_A_TURN, all_or_none, ask_each
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from tests.rules import rule


def refused(name: str, error: ApiError) -> str:
    return f"{name}: {error.code.name}"


def test_each_name_has_an_answer_or_an_error_in_its_place() -> None:
    async def scenario() -> list[str]:
        pending: dict[str, PendingAnswer] = {}

        def begin(name: str) -> PendingAnswer:
            if name == "elsewhere":
                raise ApiError(ErrorCode.NOT_COORDINATOR, "no")
            pending[name] = PendingAnswer(Turn())
            return pending[name]

        asking = asyncio.create_task(ask_each(("a", "elsewhere", "b", "c"), begin, refused))
        await asyncio.sleep(0)
        assert list(pending) == ["a", "b", "c"], "all are begun before the first has answered"
        pending["c"].answer("3")
        pending["b"].fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "late"))
        pending["a"].answer("1")
        return await asking

    want = ["1", "elsewhere: NOT_COORDINATOR", "b: COORDINATOR_NOT_AVAILABLE", "3"]
    assert asyncio.run(scenario()) == want


def test_a_turn_of_the_loop_begins_only_some() -> None:
    async def scenario() -> Counter[int]:
        turn, begun = 0, Counter[int]()

        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        def begin(_name: int) -> PendingAnswer:
            begun[turn] += 1
            pending = PendingAnswer(Turn())
            pending.answer(turn)
            return pending

        counting = asyncio.create_task(count_turns())
        assert len(await ask_each(range(10 * CALLS_A_TURN), begin, lambda _name, _error: -1)) == 10 * CALLS_A_TURN
        counting.cancel()
        return begun

    assert max(asyncio.run(scenario()).values()) == CALLS_A_TURN


@rule("group 1.6")
@pytest.mark.parametrize(
    ("code", "want"), [(ErrorCode.NOT_COORDINATOR, [1, 3]), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)]
)
def test_a_list_is_whole_or_an_error(code: ErrorCode, want: list[int] | None) -> None:
    async def listed(owner: int) -> list[int]:
        if owner == 2:
            raise ApiError(code, "no")
        return [owner]

    if want is None:
        with pytest.raises(ApiError) as caught:
            asyncio.run(all_or_none((1, 2, 3), listed))
        assert caught.value.code is code
    else:
        assert asyncio.run(all_or_none((1, 2, 3), listed)) == want
