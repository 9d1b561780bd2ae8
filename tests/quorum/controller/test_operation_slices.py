"""Long operations: each prefix of their slices is sound, and slices end in the same state as one piece.

`World` checks every structural invariant after each record, and that the log alone rebuilds the tip after each slice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from controller_world import SESSION_MS, RecordingCaller, World, code, registration, uuid

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, TopicQuery
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.controller import (
    AlterPartitionRequest,
    AssignReplicasToDirectoriesRequest,
    BrokerHeartbeatRequest,
    DirectoryAssignment,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.operation import Operation, broker_lane
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration
from tests.rules import rule

PARTITIONS = 5  # of each of the topics "a" and "b"


def small_slices(*, slice_work: int = 1, min_isr: int = 2, directories: int = 1) -> World:
    """Brokers 1, 2 and 3 hold two topics. With slice_work 1 a slice ends before each partition."""
    world = World(seed=5, max_slice_work=slice_work)
    for broker_id in (1, 2, 3):
        world.start(broker_id, log_directories=tuple(uuid(10 * broker_id + n) for n in range(directories)))
    for name in ("a", "b"):
        created = world.create(
            name, num_partitions=PARTITIONS, replication_factor=3, configs={"min.insync.replicas": str(min_isr)}
        )
        assert code(created) is ErrorCode.NONE
    return world


def heartbeat(world: World, broker_id: NodeId, **changes: object) -> BrokerHeartbeatRequest:
    broker = world.tip.brokers[broker_id]
    fields: dict[str, object] = {
        "broker_id": broker_id,
        "broker_epoch": broker.broker_epoch,
        "current_metadata_offset": len(world.log),
        "want_fence": False,
        "want_shutdown": False,
        "incarnation_id": broker.incarnation_id,
    }
    return BrokerHeartbeatRequest(**fields | changes)  # type: ignore[arg-type]


def assignments(world: World) -> AssignReplicasToDirectoriesRequest:
    found = [(topic.id, index) for topic in world.tip.sorted_topics() for index, _ in topic.sorted_partitions()]
    return AssignReplicasToDirectoriesRequest(
        broker_id=1,
        broker_epoch=world.tip.brokers[1].broker_epoch,
        assignments=tuple(DirectoryAssignment(topic_id=i, index=n, directory_id=uuid(11)) for i, n in found),
    )


def set_config(name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=key, operation=0, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def create(name: str, partitions: int = 3) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=3)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=1_000)


def delete(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(TopicQuery(name=name),), timeout_ms=1_000)


def counting_on(image: Image, broker_id: NodeId) -> list[tuple[str, int]]:
    """Partitions that have the broker in the ISR or as the leader."""
    return [
        (topic.name, index)
        for topic in image.sorted_topics()
        for index, partition in topic.sorted_partitions()
        if broker_id in partition.isr or partition.leader == broker_id
    ]


def lose_all_leaders(world: World) -> None:
    for broker_id in (1, 2, 3):
        world.fence(broker_id)
    assert all(p.leader == -1 for t in world.tip.topics.values() for p in t.partitions.values())


def lower_min_isr(world: World) -> None:
    world.ask(set_config("a", "min.insync.replicas", "3"))
    world.fence(3)
    assert all(partition.eligible_leader_replicas == (3,) for partition in partitions_of(world, "a"))
    submit(world, set_config("a", "min.insync.replicas", "2"))


def register_anew(world: World) -> None:
    world.now_ms += SESSION_MS
    world.submit(world.core.operation(registration(1, 1, log_directories=(uuid(10),))))


def elect(world: World) -> None:
    lose_all_leaders(world)
    world.submit(world.core.operation(heartbeat(world, 2)))


def shrink_all(world: World) -> None:
    proposals = []
    for name, index in led_by(world, 1):
        partition = world.partition(name, index)
        epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
        proposals.append(world.proposal((1,), name=name, index=index, **epochs))
    epoch = world.tip.brokers[1].broker_epoch
    submit(world, AlterPartitionRequest(broker_id=1, broker_epoch=epoch, partitions=tuple(proposals)))


def led_by(world: World, broker_id: NodeId) -> list[tuple[str, int]]:
    found = counting_on(world.tip, broker_id)
    return [(name, index) for name, index in found if world.partition(name, index).leader == broker_id]


def partitions_of(world: World, name: str) -> list[PartitionRegistration]:
    topic = world.tip.topic(name)
    assert topic is not None
    return [partition for _, partition in topic.sorted_partitions()]


def submit(world: World, request: object) -> None:
    world.submit(world.core.operation(request))


LONG: list[tuple[str, Callable[[World], None], int]] = [
    ("fence", lambda world: world.submit(world.core.fencing(1)), 10),
    ("controlled shutdown", lambda world: submit(world, heartbeat(world, 1, want_shutdown=True)), 10),
    ("directory failure", lambda world: submit(world, heartbeat(world, 1, offline_directories=(uuid(10),))), 10),
    ("a new process", register_anew, 10),
    ("elections", elect, 10),
    ("assignment", lambda world: submit(world, assignments(world)), 9),
    ("shrinking", shrink_all, 2),
    ("a lower minimum", lower_min_isr, PARTITIONS),
]


@pytest.mark.parametrize("directories", [1, 2])
@pytest.mark.parametrize(("begin", "slices"), [case[1:] for case in LONG], ids=[case[0] for case in LONG])
def test_in_slices_it_leads_where_it_leads_in_one_piece(
    begin: Callable[[World], None], slices: int, directories: int
) -> None:
    tips = []
    for slice_work in (1, 1_000_000):
        world = small_slices(slice_work=slice_work, directories=directories)
        begin(world)
        turns = 0
        while world.turn():
            turns += 1
        tips.append(world.tip)
        assert turns >= slices if slice_work == 1 else turns <= 1
    assert tips[0] == tips[1]


def test_a_slice_ends_when_its_work_is_done() -> None:
    world = small_slices(slice_work=45)
    before = len(world.driver.batches)
    world.fence(1)
    batches = world.driver.batches[before:]
    assert sum(batches) == 2 * PARTITIONS + 1 and max(batches) <= 3 and len(batches) >= 4


def test_a_fencing_begins_with_the_partitions_that_wait_for_a_leader() -> None:
    """Of 200,000 partitions with three brokers each of them is changed, and only a third has lost its leader."""
    world = small_slices()
    others = [key for key in counting_on(world.tip, 1) if key not in led_by(world, 1)]
    world.submit(world.core.fencing(1))
    assert others and led_by(world, 1)
    while led_by(world, 1):
        assert all(1 in world.partition(*key).isr for key in others)
        assert world.turn()
    finish_fencing(world)


# Operations that run between the slices of a fencing.


def half_fenced(broker_id: NodeId = 1, **options: int) -> World:
    """Some of the broker's partitions are moved, and it is not fenced yet."""
    world = small_slices(**options)
    world.submit(world.core.fencing(broker_id))
    for _ in range(PARTITIONS):
        world.turn()
    left = counting_on(world.tip, broker_id)
    assert not world.tip.brokers[broker_id].fenced and 0 < len(left) < 2 * PARTITIONS
    return world


def answer(world: World, caller: RecordingCaller) -> None:
    while not caller.done:
        assert world.turn(), "an operation that is not done has a slice to run"


def finish_fencing(world: World, broker_id: NodeId = 1) -> None:
    world.finish()
    assert world.tip.brokers[broker_id].fenced and not counting_on(world.tip, broker_id)


def test_another_broker_s_heartbeat_is_answered_between_two_slices() -> None:
    world = half_fenced()
    caller = world.begin(heartbeat(world, 2))
    assert caller.response is not None and not caller.response.is_fenced
    assert world.turn(), "the fencing goes on"
    finish_fencing(world)


def test_a_new_topic_does_not_count_on_a_broker_that_is_about_to_be_fenced() -> None:
    world = half_fenced()
    caller = world.begin(create("aa", 1))  # sorted before the topics that the fencing has still to do
    answer(world, caller)
    assert code(caller.response.topics[0]) is ErrorCode.NONE
    assert not world.tip.brokers[1].fenced
    assert all(1 in partition.replicas and 1 not in partition.isr for partition in partitions_of(world, "aa"))
    finish_fencing(world)


def test_a_leader_cannot_take_a_broker_back_that_is_about_to_be_fenced() -> None:
    world = half_fenced()
    keys = [(name, index) for name in "ab" for index in range(PARTITIONS)]
    name, index = next(key for key in keys if 1 not in world.partition(*key).isr)
    partition = world.partition(name, index)
    proposal = world.proposal(
        (*partition.isr, 1),
        name=name,
        index=index,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    leader = partition.leader
    epoch = world.tip.brokers[leader].broker_epoch
    caller = world.begin(AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, partitions=(proposal,)))
    assert code(caller.response.partitions[0]) is ErrorCode.INELIGIBLE_REPLICA
    finish_fencing(world)


def test_the_next_process_is_registered_when_the_fencing_of_the_last_one_is_done() -> None:
    world = half_fenced()
    caller = world.begin(registration(1, 1, log_directories=(uuid(10),)))
    assert not caller.done
    world.finish()
    broker = world.tip.brokers[1]
    assert caller.response.broker_epoch == broker.broker_epoch > 0
    assert broker.fenced and broker.incarnation_id == registration(1, 1).incarnation_id
    assert not counting_on(world.tip, 1)


@rule("kraft 7.2")
def test_a_second_fencing_waits_and_finds_nothing_to_do() -> None:
    world = half_fenced()
    world.submit(world.core.fencing(1))
    finish_fencing(world)
    records = len(world.log)
    world.finish()
    assert len(world.log) == records


def test_a_fencing_that_waited_spares_the_process_that_was_registered_meanwhile() -> None:
    world = half_fenced()
    world.begin(registration(1, 1, log_directories=(uuid(10),)))
    world.submit(world.core.fencing(1))  # of the old process: the new one is not registered yet
    world.finish()
    assert world.tip.brokers[1].incarnation_id == registration(1, 1).incarnation_id
    assert not world.heartbeat(1).is_fenced


def test_a_heartbeat_of_the_broker_that_is_being_fenced_waits_and_unfences_it() -> None:
    world = half_fenced()
    caller = world.begin(heartbeat(world, 1))
    assert not caller.done
    world.finish()
    assert not caller.response.is_fenced and not world.tip.brokers[1].fenced


def test_a_topic_that_is_deleted_or_made_anew_between_two_slices() -> None:
    world = half_fenced()
    world.begin(delete("a"))
    world.begin(delete("b"))
    world.begin(create("b"))
    finish_fencing(world)
    assert [topic.name for topic in world.tip.sorted_topics()] == ["b"]


def test_two_brokers_fenced_at_once_never_hand_each_other_a_partition() -> None:
    world = small_slices(min_isr=1)
    world.submit(world.core.fencing(1))
    world.submit(world.core.fencing(2))
    while world.turn():
        for topic in world.tip.sorted_topics():
            for index, partition in topic.sorted_partitions():
                if partition.partition_epoch > 0:
                    assert partition.leader == 3 and partition.isr == (3,), f"{topic.name}-{index}: {partition}"
    finish_fencing(world, 1)
    finish_fencing(world, 2)


def test_a_directory_that_a_registration_is_about_to_have_is_taken() -> None:
    world = small_slices()
    world.now_ms += SESSION_MS
    first = world.begin(registration(1, 1, log_directories=(uuid(10), uuid(77))))
    world.turn()
    assert not first.done
    second = world.begin(registration(4, log_directories=(uuid(77),)))
    assert second.error is not None and second.error.code is ErrorCode.INVALID_REGISTRATION
    world.finish()
    assert first.response is not None


def test_a_session_of_a_broker_does_not_end_while_it_is_fenced() -> None:
    world = half_fenced()
    world.now_ms += 3 * SESSION_MS
    assert world.core.expired_broker(world.now_ms) != 1
    finish_fencing(world)


# Leadership lost half-way.


def test_a_new_controller_fences_what_its_predecessor_left_half_fenced() -> None:
    world = half_fenced()
    waiting = world.begin(registration(1, 1, log_directories=(uuid(10),)))
    world.new_controller()
    assert waiting.dropped_after_writing is False
    assert not world.turn(), "nothing of the old operations goes on"
    assert not world.tip.brokers[1].fenced and counting_on(world.tip, 1)
    world.now_ms += SESSION_MS
    assert world.core.expired_broker(world.now_ms) == 1
    world.fence(1)
    finish_fencing(world)


def test_nothing_pending_is_left_behind_by_a_dropped_operation() -> None:
    world = half_fenced()
    world.new_controller()
    caller = world.begin(create("c"))
    answer(world, caller)
    assert code(caller.response.topics[0]) is ErrorCode.NONE
    assert all(1 in partition.isr for partition in partitions_of(world, "c"))


@rule("kraft 7.3", "kraft 7.19")
def test_a_caller_learns_whether_a_dropped_operation_has_written() -> None:
    world = small_slices()
    shutting_down = world.begin(heartbeat(world, 1, want_shutdown=True))
    world.turn()
    world.turn()
    waiting = world.begin(heartbeat(world, 1))
    world.driver.leads = False
    while world.turn():
        pass
    assert (shutting_down.dropped_after_writing, waiting.dropped_after_writing) == (True, False)
    assert not world.core.active


# Elections and settings.


def test_elections_go_on_after_the_answer_and_are_asked_for_once() -> None:
    world = small_slices()
    lose_all_leaders(world)
    for broker_id in (1, 2, 3):
        caller = world.begin(heartbeat(world, broker_id))
        assert not caller.response.is_fenced, "it does not wait for the elections"
    world.finish()
    assert all(p.leader != -1 for t in world.tip.topics.values() for p in t.partitions.values())


def test_a_broker_fenced_during_elections_is_not_elected_any_more() -> None:
    world = small_slices(min_isr=1)
    lose_all_leaders(world)
    world.begin(heartbeat(world, 3))
    for _ in range(3):
        world.turn()
    world.submit(world.core.fencing(3))
    finish_fencing(world, 3)


def test_a_fence_during_a_change_of_the_minimum_makes_no_elr_that_the_new_one_forbids() -> None:
    world = small_slices(min_isr=3)
    world.fence(3)
    caller = world.begin(set_config("a", "min.insync.replicas", "1"))
    world.turn()
    assert not caller.done
    world.submit(world.core.fencing(2))
    world.finish()
    assert caller.response is not None
    for partition in partitions_of(world, "a"):
        assert len(partition.isr) >= effective_min_isr(1, partition.replicas) and not partition.eligible_leader_replicas


def test_a_topic_deleted_during_the_change_of_its_settings_is_told() -> None:
    world = small_slices(min_isr=3)
    world.fence(3)
    caller = world.begin(set_config("a", "min.insync.replicas", "1"))
    world.turn()
    world.begin(delete("a"))
    world.begin(create("a"))
    world.finish()
    assert code(caller.response.results[0]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (TOPIC_RESOURCE, "a") not in world.tip.configs


def test_changes_of_settings_wait_for_each_other() -> None:
    world = small_slices(min_isr=3)
    world.fence(3)
    first = world.begin(set_config("a", "min.insync.replicas", "2"))
    second = world.begin(set_config("a", "min.insync.replicas", "1"))
    assert not first.done and not second.done
    world.finish()
    assert world.tip.topic_config("a")["min.insync.replicas"] == "1"


def test_settings_of_a_topic_made_with_the_new_minimum_pending_are_its_own() -> None:
    world = small_slices(min_isr=3)
    world.fence(3)
    world.begin(set_config("a", "min.insync.replicas", "1"))
    topic = CreatableTopic(
        name="c",
        num_partitions=1,
        replication_factor=3,
        configs=(ConfigEntry(name="min.insync.replicas", value="3"),),
    )
    world.begin(CreateTopicsRequest(topics=(topic,), timeout_ms=1))
    world.finish()
    assert world.tip.topic_config("c")["min.insync.replicas"] == "3"


def test_an_operation_that_fails_leaves_its_lane_and_nothing_pending() -> None:
    world = small_slices()

    def broken(draft: Draft) -> Sliced[None]:
        with draft.state.pending.registration(replace(draft.image.brokers[1], fenced=True)):
            yield
            raise ValueError("a mistake of ours")

    world.submit(Operation("broken", broken, world.core.state, broker_lane(1)))
    caller = world.begin(heartbeat(world, 1))
    with pytest.raises(ValueError, match="a mistake of ours"):
        world.turn()
    world.finish()
    assert caller.response is not None and world.core.state.pending.brokers(world.tip) == world.tip.brokers


# A creation is made in slices and written in one batch.


def slice_work(world: World, work: int) -> None:
    """From now on slices end after so much work."""
    world.core.state.config = replace(world.core.state.config, max_slice_work=work)


def test_a_creation_is_one_batch_whatever_its_slices() -> None:
    world = small_slices()
    records, batches = len(world.log), len(world.driver.batches)
    caller = world.begin(create("c", 4))
    turns = 0
    while len(world.log) == records:
        assert not caller.done and not caller.accepted_first
        assert world.turn()
        turns += 1
    assert world.driver.batches[batches:] == [5] and turns >= 4
    answer(world, caller)
    result = caller.response.topics[0]
    assert code(result) is ErrorCode.NONE and result.num_partitions == 4 and result.replication_factor == 3
    assert {entry.name for entry in result.configs} >= {"min.insync.replicas"}
    assert world.driver.batches[batches:] == [5]


def test_a_creation_is_made_again_when_a_broker_was_fenced_meanwhile() -> None:
    world = small_slices()
    caller = world.begin(create("c", 4))
    slice_work(world, 1_000_000)
    world.submit(world.core.fencing(3))
    assert world.tip.brokers[3].fenced and not caller.done
    slice_work(world, 1)
    answer(world, caller)
    assert code(caller.response.topics[0]) is ErrorCode.NONE
    assert all(3 in one.replicas and 3 not in one.isr for one in partitions_of(world, "c"))


def test_of_two_creations_of_one_name_the_later_one_is_refused() -> None:
    world = small_slices()
    first, second = world.begin(create("c", 4)), world.begin(create("c", 2))
    world.finish()
    codes = {code(first.response.topics[0]), code(second.response.topics[0])}
    assert codes == {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


def test_a_creation_ends_though_something_changes_in_each_of_its_slices() -> None:
    """The last try does not pause."""
    world = small_slices()
    caller = world.begin(create("c", 6))
    for number in range(40):
        if caller.done:
            break
        slice_work(world, 1_000_000)
        assert code(world.begin(create(f"other{number}", 1)).response.topics[0]) is ErrorCode.NONE
        slice_work(world, 1)
        world.turn()
    assert caller.done and code(caller.response.topics[0]) is ErrorCode.NONE
    assert len(partitions_of(world, "c")) == 6


def test_a_creation_that_is_dropped_before_its_batch_leaves_nothing() -> None:
    world = small_slices()
    records = len(world.log)
    caller = world.begin(create("c", 4))
    world.turn()
    world.new_controller()
    assert caller.dropped_after_writing is False, "it wrote nothing"
    assert len(world.log) == records
