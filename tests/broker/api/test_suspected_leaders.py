"""A leader whose connection broke is not named to clients until it is certain who leads, or until time is up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from broker_fakes import (
    ORDERS,
    FakeClock,
    FakeContext,
    Fakes,
    FakeSubscription,
    broker_record,
    image_of,
    usual_image,
    uuid,
)
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NodeId, Offset
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from quorumlog.messages.metadata_records import PartitionChangeRecord
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import (
    Address,
    Answered,
    Cancel,
    NoProof,
    OnEnded,
    OutcomeUnknown,
    ProbeResult,
    Refused,
    Transport,
)
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.api.handlers import HANDLERS, metadata
from quorumlog_broker.api.suspected_leaders import DETECTION_MS, SUSPICION_MS, LeaderProber, SuspectedLeaders
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replication.leader_end_point import RemoteLeaderEndPoint
from quorumlog_quorum.metadata.image import Image

FETCH = FetchRequest(
    max_wait_ms=0, min_bytes=0, max_bytes=1, topics=(), replica=ReplicaState(replica_id=1, broker_epoch=1)
)


def moved() -> Image:
    """Broker 2 is fenced and what it led is led by broker 1."""
    led_by_1 = PartitionChangeRecord(partition=1, topic_id=ORDERS, leader=1)
    return image_of([broker_record(2, fenced=True), led_by_1], usual_image())


# --- the core


def test_a_suspicion_ends_in_time_and_a_second_loss_does_not_prolong_it() -> None:
    suspected = SuspectedLeaders()
    assert suspected.begin(2, 1_000)
    assert not suspected.begin(2, 1_000 + SUSPICION_MS - 1)
    assert suspected.left_ms([1, 2], 1_000 + SUSPICION_MS - 1) == 1
    assert suspected.left_ms([1, 2], 1_000 + SUSPICION_MS) == 0
    assert suspected.begin(2, 1_000 + SUSPICION_MS)


def test_only_leaders_that_are_asked_for_count_and_the_last_suspicion_decides() -> None:
    suspected = SuspectedLeaders()
    suspected.begin(2, 0)
    suspected.begin(3, 100)
    assert [suspected.left_ms(leaders, 200) for leaders in ([1], [2], [3], [2, 3])] == [
        0, SUSPICION_MS - 200, SUSPICION_MS - 100, SUSPICION_MS - 100,
    ]  # fmt: skip
    suspected.end(3)
    suspected.end(3)
    assert suspected.left_ms([2, 3], 200) == SUSPICION_MS - 200


@given(st.lists(st.tuples(st.sampled_from(["begin", "end"]), st.integers(1, 3), st.integers(0, 400)), max_size=30))
def test_no_leader_is_suspected_for_longer_than_the_limit(steps: list[tuple[str, NodeId, int]]) -> None:
    suspected, now_ms = SuspectedLeaders(), 0
    until_ms: dict[NodeId, int] = {}
    for what, leader, pause_ms in steps:
        now_ms += pause_ms
        if what == "end":
            suspected.end(leader)
            until_ms.pop(leader, None)
        elif suspected.begin(leader, now_ms):
            assert until_ms.get(leader, now_ms) <= now_ms
            until_ms[leader] = now_ms + SUSPICION_MS
        for one in (1, 2, 3):
            assert suspected.left_ms([one], now_ms) == max(0, until_ms.get(one, 0) - now_ms)


# --- probes


@dataclass
class FakeConnection:
    address: Address
    answers: list[FetchResponse | Exception]

    def begin(self, _request: Any, _timeout_ms: int, ended: OnEnded) -> Cancel:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            ended(None, answer)
        else:
            ended(answer, None)
        return lambda: None

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class FakeTransport:
    probed: ProbeResult = field(default_factory=Refused)
    answers: list[FetchResponse | Exception] = field(default_factory=list)
    probes: list[Address] = field(default_factory=list)

    async def probe(self, address: Address, _timeout_ms: int) -> ProbeResult:
        self.probes.append(address)
        return self.probed

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> FakeConnection:
        assert internal
        return FakeConnection(address, self.answers)


PROBED: list[tuple[str, ProbeResult, bool]] = [
    ("refused", Refused(), True),
    ("silent, or taken and hung up by a process that is dying", NoProof("reset"), True),
    ("another process of the same broker", Answered(2, uuid(999)), True),
    ("another broker at its port", Answered(3, usual_image().brokers[2].incarnation_id), True),
    ("the same process", Answered(2, usual_image().brokers[2].incarnation_id), False),
]


@pytest.mark.parametrize(("probed", "suspect"), [case[1:] for case in PROBED], ids=[case[0] for case in PROBED])
def test_only_the_same_process_ends_the_suspicion(probed: ProbeResult, suspect: bool) -> None:
    async def scenario() -> None:
        suspected, transport, nursery = (
            SuspectedLeaders(),
            FakeTransport(probed),
            Nursery(lambda _name, error: pytest.fail(str(error))),
        )
        leaders = prober(suspected, transport, nursery)
        leaders.on_lost(2)
        assert suspected.left_ms([2], 0) == SUSPICION_MS, "at once, before the probe is answered"
        leaders.on_lost(2)
        await asyncio.sleep(0)
        await nursery.close()
        assert len(transport.probes) == 1
        assert (suspected.left_ms([2], 0) > 0) == suspect

    asyncio.run(scenario())


def test_a_fenced_or_unknown_broker_is_not_suspected() -> None:
    async def scenario() -> None:
        suspected, nursery = SuspectedLeaders(), Nursery(lambda _name, error: pytest.fail(str(error)))
        leaders = prober(suspected, FakeTransport(), nursery)
        leaders.on_lost(3)
        leaders.on_lost(7)
        assert suspected.left_ms([3, 7], 0) == 0

    asyncio.run(scenario())


def prober(suspected: SuspectedLeaders, transport: FakeTransport, nursery: Nursery) -> LeaderProber:
    return LeaderProber(
        suspected,
        image=usual_image,
        internal_listener="INTERNAL",
        transport=cast(Transport, transport),
        clock=FakeClock(),
        nursery=nursery,
    )


# --- when a leader is lost

BROKEN, ANSWER = OutcomeUnknown("broken"), FetchResponse(topics=())


@pytest.mark.parametrize(
    ("calls", "lost"),
    [
        ([ANSWER, BROKEN], 1),
        ([BROKEN], 0),
        ([ANSWER, BROKEN, BROKEN, BROKEN], 1),
        ([ANSWER, BROKEN, ANSWER, BROKEN], 2),
    ],
)
def test_a_leader_is_lost_once_for_each_connection_on_which_it_had_answered(
    calls: list[FetchResponse | Exception], lost: int
) -> None:
    lost_leaders: list[NodeId] = []
    registry = Registry()
    registry.image = usual_image()
    transport = FakeTransport(answers=list(calls))
    outcomes: list[FetchResponse | Exception | None] = []

    def fail(name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    async def scenario() -> None:
        nursery = Nursery(fail)
        config, wire = ReplicationConfig(), cast(Transport, transport)
        source = RemoteLeaderEndPoint(2, registry, wire, config, lost_leaders.append, nursery)
        for _ in calls:
            source.fetch(FETCH, 1_000, lambda response, error: outcomes.append(response or error))
        await nursery.close()
        assert outcomes == list(calls)

    asyncio.run(scenario())
    assert lost_leaders == [2] * lost


# --- the answer


@dataclass
class Ticking(FakeSubscription):
    """Waiting lets time pass; `changes`: images by the time (ms) at which they come."""

    changes: dict[int, Image] = field(default_factory=dict)
    waits_ms: list[int] = field(default_factory=list)

    async def wait_for_offset(self, offset: Offset, timeout_ms: int) -> bool:
        assert timeout_ms > 0
        self.waits_ms.append(timeout_ms)
        until_ms = self.clock.time_ms + timeout_ms
        due = [at_ms for at_ms in self.changes if at_ms <= until_ms and self.image.offset < offset]
        self.clock.time_ms = min(due, default=until_ms)
        if due:
            self.image = self.changes.pop(min(due))
        return self.image.offset >= offset


@dataclass
class Asked:
    leaders: list[NodeId]
    took_ms: int


def ask(
    changes: dict[int, Image],
    *,
    suspect: NodeId | None,
    image: Image | None = None,
    waits_ms: list[int] | None = None,
) -> Asked:
    clock = FakeClock()
    subscription = Ticking(clock=clock, changes=changes, waits_ms=[] if waits_ms is None else waits_ms)
    subscription.image = image or usual_image()
    services = Fakes(subscription=subscription, clock=clock).services()
    if suspect is not None:
        services.suspected_leaders.begin(suspect, 0)
    request = MetadataRequest(all_topics=True)

    async def answered() -> MetadataResponse:
        response: MetadataResponse = await HANDLERS[MetadataRequest](services, FakeContext(), request)
        return response

    response = asyncio.run(answered())
    return Asked([part.leader_id for part in response.topics[0].partitions], clock.time_ms)


def test_a_response_waits_for_the_leader_after_a_suspected_one() -> None:
    assert ask({60: moved()}, suspect=2) == Asked([1, 1], 60)


def test_a_response_waits_no_longer_than_the_suspicion_lasts() -> None:
    asked = ask({}, suspect=2)
    assert asked.leaders == [1, 2]
    assert asked.took_ms == SUSPICION_MS


def test_a_response_without_suspected_leaders_waits_the_detection_time_only() -> None:
    assert ask({}, suspect=3) == Asked([1, 2], DETECTION_MS)
    assert ask({}, suspect=None) == Asked([1, 2], DETECTION_MS)


def test_what_this_broker_leads_itself_needs_no_wait() -> None:
    assert ask({}, suspect=2, image=moved()) == Asked([1, 1], 0)


def test_an_image_that_comes_at_once_does_not_shorten_the_detection_time() -> None:
    later = image_of([broker_record(4)], usual_image())
    assert ask({1: later}, suspect=None) == Asked([1, 2], DETECTION_MS)


def test_while_nothing_changes_a_response_is_built_once_and_checked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a death many clients ask at once, each for all topics, the broker that has to take over."""
    made: list[Image] = []

    def counted(image: Image, *rest: Any) -> Any:
        made.append(image)
        return answer_of(image, *rest)

    answer_of = metadata._topics
    monkeypatch.setattr(metadata, "_topics", counted)
    waits_ms: list[int] = []
    assert ask({}, suspect=2, waits_ms=waits_ms).took_ms == SUSPICION_MS
    assert len(made) == 1
    assert len(waits_ms) <= 7
