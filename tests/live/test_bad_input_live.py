"""Bad requests to a real cluster of three, by the wire: each gets its own error, stores nothing, and harms nobody.

After every refusal the same connection appends one good record: its offset proves that nothing was stored, its
acknowledgement that the node serves on.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ReplicaState,
)
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.messages.quorum import VoteRequest
from quorumlog.records.batch import BATCH_OVERHEAD, CONTROL, headers, seal
from quorumlog.records.plain import encode_batch
from quorumlog.records.record import Record
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.grpc_transport import GrpcTransport
from quorumlog.rpc.transport import Address, Connection
from quorumlog.testing import LocalCluster
from quorumlog.testing.ports import HOST

CALL_MS = 10_000
MAX_MESSAGE_BYTES = 2_000
LATEST = -1
NO_ID = bytes(range(16))

GOOD = encode_batch([Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)])


def sealed(**changes: int) -> bytes:
    """GOOD with other header fields and the checksum that belongs to them."""
    header = headers(GOOD)[0]
    fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
    for name in ("batch_length", "magic", "crc", "position", "size"):
        del fields[name]
    return seal(GOOD[BATCH_OVERHEAD:], **(fields | changes))


def with_byte(position: int, value: int) -> bytes:
    return GOOD[:position] + bytes([value]) + GOOD[position + 1 :]


@dataclass(frozen=True)
class Target:
    """One topic of one partition, its leader's address, and where its log ends."""

    name: str
    topic_id: bytes
    address: Address
    end_offset: int


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("bad-input") / "cluster") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target(cluster: LocalCluster) -> Iterator[list[Target]]:
    """A list of one: tests put the newest state back."""
    admin = cluster.client.admin
    admin.create_topic("bad-input", 1, 3, {"max.message.bytes": str(MAX_MESSAGE_BYTES)})
    with cluster.client.producer() as producer:
        producer.send("bad-input", b"first").result(30)  # every part of the topic is there, once this is acknowledged
    leader = cluster.leader_of("bad-input", 0)
    port = cluster.nodes.layout.node(leader).ports.grpc
    topic = admin.describe_topic("bad-input")
    yield [Target(topic.name, topic.topic_id, Address(HOST, port), 1)]
    admin.delete_topic("bad-input")


# --- the requests ---


def produce(records: bytes, *, topic: str = "", topic_id: bytes = b"", index: int = 0, acks: int = -1) -> Any:
    def request(target: Target) -> ProduceRequest:
        partition = ProducePartition(index=index, records=records)
        of = ProduceTopic(name=topic or target.name, topic_id=topic_id, partitions=(partition,))
        return ProduceRequest(acks=acks, timeout_ms=CALL_MS, topics=(of,))

    return request


def fetch(
    *,
    topic: str = "",
    topic_id: bytes = b"",
    index: int = 0,
    offset: int = 0,
    epoch: int = -1,
    isolation: int = 0,
    replica: ReplicaState | None = None,
) -> Any:
    def request(target: Target) -> FetchRequest:
        wanted = FetchPartition(index=index, fetch_offset=offset, max_bytes=1 << 20, current_leader_epoch=epoch)
        of = FetchTopic(name=topic or target.name, topic_id=topic_id, partitions=(wanted,))
        return FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=(of,), isolation_level=isolation, replica=replica
        )

    return request


def offsets(*, topic: str = "", index: int = 0, epoch: int = -1) -> Any:
    def request(target: Target) -> ListOffsetsRequest:
        wanted = ListOffsetsPartition(index=index, timestamp_ms=LATEST, current_leader_epoch=epoch)
        return ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic or target.name, partitions=(wanted,)),))

    return request


def create(name: str = "never-made", partitions: int = 1, replication: int = 3, **configs: str) -> Any:
    entries = tuple(ConfigEntry(name=key.replace("_", "."), value=value) for key, value in configs.items())
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication, configs=entries)
    return lambda _target: CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS)


def ask_for(name: str) -> Any:
    """Metadata with leave to make the topic, as producers ask."""
    return lambda _target: MetadataRequest(
        all_topics=False, topics=(TopicQuery(name=name),), allow_auto_topic_creation=True
    )


def delete(name: str) -> Any:
    return lambda _target: DeleteTopicsRequest(topics=(TopicQuery(name=name),), timeout_ms=CALL_MS)


VOTE = VoteRequest(epoch=99, candidate_id=9, voter_id=1, last_epoch=98, last_epoch_end_offset=10**6, pre_vote=False)
E = ErrorCode
TOO_LARGE = encode_batch([Record(0, 1_700_000_000_000, None, bytes(MAX_MESSAGE_BYTES), ())])
LONG = "x" * 250

ROWS: list[tuple[str, Callable[[Target], Any], ErrorCode, str]] = [
    ("batch: a bit of a value", produce(with_byte(len(GOOD) - 3, 0xFF)), E.CORRUPT_MESSAGE, "checksum is"),
    ("batch: its checksum", produce(with_byte(17, GOOD[17] ^ 1)), E.CORRUPT_MESSAGE, "checksum is"),
    ("batch: cut", produce(GOOD[:-1]), E.CORRUPT_MESSAGE, "bytes"),
    ("batch: a byte too many", produce(GOOD + b"\0"), E.CORRUPT_MESSAGE, ""),
    ("batch: a length of 2 GiB", produce(with_byte(8, 0x7F)), E.CORRUPT_MESSAGE, ""),
    ("batch: a negative length", produce(with_byte(8, 0xFF)), E.CORRUPT_MESSAGE, ""),
    ("batch: magic 1", produce(with_byte(16, 1)), E.INVALID_RECORD, "message format 1"),
    ("batch: magic 3", produce(with_byte(16, 3)), E.CORRUPT_MESSAGE, "3"),
    ("batch: a count of 2 for 3", produce(sealed(count=2)), E.INVALID_RECORD, "2 records"),
    ("batch: more than its bytes", produce(sealed(count=9_999, last_offset_delta=9_998)), E.INVALID_RECORD, "9999"),
    ("batch: no records", produce(b""), E.INVALID_RECORD, "no record batch"),
    ("batch: a control batch", produce(sealed(attributes=CONTROL)), E.INVALID_RECORD, "control"),
    ("batch: codec 7", produce(sealed(attributes=7)), E.UNSUPPORTED_COMPRESSION_TYPE, "7"),
    ("batch: good, then bad", produce(GOOD + sealed(count=2)), E.INVALID_RECORD, "2 records"),
    ("batch: too large", produce(TOO_LARGE), E.MESSAGE_TOO_LARGE, f"max.message.bytes is {MAX_MESSAGE_BYTES}"),
    ("produce: unknown topic", produce(GOOD, topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION, "nope"),
    ("produce: unknown id", produce(GOOD, topic_id=NO_ID), E.UNKNOWN_TOPIC_ID, "no topic has the id"),
    ("produce: unknown partition", produce(GOOD, index=7), E.UNKNOWN_TOPIC_OR_PARTITION, "partition 7"),
    ("produce: partition -1", produce(GOOD, index=-1), E.UNKNOWN_TOPIC_OR_PARTITION, "partition -1"),
    ("produce: acks=7", produce(GOOD, acks=7), E.INVALID_REQUIRED_ACKS, "acks=7"),
    ("fetch: unknown topic", fetch(topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    ("fetch: unknown id", fetch(topic_id=NO_ID), E.UNKNOWN_TOPIC_ID, ""),
    ("fetch: unknown partition", fetch(index=7), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    ("fetch: an epoch to come", fetch(epoch=99), E.UNKNOWN_LEADER_EPOCH, ""),
    ("fetch: an offset to come", fetch(offset=10**9), E.OFFSET_OUT_OF_RANGE, ""),
    ("fetch: offset -3", fetch(offset=-3), E.OFFSET_OUT_OF_RANGE, ""),
    ("fetch: isolation level 5", fetch(isolation=5), E.INVALID_REQUEST, "isolation level 5"),
    (
        "fetch: as a replica",
        fetch(replica=ReplicaState(replica_id=2, broker_epoch=1)),
        E.CLUSTER_AUTHORIZATION_FAILED,
        "",
    ),
    ("offsets: unknown topic", offsets(topic="nope"), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    ("offsets: unknown partition", offsets(index=7), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    ("offsets: an epoch to come", offsets(epoch=99), E.UNKNOWN_LEADER_EPOCH, ""),
    ("name: ..", create(".."), E.INVALID_TOPIC_EXCEPTION, "directory's own name"),
    ("name: a/b", create("a/b"), E.INVALID_TOPIC_EXCEPTION, "only ASCII letters"),
    ("name: 250 characters", create(LONG), E.INVALID_TOPIC_EXCEPTION, "250 characters, limit 249"),
    ("name: a line break", create("a\nb"), E.INVALID_TOPIC_EXCEPTION, r"a\nb"),
    ("name: none", create(""), E.INVALID_TOPIC_EXCEPTION, "is empty"),
    ("name: asked for, ..", ask_for(".."), E.INVALID_TOPIC_EXCEPTION, ""),
    ("name: asked for, a/b", ask_for("a/b"), E.INVALID_TOPIC_EXCEPTION, ""),
    ("name: asked for, 250 characters", ask_for(LONG), E.INVALID_TOPIC_EXCEPTION, ""),
    ("name: taken", create("bad-input"), E.TOPIC_ALREADY_EXISTS, "bad-input"),
    ("config: not a number", create(retention_ms="x"), E.INVALID_CONFIG, "retention.ms='x'"),
    ("config: a typo", create(retention_mss="1"), E.INVALID_CONFIG, "did you mean retention.ms?"),
    ("config: a bad value", create(cleanup_policy="shred"), E.INVALID_CONFIG, "delete"),
    ("create: no partitions", create(partitions=0), E.INVALID_PARTITIONS, "0 partitions"),
    ("create: four replicas of three", create(replication=4), E.INVALID_REPLICATION_FACTOR, "4"),
    ("delete: unknown topic", delete("nope"), E.UNKNOWN_TOPIC_OR_PARTITION, "nope"),
    ("a vote by a client", lambda _target: VOTE, E.CLUSTER_AUTHORIZATION_FAILED, "internal listeners"),
]


def refusal(response: Any) -> tuple[int, str]:
    """The first error in an answer: its own, a topic's, a partition's."""
    of_topics = getattr(response, "topics", ())
    of_partitions = [partition for topic in of_topics for partition in getattr(topic, "partitions", ())]
    for part in (response, *of_topics, *of_partitions):
        if getattr(part, "error_code", 0):
            return part.error_code, getattr(part, "error_message", "")
    return 0, ""


async def topics_of(connection: Connection) -> list[tuple[str, bytes, int]]:
    response = await connection.call(MetadataRequest(all_topics=True, allow_auto_topic_creation=False), CALL_MS)
    assert response.error_code == 0
    return sorted((topic.name, topic.topic_id, len(topic.partitions)) for topic in response.topics)


async def append_one(connection: Connection, target: Target) -> Target:
    """The end offset afterwards; the record lay where the log ended before."""
    request = produce(encode_batch([Record(0, 1_700_000_000_000, None, b"good", ())]))(target)
    (answer,) = (await connection.call(request, CALL_MS)).topics[0].partitions
    assert (answer.error_code, answer.base_offset) == (0, target.end_offset), answer.error_message
    return dataclasses.replace(target, end_offset=target.end_offset + 1)


@pytest.mark.parametrize(("request_of", "code", "says"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_bad_request(target: list[Target], request_of: Callable[[Target], Any], code: ErrorCode, says: str) -> None:
    async def scenario() -> tuple[int, str]:
        connection = GrpcTransport().connect(target[0].address, internal=False)
        try:
            before = await topics_of(connection)
            response = await connection.call(request_of(target[0]), CALL_MS)
            target[0] = await append_one(connection, target[0])
            assert await topics_of(connection) == before
            return refusal(response)
        finally:
            await connection.close()

    found, text = asyncio.run(scenario())
    assert (ErrorCode(found), says.lower() in text.lower()) == (code, True), text


RAW = [
    ("bytes that are no request", "quorumlog.v1.Broker/Fetch", b"\xff" * 40, "INVALID_REQUEST"),
    ("a call that nobody has", "quorumlog.v1.Broker/Brew", b"", "UNIMPLEMENTED"),
    ("a service that nobody has", "quorumlog.v1.Kettle/Brew", b"", "UNIMPLEMENTED"),
]


@pytest.mark.parametrize(("path", "data", "want"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
def test_bytes_that_are_no_call(target: list[Target], path: str, data: bytes, want: str) -> None:
    async def raw_call() -> str:
        async with grpc.aio.insecure_channel(str(target[0].address)) as channel:
            call: Any = channel.unary_unary(f"/{path}")
            try:
                answer = await call(data, timeout=CALL_MS / 1_000)
            except grpc.aio.AioRpcError as error:
                return error.code().name
        return ErrorCode(CODECS[FetchRequest].decode_response(answer).error_code).name

    async def scenario() -> str:
        found = await raw_call()
        connection = GrpcTransport().connect(target[0].address, internal=False)
        target[0] = await append_one(connection, target[0])
        await connection.close()
        return found

    assert asyncio.run(scenario()) == want


def test_nobody_has_crashed(cluster: LocalCluster, target: list[Target]) -> None:
    """The last of this file: every node is the process that it was, and said nothing of a failure."""
    cluster.wait_healthy(30)
    for node_id in cluster.nodes.ids:
        log = cluster.nodes.layout.node(node_id).log.read_text()
        assert "Traceback" not in log and '"level": "critical"' not in log
