"""What clients with a quota get of a broker, and how long they wait for it (KIP-13, decision 127).

The quotas are those of the image that the broker's answer goes by; which of them counts is looked up level by level.

- wait-is-the-quotas: an answer tells to wait for what its bucket has used: at least (use of the last 10 s) / T - 11 s,
  and at most (use of the last 11 s) / T - 10 s.
- quota-holds: in a time W since a bucket has its quota T, its clients get at most T x (W + 12 s), and on each of their
  connections as much more as a client sends without waiting for an answer.
- served-by-the-deadline: a fetch that comes after the time for which its bucket was held back is not put off again,
  unless the bucket has used something since.
- put-off-counts-nothing: an answer that puts a fetch off does not move that time.
- nodes-are-not-held-back: no answer tells a node of the cluster to wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.security.rules import RuleInvariants
from jepsen.sim.invariants.security.served import DENIALS
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.watched_transport import OnOutcome
from quorumlog.errors import ApiError
from quorumlog.messages.fetch import FetchChunkRequest, FetchRequest
from quorumlog.messages.metadata_records import ClientQuotaRecord
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.transport import Context
from quorumlog_quorum.metadata.image import Image

COUNTED, HELD, PUT_OFF, SERVED_AFTER, NODES = (
    "bytes of quotas", "answers above a quota", "fetches put off", "served by the deadline", "nodes not held back",
)  # fmt: skip
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
BURST_S = 12.0  # eleven seconds are remembered, and the one that began counts whole
PIPELINED = 5  # requests that our producer sends before it has an answer
_KEPT_MS = 11_000  # for so long a use is remembered
_LONGEST_MS = 3_600_000
_ABSENT = "\0absent"
_DEFAULT = "\0default"


@dataclass(slots=True)
class _Bucket:
    """limit, began_ms, used: since its quota is what it is. largest: the largest use on each of its connections.
    recent: uses of the last seconds, whatever the quota was; since doubtful_ms there may have been more: a fetch counts
    what it has read, and is then denied to send it. free_ms: until then it was told to wait; used_since: it has used
    something since it was told."""

    limit: float
    began_ms: int
    used: int = 0
    largest: dict[int, int] = field(default_factory=dict)
    contexts: list[Context] = field(default_factory=list)  # kept, so that no other one has the identity of one
    recent: deque[tuple[int, int]] = field(default_factory=deque)  # when, bytes
    doubtful_ms: int = -_KEPT_MS
    free_ms: int = -1
    used_since: bool = True

    def begin_anew(self, limit: float, now_ms: int) -> None:
        self.limit, self.began_ms, self.used, self.used_since = limit, now_ms, 0, True
        self.largest.clear()
        self.contexts.clear()

    def use(self, context: Context, size: int, now_ms: int) -> None:
        self.used += size
        self.recent.append((now_ms, size))
        if id(context) not in self.largest:
            self.contexts.append(context)
        self.largest[id(context)] = max(size, self.largest.get(id(context), 0))

    def allowed(self, now_ms: int) -> float:
        passed_s = (now_ms - self.began_ms) / 1000
        return self.limit * (passed_s + BURST_S) + PIPELINED * sum(self.largest.values())

    def waits_ms(self, now_ms: int) -> tuple[float, float]:
        """The shortest and the longest time for which it may be told to wait."""
        while self.recent and now_ms - self.recent[0][0] > _KEPT_MS:
            self.recent.popleft()
        at_most = sum(size for _, size in self.recent)
        at_least = sum(size for at_ms, size in self.recent if now_ms - at_ms < _KEPT_MS - 1_000)
        longest = at_most / self.limit * 1000 - _KEPT_MS + 1_000
        if now_ms - self.doubtful_ms <= _KEPT_MS:
            longest = _LONGEST_MS
        return min(_LONGEST_MS, at_least / self.limit * 1000 - _KEPT_MS), min(_LONGEST_MS, max(0.0, longest))


class QuotaInvariants(Invariant):
    def __init__(self, rules: RuleInvariants, findings: Findings) -> None:
        self._rules, self._findings = rules, findings
        self._buckets: dict[tuple[str, int, str, str, str], _Bucket] = {}
        self.counts = dict.fromkeys((COUNTED, HELD, PUT_OFF, SERVED_AFTER, NODES), 0)

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome | None:
        if not isinstance(request, FetchRequest | FetchChunkRequest | ProduceRequest):
            return None

        def on_outcome(outcome: Any) -> None:
            if outcome is None or isinstance(outcome, ApiError):
                return
            if rules != self._rules.in_force[machine.host].rules:
                self._may_have_read_more(machine, context)
            if context.peer is not None:
                self._on_node_answered(machine, context, outcome)
            elif isinstance(request, ProduceRequest):
                self._on_used(machine, context, PRODUCER, _taken(request, outcome), outcome.throttle_time_ms)
            elif isinstance(request, FetchRequest):
                self._on_fetched(machine, context, came_ms, outcome)
            elif outcome.fetch is not None:  # a stream waits, and is not put off
                self._on_used(machine, context, CONSUMER, len(outcome.records), outcome.fetch.throttle_time_ms)

        came_ms, rules = machine.clock.now_ms(), self._rules.in_force[machine.host].rules
        return on_outcome

    def _may_have_read_more(self, machine: Machine, context: Context) -> None:
        bucket = self._bucket(machine, context, CONSUMER)
        if bucket is not None:
            bucket.doubtful_ms, bucket.used_since = machine.clock.now_ms(), True

    def _on_node_answered(self, machine: Machine, context: Context, outcome: Any) -> None:
        self.counts[NODES] += 1
        if getattr(outcome, "throttle_time_ms", 0):
            what = f"{machine.host} tells {context.principal} to wait {outcome.throttle_time_ms} ms"
            self._findings.broken("nodes-are-not-held-back", what)

    def _on_fetched(self, machine: Machine, context: Context, came_ms: int, response: Any) -> None:
        size = sum(len(one.records) for topic in response.topics for one in topic.partitions)
        bucket = self._bucket(machine, context, CONSUMER)
        is_put_off = response.throttle_time_ms > 0 and not response.topics
        if bucket is None or not is_put_off:
            self._on_used(machine, context, CONSUMER, size, response.throttle_time_ms)
            return
        self.counts[PUT_OFF] += 1
        free_ms = machine.clock.now_ms() + response.throttle_time_ms
        what = f"{machine.host} puts {context.principal} ({context.client_id!r}) off for {response.throttle_time_ms} ms"
        if not bucket.used_since:
            if came_ms >= bucket.free_ms:
                self._findings.broken("served-by-the-deadline", f"{what}, and the bucket was free at {bucket.free_ms}")
            if free_ms > bucket.free_ms:
                self._findings.broken("put-off-counts-nothing", f"{what}, until {free_ms} and not {bucket.free_ms}")
        bucket.free_ms, bucket.used_since = free_ms, False

    def _on_used(self, machine: Machine, context: Context, key: str, size: int, throttle_ms: int) -> None:
        bucket = self._bucket(machine, context, key)
        if bucket is None or (size == 0 and throttle_ms == 0):
            return  # also what was denied before it was counted
        now_ms = machine.clock.now_ms()
        if key == CONSUMER and not bucket.used_since and now_ms >= bucket.free_ms:
            self.counts[SERVED_AFTER] += 1
        self.counts[COUNTED] += size
        self.counts[HELD] += throttle_ms > 0
        bucket.use(context, size, now_ms)
        bucket.used_since = now_ms == bucket.doubtful_ms
        bucket.free_ms = now_ms + throttle_ms
        what = f"{machine.host} and {context.principal} ({context.client_id!r}), {key} {bucket.limit:g}"
        shortest, longest = bucket.waits_ms(now_ms)
        if not shortest - 1 <= throttle_ms <= longest + 1:
            text = f"{what}: it is told to wait {throttle_ms} ms, not {shortest:.0f} to {longest:.0f}"
            self._findings.broken("wait-is-the-quotas", text)
        if bucket.used > bucket.allowed(now_ms):
            passed_ms, allowed = now_ms - bucket.began_ms, bucket.allowed(now_ms)
            text = f"{what}: {bucket.used} bytes in {passed_ms} ms; {allowed:.0f} are allowed"
            self._findings.broken("quota-holds", text)

    def _bucket(self, machine: Machine, context: Context, key: str) -> _Bucket | None:
        """None: the client has no quota. Another quota begins it anew."""
        image = machine.node.loader.image if machine.node is not None else None
        found = None if image is None else limit_of(image, key, context.principal.name, context.client_id)
        if found is None:
            return None
        limit, user, client = found
        place = (machine.host, machine.life, key, user, client)
        bucket = self._buckets.get(place)
        if bucket is None:
            bucket = self._buckets[place] = _Bucket(limit, machine.clock.now_ms())
        elif bucket.limit != limit:
            bucket.begin_anew(limit, machine.clock.now_ms())
        return bucket


def limit_of(image: Image, key: str, user: str, client: str) -> tuple[float, str, str] | None:
    """The quota that counts, and whom its bucket is for: the first of Kafka's eight levels that is set."""
    quotas = {
        tuple(_part(record, kind) for kind in ("user", "client-id")): record.value
        for record in image.access.values()
        if isinstance(record, ClientQuotaRecord) and record.key == key
    }
    for level in _levels(user, client):
        if level in quotas:
            of_user, of_client = level
            shared_user = "" if of_user == _ABSENT else user
            shared_client = "" if of_client == _ABSENT else client
            return quotas[level], shared_user, shared_client
    return None


def _levels(user: str, client: str) -> Iterable[tuple[str, str]]:
    for of_user in (user, _DEFAULT, _ABSENT):
        for of_client in (client, _DEFAULT, _ABSENT):
            yield of_user, of_client


def _part(record: ClientQuotaRecord, kind: str) -> str:
    for one in record.entity:
        if one.entity_type == kind:
            return _DEFAULT if one.entity_name is None else one.entity_name
    return _ABSENT


def _taken(request: ProduceRequest, response: ProduceResponse) -> int:
    """Bytes of what was not denied: that never came to where it is counted."""
    if response.error_code:
        return 0
    return sum(
        len(one.records)
        for topic, answered in zip(request.topics, response.topics, strict=True)
        for one, answer in zip(topic.partitions, answered.partitions, strict=True)
        if answer.error_code not in DENIALS
    )
