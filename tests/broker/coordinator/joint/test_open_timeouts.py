"""Late transactions where some are children of joint ones: each child has a time-out of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from broker_fakes import FakeClock, image_of, topic_records, usual_image, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.transactions import ListedTransaction
from quorumlog.nursery import Nursery
from quorumlog.settings.transactions import DAY_MS, TransactionConfig
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.coordinator.runtime import open_timeouts
from quorumlog_broker.coordinator.runtime.open_timeouts import OpenTimeouts
from quorumlog_broker.replicas.late_transactions import LATE_BUFFER_MS
from quorumlog_quorum.metadata.image import Image
from tests.broker.replicas.test_late_transactions import START_MS, replica

P, HOUR_MS, ORDINARY_MS = 1, 3_600_000, 900_000  # the last one: transaction.max.timeout.ms
LATER_MS = 50  # a child began so long behind the timestamp of its record, as a mirror's do
LEVEL = FeatureLevelRecord(name="joint.version", level=1)
WITH = image_of([LEVEL, *topic_records(TRANSACTION_STATE, uuid(900), [1])], usual_image())
WITHOUT = usual_image()


@dataclass
class FakeChildren:
    known: dict[int, ListedTransaction] = field(default_factory=dict)
    error: ApiError | None = None
    asked: list[list[int]] = field(default_factory=list)

    async def among(self, producer_ids: Collection[int]) -> dict[int, ListedTransaction]:
        self.asked.append(sorted(producer_ids))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return {one: child for one, child in self.known.items() if one in producer_ids}


def child(state: str, epoch: int, timeout_ms: int = HOUR_MS) -> ListedTransaction:
    return ListedTransaction(
        transactional_id="joint:g:0:a",
        producer_id=P,
        state=state,
        joint_group="g",
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        start_time_ms=START_MS + LATER_MS,
    )


class World:
    """The transaction of producer `P`, of epoch 0, has been open since START_MS."""

    def __init__(self, children: FakeChildren, image: Image = WITH, replicas: list[Any] | None = None) -> None:
        self.children = children
        self.clock, self.crashes = FakeClock(), list[str]()
        self.replicas = [replica((P, "data", 0))] if replicas is None else replicas
        self.timeouts = OpenTimeouts(
            children,  # type: ignore[arg-type]
            TransactionConfig(),
            image=lambda: image,
            clock=self.clock,
            nursery=Nursery(lambda name, error: self.crashes.append(f"{name}: {error!r}")),
        )

    async def late(self, open_ms: int) -> int:
        """Asked twice: the first look may begin a question. Without the slack that all have."""
        self.clock.time_ms = START_MS - self._start_ms() + open_ms + LATE_BUFFER_MS
        self.timeouts.late(self.replicas)
        for _ in range(5):
            await asyncio.sleep(0)
        found = self.timeouts.late(self.replicas)
        assert self.crashes == []
        return found

    @staticmethod
    def _start_ms() -> int:
        return FakeClock().wall_ms()


# name, what coordinators know, the longest time that it is not late
CASES: list[tuple[str, dict[int, ListedTransaction], int]] = [
    ("no child", {}, ORDINARY_MS),
    ("a child", {P: child("Ongoing", 0)}, LATER_MS + HOUR_MS),
    ("a child with a short time-out", {P: child("Ongoing", 0, 1_000)}, ORDINARY_MS),
    ("markers are missing", {P: child("PrepareCommit", 1)}, LATER_MS + HOUR_MS),
    ("it has ended elsewhere", {P: child("CompleteAbort", 1)}, ORDINARY_MS),
    ("its slot has another child", {P: child("Ongoing", 1)}, ORDINARY_MS),
    ("its slot ends another child", {P: child("PrepareAbort", 2)}, ORDINARY_MS),
]


@pytest.mark.parametrize(("known", "longest_ms"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_child_is_late_behind_its_own_time_out(known: dict[int, ListedTransaction], longest_ms: int) -> None:
    async def run() -> None:
        world = World(FakeChildren(known))
        assert await world.late(longest_ms) == 0
        assert await world.late(longest_ms + 1) == 1
        assert world.children.asked == [[P]], "once"

    asyncio.run(run())


def test_an_old_record_makes_no_child_late() -> None:
    """A mirror keeps timestamps."""
    years_ms = 1_000 * DAY_MS
    mirrored = replace(child("Ongoing", 0), start_time_ms=START_MS + years_ms)

    async def run() -> None:
        world = World(FakeChildren({P: mirrored}))
        assert await world.late(years_ms + HOUR_MS) == 0
        assert await world.late(years_ms + HOUR_MS + 1) == 1

    asyncio.run(run())


def test_what_no_coordinator_has_said_may_last_for_the_longest_time() -> None:
    async def run() -> None:
        refused = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "x")
        world = World(FakeChildren(error=refused))
        seen_ms = ORDINARY_MS + 1
        assert await world.late(seen_ms) == 0
        assert await world.late(seen_ms + LATE_BUFFER_MS + DAY_MS) == 0
        assert await world.late(seen_ms + LATE_BUFFER_MS + DAY_MS + 1) == 1
        assert len(world.children.asked) >= 3, "at each look again"
        world.children.known, world.children.error = {P: replace(child("Ongoing", 0), timeout_ms=3 * DAY_MS)}, None
        assert await world.late(seen_ms + LATE_BUFFER_MS + DAY_MS + 1) == 0

    asyncio.run(run())


def test_nobody_is_asked_where_nothing_is_open_for_long_or_no_child_can_be() -> None:
    async def run() -> None:
        world = World(FakeChildren())
        assert await world.late(ORDINARY_MS) == 0 and world.children.asked == []
        world = World(FakeChildren(), WITHOUT)
        assert await world.late(ORDINARY_MS + 1) == 1 and world.children.asked == []

    asyncio.run(run())


def test_what_is_not_open_any_more_is_forgotten_and_a_question_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_timeouts, "MAX_ASKED", 2)

    async def run() -> None:
        world = World(FakeChildren(), replicas=[replica((number, "data", 0)) for number in (1, 2, 3)])
        assert await world.late(ORDINARY_MS + 1) == 2
        assert await world.late(ORDINARY_MS + 1) == 3
        assert world.children.asked == [[1, 2], [3]]
        world.replicas, ended = [], world.replicas
        assert await world.late(ORDINARY_MS + 1) == 0
        world.replicas = ended
        assert await world.late(ORDINARY_MS + 1) == 2, "asked anew"

    asyncio.run(run())


def test_a_node_that_stops_asks_nobody_and_still_tells_what_it_knows() -> None:
    async def run() -> None:
        world = World(FakeChildren())
        assert await world.late(ORDINARY_MS + 1) == 1
        world.timeouts.close()
        world.replicas.append(replica((2, "data", 0)))
        assert await world.late(ORDINARY_MS + 1) == 1
        assert world.children.asked == [[P]]

    asyncio.run(run())
