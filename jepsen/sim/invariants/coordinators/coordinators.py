"""Coordinators of groups and of transactions, looked at after each step of their process.

The numbers are those of the invariants in the design.

- one-coordinator (1): in a leader epoch of an internal partition, one core is active; and its replica leads in it.
- state-is-replay (2): what a core holds that is durable equals a fresh replay of its log, whenever all that it has
  decided is in the log; and every second time of that log as the cleaner may leave it (compacted_replay.py).
- answered-before-commit (3): an answer that waits for records leaves when the high watermark is beyond them; and none
  that rests on the records of its call leaves with that call.
- group-call-parked (9): no JoinGroup or SyncGroup waits for longer than its members' timers allow.
- members-of-a-state (10): an empty group has no members, a stable or completing one has some.
- last-stable-offset (25): it is at most the high watermark, and does not fall in a leader epoch.
- markers-above-the-limit: not more markers are under way to a leader than the setting says.
- pending-offsets (29): at the end, no offset of a transaction is pending.
- target-assignment (16), static-restart (18), expiry (19): target_assignments.py, static_restarts.py, expiries.py. Of
  members that go: rebalances.py, consumer_sessions.py. Of decisions of transactions: decisions.py.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.compacted_replay import compacted, read, replay
from jepsen.sim.invariants.coordinators.consumer_groups import broken_invariants
from jepsen.sim.invariants.coordinators.consumer_groups import durable_state as consumers_state
from jepsen.sim.invariants.coordinators.consumer_sessions import ConsumerSessions
from jepsen.sim.invariants.coordinators.decisions import Decisions
from jepsen.sim.invariants.coordinators.expiries import Expiries
from jepsen.sim.invariants.coordinators.joint_cores import JointCores, joint_state
from jepsen.sim.invariants.coordinators.rebalances import Rebalances
from jepsen.sim.invariants.coordinators.static_restarts import StaticRestarts
from jepsen.sim.invariants.coordinators.target_assignments import TargetAssignments
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.groups import SyncGroupResponse
from quorumlog.messages.transactions import EndTxnResponse
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime import coordinator as runtime
from quorumlog_broker.coordinator.runtime.marker_sender import MarkerSender
from quorumlog_broker.coordinator.runtime.transaction_coordinator import TransactionCoordinator
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image

WAITED = "transactions that waited for room"
COMPARE_NS = 2 * NS_PER_S  # between two comparisons of a core
PARKED_MS = 30_000  # more than all timers of a rebalance together, in this workload
Coordinator = runtime.Coordinator[Any]
Log = tuple[bytes, int]
"""(topic id, index)"""


class CoordinatorInvariants(Invariant):
    """counts: what was looked at."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self.counts = {
            "active coordinators": 0,
            "cores compared": 0,
            "answers after commit": 0,
            "compacted logs loaded": 0,
        }
        self.counts["consumer groups checked"] = 0
        self.expiries, self._static_restarts = Expiries(findings), StaticRestarts(findings)
        self._rebalances, self._decisions = Rebalances(findings), Decisions(findings)
        self._joint = JointCores(findings)
        self.joint_levels: list[int] = []  # of joint.version, in turn
        self._consumer_sessions, self._targets = ConsumerSessions(findings), TargetAssignments(findings)
        self._decided_seen: dict[tuple[str, Log], tuple[Any, Offset, Offset]] = {}  # as of _consumers_seen
        self._consumers_seen: dict[tuple[str, Log], tuple[Any, Offset]] = {}  # the core's turn, and its end
        self._waited: dict[tuple[str, int], int] = {}  # by host and life
        self._active: dict[tuple[Log, Epoch], tuple[str, int]] = {}  # the host and life
        self._compared: dict[tuple[str, Log], tuple[int, Offset]] = {}  # when, and how far its log went
        self._listened: dict[str, dict[Log, object]] = {}  # by host: the turns that tell their answers
        self._parked: dict[tuple[str, int, str, int], int] = {}  # since when
        self._stable: dict[tuple[str, int, Log], tuple[Epoch, Offset]] = {}

    @property
    def exercised(self) -> dict[str, int]:
        of_groups = (self.expiries, self._static_restarts, self._rebalances, self._consumer_sessions, self._targets)
        parts = (*of_groups, self._decisions, self._joint)
        counts = self.counts | {WAITED: sum(self._waited.values())}
        return counts | {name: count for one in parts for name, count in one.counts.items()}

    def on_image(self, image: Image) -> None:
        """Of the newest metadata that any node has published."""
        if self.joint_levels[-1:] != [image.joint_version]:
            self.joint_levels.append(image.joint_version)

    # --- after a step ---

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
        for replica in changed:
            self._look_at_stable(machine, replica)
        for one in coordinators_of(machine):
            if one.state is runtime.State.ACTIVE:
                self._look(machine, one)
        if machine.node is not None and (broker := machine.node.broker) is not None:
            self._look_at_lanes(machine, broker.transactions.coordinators.markers)

    def _look(self, machine: Machine, one: Coordinator) -> None:
        log = one.replica.key
        life = (machine.host, machine.life)
        known = self._active.setdefault((log, one.leader_epoch), life)
        name = f"{one.replica.name} in epoch {one.leader_epoch}"
        if known != life:
            self._findings.broken("one-coordinator", f"{name} is coordinated by {life}, and was by {known}")
        core = one.replica.core
        if core.leader_epoch != one.leader_epoch:
            text = f"{name} is coordinated on {machine.host}, whose replica is in epoch {core.leader_epoch}"
            self._findings.broken("one-coordinator", text)
        self._listen(machine, one)
        if isinstance(one._shard, GroupShard):
            for group in one._shard._groups.values():
                self._look_at_group(machine, group)
            self._look_at_consumers(machine, one)
        elif isinstance(one, TransactionCoordinator):
            self._look_at_decisions(machine, one)
        now_ns = self._findings.now_ns()
        compared_ns, end = self._compared.get((machine.host, log), (-COMPARE_NS, -1))
        if now_ns - compared_ns >= COMPARE_NS and one._shard._turn.next_offset != end:
            self._compare(machine, one, now_ns)

    def _look_at_group(self, machine: Machine, group: ClassicGroup) -> None:
        what = f"group {group.group_id} on {machine.host}, {group.state.value}, {len(group.members)} members"
        if group.state in (State.EMPTY, State.DEAD):
            self._findings.check(not group.members, "members-of-a-state", what)
        elif group.state in (State.STABLE, State.COMPLETING):
            self._findings.check(bool(group.members), "members-of-a-state", what)
        now_ns = self._findings.now_ns()
        for member in group.members.values():
            for call in (member.join, member.parked_sync):
                if call is not None:
                    key = (machine.host, machine.life, member.member_id, call)
                    since_ns = self._parked.setdefault(key, now_ns)
                    if (now_ns - since_ns) // NS_PER_MS > PARKED_MS:
                        self._findings.broken("group-call-parked", f"{what}: a call of {member.member_id}")

    def _look_at_consumers(self, machine: Machine, one: Coordinator) -> None:
        """Of each group of the consumer protocol, when there is a new record."""
        turn = one._shard._turn
        key = (machine.host, one.replica.key)
        of, end = self._consumers_seen.get(key, (None, -1))
        if of is turn and end == turn.next_offset:
            return
        self._consumers_seen[key] = turn, turn.next_offset
        groups = one._shard._consumers.groups
        for group_id in groups.ids():
            self.counts["consumer groups checked"] += 1
            for name, text in broken_invariants(groups[group_id]):
                self._findings.broken(name, f"group {group_id} on {machine.host} at {turn.next_offset}: {text}")

    def _look_at_decisions(self, machine: Machine, one: TransactionCoordinator) -> None:
        """At its markers always; at the rest when there is a new record, or one is committed."""
        turn, key = one._shard._turn, (machine.host, one.replica.key)
        where = f"{one.replica.name} on {machine.host}"
        sender = machine.node.broker.transactions.coordinators.markers  # type: ignore[union-attr]  # it has coordinators
        self._decisions.look_at_markers(one._shard, where, partial(sender.is_under_way, one.owner))
        now = (turn, turn.next_offset, turn.high_watermark)
        if self._decided_seen.get(key) != now:
            self._decided_seen[key] = now
            self._decisions.look(one._shard, where)
            self._joint.look(one._shard, where)

    def _look_at_lanes(self, machine: Machine, sender: MarkerSender) -> None:
        self._waited[machine.host, machine.life] = sender.waited
        limit = sender._queues._max_pending
        for lane in sender._queues._lanes.values():
            count = len(lane.queue) + len(lane.in_flight)
            if count > limit:
                text = f"{machine.host}: {count} markers are under way to {lane.leader}"
                self._findings.broken("markers-above-the-limit", text)

    def _look_at_stable(self, machine: Machine, replica: Replica) -> None:
        core = replica.core
        if not core.is_leader:
            return
        stable, key = core.last_stable_offset, (machine.host, machine.life, replica.key)
        epoch, before = self._stable.get(key, (-1, 0))
        where = f"{replica.name} on {machine.host}, epoch {core.leader_epoch}: {stable}"
        if stable > max(core.high_watermark, core.log_start):
            self._findings.broken("last-stable-offset", f"{where}, high watermark {core.high_watermark}")
        if epoch == core.leader_epoch and stable < before:
            self._findings.broken("last-stable-offset", f"{where} after {before}")
        self._stable[key] = (core.leader_epoch, stable)

    # --- answers ---

    def _listen(self, machine: Machine, one: Coordinator) -> None:
        """Hear which answers of this core wait for which offset, and look at the high watermark when they leave."""
        heard = self._listened.setdefault(machine.host, {})
        turn = one._shard._turn
        if heard.get(one.replica.key) is turn:
            return
        heard[one.replica.key] = turn
        if isinstance(one._shard, GroupShard):
            self.expiries.listen(one._shard)
            self._static_restarts.listen(one._shard)
            self._rebalances.listen(one._shard)
            self._consumer_sessions.listen(one._shard)
            self._targets.listen(one._shard)
        else:
            self._decisions.listen(one._shard)
            self._joint.listen(one._shard, f"{one.replica.name} on {machine.host}")
        self.counts["active coordinators"] += 1
        ends: dict[int, Offset] = {}
        committing = False
        answer_after_commit, answer, committed = turn.answer_after_commit, turn.answer, turn.committed

        def noted(call: int, response: Any) -> None:
            ends[call] = turn.next_offset
            answer_after_commit(call, response)

        def told(high_watermark: Offset) -> None:
            nonlocal committing
            committing = True
            committed(high_watermark)
            committing = False

        def answered(call: int, response: Any) -> None:
            end = ends.pop(call, None)
            if end is None and not committing and turn.writes and says_done(response):
                text = f"{one.replica.name} on {machine.host}: {response} with records that are not appended yet"
                self._findings.broken("answered-before-commit", text)
            if end is not None:
                self.counts["answers after commit"] += 1
                if end > one.replica.core.high_watermark:
                    mark = one.replica.core.high_watermark
                    text = f"{one.replica.name} on {machine.host}: {response} needs {end}, committed is {mark}"
                    self._findings.broken("answered-before-commit", text)
            answer(call, response)

        turn.answer_after_commit, turn.answer, turn.committed = noted, answered, told

    # --- replay ---

    def _compare(self, machine: Machine, one: Coordinator, now_ns: int) -> None:
        """Where nothing that was decided is still on its way into the log."""
        shard, end = one._shard, one._shard._turn.next_offset
        mirror = self._mirrors.of_replica(machine, one.replica)
        if one._pending_appends._waiting or one._pending_appends.in_flight or mirror.end != end:
            return
        self._compared[machine.host, one.replica.key] = (now_ns, end)
        fresh = one._new_core()
        data = mirror.content(mirror.base, end) if end > mirror.base else b""
        if data is None:
            return
        where = f"{one.replica.name} on {machine.host} at {end}"
        self.counts["cores compared"] += 1
        records = list(read(data))
        kept = compacted(records, random.Random(end)) if self.counts["cores compared"] % 2 else records
        kept = list(kept)
        self.counts["compacted logs loaded"] += len(kept) < len(records)
        self._joint.compacted(records, kept)
        try:
            replay(fresh, kept)
        except (CorruptRecords, LookupError, AssertionError) as error:
            self._findings.broken("state-is-replay", f"{where}: {len(kept)} of {len(records)} records: {error!r}")
            return
        live, replayed = durable_state(shard), durable_state(fresh)
        if live != replayed:
            self._findings.broken("state-is-replay", f"{where}: {difference(live, replayed)}")

    # --- at the end ---

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        for host, machine in machines.items():
            for one in coordinators_of(machine):
                if isinstance(one._shard, GroupShard) and (left := one._shard._offsets.pending.groups()):
                    self._findings.broken("pending-offsets", f"{one.replica.name} on {host}: {left}")


def says_done(response: Any) -> bool:
    """A success that rests on the records of its call, if it has written any. A marker is answered with a code."""
    if isinstance(response, EndTxnResponse | SyncGroupResponse):
        return response.error_code == ErrorCode.NONE
    return response is ErrorCode.NONE


def coordinators_of(machine: Machine) -> Sequence[Coordinator]:
    broker = machine.node.broker if machine.node is not None else None
    if broker is None:
        return ()
    return (*broker.groups.all, *broker.transactions.coordinators.all)


def durable_state(shard: GroupShard | TransactionShard) -> dict[str, Any]:
    """What records alone decide."""
    if isinstance(shard, TransactionShard):
        return dict(shard._table.items()) | joint_state(shard)
    table = shard._offsets
    state: dict[str, Any] = {f"offsets of {name}": dict(table.of(name)) for name in table.groups()}
    state |= {f"pending of {name}": set(table.pending.of(name)) for name in table.pending.groups()}
    groups = shard._consumers.groups
    state |= {f"consumer group {name}": consumers_state(groups[name]) for name in groups.ids()}
    return state | {f"group {name}": value for name, value in shard._values.items()}


def difference(live: dict[str, Any], replayed: dict[str, Any]) -> str:
    names = [name for name in {**live, **replayed} if live.get(name) != replayed.get(name)]
    return "; ".join(f"{name}: live {live.get(name)}, replayed {replayed.get(name)}" for name in names[:3])
