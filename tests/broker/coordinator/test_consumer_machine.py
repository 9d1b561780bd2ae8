"""Consumers that join, lose answers, stop, pause and change their minds, while the coordinator moves: what must hold.

The clients follow KIP-848: each has one request under way, gives up partitions in its own time, and says what it owns.
The high watermark lags behind the log, and a failover cuts what is above it. Numbers in brackets are the invariants
that the text of a failure names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorumlog.errors import ErrorCode as E
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog_broker.coordinator.group_turn import Write
from quorumlog_broker.coordinator.groups.consumer.describe import state_of
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED, MemberState, owned_by
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.shard import GroupShard
from tests import rules
from tests.broker.coordinator.consumer_world import ConsumerWorld, Owned, named, topics
from tests.broker.coordinator.group_world import G, replay
from tests.parts import few

CLIENTS = 4
SUBSCRIPTIONS: list[dict[str, Any]] = [{"topics": "a"}, {"topics": "a b"}, {"topics": "", "regex": "[ab]"}]
REJOIN = (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND)

Partitions = set[tuple[str, int]]


def flat(owned: Owned) -> Partitions:
    return {(name, index) for name, indexes in owned.items() for index in indexes}


@dataclass
class Client:
    """owned: what it consumes. granted: what it may, if it has been told something that it has not carried out.

    says_all: its next request is a full one, because an answer may be lost. call: the request under way.
    """

    name: str
    instance: str | None
    epoch: int = 0
    owned: Partitions = field(default_factory=set)
    granted: Partitions | None = None
    subscription: int = 0
    says_all: bool = True
    call: int | None = None
    lives: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"

    def start_anew(self) -> None:
        self.epoch, self.owned, self.granted, self.says_all, self.call = 0, set(), None, True, None

    def to_message(self) -> Owned:
        found: Owned = {}
        for name, index in self.owned:
            found.setdefault(name, set()).add(index)
        return found


def durable(group: ConsumerGroup | None) -> Any:
    if group is None:
        return None
    return (
        group.metadata,
        group.target_metadata,
        group.members,
        group.current,
        group.target,
        group.regexes,
        group.static,
        group.owners,
        group.names,
        group.regex_users,
    )


def loaded(log: list[Write]) -> GroupShard:
    shard = GroupShard(GroupConfig(), str)
    replay(log, shard)
    return shard


def compacted(log: list[Write], end: int, *, keeps_tombstones: bool) -> list[Write]:
    """What the cleaner may leave of the records below `end`."""
    newest = {write.key: offset for offset, write in enumerate(log[:end])}
    kept = [log[offset] for offset in sorted(newest.values())]
    return [one for one in kept if keeps_tombstones or one.value is not None] + log[end:]


@rules.rule("group 1.11", "bug 17306")
class ConsumerMachine(RuleBasedStateMachine):
    @initialize(interval=st.sampled_from([0, 1_000]))
    def begin(self, interval: int) -> None:
        config = GroupConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=interval))
        self.world = ConsumerWorld(config, autocommit=False, a=3, b=2)
        self.version = 0
        self.clients = [Client(f"c{n}", f"i{n}" if n < 2 else None) for n in range(CLIENTS)]
        self.high_watermark = 0

    # --- clients ---

    @rule(n=st.integers(0, CLIENTS - 1), repeats=st.booleans())
    def beat(self, n: int, repeats: bool) -> None:
        client = self.clients[n]
        if client.call is not None:
            return
        more: dict[str, Any] = {"instance": client.instance}
        owned: Owned | None = None
        if client.epoch == 0:
            more |= SUBSCRIPTIONS[client.subscription]
        elif client.says_all or repeats:
            more |= SUBSCRIPTIONS[client.subscription] | {"timeout_ms": 20_000}
            owned = client.to_message()
        client.says_all = False
        client.call = self.world.beat(client.member_id, client.epoch, owned, **more)

    @rule(order=st.permutations(range(CLIENTS)), gives_up=st.lists(st.booleans(), min_size=CLIENTS, max_size=CLIENTS))
    def go_on(self, order: list[int], gives_up: list[bool]) -> None:
        """All of them, without a fault."""
        for n in order:
            self.beat(n, False)
            self.commit(1)
            self.hear()
            self.holds()
            if gives_up[n]:
                self.give_up(n)

    @rule(n=st.integers(0, CLIENTS - 1), subscription=st.integers(0, 2))
    def subscribe(self, n: int, subscription: int) -> None:
        client = self.clients[n]
        client.subscription, client.says_all = subscription, True

    @rule(n=st.integers(0, CLIENTS - 1))
    def give_up(self, n: int) -> None:
        """Its application has let go of what it has to, and begins what is new."""
        client = self.clients[n]
        if client.granted is not None:
            client.owned, client.granted, client.says_all = client.granted, None, True

    @rule(n=st.integers(0, CLIENTS - 1))
    def lose_answer(self, n: int) -> None:
        client = self.clients[n]
        if client.call is not None:
            client.call, client.says_all = None, True

    @rule(n=st.integers(0, CLIENTS - 1))
    def restart(self, n: int) -> None:
        """Without a word. It comes back with another id."""
        client = self.clients[n]
        client.start_anew()
        client.lives += 1

    @rule(n=st.integers(0, CLIENTS - 1), pauses=st.booleans())
    def leave(self, n: int, pauses: bool) -> None:
        client = self.clients[n]
        if client.epoch == 0 or client.call is not None:
            return
        epoch = PAUSED if pauses and client.instance is not None else -1
        client.owned = set()  # a client stops first
        self.world.beat(client.member_id, epoch, instance=client.instance)
        client.start_anew()
        client.lives += 1

    def hear(self) -> None:
        """Every client takes the answer that there is for it."""
        for client in self.clients:
            answer = self.world.answers.get(client.call or 0)
            if answer is None:
                continue
            client.call = None
            if answer.error_code in REJOIN:
                client.start_anew()
            elif answer.error_code in (E.UNRELEASED_INSTANCE_ID, E.FENCED_INSTANCE_ID):
                client.start_anew()
                client.lives += 1
            else:
                assert answer.error_code == E.NONE, f"clients do not live with {answer.error_code}"
                client.epoch = answer.member_epoch
                if answer.assignment is not None:
                    client.granted = flat(named(answer.assignment.topic_partitions))

    # --- the world ---

    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        left = len(self.world.log) - self.high_watermark
        self.high_watermark += int(left * share + 0.999)
        self.world.commit_to(self.high_watermark)

    @rule(ms=st.sampled_from([100, 3_000, 15_000]))
    def pass_time(self, ms: int) -> None:
        self.world.pass_ms(ms)

    @rule(a=st.integers(1, 4), b=st.integers(0, 3))
    def change_topics(self, a: int, b: int) -> None:
        self.version += 1
        counts = {name: count for name, count in (("a", a), ("b", b)) if count}
        self.world.use(topics(self.version, **counts))

    @rule(share=st.floats(0, 1))
    def fail_over(self, share: float) -> None:
        keep = self.high_watermark + int((len(self.world.log) - self.high_watermark) * share)
        self.world.fail_over(keep=keep)
        self.high_watermark = len(self.world.log)
        for client in self.clients:
            if client.call is not None and client.call not in self.world.answers:
                client.call, client.says_all = None, True

    @precondition(lambda self: self.world.log)
    @rule(share=st.floats(0, 1), keeps=st.booleans())
    def compact(self, share: float, keeps: bool) -> None:
        """[2] Any compacted log loads, and to the same state."""
        end = int(len(self.world.log) * share)
        shard = loaded(compacted(self.world.log, end, keeps_tombstones=keeps))
        assert durable(shard._consumers.groups.get(G)) == durable(self.live), "[2] compaction has changed the state"

    # --- what must hold ---

    @property
    def live(self) -> ConsumerGroup | None:
        return self.world.shard._consumers.groups.get(G)

    @invariant()
    def holds(self) -> None:
        self.hear()
        assert durable(loaded(self.world.log)._consumers.groups.get(G)) == durable(self.live), "[2]"
        group = self.live
        if group is None:
            return
        owners = {one: member for member, value in group.current.items() for one in owned_by(value)}
        assert sum(len(owned_by(value)) for value in group.current.values()) == len(owners), "[11] two owners"
        assert owners == group.owners, "[11] the owner map is not what the records say"
        wishes = Counter(member.server_assignor for member in group.members.values() if member.server_assignor)
        assert wishes == group.assignors
        have = [group.current_of(member_id) for member_id in group.members if member_id in group.current]
        settled = [one for one in have if (one.epoch, one.state) == (group.assignment_epoch, MemberState.STABLE)]
        assert group.is_settled == (len(settled) == len(group.members))
        assert group.assignment_epoch <= group.epoch, "[13]"
        for member_id, value in group.current.items():
            assert member_id in group.members
            assert value.member_epoch <= group.assignment_epoch, "[13]"
            is_unrevoked = value.state == MemberState.UNREVOKED
            assert is_unrevoked == bool(value.partitions_pending_revocation), "[14]"
        self.no_two_consume(group)

    def no_two_consume(self, group: ConsumerGroup) -> None:
        consumed: dict[tuple[str, int], str] = {}
        for client in self.clients:
            if client.member_id not in group.members:
                continue  # its session is over, or it has never joined
            for partition in client.owned:
                assert partition not in consumed, f"[12] {partition}: {consumed[partition]} and {client.name}"
                consumed[partition] = client.name

    def teardown(self) -> None:
        """[15, 16] Once nothing fails any more, all partitions are shared fairly within a few heartbeats."""
        for client in self.clients:
            client.subscription, client.says_all = 1, True
        for _ in range(60):
            for n in range(CLIENTS):
                self.beat(n, False)
                self.commit(1)
                self.hear()
                self.give_up(n)
            self.pass_time(3_000)
            self.holds()
        group = self.live
        assert group is not None
        self.commit(1)
        counts = [len(client.owned) for client in self.clients]
        cluster = self.world.cluster
        wanted = {
            (name, index)
            for name in cluster.topic_names()
            for index in range(getattr(cluster.topic(name), "partitions", 0))
        }
        assert set().union(*(client.owned for client in self.clients)) == wanted, "[15]"
        assert max(counts) - min(counts) <= 1, f"[16] {counts}"
        assert state_of(group).value == "Stable", "[15]"


ConsumerMachine.TestCase.settings = settings(
    max_examples=few(40),
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink a failure takes minutes: do it by hand
    suppress_health_check=list(HealthCheck),
)
TestConsumerMachine = ConsumerMachine.TestCase
