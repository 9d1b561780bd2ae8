"""Listeners are called once when a leadership of a partition is ready and once when it is over, in turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_cluster import TOPIC_ID, ReplicaCluster, batch, fail_writes_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch
from quorumlog_broker.partition.events import (
    IsrAnswered,
    LeaderElected,
    LeadershipLost,
    LogFailed,
    LogReady,
    MetadataChanged,
    PartitionEvent,
    ProposeIsr,
    Tick,
)
from quorumlog_broker.partition.partition import Partition
from quorumlog_broker.replicas.leadership_listeners import LeadershipListeners
from quorumlog_broker.replicas.replica import Replica
from tests.parts import few

Call = tuple[str, int, Epoch]  # what, partition, epoch


class Listener:
    """Records its calls, and whether the replica led at that moment."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.led: list[bool] = []

    def elected(self, replica: Replica, leader_epoch: Epoch) -> None:
        self._note("elected", replica, leader_epoch)

    def resigned(self, replica: Replica, leader_epoch: Epoch) -> None:
        self._note("resigned", replica, leader_epoch)

    def _note(self, what: str, replica: Replica, leader_epoch: Epoch) -> None:
        self.calls.append((what, replica.key[1], leader_epoch))
        self.led.append(replica.core.is_leader)


def a_replica(index: int = 0) -> Replica:
    core = SimpleNamespace(is_leader=True)
    return cast(Replica, SimpleNamespace(key=(TOPIC_ID, index), name=f"t-{index}", core=core))


def subject(*listeners: object) -> LeadershipListeners:
    found = LeadershipListeners()
    for listener in listeners:
        found.add(cast(Listener, listener))
    return found


def test_a_leadership_begins_once_and_ends_with_its_own_epoch() -> None:
    listener = Listener()
    listeners = subject(listener)
    replica, other = a_replica(0), a_replica(1)
    listeners.on_elected(replica, LeaderElected(4))
    listeners.on_elected(other, LeaderElected(1))
    listeners.on_lost(replica, LeadershipLost())
    listeners.on_lost(replica, LeadershipLost())
    listeners.on_elected(replica, LeaderElected(6))
    assert listener.calls == [
        ("elected", 0, 4),
        ("elected", 1, 1),
        ("resigned", 0, 4),
        ("elected", 0, 6),
    ]


def test_a_leadership_that_was_never_ready_causes_no_call() -> None:
    listener = Listener()
    subject(listener).on_lost(a_replica(), LeadershipLost())
    assert listener.calls == []


def test_a_stop_resigns_from_everything_in_the_order_of_elections() -> None:
    listener = Listener()
    listeners = subject(listener)
    for index in (2, 0, 1):
        listeners.on_elected(a_replica(index), LeaderElected(3))
    listeners.close()
    listeners.close()
    assert listener.calls[3:] == [("resigned", 2, 3), ("resigned", 0, 3), ("resigned", 1, 3)]


def test_every_listener_gets_a_change_before_the_next_one_that_it_causes() -> None:
    class Impatient:
        """Has the replica resign as soon as it is elected."""

        def elected(self, replica: Replica, _leader_epoch: Epoch) -> None:
            listeners.on_lost(replica, LeadershipLost())

        def resigned(self, replica: Replica, _leader_epoch: Epoch) -> None:
            """Nothing more."""

    listener = Listener()
    listeners = subject(Impatient(), listener)
    listeners.on_elected(a_replica(), LeaderElected(4))
    assert listener.calls == [("elected", 0, 4), ("resigned", 0, 4)]


def test_a_listener_is_added_before_the_first_election() -> None:
    listeners = subject()
    listeners.on_elected(a_replica(), LeaderElected(4))
    with pytest.raises(AssertionError, match="after the first election"):
        listeners.add(Listener())


EVENTS = st.one_of(
    st.tuples(st.just("metadata"), st.booleans(), st.booleans()),  # a new epoch; this broker leads
    st.tuples(st.just("ready"), st.booleans(), st.booleans()),  # of this epoch; (no meaning)
    st.tuples(st.sampled_from(["failed", "tick", "answer"]), st.booleans(), st.booleans()),
)


@given(st.lists(EVENTS, max_size=30))
@settings(max_examples=few(300))
def test_elections_and_resignations_alternate_and_epochs_rise(script: list[tuple[str, bool, bool]]) -> None:
    """Any sequence of metadata, log events and answers of the controller."""
    core = Partition(1, min_isr=1, durable=False, lag_time_max_ms=1_000)
    listener = Listener()
    listeners = subject(listener)
    replica = cast(Replica, SimpleNamespace(key=(TOPIC_ID, 0), name="t-0", core=core))
    epoch, version, proposal = 0, 0, ProposeIsr(leader_epoch=0, partition_epoch=0, members=())
    for what, first, second in script:
        event: PartitionEvent = Tick()
        match what:
            case "metadata":
                epoch, version = epoch + first, version + 1
                leader = (1 if second else 2) if first else max(core.leader, 1)
                event = MetadataChanged(
                    leader=leader, leader_epoch=epoch, partition_epoch=version, replicas=(1, 2), isr=(1, 2)
                )
            case "ready":
                ready_epoch = core.leader_epoch if first else core.leader_epoch - 1
                event = LogReady(leader_epoch=ready_epoch, log_start=0, end_offset=0, synced_end=0, epoch_start=0)
            case "failed":
                event = LogFailed()
            case "answer":
                event = IsrAnswered(proposal=proposal, error=ErrorCode.INELIGIBLE_REPLICA)
        if what == "ready" and (core.ready or core.failed or not core.replicas):
            continue  # the shell makes a log ready once for each epoch
        for effect in core.step(event, 0):
            if isinstance(effect, ProposeIsr):
                proposal = effect
            elif isinstance(effect, LeaderElected):
                assert core.is_leader and core.leader_epoch == effect.leader_epoch
                listeners.on_elected(replica, effect)
            elif isinstance(effect, LeadershipLost):
                listeners.on_lost(replica, effect)
        core.check_invariants()
        assert core.is_leader == bool(listener.calls and listener.calls[-1][0] == "elected"), (
            "called late, or not at all"
        )
    assert [what for what, _, _ in listener.calls] == (["elected", "resigned"] * len(script))[: len(listener.calls)]
    elections = [calls[2] for calls in listener.calls if calls[0] == "elected"]
    assert elections == sorted(set(elections))


# --- in a broker ---


def with_listeners() -> tuple[ReplicaCluster, dict[int, Listener]]:
    cluster = ReplicaCluster()
    listeners = {number: Listener() for number in cluster.nodes}
    for number, node in cluster.nodes.items():
        node.data_plane.leadership_listeners.add(listeners[number])
    return cluster, listeners


def test_each_broker_gets_calls_for_its_own_leaderships() -> None:
    cluster, listeners = with_listeners()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.elect(2, (2, 3, 1))
    cluster.wait_led(2)
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert listeners[1].calls == [("elected", 0, 0), ("resigned", 0, 0), ("elected", 0, 2)]
    assert listeners[2].calls == [("elected", 0, 1), ("resigned", 0, 1)]
    assert listeners[3].calls == []
    assert listeners[1].led == [True, False, True], "an append is taken from the moment of the election"


def test_an_elected_replica_takes_an_append_and_shows_what_is_committed() -> None:
    cluster, listeners = with_listeners()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.produce(1, "a")
    cluster.run_for(1_000)  # until all know that it is committed
    node, seen = cluster.nodes[2], []

    def elected(replica: Replica, _leader_epoch: Epoch) -> None:
        assert replica.log is not None
        seen.append((replica.core.high_watermark, replica.log.read(0, 100, upper_bound=1) != b""))
        node.produce_path.append(TOPIC_ID, 0, batch("b"), acks=-1, timeout_ms=1_000)

    listeners[2].elected = elected  # type: ignore[method-assign]
    cluster.elect(2, (2, 3, 1))
    cluster.run_until(lambda: node.log_values() == ["a", "b"])
    assert seen == [(1, True)]


@pytest.mark.parametrize("how", ["deleted", "directory failed", "stopped"])
def test_a_leadership_that_ends_without_a_successor_is_resigned_from(how: str) -> None:
    cluster, listeners = with_listeners()
    cluster.create_topic()
    cluster.wait_led(1)
    node = cluster.nodes[1]
    match how:
        case "deleted":
            cluster.delete_topic()
        case "directory failed":
            fail_writes_of(node, "/d0")
            with pytest.raises(ApiError):
                cluster.produce(1, "a")
        case "stopped":
            node.run(node.data_plane.close())
    cluster.run_until(lambda: len(listeners[1].calls) > 1)
    cluster.run_for(100)
    assert listeners[1].calls == [("elected", 0, 0), ("resigned", 0, 0)]
