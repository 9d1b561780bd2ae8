"""A broker's handlers, reached over each transport of a whole node: gRPC and lane, on real and simulated sockets.

Every API of the lane succeeds; an unknown topic, partition or epoch is reported; a forged replica changes nothing;
acks=0 has no answer; pipelined produce requests are in the log in their order.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import asking
import pytest
from asking import errors_in
from group_requests import OF_GROUPS
from one_node import BATCH, CALL_MS, GRPC, LANE, NO_TOPICS_BY_ACCIDENT, OneNode, RealNode, SimNode, make_topic
from transaction_requests import OF_TRANSACTIONS

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DescribeFeaturesRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FeatureUpdate,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    UpdateFeaturesRequest,
)
from quorumlog.messages.brokers import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    UnregisterBrokerRequest,
)
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from quorumlog.messages.common import Endpoint, QuotaEntity
from quorumlog.messages.credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramDeletion,
    ScramUpsertion,
    ScramUserName,
)
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, ReplicaState
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.messages.quorum import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    QuotaAlteration,
    QuotaComponent,
    QuotaOp,
)
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectionTopic,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog.records import decode_batch, encode_batch, headers
from quorumlog.records.format.batch import BATCH_OVERHEAD, CONTROL, TRANSACTIONAL, Codec, seal
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, compress
from quorumlog.records.format.record import Record
from quorumlog.rpc.transport import Connection, OutcomeUnknown
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog_quorum.metadata.features import LATEST_LEVEL, METADATA_VERSION
from tests.rules import rule

STRANGE_ID = bytes(range(16))
E = ErrorCode


@dataclass
class Wire:
    """topic: has one partition; a test creates anything else that it needs."""

    at: OneNode
    name: str
    connection: Connection
    topic: str
    topic_id: bytes

    def call(self, request: Any) -> Any:
        async def ask() -> Any:
            return await self.connection.call(request, CALL_MS)

        return self.at.do(ask())

    @property
    def log_directory(self) -> str:
        return str(self.call(DescribeLogDirsRequest()).directories[0].path)

    def end_offset(self) -> int:
        return int(self.call(asking.offsets(self.topic)).topics[0].partitions[0].offset)


@pytest.fixture(scope="module", params=["real", "sim"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNode]:
    made: OneNode
    if request.param == "real":
        made = RealNode(tmp_path_factory.mktemp("wires"), NO_TOPICS_BY_ACCIDENT)
    else:
        made = SimNode()
    yield made
    made.close()
    killed_coroutines.empty()
    assert made.crashes == []


@pytest.fixture(scope="module", params=[GRPC, LANE], ids=["grpc", "lane"])
def wire(at: OneNode, request: pytest.FixtureRequest) -> Iterator[Wire]:
    connection = at.connect(request.param)
    topic = f"by-{request.param.lower()}"
    yield Wire(at, request.param, connection, topic, at.do(make_topic(connection, topic)))
    at.do(connection.close())


# --- requests


def produce(wire: Wire, records: Any = BATCH, *, topic: str = "", **fields: Any) -> ProduceRequest:
    return asking.produce(topic or wire.topic, records, **fields)


def fetch(wire: Wire, *, topic_id: bytes = b"", **fields: Any) -> FetchRequest:
    return asking.fetch("", topic_id or wire.topic_id, **fields)


def offsets(wire: Wire, *, topic: str = "", **fields: int) -> ListOffsetsRequest:
    return asking.offsets(topic or wire.topic, **fields)


def epoch_end(wire: Wire, *, topic: str = "", **fields: int) -> OffsetForLeaderEpochRequest:
    return asking.epoch_end(topic or wire.topic, **fields)


def delete_records(wire: Wire, *, topic: str = "", offset: int = 0, **fields: int) -> DeleteRecordsRequest:
    return asking.delete_records(topic or wire.topic, offset, **fields)


def metadata(wire: Wire, *, topic: str = "", topic_id: bytes = b"") -> MetadataRequest:
    return asking.metadata(topic or wire.topic, topic_id)


def alter(name: str, value: str = "1234567") -> IncrementalAlterConfigsRequest:
    return asking.alter(name, "retention.ms", value)


def reassign(wire: Wire, replicas: tuple[int, ...], **fields: Any) -> AlterPartitionReassignmentsRequest:
    """fields: of the request for the partition."""
    asked = ReassignablePartition(index=0, replicas=replicas, **fields)
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=wire.topic, partitions=(asked,)),))


def elect(wire: Wire, topic: str = "", kind: int = 0) -> ElectLeadersRequest:
    topics = (ElectionTopic(name=topic or wire.topic, partitions=(0,)),)
    return ElectLeadersRequest(election_type=kind, all_partitions=False, topics=topics)


# --- requests that succeed

AT_LATEST = FeatureUpdate(name=METADATA_VERSION, level=LATEST_LEVEL)

Ask = Callable[[Wire], Any]


def set_password(name: str, iterations: int = 4096) -> AlterUserScramCredentialsRequest:
    one = ScramUpsertion(name=name, mechanism=2, iterations=iterations, salt=b"salt", salted_password=bytes(64))
    return AlterUserScramCredentialsRequest(upsertions=(one,))


def set_quota(user: str, value: float = 1024.0) -> AlterClientQuotasRequest:
    entity = (QuotaEntity(entity_type="user", entity_name=user), QuotaEntity(entity_type="client-id"))
    change = QuotaAlteration(entity=entity, ops=(QuotaOp(key="producer_byte_rate", value=value),))
    return AlterClientQuotasRequest(entries=(change,))


SUCCEEDS: dict[type, Ask] = {
    ProduceRequest: produce,
    FetchRequest: fetch,
    ListOffsetsRequest: offsets,
    MetadataRequest: metadata,
    FindCoordinatorRequest: lambda _: FindCoordinatorRequest(keys=("group",)),
    ListGroupsRequest: lambda _: ListGroupsRequest(),
    CreateTopicsRequest: lambda wire: asking.create(f"made-{wire.topic}"),
    DeleteTopicsRequest: lambda wire: asking.delete(f"made-{wire.topic}"),  # created by the row before
    DeleteRecordsRequest: delete_records,
    InitProducerIdRequest: lambda _: InitProducerIdRequest(),
    OffsetForLeaderEpochRequest: epoch_end,
    DescribeConfigsRequest: lambda wire: asking.configs(wire.topic),
    DescribeFeaturesRequest: lambda _: DescribeFeaturesRequest(),
    DescribeUserScramCredentialsRequest: lambda _: DescribeUserScramCredentialsRequest(),
    AlterClientQuotasRequest: lambda wire: set_quota(wire.topic),
    DescribeClientQuotasRequest: lambda _: DescribeClientQuotasRequest(),
    AlterReplicaLogDirsRequest: lambda wire: AlterReplicaLogDirsRequest(
        dirs=(
            AlterReplicaLogDir(
                path=wire.log_directory, topics=(AlterReplicaLogDirTopic(name=wire.topic, partitions=(0,)),)
            ),
        )
    ),
    DescribeLogDirsRequest: lambda _: DescribeLogDirsRequest(),
    CreatePartitionsRequest: lambda wire: asking.grow(wire.topic, 2),
    IncrementalAlterConfigsRequest: lambda wire: alter(wire.topic),
    DescribeQuorumRequest: lambda _: DescribeQuorumRequest(),
    DescribeClusterRequest: lambda _: DescribeClusterRequest(),
    DescribeTopicPartitionsRequest: lambda wire: DescribeTopicPartitionsRequest(topics=(wire.topic,)),
    UpdateFeaturesRequest: lambda _: UpdateFeaturesRequest(updates=(AT_LATEST,), timeout_ms=1_000),
    AlterPartitionReassignmentsRequest: lambda wire: reassign(wire, (1,)),
    ListPartitionReassignmentsRequest: lambda _: ListPartitionReassignmentsRequest(),
    ElectLeadersRequest: lambda _: ElectLeadersRequest(),
}


def add_voter() -> AddRaftVoterRequest:
    endpoint = Endpoint(name="INTERNAL", host="127.0.0.1", port=1)
    return AddRaftVoterRequest(timeout_ms=1_000, voter_id=9, voter_directory_id=STRANGE_ID, listeners=(endpoint,))


def remove_voter() -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(voter_id=9, voter_directory_id=STRANGE_ID)


ANY_RULE = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)  # Kafka's numbers
OF_ACLS: dict[type, Any] = {
    DescribeAclsRequest: ANY_RULE,
    CreateAclsRequest: CreateAclsRequest(
        creations=(
            AclCreation(
                resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
            ),
        )
    ),
    DeleteAclsRequest: DeleteAclsRequest(filters=(ANY_RULE,)),
}


def test_every_api_of_the_lane_is_tried() -> None:
    """Changes of the voters are refused here, because the set of this cluster is static; so is what `REFUSED` has."""
    own = {AddRaftVoterRequest, RemoveRaftVoterRequest, UnregisterBrokerRequest, *OF_ACLS}
    own.add(AlterUserScramCredentialsRequest)  # test_a_salted_password_is_taken_from_the_same_machine
    assert set(BY_REQUEST) == {*SUCCEEDS, *OF_GROUPS, *OF_TRANSACTIONS, *own}


OF_COORDINATORS = {**OF_GROUPS, **OF_TRANSACTIONS}


@pytest.mark.parametrize("make", OF_COORDINATORS.values(), ids=[kind.__name__ for kind in OF_COORDINATORS])
def test_calls_of_coordinators_succeed(wire: Wire, make: Callable[[Any, str], Any]) -> None:
    request = make(wire.call, wire.topic)
    response = wire.call(request)
    assert type(response) is BY_REQUEST[type(request)].method.response
    assert errors_in(response) == []


@pytest.mark.parametrize("ask", SUCCEEDS.values(), ids=[kind.__name__ for kind in SUCCEEDS])
def test_valid_requests_succeed(wire: Wire, ask: Ask) -> None:
    request = ask(wire)
    response = wire.call(request)
    assert type(response) is BY_REQUEST[type(request)].method.response
    assert errors_in(response) == []


def test_a_salted_password_is_taken_from_the_same_machine(wire: Wire) -> None:
    """In the simulation the client is on another machine, and the listener is a plain one."""
    name = f"user-{wire.topic}"
    describe = DescribeUserScramCredentialsRequest(users=(ScramUserName(name=name),))
    if isinstance(wire.at, SimNode):
        assert errors_in(wire.call(set_password(name))) == [E.UNACCEPTABLE_CREDENTIAL]
        assert errors_in(wire.call(describe)) == [E.RESOURCE_NOT_FOUND]
        return
    assert errors_in(wire.call(set_password(name))) == []
    (found,) = wire.call(describe).results
    assert [(one.mechanism, one.iterations) for one in found.credential_infos] == [(2, 4096)]
    delete = AlterUserScramCredentialsRequest(deletions=(ScramDeletion(name=name, mechanism=2),))
    assert errors_in(wire.call(delete)) == []
    assert errors_in(wire.call(describe)) == [E.RESOURCE_NOT_FOUND]


def test_a_change_is_visible_when_it_is_answered(wire: Wire) -> None:
    name = f"at-once-{wire.topic}"
    for change, counts in [(asking.create(name), 1), (asking.grow(name, 3), 3)]:
        assert errors_in(wire.call(change)) == []
        (topic,) = wire.call(metadata(wire, topic=name)).topics
        assert (topic.error_code, len(topic.partitions)) == (0, counts)
    assert errors_in(wire.call(asking.delete(name))) == []
    assert errors_in(wire.call(metadata(wire, topic=name))) == [E.UNKNOWN_TOPIC_OR_PARTITION]


def test_written_records_are_read_back(wire: Wire) -> None:
    (answer,) = wire.call(produce(wire)).topics[0].partitions
    (found,) = wire.call(fetch(wire, offset=answer.base_offset)).topics[0].partitions
    assert bytes(found.records)[BATCH_OVERHEAD:] == BATCH[BATCH_OVERHEAD:]
    assert found.high_watermark == answer.base_offset + 3 == wire.end_offset()


@pytest.mark.parametrize("max_bytes", [0, -1])
def test_a_fetch_of_no_bytes_gets_one_batch(wire: Wire, max_bytes: int) -> None:
    """As in Kafka, so that no reader stands still: of the request, and of the partition."""
    first, second = (wire.call(produce(wire)).topics[0].partitions[0].base_offset for _ in range(2))
    response = wire.call(fetch(wire, offset=first, max_bytes=max_bytes))
    assert errors_in(response) == []
    (found,) = response.topics[0].partitions
    assert [header.base_offset for header in headers(found.records)] == [first]
    assert found.high_watermark > second


# --- requests that are refused and store nothing


def sealed(**changes: int) -> bytes:
    """BATCH with other header fields and a matching checksum."""
    header = headers(BATCH)[0]
    fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
    for name in ("batch_length", "magic", "crc", "position", "size"):
        del fields[name]
    return seal(BATCH[BATCH_OVERHEAD:], **(fields | changes))


OF_A_TRANSACTION = sealed(attributes=TRANSACTIONAL, producer_id=5, producer_epoch=0, base_sequence=0)
REFUSED: list[tuple[str, Ask, ErrorCode]] = [
    ("AddRaftVoter: kraft.version 0", lambda _: add_voter(), E.UNSUPPORTED_VERSION),
    ("RemoveRaftVoter: kraft.version 0", lambda _: remove_voter(), E.UNSUPPORTED_VERSION),
    ("Produce: topic", lambda wire: produce(wire, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("Produce: id", lambda wire: produce(wire, topic_id=STRANGE_ID), E.UNKNOWN_TOPIC_ID),
    ("Produce: partition", lambda wire: produce(wire, index=99), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("Produce: acks", lambda wire: produce(wire, acks=7), E.INVALID_REQUIRED_ACKS),
    ("Produce: damage", lambda wire: produce(wire, BATCH[:-1] + b"?"), E.CORRUPT_MESSAGE),
    ("Produce: two batches", lambda wire: produce(wire, BATCH + BATCH), E.INVALID_RECORD),
    ("Produce: no batch", lambda wire: produce(wire, b""), E.INVALID_RECORD),
    ("Produce: a control batch", lambda wire: produce(wire, sealed(attributes=CONTROL)), E.INVALID_RECORD),
    (
        "Produce: of a transaction",
        lambda wire: produce(wire, OF_A_TRANSACTION),
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    (
        "Produce: with an empty transactional id",
        lambda wire: dataclasses.replace(produce(wire, OF_A_TRANSACTION), transactional_id=""),
        E.INVALID_REQUEST,
    ),
    ("Fetch: id", lambda wire: fetch(wire, topic_id=STRANGE_ID), E.UNKNOWN_TOPIC_ID),
    ("Fetch: partition", lambda wire: fetch(wire, index=99), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("Fetch: epoch", lambda wire: fetch(wire, epoch=99), E.UNKNOWN_LEADER_EPOCH),
    ("Fetch: offset", lambda wire: fetch(wire, offset=10**9), E.OFFSET_OUT_OF_RANGE),
    (
        "Fetch: as a replica",
        lambda wire: fetch(wire, offset=10**6, replica=ReplicaState(replica_id=1, broker_epoch=-1)),
        E.CLUSTER_AUTHORIZATION_FAILED,
    ),
    ("ListOffsets: topic", lambda wire: offsets(wire, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("ListOffsets: partition", lambda wire: offsets(wire, index=99), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("ListOffsets: epoch", lambda wire: offsets(wire, epoch=99), E.UNKNOWN_LEADER_EPOCH),
    ("OffsetForLeaderEpoch: topic", lambda wire: epoch_end(wire, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("OffsetForLeaderEpoch: partition", lambda wire: epoch_end(wire, index=99), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("OffsetForLeaderEpoch: epoch", lambda wire: epoch_end(wire, epoch=99), E.UNKNOWN_LEADER_EPOCH),
    ("Metadata: topic", lambda wire: metadata(wire, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("Metadata: id", lambda wire: metadata(wire, topic_id=STRANGE_ID), E.UNKNOWN_TOPIC_ID),
    (
        "DescribeTopicPartitions: topic",
        lambda _: DescribeTopicPartitionsRequest(topics=("nope",)),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    ("DeleteRecords: topic", lambda wire: delete_records(wire, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("DeleteRecords: partition", lambda wire: delete_records(wire, index=99), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("DeleteRecords: offset", lambda wire: delete_records(wire, offset=10**9), E.OFFSET_OUT_OF_RANGE),
    ("CreateTopics: taken", lambda wire: asking.create(wire.topic), E.TOPIC_ALREADY_EXISTS),
    ("CreateTopics: name", lambda wire: asking.create("a/b"), E.INVALID_TOPIC_EXCEPTION),
    ("DeleteTopics: topic", lambda wire: asking.delete("nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("CreatePartitions: topic", lambda wire: asking.grow("nope", 2), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("CreatePartitions: fewer", lambda wire: asking.grow(wire.topic, 1), E.INVALID_PARTITIONS),
    ("DescribeConfigs: topic", lambda wire: asking.configs("nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("AlterConfigs: topic", lambda wire: alter("nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("AlterConfigs: value", lambda wire: alter(wire.topic, "soon"), E.INVALID_CONFIG),
    ("UnregisterBroker: unknown", lambda _: UnregisterBrokerRequest(broker_id=9), E.BROKER_ID_NOT_REGISTERED),
    ("DescribeAcls", lambda _: OF_ACLS[DescribeAclsRequest], E.SECURITY_DISABLED),
    ("CreateAcls", lambda _: OF_ACLS[CreateAclsRequest], E.SECURITY_DISABLED),
    ("DeleteAcls", lambda _: OF_ACLS[DeleteAclsRequest], E.SECURITY_DISABLED),
    ("AlterUserScram: in clear, or iterations", lambda _: set_password("a", 1), E.UNACCEPTABLE_CREDENTIAL),
    (
        "AlterUserScram: nothing to delete",
        lambda _: AlterUserScramCredentialsRequest(deletions=(ScramDeletion(name="nobody", mechanism=1),)),
        E.RESOURCE_NOT_FOUND,
    ),
    (
        "DescribeUserScram: unknown",
        lambda _: DescribeUserScramCredentialsRequest(users=(ScramUserName(name="nobody"),)),
        E.RESOURCE_NOT_FOUND,
    ),
    ("AlterClientQuotas: value", lambda wire: set_quota(wire.topic, -1), E.INVALID_REQUEST),
    (
        "DescribeClientQuotas: type",
        lambda _: DescribeClientQuotasRequest(components=(QuotaComponent(entity_type="group", match_type=2),)),
        E.UNSUPPORTED_VERSION,
    ),
    ("Reassign: no broker", lambda wire: reassign(wire, ()), E.INVALID_REPLICA_ASSIGNMENT),
    ("Reassign: unknown broker", lambda wire: reassign(wire, (1, 7)), E.INVALID_REPLICA_ASSIGNMENT),
    ("Reassign: nothing to cancel", lambda wire: reassign(wire, (), cancel=True), E.NO_REASSIGNMENT_IN_PROGRESS),
    ("ElectLeaders: topic", lambda wire: elect(wire, "nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("ElectLeaders: preferred already", elect, E.ELECTION_NOT_NEEDED),
    ("ElectLeaders: led already", lambda wire: elect(wire, kind=1), E.ELECTION_NOT_NEEDED),
    ("ElectLeaders: kind", lambda wire: elect(wire, kind=7), E.INVALID_REQUEST),
    ("InitProducerId: empty id", lambda _: InitProducerIdRequest(transactional_id=""), E.INVALID_REQUEST),
]


@pytest.mark.parametrize(("ask", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_requests_are_refused_and_store_nothing(wire: Wire, ask: Ask, code: ErrorCode) -> None:
    before = wire.end_offset()
    assert errors_in(wire.call(ask(wire))) == [code]
    assert wire.end_offset() == before
    assert wire.at.crashes == []


# --- no answer, and order


def raw(*payload: str, count: int, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a right checksum around `payload` (hex)."""
    return seal(
        compress(codec, bytes.fromhex("".join(payload))), base_offset=0, leader_epoch=0, attributes=codec,
        last_offset_delta=count - 1, base_timestamp=0, max_timestamp=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, count=count,
    )  # fmt: skip


FIRST, SECOND = "0c000000010100", "0c000002010100"  # records: no key, no value, no headers
BOMB = encode_batch([Record(0, 1_700_000_000_000, None, bytes(DEFAULT_MAX_DECOMPRESSED_BYTES))], codec=Codec.ZSTD)
DAMAGED = [  # the name, the batch, the number of the record that is told
    ("bytes that are no records", raw("ff" * 7_000, count=1_000), 0),
    ("a record longer than the batch", raw(FIRST, "7e000002010100", count=2), 1),
    ("a record of no bytes", raw(FIRST, "00000002010100", count=2), 1),
    ("a number too long", raw(FIRST, "ffffffffff0f00", count=2), 1),
    ("an offset delta twice", raw(FIRST, FIRST, count=2), 1),
    ("a key past its record", raw(FIRST, "0c0000027e0100", count=2), 1),
    ("a key of -2 bytes", raw(FIRST, "0c000002030100", count=2), 1),
    ("headers that are not there", raw(FIRST, "0c000002010102", count=2), 1),
    ("a header without a name", raw(FIRST, "100000020101020100", count=2), 1),
    ("bytes after the headers", raw(FIRST, "0e00000201010000", count=2), 1),
    ("a record too few", raw(FIRST, SECOND, count=3, codec=Codec.GZIP), 2),
    ("a record too many", raw(FIRST, SECOND, count=1), None),
    ("bytes that cannot be decompressed", sealed(attributes=Codec.LZ4), None),
    ("a bomb", BOMB, None),
]


@rule("storage 1.7")
@pytest.mark.parametrize(("records", "index"), [case[1:] for case in DAMAGED], ids=[case[0] for case in DAMAGED])
def test_a_damaged_record_is_told_by_its_number_and_stores_nothing(
    wire: Wire, records: bytes, index: int | None
) -> None:
    before = wire.end_offset()
    (answer,) = wire.call(produce(wire, records)).topics[0].partitions
    assert answer.error_code == E.INVALID_RECORD and answer.error_message
    assert [error.batch_index for error in answer.record_errors] == ([] if index is None else [index])
    assert all(error.message for error in answer.record_errors)
    assert wire.end_offset() == before


@rule("storage 1.8")
def test_a_compacted_topic_accepts_no_record_without_a_key(wire: Wire) -> None:
    topic = f"compacted-{wire.topic}"
    wire.at.do(make_topic(wire.connection, topic))
    assert errors_in(wire.call(asking.alter(topic, "cleanup.policy", "compact,delete"))) == []
    before = wire.call(asking.offsets(topic)).topics[0].partitions[0].offset
    written = [Record(n, 1_700_000_000_000, b"key", b"value") for n in range(3)]
    for without in ([0], [2], [0, 2]):  # each is named (KIP-467), not the first one only
        changed = [*written]
        for number in without:
            changed[number] = Record(number, 1_700_000_000_000, None, b"value")
        (refused,) = wire.call(produce(wire, encode_batch(changed), topic=topic)).topics[0].partitions
        assert refused.error_code == E.INVALID_RECORD
        named = [(error.batch_index, "key" in error.message) for error in refused.record_errors]
        assert named == [(number, True) for number in without]
    (stored,) = wire.call(produce(wire, encode_batch(written), topic=topic)).topics[0].partitions
    assert (stored.error_code, stored.base_offset) == (0, before)


def test_the_first_write_of_a_new_topic_is_taken(wire: Wire) -> None:
    """Metadata names the leader before its log is there; a client that does not ask twice is served none the less."""
    refused = []
    for number in range(10):
        name = f"first-{wire.topic}-{number}"
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        created = wire.call(CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS))
        assert created.topics[0].error_code == 0
        for answer in (wire.call(offsets(wire, topic=name)), wire.call(produce(wire, topic=name))):
            refused += [one.error_code for one in answer.topics[0].partitions if one.error_code]
    assert refused == []


def test_acks_0_has_no_answer_and_is_stored(wire: Wire) -> None:
    before = wire.end_offset()

    async def scenario() -> list[Any]:
        calls = [wire.connection.call(produce(wire, acks=acks), CALL_MS) for acks in (0, 0, -1)]
        return [await call for call in calls]

    first, second, last = wire.at.do(scenario())
    assert (first, second) == (None, None)
    assert errors_in(last) == [] and last.topics[0].partitions[0].base_offset == before + 6


def test_an_error_without_acks_ends_the_stream_and_the_next_call_opens_another(wire: Wire) -> None:
    async def scenario() -> Any:
        assert await wire.connection.call(produce(wire, topic="nope", acks=0), CALL_MS) is None
        while True:
            try:
                return await wire.connection.call(produce(wire), CALL_MS)
            except OutcomeUnknown:
                await asyncio.sleep(0.01)  # the call was sent before this side knew of the end

    assert errors_in(wire.at.do(scenario())) == []


def test_pipelined_produces_are_in_the_log_in_order(wire: Wire) -> None:
    count = 200
    before = wire.end_offset()

    async def scenario() -> list[Any]:
        batches = [encode_batch([Record(0, 1_700_000_000_000, None, b"%d" % n, ())]) for n in range(count)]
        calls = [wire.connection.call(produce(wire, records), CALL_MS) for records in batches]
        return [await call for call in calls]

    answers = wire.at.do(scenario())
    assert [one.topics[0].partitions[0].base_offset for one in answers] == list(range(before, before + count))
    (found,) = wire.call(fetch(wire, offset=before)).topics[0].partitions
    values = [record.value for header in headers(found.records) for record in decode_batch(found.records, header)]
    assert values == [b"%d" % n for n in range(count)]


@rule("storage 1.3")
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_a_batch_is_stored_as_sent_with_any_compression(wire: Wire, codec: Codec) -> None:
    records = [Record(n, 1_700_000_000_000 + n, b"key", b"value " * 50, (("h", b"v"),)) for n in range(20)]
    sent = encode_batch(records, codec=codec)
    (answer,) = wire.call(produce(wire, sent)).topics[0].partitions
    assert answer.error_code == 0, answer.error_message
    (found,) = wire.call(fetch(wire, offset=answer.base_offset)).topics[0].partitions
    stored = bytes(found.records)
    (header,) = headers(stored)
    assert (header.codec, header.base_offset, len(stored)) == (codec, answer.base_offset, len(sent))
    assert stored[17:] == sent[17:]  # all but offset, length, leader epoch and magic
    assert [record.value for record in decode_batch(stored, header)] == [record.value for record in records]
