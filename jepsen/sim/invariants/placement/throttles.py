"""What a replication throttle lets pass: checked where a leader answers its followers.

- throttle-holds-back: what a broker sends of throttled replicas to followers out of sync is in any window at most
  rate × window + a burst of one second + one batch. A batch is not divided, so one may be larger than what is left.
- throttle-counts-all: what goes to followers in sync is never held back and counts. While all of it together has been
  above the rate for a second, followers out of sync get nothing.

Rate and replicas are those of the metadata that the broker has applied. An answer may have been read before a change of
the rate, or when its follower was in sync: for a while after such a change nothing counts.

A throttle that nothing reaches proves nothing, so it is counted how often one bites: a follower that a reassignment has
added asks, lacks records that its leader has, gets none, and the balance of one of the two is used up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.mirrors import Mirrors, log_id
from quorumlog.ids import NodeId
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import headers
from quorumlog_broker.replicas.throttle import ReplicationThrottle
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, Image

THROTTLED, HELD_BACK = "throttled bytes", "throttled fetches of newcomers"
BURST_S, DEBT_S = 1.0, 10.0
SETTLED_NS = 1_000_000_000  # longer than an answer takes from its read to its end
RATE, REPLICAS = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
_NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Window:
    """Of one process with one rate: two buckets that empty at the rate.

    held: bytes to followers out of sync. all: bytes to everybody. above_ns: since when `all` exceeds a burst; -1: it
    does not.
    """

    life: int
    settings: Mapping[str, str]  # another object: they were changed, perhaps there and back
    rate: int
    began_ns: int
    at_ns: int
    held: float = 0.0
    all: float = 0.0
    above_ns: int = -1
    largest_batch: int = 0


class ThrottleInvariants(Invariant):
    """counts: bytes of throttled replicas that passed, and fetches that a throttle held back."""

    def __init__(self, brokers: Sequence[Machine], mirrors: Mirrors, findings: Findings) -> None:
        self._brokers = {machine.node_id: machine for machine in brokers}
        self._mirrors, self._findings = mirrors, findings
        self._windows: dict[str, _Window] = {}  # by host of the leader
        self._images: dict[str, Image] = {}  # by host of the leader: the newest that was looked at
        self._left_ns: dict[tuple[str, bytes, int, NodeId], int] = {}  # when a follower left an ISR
        self.counts = {THROTTLED: 0, HELD_BACK: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_fetched(self, machine: Machine, request: FetchRequest, response: FetchResponse) -> None:
        plane = data_plane_of(machine)
        if plane is None or request.replica is None:
            return
        image, now_ns, follower = plane.registry.image, self._findings.now_ns(), request.replica.replica_id
        settings = _settings(image, machine.node_id)
        self._look(machine.host, image, now_ns)
        if settings is None:
            self._windows.pop(machine.host, None)
            return
        window = self._windows.get(machine.host)
        if window is None or window.life != machine.life or window.settings is not settings:
            window = self._windows[machine.host] = _Window(machine.life, settings, int(settings[RATE]), now_ns, now_ns)
        held = others = 0
        for topic in response.topics:
            for answer in topic.partitions:
                if not len(answer.records) or not _names(image, topic.topic_id, answer.index, machine.node_id):
                    continue
                if self._is_held_back(machine, image, topic.topic_id, answer.index, follower, now_ns):
                    held += len(answer.records)
                    window.largest_batch = max(window.largest_batch, _largest(whole(answer.records)))
                else:
                    others += len(answer.records)
        self._pass(machine, window, held, others, now_ns)
        self._count_held_back(machine, image, follower, response)

    def _count_held_back(self, machine: Machine, image: Image, node_id: NodeId, response: FetchResponse) -> None:
        follower = self._brokers[node_id]
        answered = {
            (topic.topic_id, answer.index)
            for topic in response.topics
            for answer in topic.partitions
            if len(answer.records) or answer.error_code
        }
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                is_newcomer = node_id in partition.adding_replicas and node_id not in partition.isr
                if not is_newcomer or partition.leader != machine.node_id or (topic.id, index) in answered:
                    continue
                log = log_id(f"{topic.name}-{index}", topic.id)
                if self._mirrors.of(follower, log).end < self._mirrors.of(machine, log).end:
                    self.counts[HELD_BACK] += _is_used_up(machine) or _is_used_up(follower)

    def _pass(self, machine: Machine, window: _Window, held: int, others: int, now_ns: int) -> None:
        burst = window.rate * BURST_S
        emptied = window.rate * (now_ns - window.at_ns) / _NS_PER_S
        window.held, window.all = max(0.0, window.held - emptied), max(0.0, window.all - emptied)
        window.at_ns = now_ns
        if window.all <= burst:
            window.above_ns = -1
        what = f"{machine.host}, life {machine.life}, throttled to {window.rate} a second, sends {held} bytes"
        if held and window.above_ns >= 0 and now_ns - window.above_ns >= SETTLED_NS:
            self._findings.broken("throttle-counts-all", f"{what} while {window.all:.0f} bytes are above the rate")
        window.held += held
        window.all = max(window.all, min(window.all + others, burst + window.rate * DEBT_S)) + held
        if window.all > burst and window.above_ns < 0:
            window.above_ns = now_ns
        self.counts[THROTTLED] += held
        if now_ns - window.began_ns >= SETTLED_NS and window.held > burst + window.largest_batch:
            allowed = f"{burst + window.largest_batch:.0f} are allowed"
            self._findings.broken("throttle-holds-back", f"{what}; {window.held:.0f} are above the rate, {allowed}")

    def _look(self, host: str, image: Image, now_ns: int) -> None:
        """Note which followers have left an ISR, as this broker knows it."""
        before = self._images.get(host)
        if before is image:
            return
        self._images[host] = image
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                known = None if before is None else before.partition(topic.id, index)
                for follower in () if known is None or known is partition else known.isr:
                    if follower not in partition.isr:
                        self._left_ns[host, topic.id, index, follower] = now_ns

    def _is_held_back(
        self, machine: Machine, image: Image, topic_id: bytes, index: int, follower: NodeId, now_ns: int
    ) -> bool:
        found = image.partition(topic_id, index)
        if found is None or follower in found.isr:
            return False
        return now_ns - self._left_ns.get((machine.host, topic_id, index, follower), 0) >= SETTLED_NS


def _is_used_up(machine: Machine) -> bool:
    """Whether one of the broker's throttles lets nothing pass now. They are not changed by being looked at."""
    plane = data_plane_of(machine)
    if plane is None:
        return False
    throttles: tuple[ReplicationThrottle, ...] = plane._throttles
    now_ms = machine.clock.now_ms()
    return any(one.is_on and not copy(one._quota).left_bytes(now_ms) for one in throttles)


def _settings(image: Image, node_id: NodeId) -> Mapping[str, str] | None:
    """Those that hold this broker's rate; None: it has none."""
    for name in (str(node_id), CLUSTER_DEFAULT):
        settings = image.configs.get((BROKER_RESOURCE, name))
        if settings is not None and RATE in settings:
            return settings
    return None


def _names(image: Image, topic_id: bytes, index: int, node_id: NodeId) -> bool:
    topic = image.topics.get(topic_id)
    settings = None if topic is None else image.configs.get((TOPIC_RESOURCE, topic.name))
    text = "" if settings is None else settings.get(REPLICAS, "")
    return text == "*" or f"{index}:{node_id}" in text.split(",")


def _largest(records: bytes | bytearray | memoryview) -> int:
    try:
        return max((header.end - header.position for header in headers(records)), default=0)
    except CorruptRecords:
        return 0
