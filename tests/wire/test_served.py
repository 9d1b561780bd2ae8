"""A listener of the lane, by bare sockets: order, acks=0, versions, identity, limits, bad input."""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import Any

import pytest
from lane import IDENTITY, Served, echo, request_bytes, serving
from proving import prove

from quorumlog.messages.cluster import DescribeClusterRequest, MetadataRequest
from quorumlog.messages.fetch import FetchRequest, ReplicaState
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.apis import BY_KEY, BY_REQUEST, FEATURES
from quorumlog.wire.protocol.codec import WireRequest, decode_response
from quorumlog.wire.protocol.limits import ConnectionLimits, WireLimits
from quorumlog.wire.serving.local_apis import LOCAL_APIS

METADATA = MetadataRequest(all_topics=True)


def produce(number: int, acks: int = -1) -> ProduceRequest:
    topic = ProduceTopic(name="t", partitions=(ProducePartition(index=0, records=b"r"),))
    return ProduceRequest(acks=acks, timeout_ms=number, topics=(topic,))


def fetch(max_bytes: int, replica: ReplicaState | None = None) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, replica=replica)


def id_of(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")


def api_versions(version: int, correlation_id: int = 7) -> bytes:
    body = b"\0\5tests\0" + b"\4abc\4def\0" if version >= 3 else b"\0\5tests"
    frame = struct.pack(">hhi", 18, version, correlation_id) + body
    return struct.pack(">i", len(frame)) + frame


def test_answers_of_one_connection_come_in_the_order_of_its_requests() -> None:
    async def slow_first(context: Any, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            for _ in range(50 - request.timeout_ms):
                await asyncio.sleep(0)
        return await echo(context, request)

    async def scenario() -> None:
        async with serving(slow_first) as served:
            wire = await served.socket()
            for number in range(50):
                request = METADATA if number % 7 == 3 else produce(number)
                version = None if request is METADATA else 12
                wire.send(request_bytes(request, number, version))
            assert [id_of(await wire.frame()) for _ in range(50)] == list(range(50))

    asyncio.run(scenario())


def test_no_answer_to_acks_0_and_nothing_of_it_is_lost_when_the_client_leaves() -> None:
    seen: list[int] = []

    async def note(context: Any, request: Any) -> Any:
        seen.append(getattr(request, "timeout_ms", -1))
        return await echo(context, request)

    async def scenario() -> None:
        async with serving(note) as served:
            wire = await served.socket()
            wire.send(request_bytes(produce(1, acks=0), 1, 9) + request_bytes(METADATA, 2))
            assert id_of(await wire.frame()) == 2
            wire.send(b"".join(request_bytes(produce(number, acks=0), number, 9) for number in range(300)))
            wire.writer.write_eof()
            assert await wire.ended() == b""
            assert seen == [1, -1, *range(300)]

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(5))
def test_api_versions_names_what_is_served(version: int) -> None:
    async def scenario() -> bytes:
        async with serving(echo) as served:
            wire = await served.socket()
            wire.send(api_versions(version))
            return await wire.frame()

    frame = asyncio.run(scenario())
    api_keys = frame[4:6], frame[6 : 7 if version >= 3 else 10]
    assert api_keys[0] == b"\0\0"
    count = api_keys[1][0] - 1 if version >= 3 else int.from_bytes(api_keys[1], "big")
    assert count == len(versions.served_versions(None, authenticates=False))


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0(version: int) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        async with serving(echo) as served:
            wire = await served.socket()
            frame = struct.pack(">hhi", 18, version, 7) + b"\xff\xffwhat nobody can read"
            wire.send(struct.pack(">i", len(frame)) + frame)
            refused = await wire.frame()
            wire.send(api_versions(0, 8))
            return refused, await wire.frame()

    refused, supported = asyncio.run(scenario())
    assert refused[:6] == struct.pack(">ih", 7, 35)
    assert refused[6:] == supported[6:]


def test_apis_that_do_not_exist_yet_are_not_announced() -> None:
    supported = versions.served_versions(None, authenticates=False)
    assert not {17, 76} & set(supported) and {48, 49, 50, 51} <= set(supported)
    assert supported[0] == (0, 13) and supported[18] == (0, 4)
    assert set(sasl.SASL_VERSIONS) <= set(versions.served_versions(None, authenticates=True))
    assert 3 in versions.served_versions((MetadataRequest,), authenticates=False)
    assert 0 not in versions.served_versions((MetadataRequest,), authenticates=False)


# ---- bad input: the connection is closed with one log line, no other connection is affected


def cut(data: bytes, keep: int) -> bytes:
    """The first `keep` bytes of a frame, with a length that is right for them."""
    return struct.pack(">i", keep) + data[4 : 4 + keep]


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


BAD: list[tuple[str, bytes, str]] = [
    ("negative length", struct.pack(">i", -1), "-1 bytes"),
    ("giant length", struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
    ("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS to the plain listener TEST"),
    ("HTTP GET", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP request"),
    ("gRPC", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "gRPC"),
    ("too short for a header", frame_of(b"\0\3\0"), "bytes wanted"),
    ("unknown API", frame_of(struct.pack(">hhi", 999, 0, 1) + b"\xff\xff"), "api 999"),
    ("negative API", frame_of(struct.pack(">hhi", -1, 0, 1) + b"\xff\xff"), "api -1"),
    ("unknown version", frame_of(struct.pack(">hhi", 3, 99, 1) + b"\xff\xff"), "api 3 version 99"),
    ("version too old", frame_of(struct.pack(">hhi", 0, 2, 1) + b"\xff\xff"), "api 0 version 2"),
    ("share groups", frame_of(struct.pack(">hhi", 76, 1, 1) + b"\xff\xff"), "api 76"),
    ("KIP-848, unknown version", frame_of(struct.pack(">hhi", 68, 2, 1) + b"\xff\xff"), "api 68 version 2"),
    ("truncated", cut(request_bytes(produce(1), version=9), 30), "bytes"),
    ("client id past the end", frame_of(struct.pack(">hhih", 3, 1, 1, 30_000) + b"x"), "wanted"),
    ("count in the billions", frame_of(struct.pack(">hhihi", 3, 4, 1, -1, 2**31 - 1)), "elements"),
    ("compact count in the billions", frame_of(struct.pack(">hhih", 19, 7, 1, -1) + b"\0\xff\xff\xff\xff\x0f"), "elem"),
    ("tags past the end", frame_of(struct.pack(">hhih", 3, 9, 1, -1) + b"\5\0\x7f"), "wanted"),
]


@pytest.mark.parametrize(("data", "said"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_ends_its_own_connection_with_one_line(
    data: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            bystander = await served.socket()
            wire = await served.socket()
            wire.send(data)
            assert await wire.ended() == b""
            bystander.send(request_bytes(METADATA, 5))
            assert id_of(await bystander.frame()) == 5
            assert served.crashes == []

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert [said in record.getMessage() for record in caplog.records] == [True]


def test_bytes_after_a_request_are_ignored_as_kafka_does() -> None:
    """librdkafka 2.16 sends three more bytes when it asks for all topics."""

    async def scenario() -> None:
        async with serving(echo) as served:
            wire = await served.socket()
            wire.send(frame_of(request_bytes(METADATA, 7)[4:] + b"more"))
            assert id_of(await wire.frame()) == 7

    asyncio.run(scenario())


def test_a_client_that_stops_in_the_middle_of_a_frame_is_closed_when_idle() -> None:
    async def scenario() -> None:
        async with serving(echo, limits=WireLimits(max_idle_ms=200)) as served:
            wire = await served.socket()
            wire.send(request_bytes(METADATA)[:7])
            assert await wire.ended() == b""

    asyncio.run(scenario())


def test_connections_above_the_limit_are_closed() -> None:
    async def scenario() -> None:
        async with serving(echo, limits=WireLimits(max_connections=2)) as served:
            first, second = await served.socket(), await served.socket()
            for wire in (first, second):
                wire.send(request_bytes(METADATA))
                await wire.frame()
            assert await (await served.socket()).ended() == b""
            first.close()
            await first.writer.wait_closed()
            while True:  # until the listener has noticed
                again = await served.socket()
                again.send(request_bytes(METADATA))
                if await again.reader.read(4):
                    break

    asyncio.run(scenario())


async def answered(served: Served, kept: list[Any]) -> bool:
    """Whether a new connection is let in, which stays open."""
    wire = await served.socket()
    kept.append(wire)
    wire.send(request_bytes(METADATA))
    return bool(await wire.reader.read(4))


def test_the_maximum_of_connections_can_be_raised_while_the_listener_runs() -> None:
    most = 1
    limits = ConnectionLimits(lambda _listener: most)

    async def scenario() -> None:
        nonlocal most
        async with serving(echo, connection_limits=limits) as served:
            kept: list[Any] = []
            assert [await answered(served, kept) for _ in range(2)] == [True, False]
            most = 2
            assert [await answered(served, kept) for _ in range(2)] == [True, False]

    asyncio.run(scenario())


@pytest.mark.parametrize("internal", [False, True], ids=["clients", "nodes"])
def test_a_lowered_maximum_closes_what_clients_used_least_recently(internal: bool) -> None:
    most = 3
    limits = ConnectionLimits(lambda _listener: most)

    async def scenario() -> None:
        nonlocal most
        timing = WireLimits(max_idle_ms=200_000, max_stalled_ms=400)  # looks every 100 ms
        async with serving(echo, limits=timing, internal=internal, connection_limits=limits) as served:
            wires = [await served.socket() for _ in range(3)]
            for wire in (*wires, wires[0]):
                if not internal:
                    wire.send(request_bytes(METADATA))
                    await wire.frame()
            most = 1
            if internal:
                await asyncio.sleep(0.3)
                assert not any(wire.reader.at_eof() for wire in wires)
                return
            assert [await wire.ended() for wire in wires[1:]] == [b"", b""]
            wires[0].send(request_bytes(METADATA))
            await wires[0].frame()

    asyncio.run(scenario())


@pytest.mark.parametrize(("internal", "admitted"), [(False, 2), (True, 4)], ids=["clients", "nodes"])
def test_connections_of_one_address(internal: bool, admitted: int) -> None:
    asked: list[str] = []

    def of_address(host: str) -> int:
        asked.append(host)
        return 2

    limits = ConnectionLimits(lambda _listener: 100, of_address)

    async def scenario() -> None:
        async with serving(echo, internal=internal, connection_limits=limits) as served:
            wires = [await served.socket() for _ in range(4)]
            await asyncio.sleep(0.1)
            assert sum(not wire.reader.at_eof() for wire in wires) == admitted
            assert set(asked) == (set() if internal else {"127.0.0.1"})
            assert sum(limits.open.values()) == (0 if internal else admitted)
        await asyncio.sleep(0.1)
        assert not limits.open

    asyncio.run(scenario())


# ---- identity


def decoded(request: Any, frame: bytes, version: int) -> Any:
    api = BY_REQUEST[type(request)]
    return decode_response(WireRequest(api, RequestHeader(api.key, version, 1), request), memoryview(frame))


def test_a_forged_replica_fetch_on_a_client_listener_reaches_no_handler() -> None:
    seen: list[Any] = []

    async def note(context: Any, request: Any) -> Any:
        seen.append(request)
        return await echo(context, request)

    async def scenario() -> None:
        async with serving(note) as served:
            for version in range(4, 19):
                wire = await served.socket()
                forged = fetch(100, ReplicaState(replica_id=2, broker_epoch=1))
                wire.send(request_bytes(forged, version=version))
                answer = decoded(forged, await wire.frame(), version)
                assert answer.error_code == 31 or version < 7
                wire.close()
            assert seen == []

    asyncio.run(scenario())


def test_an_internal_listener_serves_a_node_that_has_proven_itself() -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True) as served:
            stranger = await served.socket()
            stranger.send(request_bytes(fetch(10)))
            assert decoded(fetch(10), await stranger.frame(), 18).error_code == 31
            assert await stranger.ended() == b""
            wire = await served.socket()
            await prove(wire, IDENTITY)
            wire.send(request_bytes(fetch(10)))
            assert decoded(fetch(10), await wire.frame(), 18).error_code == 0

    asyncio.run(scenario())


# ---- memory

CONNECTIONS = 500
NODE_BYTES = 32 * 1024 * 1024
GRANT_BYTES = 64 * 1024


def test_500_connections_that_send_and_never_read_are_held_within_the_limit() -> None:
    limits = WireLimits(
        max_node_bytes=NODE_BYTES, min_grant_bytes=GRANT_BYTES, max_unsent_bytes=64 * 1024, max_stalled_ms=60_000
    )

    async def scenario() -> None:
        async with serving(echo, limits=limits) as served:
            node_bytes = served.transport._client_bytes
            wires = [await served.socket() for _ in range(CONNECTIONS)]
            for wire in wires:
                wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
                for number in range(20):
                    wire.send(request_bytes(fetch(8 * 1024 * 1024), number))
            most = settled = 0
            while settled < 20:  # rounds of the loop in which nothing more was taken
                await asyncio.sleep(0.01)
                settled = settled + 1 if node_bytes.used_bytes <= most else 0
                most = max(most, node_bytes.used_bytes)
            assert most <= NODE_BYTES + CONNECTIONS * GRANT_BYTES
            for wire in wires:
                wire.writer.transport.abort()
            while node_bytes.used_bytes or node_bytes.granted_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert served.crashes == []

    asyncio.run(scenario())


def test_a_peer_that_takes_no_answers_is_cut_off_and_frees_what_it_held() -> None:
    limits = WireLimits(max_node_bytes=1024 * 1024, max_unsent_bytes=64 * 1024, max_stalled_ms=300)

    async def scenario() -> None:
        async with serving(echo, limits=limits) as served:
            stalled = await served.socket()
            stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(40):
                stalled.send(request_bytes(fetch(64 * 1024 * 1024)))
            other = await served.socket()
            other.send(request_bytes(METADATA, 5))
            assert id_of(await other.frame()) == 5

    asyncio.run(scenario())


def test_every_row_of_the_table_is_its_own_key() -> None:
    assert all(BY_KEY[api.key] is api for api in BY_REQUEST.values() if api is not FEATURES)
    assert FEATURES.key in LOCAL_APIS and FEATURES.key not in BY_KEY
    assert BY_REQUEST[DescribeClusterRequest].key == 60
