"""Appends at a full queue of the directory, and without descriptors: held back in order, never a storage error."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.produce.append_line import MAX_WAIT_MS, MAX_WAITING, AppendLine
from quorumlog_storage.writer.worker import WorkerLimits


def led_cluster(**options: Any) -> ReplicaCluster:
    cluster = ReplicaCluster(**options)
    cluster.create_topic()
    cluster.wait_led(1)
    return cluster


def limit_queue(node: Node, jobs: int) -> None:
    for queue in node.data_plane.store.queues.values():
        queue.directory.worker._queue._limits = WorkerLimits(queued_jobs=jobs)  # type: ignore[attr-defined]


async def answer_of(node: Node, value: str, timeout_ms: int = 5_000) -> int | ErrorCode:
    try:
        append = node.produce_path.append(TOPIC_ID, 0, batch(value), acks=-1, timeout_ms=timeout_ms)
        return (await append).base_offset
    except ApiError as error:
        return error.code


def append_all(node: Node, values: list[str], **options: int) -> list[int | ErrorCode]:
    """In this order, without waiting for answers."""

    async def together() -> list[int | ErrorCode]:
        return list(await asyncio.gather(*(answer_of(node, value, **options) for value in values)))

    return node.run(together())


def test_appends_wait_for_a_place_in_the_queue_and_keep_their_order() -> None:
    cluster = led_cluster()
    node, values = cluster.nodes[1], [str(number) for number in range(200)]
    limit_queue(node, 3)
    assert append_all(node, values) == list(range(200))
    assert node.log_values() == values


def test_appends_that_wait_in_vain_are_refused_and_leave_no_gap() -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]
    limit_queue(node, 0)
    answers = append_all(node, ["a", "b"], timeout_ms=100)
    assert answers == [ErrorCode.REQUEST_TIMED_OUT] * 2 and ErrorCode.REQUEST_TIMED_OUT.retriable
    limit_queue(node, 100)
    assert append_all(node, ["c", "d"]) == [0, 1]
    assert node.log_values() == ["c", "d"] and not node.failed


def test_an_append_that_waits_learns_that_the_leadership_was_lost() -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]
    limit_queue(node, 0)

    async def lost() -> int | ErrorCode:
        waiting = asyncio.ensure_future(answer_of(node, "a"))
        await asyncio.sleep(0.05)
        cluster.elect(2, (1, 2, 3))
        await asyncio.sleep(0.05)
        limit_queue(node, 100)
        return await waiting

    assert node.run(lost()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_leader_without_descriptors_holds_producers_back_and_goes_on(number: int) -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]
    assert append_all(node, ["a"]) == [0]

    def plan(operation: Operation) -> Fault | None:
        return Fail(number) if operation.kind == "open" and operation.path.endswith(".log") else None

    node.disk.resources.open_files.empty()
    node.disk.faults = plan
    assert append_all(node, ["b", "c", "d"]) == [ErrorCode.REQUEST_TIMED_OUT] * 3
    node.disk.faults = lambda _: None
    assert append_all(node, ["e", "f"]) == [1, 2]
    cluster.run_for(500)
    for each in cluster.nodes.values():
        assert each.log_values() == ["a", "e", "f"] and not each.failed and not each.crashes


def test_a_leadership_waits_for_descriptors() -> None:
    cluster = ReplicaCluster()
    node = cluster.nodes[1]

    def plan(operation: Operation) -> Fault | None:
        return Fail(errno.EMFILE) if operation.kind == "open" and "/t-0/" in operation.path else None

    node.disk.faults = plan
    cluster.create_topic()
    cluster.run_for(3_000)
    node.disk.faults = lambda _: None
    cluster.wait_led(1)
    assert append_all(node, ["a"]) == [0] and not node.failed


class Clock:
    ms = 0

    def now_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return self.ms


def test_a_line_is_bounded_and_refuses_by_its_deadline() -> None:
    async def scenario() -> None:
        clock = Clock()
        line, refused = AppendLine(clock), list[ApiError]()

        def full() -> None:
            raise Busy("full")

        for number in range(MAX_WAITING):
            line.join((bytes(16), number % 7), 60_000, full, refused.append)
        with pytest.raises(Busy):
            line.join((bytes(16), 0), 60_000, full, refused.append)
        assert line.holds_up((bytes(16), 3))
        clock.ms = MAX_WAIT_MS
        await asyncio.sleep(0.05)
        assert len(refused) == MAX_WAITING and len(line) == 0 and not line.holds_up((bytes(16), 3))

    asyncio.run(scenario())
