"""Bad requests to a real cluster of three: each gets its own error, stores nothing, and affects no other client.

Requests that the lane does not carry (a vote, an unknown service) are sent over gRPC only; bytes that are not frames,
over the lane only. After every refusal a good record is appended on the same connection, or on a new one if it was
closed. Its offset proves that nothing was stored, its acknowledgement that the node still serves.
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
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
from quorumlog.records.format.batch import BATCH_OVERHEAD, CONTROL, headers, seal
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Connection
from quorumlog.testing import LocalCluster
from quorumlog.testing.ports import HOST
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.transport import WireTransport

CALL_MS = 10_000
MAX_MESSAGE_BYTES = 2_000
LATEST = -1
NO_ID = bytes(range(16))

GOOD = encode_batch([Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)])


def sealed(**changes: int) -> bytes:
    """GOOD with other header fields and a matching checksum."""
    header = headers(GOOD)[0]
    fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
    for name in ("batch_length", "magic", "crc", "position", "size"):
        del fields[name]
    return seal(GOOD[BATCH_OVERHEAD:], **(fields | changes))


def with_byte(position: int, value: int) -> bytes:
    return GOOD[:position] + bytes([value]) + GOOD[position + 1 :]


@dataclass(frozen=True)
class Target:
    """One topic of one partition, its leader's addresses, and its log end offset."""

    name: str
    topic_id: bytes
    address: Address  # of gRPC
    lane: Address
    end_offset: int

    def connect(self, wire: str) -> Connection:
        if wire == "lane":
            return WireTransport().connect(self.lane, internal=False)
        return GrpcTransport().connect(self.address, internal=False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("bad-input") / "cluster") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target(cluster: LocalCluster) -> Iterator[list[Target]]:
    """A list of one target, which the tests replace after each append."""
    admin = cluster.client.admin
    admin.create_topic("bad-input", 1, 3, {"max.message.bytes": str(MAX_MESSAGE_BYTES)})
    with cluster.client.producer() as producer:
        producer.send("bad-input", b"first").result(30)  # once acknowledged, the topic is usable everywhere
    leader = cluster.leader_of("bad-input", 0)
    ports = cluster.nodes.layout.node(leader).ports
    topic = admin.describe_topic("bad-input")
    yield [Target(topic.name, topic.topic_id, Address(HOST, ports.grpc), Address(HOST, ports.client), 1)]
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
    """A metadata request that may create the topic, as producers send it."""
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
    ("name: ..", create(".."), E.INVALID_TOPIC_EXCEPTION, "reserved for directories"),
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
    """The first error of a response: top-level, of a topic, or of a partition."""
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
    """Appends a record and returns the target with the new end offset. The record must be at the old end."""
    request = produce(encode_batch([Record(0, 1_700_000_000_000, None, b"good", ())]))(target)
    (answer,) = (await connection.call(request, CALL_MS)).topics[0].partitions
    assert (answer.error_code, answer.base_offset) == (0, target.end_offset), answer.error_message
    return dataclasses.replace(target, end_offset=target.end_offset + 1)


NOBODY = Target("bad-input", NO_ID, Address(HOST, 1), Address(HOST, 1), 0)


def by_wires() -> Iterator[Any]:
    """Every row over gRPC, and over the lane if it has such a request."""
    for name, request_of, code, says in ROWS:
        yield pytest.param("grpc", request_of, code, says, id=f"grpc-{name}")
        if type(request_of(NOBODY)) in BY_REQUEST:
            yield pytest.param("lane", request_of, code, says, id=f"lane-{name}")


@pytest.mark.parametrize(("wire", "request_of", "code", "says"), list(by_wires()))
def test_a_bad_request(
    target: list[Target], wire: str, request_of: Callable[[Target], Any], code: ErrorCode, says: str
) -> None:
    async def scenario() -> tuple[int, str]:
        connection = target[0].connect(wire)
        try:
            before = await topics_of(connection)
            response = await connection.call(request_of(target[0]), CALL_MS)
            target[0] = await append_one(connection, target[0])
            assert await topics_of(connection) == before
            return refusal(response)
        finally:
            await connection.close()

    found, text = asyncio.run(scenario())
    wordless = wire == "lane" and not text  # only some of Kafka's responses have an error text
    assert (ErrorCode(found), wordless or says.lower() in text.lower()) == (code, True), text


RAW = [
    ("bytes that are not a request", "quorumlog.v1.Broker/Fetch", b"\xff" * 40, "INVALID_REQUEST"),
    ("an unknown call", "quorumlog.v1.Broker/Brew", b"", "UNIMPLEMENTED"),
    ("an unknown service", "quorumlog.v1.Kettle/Brew", b"", "UNIMPLEMENTED"),
]


@pytest.mark.parametrize(("path", "data", "want"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
def test_bytes_that_are_not_a_call(target: list[Target], path: str, data: bytes, want: str) -> None:
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
        connection = target[0].connect("grpc")
        target[0] = await append_one(connection, target[0])
        await connection.close()
        return found

    assert asyncio.run(scenario()) == want


# --- bytes that are not frames, or frames without a valid request


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


METADATA, CREATE = 3, 19
FRAMES: list[tuple[str, bytes]] = [
    ("a giant length", struct.pack(">i", 2**31 - 1) + b"x"),
    ("an unknown API", frame_of(struct.pack(">hhih", 999, 0, 1, -1))),
    ("an unknown version", frame_of(struct.pack(">hhih", METADATA, 99, 1, -1))),
    ("truncated", frame_of(struct.pack(">hhihi", METADATA, 4, 1, -1, 3) + b"\0\5ab")),
    ("a string past the end", frame_of(struct.pack(">hhih", METADATA, 4, 1, 30_000) + b"x")),
    ("wrong tags", frame_of(struct.pack(">hhih", METADATA, 9, 1, -1) + b"\5\0\x7f")),
    ("a count in the billions", frame_of(struct.pack(">hhihi", METADATA, 4, 1, -1, 2**31 - 1))),
    ("a compact count in the billions", frame_of(struct.pack(">hhih", CREATE, 7, 1, -1) + b"\0\xff\xff\xff\xff\x0f")),
]
CLOSED = "closed the connection of"


@pytest.mark.parametrize("data", [row[1] for row in FRAMES], ids=[row[0] for row in FRAMES])
def test_an_unreadable_frame_closes_its_connection_with_one_log_line(
    cluster: LocalCluster, target: list[Target], data: bytes
) -> None:
    log = log_of(cluster, target[0])
    before = log.read_text().count(CLOSED)
    with connect(target[0]) as stranger:
        stranger.sendall(data)
        assert until_closed(stranger) == b""
    good_append(target)
    assert log.read_text().count(CLOSED) == before + 1


HALF_FRAMES = 200
ANNOUNCED_BYTES = 90 << 20
SENT_BYTES = 1_000
ALLOWED_GROWTH_BYTES = 32 << 20


def test_clients_that_stop_inside_a_giant_frame_hold_no_memory(cluster: LocalCluster, target: list[Target]) -> None:
    """Each announces a frame of allowed size and sends almost nothing of it."""
    node_id = cluster.leader_of("bad-input", 0)
    found = cluster.nodes.process(node_id)
    assert found is not None
    process = psutil.Process(found.pid)
    before_bytes = process.memory_info().rss
    with ExitStack() as stack:
        for _ in range(HALF_FRAMES):
            stack.enter_context(connect(target[0])).sendall(struct.pack(">i", ANNOUNCED_BYTES) + bytes(SENT_BYTES))
        good_append(target)
        grown_bytes = process.memory_info().rss - before_bytes
    good_append(target)
    assert grown_bytes < ALLOWED_GROWTH_BYTES


def connect(target: Target) -> socket.socket:
    return socket.create_connection((target.lane.host, target.lane.port), CALL_MS / 1_000)


def until_closed(stranger: socket.socket) -> bytes:
    try:
        return stranger.recv(100)
    except ConnectionResetError:
        return b""


def good_append(target: list[Target]) -> None:
    async def scenario() -> None:
        connection = target[0].connect("lane")
        target[0] = await append_one(connection, target[0])
        await connection.close()

    asyncio.run(scenario())


def log_of(cluster: LocalCluster, target: Target) -> Path:
    return next(node.log for node in cluster.nodes.layout.nodes if node.ports.client == target.lane.port)


def test_no_node_has_crashed(cluster: LocalCluster, target: list[Target]) -> None:
    """The last test of this file: every node is still the same process and has logged no failure."""
    cluster.wait_healthy(30)
    for node_id in cluster.nodes.ids:
        log = cluster.nodes.layout.node(node_id).log.read_text()
        assert "Traceback" not in log and '"level": "critical"' not in log
