"""Each change of the metadata that a client asks for says who it was (decision 134)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from controller_world import cluster as cluster_of_world
from controller_world import registration
from service_world import Bench, FakeContext, topics

from jepsen.sim.time import killed_coroutines
from quorumlog.messages import admin, brokers, cluster, controller, credentials, imports, quotas
from quorumlog.messages import reassignments as moves
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.metadata_records import ChangedByRecord, FeatureLevelRecord, RegisterBrokerRecord
from quorumlog.records import decode_batch, headers
from quorumlog.security.principal import Principal, node_principal
from quorumlog_quorum.controller.requests.requests import RULES, Asker
from quorumlog_quorum.controller.shell.service import MAX_NAMED
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import CHANGED_BY_LEVEL, JOINT_VERSION, LATEST_LEVEL, METADATA_VERSION
from quorumlog_quorum.metadata.frame import decode_record

MS = 1_000
BY_ALICE = ChangedByRecord(principal="User:alice", host="10.0.0.1", client_id="ops")


class Alice(FakeContext):
    client_host = "10.0.0.1"

    def __init__(self) -> None:
        super().__init__(Principal("User", "alice"), "ops")


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An active controller with the brokers 1 and 2, the topic t, an access rule and a topic that takes an import."""
    bench = Bench(access_rules=True)
    bench.transport.answer = bench.alive
    bench.do(lambda: bench.driver.lead(1))
    for broker_id in (1, 2):
        bench.start_broker(broker_id)
    bench.run(bench.ask(registration(3)))
    placed = cluster.CreatableTopic(name="t", assignments=(cluster.ReplicaAssignment(partition=0, broker_ids=(1, 2)),))
    bench.run(bench.ask(replace(topics("t"), topics=(placed,))))
    bench.run(bench.ask(_begin_import("taken")))
    bench.run(bench.ask(brokers.CreateAclsRequest(creations=(_acl("old"),))))
    yield bench
    bench.loop.kill()
    killed_coroutines.empty()


def _acl(name: str) -> brokers.AclCreation:
    return brokers.AclCreation(
        resource_type=2, resource_name=name, principal="User:a", host="*", operation=3, permission_type=3
    )


def _begin_import(name: str) -> imports.BeginImportRequest:
    place = cluster.ReplicaAssignment(partition=0, broker_ids=(1,))
    return imports.BeginImportRequest(
        name=name, assignments=(place,), last_epochs=(-1,), next_producer_id=5, timeout_ms=MS
    )


def _sealed(bench: Bench) -> imports.SealedReplica:
    epoch = bench.service.tip.brokers[1].broker_epoch
    return imports.SealedReplica(broker_id=1, broker_epoch=epoch, end_offset=0)


def _lose_preferred_leader(bench: Bench) -> None:
    """So that an election of the preferred leader has something to do."""
    fencing = bench.service._core.fencing(1)
    assert fencing is not None
    bench.do(lambda: bench.service._runner.submit(fencing))
    bench.run(bench.ask(bench.heartbeat(1)))
    topic = bench.service.tip.topic("t")
    assert topic is not None
    partition = topic.partitions[0]
    assert partition.leader == 2
    members = tuple(
        controller.IsrMember(broker_id=b, broker_epoch=bench.service.tip.brokers[b].broker_epoch) for b in (2, 1)
    )
    proposal = controller.AlterPartition(
        topic_id=topic.id,
        index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr=members,
        leader_recovery_state=0,
    )
    leader_epoch = bench.service.tip.brokers[2].broker_epoch
    bench.run(
        bench.ask(
            controller.AlterPartitionRequest(
                broker_id=2, broker_epoch=leader_epoch, partitions=(proposal,), metadata_end=bench.service.tip.offset
            )
        )
    )


def _elect(bench: Bench) -> moves.ElectLeadersRequest:
    _lose_preferred_leader(bench)
    return moves.ElectLeadersRequest(all_partitions=False, topics=(moves.ElectionTopic(name="t", partitions=(0,)),))


CHANGES: dict[type, Callable[[Bench], Any]] = {
    cluster.CreateTopicsRequest: lambda _: topics("new"),
    cluster.DeleteTopicsRequest: lambda _: cluster.DeleteTopicsRequest(
        topics=(cluster.TopicQuery(name="t"),), timeout_ms=MS
    ),
    admin.CreatePartitionsRequest: lambda _: admin.CreatePartitionsRequest(
        topics=(admin.PartitionsOfTopic(name="t", count=2),), timeout_ms=MS
    ),
    admin.IncrementalAlterConfigsRequest: lambda _: admin.IncrementalAlterConfigsRequest(
        resources=(
            admin.AlterConfigsResource(
                resource_type=2,
                resource_name="t",
                configs=(admin.AlterableConfig(name="retention.ms", operation=0, value="1000"),),
            ),
        )
    ),
    admin.UpdateFeaturesRequest: lambda _: admin.UpdateFeaturesRequest(
        updates=(admin.FeatureUpdate(name=JOINT_VERSION, level=1, upgrade_type=2),), timeout_ms=MS
    ),
    brokers.UnregisterBrokerRequest: lambda _: brokers.UnregisterBrokerRequest(broker_id=3),
    moves.AlterPartitionReassignmentsRequest: lambda _: moves.AlterPartitionReassignmentsRequest(
        topics=(
            moves.ReassignableTopic(
                name="t", partitions=(moves.ReassignablePartition(index=0, replicas=(2,), cancel=False),)
            ),
        )
    ),
    moves.ElectLeadersRequest: _elect,
    credentials.AlterUserScramCredentialsRequest: lambda _: credentials.AlterUserScramCredentialsRequest(
        upsertions=(
            credentials.ScramUpsertion(
                name="bob", mechanism=1, iterations=4096, salt=b"salty", salted_password=bytes(32)
            ),
        )
    ),
    quotas.AlterClientQuotasRequest: lambda _: quotas.AlterClientQuotasRequest(
        entries=(
            quotas.QuotaAlteration(
                entity=(QuotaEntity(entity_type="user", entity_name="bob"),),
                ops=(quotas.QuotaOp(key="producer_byte_rate", value=1.0),),
            ),
        )
    ),
    brokers.CreateAclsRequest: lambda _: brokers.CreateAclsRequest(creations=(_acl("new"),)),
    brokers.DeleteAclsRequest: lambda _: brokers.DeleteAclsRequest(
        filters=(brokers.DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1),)
    ),
    imports.BeginImportRequest: lambda _: _begin_import("fresh"),
    imports.FinishImportRequest: lambda bench: imports.FinishImportRequest(
        topic_id=bench.service.tip.topic_ids["taken"],
        partitions=(imports.ImportedPartition(index=0, replicas=(_sealed(bench),)),),
        timeout_ms=MS,
    ),
}
READS = {moves.ListPartitionReassignmentsRequest}


def test_every_request_of_clients_is_in_the_table() -> None:
    assert {rule.request for rule in RULES.values() if rule.asker is Asker.CLIENT} == CHANGES.keys() | READS


def written(bench: Bench, start: int) -> list[list[Any]]:
    """Records of each batch from this offset on."""
    return [
        [decode_record(record.value or b"") for record in decode_batch(batch, header)]
        for batch, _ in bench.driver.batches
        for header in headers(batch)
        if header.base_offset >= start and not header.is_control
    ]


@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_a_change_ends_with_who_asked_for_it(bench: Bench, kind: type) -> None:
    request = CHANGES[kind](bench)
    start = bench.driver.end_offset
    bench.run(bench.ask(request, Alice()))
    batches = written(bench, start)
    assert len(batches[0]) > 1 and batches[0][-1] == BY_ALICE
    signatures = [record for batch in batches for record in batch if isinstance(record, ChangedByRecord)]
    assert set(signatures) == {BY_ALICE}
    assert bench.loader.image == bench.service.tip


def test_a_change_in_slices_is_signed_in_each() -> None:
    world = cluster_of_world(1, 2, max_slice_work=1)
    for name in ("a", "b", "c"):
        world.create(name, replicas=(1, 2))
    start = len(world.driver.batches)
    reassigned = tuple(
        moves.ReassignableTopic(name=name, partitions=(moves.ReassignablePartition(index=0, replicas=(2, 1)),))
        for name in ("a", "b", "c")
    )
    request = moves.AlterPartitionReassignmentsRequest(topics=reassigned)
    world.submit(world.core.operation(request, changed_by=BY_ALICE))
    world.finish()
    sizes = world.driver.batches[start:]
    ends = [len(world.log) - sum(sizes[place + 1 :]) for place in range(len(sizes))]
    assert len(sizes) > 1 and all(world.log[end - 1] == BY_ALICE for end in ends)


def test_a_node_for_itself_signs_nothing_and_for_its_own_topics_by_its_name(bench: Bench) -> None:
    start = bench.driver.end_offset
    assert bench.run(bench.ask(registration(4))).broker_epoch == start
    assert [[type(record) for record in batch] for batch in written(bench, start)] == [[RegisterBrokerRecord]]
    node = Alice()
    node.principal = node_principal(2)
    bench.run(bench.ask(topics("__consumer_offsets"), node))
    assert written(bench, start)[-1][-1].principal == "Node:2"


def test_what_changes_nothing_writes_nothing(bench: Bench) -> None:
    start = bench.driver.end_offset
    bench.run(bench.ask(replace(topics("new"), validate_only=True), Alice()))
    bench.run(bench.ask(topics("t"), Alice()))
    assert not written(bench, start)


def test_a_long_name_is_cut(bench: Bench) -> None:
    context = Alice()
    context.client_id = "c" * 40_000
    context.principal = Principal("User", "p" * 40_000)
    start = bench.driver.end_offset
    bench.run(bench.ask(topics("new"), context))
    signature = written(bench, start)[0][-1]
    assert len(signature.client_id) == len(signature.principal) == MAX_NAMED


def test_the_level_decides_and_may_change_in_the_middle(bench: Bench) -> None:
    """The batch that lowers the level is not signed any more, and the one that raises it is."""
    bench.run(bench.ask(cluster.DeleteTopicsRequest(topics=(cluster.TopicQuery(name="taken"),), timeout_ms=MS)))
    bench.run(bench.ask(CHANGES[brokers.DeleteAclsRequest](bench)))

    def to(level: int, upgrade_type: int) -> list[Any]:
        start = bench.driver.end_offset
        update = admin.FeatureUpdate(name=METADATA_VERSION, level=level, upgrade_type=upgrade_type)
        answer = bench.run(bench.ask(admin.UpdateFeaturesRequest(updates=(update,), timeout_ms=MS), Alice()))
        assert not answer.error_code, answer.error_message
        batches = written(bench, start)
        return [record for batch in batches for record in batch]

    def create(name: str) -> list[Any]:
        start = bench.driver.end_offset
        bench.run(bench.ask(topics(name), Alice()))
        return written(bench, start)[0]

    lowered = to(CHANGED_BY_LEVEL - 1, 2)
    assert FeatureLevelRecord(name=METADATA_VERSION, level=CHANGED_BY_LEVEL - 1) in lowered
    assert BY_ALICE not in lowered and BY_ALICE not in create("below")
    assert to(LATEST_LEVEL, 1)[-1] == BY_ALICE and create("above")[-1] == BY_ALICE


def test_an_image_and_its_hash_are_those_without_it(bench: Bench) -> None:
    before = bench.service.tip
    start = bench.driver.end_offset
    bench.run(bench.ask(topics("new"), Alice()))
    delta = Delta(before)
    for record in written(bench, start)[0][:-1]:
        delta.replay(record)
    assert delta.state_hash == bench.service.tip.state_hash
