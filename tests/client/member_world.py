"""Members with the production core in front of the coordinator's production core, in one process, without a network.

Calls and answers take time, and may be lost. An application reads a record of each partition that it has in each of its
polls, and commits before it gives a partition up, like the shell does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quorumlog.client.group.consumer_membership import ConsumerMembership
from quorumlog.client.group.effects import Change, CountPartitions, GiveUp, GroupSettings, NameTopics, Send, State
from quorumlog.client.group.membership import Membership
from quorumlog.client.group.session import Core
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    GroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from tests.broker.coordinator.consumer_world import ConsumerWorld, topics
from tests.broker.coordinator.group_world import G, GroupWorld

METHODS = {
    JoinGroupRequest: "join",
    SyncGroupRequest: "sync_group",
    GroupHeartbeatRequest: "heartbeat",
    LeaveGroupRequest: "leave",
    ConsumerGroupHeartbeatRequest: "consumer_heartbeat",
}
STEP_MS = 50
POLL_MS = 200


def backoff_ms(attempt: int) -> int:
    return min(100 << min(attempt, 4), 1_000)


@dataclass
class Flight:
    """A call on its way. call: its number at the coordinator, once it is there. answer_ms: when the answer arrives."""

    number: int
    request: Any
    arrives_ms: int
    ends_ms: int
    leaves: bool = False
    call: int | None = None
    answer_ms: int | None = None


@dataclass
class Process:
    """A member and its application. polls: it does not hang."""

    name: str
    core: Core
    polls: bool = True
    flights: list[Flight] = field(default_factory=list)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    told: list[tuple[str, frozenset[TopicPartition]]] = field(default_factory=list)
    errors: list[ErrorCode] = field(default_factory=list)


class MemberWorld:
    """losses: the share of calls, and again of answers, that are lost. protocol: classic or consumer."""

    def __init__(self, rng: Random, *, losses: float = 0.0, protocol: str = "classic") -> None:
        self.rng, self.losses = rng, losses
        self.topics = {"a": 3, "b": 2}
        self.protocol = protocol
        self.world = GroupWorld()
        if protocol == "consumer":
            self.world = ConsumerWorld(
                GroupConfig(
                    consumer=ConsumerGroupConfig(
                        assignment_interval_ms=0,
                        session_timeout_ms=10_000,
                        min_session_timeout_ms=1_000,
                        heartbeat_interval_ms=1_000,
                        min_heartbeat_interval_ms=500,
                    )
                ),
                **self.topics,
            )
        self.processes: list[Process] = []
        self.started: list[str] = []
        self.reads: dict[TopicPartition, list[int]] = {}

    def start(self, name: str, *, topics: Iterable[str] = ("a", "b"), **settings: Any) -> Process:
        given = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000, **settings}
        core: Core = Membership(GroupSettings(G, **given), backoff_ms)
        if self.protocol == "consumer":
            core = ConsumerMembership(GroupSettings(G, **given), backoff_ms, f"{name}-{len(self.started)}")
        self.started.append(name)
        process = Process(name, core)
        core.subscribe(tuple(topics))
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """It says nothing any more."""
        self.processes.remove(process)

    def close(self, process: Process) -> None:
        """As an application that ends in an orderly way."""
        self._commit(process, process.core.owned)
        process.core.leave()
        self._send(process)
        for flight in process.flights:
            if flight.leaves:
                self._ask(flight.request)
        self.processes.remove(process)

    # --- time ---

    def run(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.world.pass_ms(STEP_MS)
            for process in self.processes:
                process.core.tick(self.now_ms)
                self._send(process)
                self._move(process)
                if process.polls and self.rng.random() < STEP_MS / POLL_MS:
                    self.poll(process)
            self.check()

    def run_until_calm(self, limit_ms: int) -> None:
        for _ in range(limit_ms // 500):
            self.run(500)
            if self.is_calm:
                return
        raise AssertionError([(one.name, one.core.state, one.core.owned, one.errors) for one in self.processes])

    @property
    def is_calm(self) -> bool:
        """Every member is stable and at rest, and each partition that somebody wants has a reader."""
        if isinstance(self.world, ConsumerWorld):
            served = self.world.shard._consumers.groups.get(G)
            epochs = {one.core.generation for one in self.processes}
            if served is None or epochs != {served.epoch} or served.assignment_epoch != served.epoch:
                return False  # they have not heard of what their coordinator wants
        wanted = {(t, i) for one in self.processes for t in one.core.topics for i in range(self.topics.get(t, 0))}
        return all(
            one.core.state is State.STABLE and one.core.change() is None for one in self.processes
        ) and wanted == {part for one in self.processes for part in one.core.owned}

    @property
    def now_ms(self) -> int:
        return self.world.now_ms

    # --- the application ---

    def poll(self, process: Process) -> None:
        process.core.poll_began()
        error = process.core.take_error()
        if error is not None:
            process.errors.append(error.code)
        while (change := process.core.change()) is not None:
            self._carry_out(process, change)
            process.core.done(change, self.now_ms)
            self._send(process)
        for partition in sorted(process.core.owned):
            offset = process.positions[partition]
            self.reads.setdefault(partition, []).append(offset)
            process.positions[partition] += 1
        process.core.poll_ended(self.now_ms)

    def _carry_out(self, process: Process, change: Change) -> None:
        if isinstance(change, GiveUp):
            if not change.lost:
                self._commit(process, change.partitions)
            if change.partitions:
                process.told.append(("lost" if change.lost else "revoked", change.partitions))
            self._stop_reading(process, change.partitions)
            return
        self._commit(process, change.revoked)
        if change.revoked:
            process.told.append(("revoked", change.revoked))
        self._stop_reading(process, change.revoked)
        process.told.append(("assigned", change.added))
        for partition in sorted(change.added):
            process.positions[partition] = max(0, self.world.fetched(partition)[partition])

    def _stop_reading(self, process: Process, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            del process.positions[partition]

    def _commit(self, process: Process, partitions: frozenset[TopicPartition]) -> None:
        core = process.core
        for partition in sorted(partitions):
            offsets = {partition: process.positions[partition]}
            more = {"group_instance_id": core._settings.instance_id}
            code = ErrorCode(self.world.commit_code(offsets, core.member_id, core.generation, **more))
            core.commit_refused(code, core.member_id, core.generation)

    # --- the network ---

    def _send(self, process: Process) -> None:
        for effect in process.core.take():
            match effect:
                case Send(number, request, timeout_ms, leaves):
                    arrives_ms, ends_ms = (
                        self.now_ms + self.rng.randrange(STEP_MS),
                        self.now_ms + min(timeout_ms, 15_000),
                    )
                    process.flights.append(Flight(number, request, arrives_ms, ends_ms, leaves))
                case CountPartitions(number, topics):
                    counts = {topic: self.topics[topic] for topic in topics if topic in self.topics}
                    process.core.counted(number, counts)
                    self._send(process)

                case NameTopics(number, ids):
                    names = {one: one.rstrip(b"\0").decode() for one in ids}
                    process.core.named(number, names, self.now_ms)

    def _move(self, process: Process) -> None:
        for flight in list(process.flights):
            if flight.call is None and flight.arrives_ms <= self.now_ms:
                flight.call = -1 if self.rng.random() < self.losses else self._ask(flight.request)
            if flight.answer_ms is None and flight.call in self.world.answers:
                lost = self.rng.random() < self.losses
                flight.answer_ms = flight.ends_ms + 1 if lost else self.now_ms + self.rng.randrange(STEP_MS)
            if flight.answer_ms is not None and flight.answer_ms <= min(self.now_ms, flight.ends_ms):
                process.flights.remove(flight)
                process.core.answered(flight.number, self.world.answers[flight.call], self.now_ms)  # type: ignore[index]
            elif self.now_ms >= flight.ends_ms:
                process.flights.remove(flight)
                process.core.failed(flight.number, self.now_ms)
            self._send(process)

    def _ask(self, request: Any) -> int:
        return self.world.call(METHODS[type(request)], request)

    def fail_over(self) -> None:
        """Another node coordinates: what waits for an answer hears of it soon."""
        waiting = [one for process in self.processes for one in process.flights if one.call not in self.world.answers]
        self.world.fail_over()
        for flight in waiting:
            if flight.call is not None:
                flight.ends_ms = min(flight.ends_ms, self.now_ms + STEP_MS)

    def add_partitions(self, **counts: int) -> None:
        self.topics |= counts
        if isinstance(self.world, ConsumerWorld):
            self.world.use(topics(self.world.cluster.version + 1, **self.topics))

    # --- what must hold ---

    def check(self) -> None:
        """[1] No two that the coordinator takes for members read the same. [2] What is committed was read."""
        if isinstance(self.world, ConsumerWorld):
            served = self.world.shard._consumers.groups.get(G)
            members = set(served.members) if served is not None else set()
        else:
            group = self.world.shard._groups.get(G)
            members = set(group.members) if group is not None else set()
        readers: dict[TopicPartition, str] = {}
        for process in self.processes:
            if process.core.member_id in members and process.core.is_member:
                for partition in sorted(process.core.owned):
                    other = readers.setdefault(partition, process.name)
                    assert other == process.name, f"[1] {partition} is read by {other} and {process.name}"
        for partition, offsets in self.reads.items():
            committed = self.world.fetched(partition).get(partition, -1)
            assert committed <= max(offsets) + 1, f"[2] {partition}: {committed} is committed, {max(offsets)} was read"
