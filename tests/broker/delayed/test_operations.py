"""The queues of delayed operations: deadlines by the loop's timer, and subscribers that are woken as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog_broker.delayed.operations import DelayedOperations, DelayedQueue
from quorumlog_broker.delayed.purgatory import Reason
from quorumlog_broker.partition.key import PartitionKey

KEY: PartitionKey = (bytes([7]) * 16, 0)


def run(scenario: Callable[[DelayedOperations], Any]) -> None:
    """In a simulated loop; afterwards one virtual second passes."""
    scheduler = Scheduler(1)

    async def whole() -> None:
        operations = DelayedOperations(SimClock(scheduler))
        scenario(operations)
        await asyncio.sleep(1)
        operations.close()

    SimLoop(scheduler, "n1").run_until_complete(whole())


def test_a_waiter_is_completed_at_its_deadline() -> None:
    reasons: list[Reason] = []
    run(lambda operations: operations.ends.watch([(KEY, 5)], 300, reasons.append))
    assert reasons == [Reason.TIME]


def test_a_subscriber_is_called_after_the_waiters_and_also_without_any() -> None:
    seen: list[object] = []

    def scenario(operations: DelayedOperations) -> None:
        queue: DelayedQueue = operations.commits
        queue.subscribe(lambda key: seen.append(("first", key)))
        queue.subscribe(lambda key: seen.append(("second", key)))
        queue.watch([(KEY, 5)], 300, seen.append)
        queue.reached(KEY, 4)
        queue.reached(KEY, 5)
        queue.state_changed(KEY)

    run(scenario)
    subscribers = [("first", KEY), ("second", KEY)]
    assert seen == [*subscribers, Reason.OFFSET, *subscribers, *subscribers]


def test_a_change_of_state_reaches_all_three_queues_and_an_offset_only_its_own() -> None:
    seen: list[str] = []

    def scenario(operations: DelayedOperations) -> None:
        operations.ends.subscribe(lambda _key: seen.append("ends"))
        operations.commits.subscribe(lambda _key: seen.append("commits"))
        operations.starts.subscribe(lambda _key: seen.append("starts"))
        operations.starts.reached(KEY, 1)
        operations.state_changed(KEY)

    run(scenario)
    assert seen == ["starts", "ends", "commits", "starts"]
