"""Random operations: every state is sound, the log rebuilds the tip, and leaders hold all acknowledged data.

`World` checks after each record that the image satisfies every structural invariant, and after each operation
that the replay of the encoded log equals the tip, hash included.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from controller_world import SESSION_MS, StillUnderWay, World, registration, uuid
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError
from quorumlog.messages.brokers import UnregisterBrokerRequest
from quorumlog.messages.cluster import DeleteTopicsRequest, TopicQuery
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest, DirectoryAssignment
from quorumlog_quorum.metadata.image import hash_of
from tests.parts import few
from tests.rules import rule

BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b")

broker = st.sampled_from(BROKERS)
topic = st.sampled_from(TOPICS)
directories = st.sampled_from([(0,), (0, 1), (1,), (2,)])
configs = st.fixed_dictionaries(
    {},
    optional={
        "min.insync.replicas": st.sampled_from("123"),
        "durability": st.sampled_from(["synced", "replicated"]),
        "unclean.leader.election.enable": st.sampled_from(["true", "false"]),
    },
)

step = st.one_of(
    st.tuples(st.just("register"), broker, st.integers(0, 3), directories, st.booleans()),
    st.tuples(st.just("heartbeat"), broker, st.booleans(), st.booleans(), st.booleans()),
    st.tuples(st.just("offline"), broker, st.integers(0, 2)),
    st.tuples(st.just("fence"), broker),
    st.tuples(st.just("unregister"), broker),
    st.tuples(st.just("create"), topic, st.integers(1, 3), st.integers(1, 3), configs),
    st.tuples(st.just("delete"), topic),
    st.tuples(st.just("alter"), topic, st.sets(broker, min_size=1)),
    st.tuples(st.just("assign"), broker, topic, st.integers(0, 2)),
    st.tuples(st.just("pass time"), st.sampled_from([100, SESSION_MS])),
    st.tuples(st.just("new controller")),
)


def directory(broker_id: int, number: int) -> bytes:
    return uuid(100 * broker_id + number)


def take(world: World, name: str, *arguments: Any) -> None:
    match name, *arguments:
        case "register", broker_id, incarnation, numbers, clean:
            known = world.tip.brokers.get(broker_id)
            epoch = known.broker_epoch if known is not None and clean else -1
            dirs = tuple(directory(broker_id, number) for number in numbers)
            world.ask(registration(broker_id, incarnation, log_directories=dirs, previous_broker_epoch=epoch))
        case "heartbeat", broker_id, want_fence, want_shutdown, caught_up if broker_id in world.tip.brokers:
            seen = len(world.log) if caught_up else 0
            world.heartbeat(broker_id, want_fence=want_fence, want_shutdown=want_shutdown, current_metadata_offset=seen)
        case "offline", broker_id, number if broker_id in world.tip.brokers:
            world.heartbeat(broker_id, offline_directories=(directory(broker_id, number),))
        case "fence", broker_id:
            world.fence(broker_id)
        case "unregister", broker_id:
            world.ask(UnregisterBrokerRequest(broker_id=broker_id))
        case "create", name, partitions, factor, settings:
            world.create(name, num_partitions=partitions, replication_factor=factor, configs=settings)
        case "delete", name:
            world.ask(DeleteTopicsRequest(topics=(TopicQuery(name=name),), timeout_ms=1))
        case "alter", name, isr if name in world.tip.topic_ids:
            leader = world.partition(name).leader
            if leader != -1:
                world.alter((leader, *sorted(isr - {leader})), sender=leader, name=name)
        case "assign", broker_id, name, number if broker_id in world.tip.brokers and name in world.tip.topic_ids:
            assign(world, broker_id, name, directory(broker_id, number))
        case "pass time", length_ms:
            world.now_ms += length_ms
            while (expired := world.core.expired_broker(world.now_ms)) is not None:
                world.fence(expired)
        case ("new controller",):
            world.new_controller()


def assign(world: World, broker_id: int, name: str, directory_id: bytes) -> None:
    assignment = DirectoryAssignment(topic_id=world.tip.topic_ids[name], index=0, directory_id=directory_id)
    epoch = world.tip.brokers[broker_id].broker_epoch
    world.ask(AssignReplicasToDirectoriesRequest(broker_id=broker_id, broker_epoch=epoch, assignments=(assignment,)))


@settings(max_examples=few(120), deadline=None)
@given(st.integers(0, 9), st.lists(step, max_size=40))
def test_any_sequence_of_operations_keeps_the_state_sound(seed: int, steps: list[tuple[Any, ...]]) -> None:
    world = World(seed, default_replication_factor=2)
    for broker_id in BROKERS[:3]:
        world.start(broker_id, log_directories=(directory(broker_id, 0),))
    epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
    for name, *arguments in steps:
        before = world.tip
        try:
            take(world, name, *arguments)
        except ApiError:
            assert world.tip is before, "a refusal writes nothing"
        check_epochs(world, epochs)
    assert world.tip.state_hash == hash_of(world.tip)


@rule("kraft 7.6")
@settings(max_examples=few(60), deadline=None)
@given(st.integers(0, 9), st.lists(step, max_size=25))
def test_every_operation_ends_in_the_same_state_in_slices_as_whole(seed: int, steps: list[tuple[Any, ...]]) -> None:
    worlds = [World(seed, default_replication_factor=2, max_slice_work=work) for work in (1, 1_000_000)]
    for world in worlds:
        for broker_id in BROKERS[:3]:
            world.start(broker_id, log_directories=(directory(broker_id, 0),))
    for name, *arguments in steps:
        answers = []
        for world in worlds:
            try:
                take(world, name, *arguments)
                answers.append("done")
            except ApiError as error:
                answers.append(error.message)
        assert answers[0] == answers[1] and worlds[0].tip == worlds[1].tip


@settings(max_examples=few(150), deadline=None)
@given(st.integers(0, 9), st.lists(st.tuples(step, st.integers(0, 4)), max_size=40))
def test_operations_between_the_slices_of_others_keep_the_state_sound(
    seed: int, steps: list[tuple[tuple[Any, ...], int]]
) -> None:
    """`World` checks every prefix. At the end each caller has its answer, and nothing is pending."""
    world = World(seed, default_replication_factor=3, max_slice_work=1)
    for broker_id in BROKERS[:3]:
        world.start(broker_id, log_directories=(directory(broker_id, 0),))
    for name in TOPICS:
        world.create(name, num_partitions=3, replication_factor=3)
    world.interleave = True
    epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
    for (name, *arguments), turns in steps:
        with suppress(ApiError, StillUnderWay):
            take(world, name, *arguments)
        for _ in range(turns):
            world.turn()
        check_epochs(world, epochs)
    world.finish()
    assert len(world.core.queue) == 0 and all(caller.done for caller in world.callers)
    assert world.core.state.pending.brokers(world.tip) == world.tip.brokers
    assert world.tip.state_hash == hash_of(world.tip)


def check_epochs(world: World, seen: dict[tuple[bytes, int], tuple[int, int]]) -> None:
    """Epochs of a partition never go back."""
    for found in world.tip.sorted_topics():
        for index, partition in found.sorted_partitions():
            now = (partition.leader_epoch, partition.partition_epoch)
            then = seen.get((found.id, index), (0, 0))
            assert now[0] >= then[0] and now[1] >= then[1]
            seen[found.id, index] = now


@settings(max_examples=few(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["fence", "heartbeat", "shrink", "expand"]), broker), max_size=30))
def test_a_leader_was_in_every_isr_that_could_acknowledge(steps: list[tuple[str, int]]) -> None:
    """With the synced default: each clean leader held all that was acknowledged (KIP-966's claim).

    Model: every broker of an ISR of at least min.insync.replicas holds each record that this ISR acknowledged; so after
    any history, leader and ELR members must have been in *every* large enough ISR since their last absence
    from ISR and ELR together.
    """
    world = World(default_replication_factor=3)
    for broker_id in (1, 2, 3):
        world.start(broker_id)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2"})
    acknowledged = 0
    held = dict.fromkeys((1, 2, 3), 0)
    for name, broker_id in steps:
        if broker_id == 4:
            continue
        change(world, name, broker_id)
        partition = world.partition()
        if partition.leader == -1:
            continue
        assert partition.leader_recovery_state == 0
        assert held[partition.leader] == acknowledged, "the leader lacks an acknowledged record"
        for member in partition.isr:  # joining the ISR means having caught up with the leader
            held[member] = held[partition.leader]
        if len(partition.isr) >= 2:
            acknowledged += 1
            for member in partition.isr:
                held[member] = acknowledged


def change(world: World, name: str, broker_id: int) -> None:
    partition = world.partition()
    match name:
        case "fence":
            world.fence(broker_id)
        case "heartbeat":
            world.heartbeat(broker_id)
        case "shrink" if partition.leader not in (-1, broker_id):
            world.alter(tuple(member for member in partition.isr if member != broker_id))
        case "expand" if partition.leader != -1 and broker_id not in partition.isr:
            world.alter((*partition.isr, broker_id))
