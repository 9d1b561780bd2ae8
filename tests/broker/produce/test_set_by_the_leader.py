"""What a leader sets in a produced batch, whatever its header says: the largest timestamp and its type. Kafka's
`LogValidator` does the same. What a follower stores is the leader's, byte for byte."""

from __future__ import annotations

import dataclasses

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, values_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import Codec, Record, encode_batch, headers
from quorumlog.records.format.batch import BATCH_OVERHEAD, LOG_APPEND_TIME, NO_TIMESTAMP, seal, verify_crc
from quorumlog.records.validation.record_check import InvalidRecord
from quorumlog_broker.produce import produce_path
from tests.rules import rule

NOW_MS = 1_700_000_000_000
TIMES = (NOW_MS, NOW_MS + 200, NOW_MS + 100)
DAY_MS = 86_400_000


def batch(*times: int, codec: Codec = Codec.NONE, **changes: int) -> bytes:
    """Records at these times, under a header of which fields are changed, with a matching checksum."""
    written = [Record(n, time, b"key", b"%d" % time) for n, time in enumerate(times)]
    data = encode_batch(written, codec=codec)
    header = headers(data)[0]
    fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
    for name in ("batch_length", "magic", "crc", "position", "size"):
        del fields[name]
    changes["attributes"] = changes.get("attributes", 0) | header.attributes
    return seal(data[BATCH_OVERHEAD:], **(fields | changes))


def led(**config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**config)
    cluster.wait_led(1)
    return cluster


def stored(cluster: ReplicaCluster, node_id: int = 1) -> bytes:
    log = cluster.nodes[node_id].log()
    return log.read(0, 1 << 24, upper_bound=log.end_offset)


WRONG = [("left at -1", -1), ("below the first", NOW_MS - 1), ("of the first", NOW_MS), ("too large", NOW_MS + 999)]


@rule("storage 1.10")
@pytest.mark.parametrize("largest", [case[1] for case in WRONG], ids=[case[0] for case in WRONG])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize("setting", ["producer", "lz4"])
def test_the_largest_timestamp_is_that_of_the_records(largest: int, codec: Codec, setting: str) -> None:
    cluster = led(compression_type=setting)
    assert cluster.produce_batch(1, batch(*TIMES, codec=codec, max_timestamp=largest)) == 0
    found = stored(cluster)
    (header,) = headers(found)
    verify_crc(found, header)
    assert header.max_timestamp == NOW_MS + 200 and not header.is_log_append_time
    assert values_of(found) == [str(time) for time in TIMES]
    cluster.run_for(500)
    assert stored(cluster, 2) == found


def test_a_right_batch_is_stored_as_it_was_sent() -> None:
    cluster = led()
    sent = batch(*TIMES, attributes=0x80)  # a bit without a meaning
    cluster.produce_batch(1, sent)
    assert stored(cluster)[17:] == sent[17:]


def test_records_without_times_have_none_in_the_header() -> None:
    cluster = led(message_timestamp_before_max_ms="1000")
    cluster.produce_batch(1, batch(-1, -1, max_timestamp=NOW_MS))
    assert headers(stored(cluster))[0].max_timestamp == -1


def test_the_received_checksum_is_verified_before_another_is_computed() -> None:
    cluster = led()
    sent = bytearray(batch(*TIMES, max_timestamp=-1))
    sent[-2] ^= 1
    with pytest.raises(ApiError) as caught:
        cluster.produce_batch(1, bytes(sent))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert stored(cluster) == b""


def test_a_large_batch_that_is_looked_at_in_slices_keeps_its_place() -> None:
    cluster = led(max_message_bytes="5000000")
    node = cluster.nodes[1]
    records = [Record(n, NOW_MS + n % 70, b"k" * (n % 9), b"v" * (n % 50)) for n in range(30_000)]
    data = encode_batch(records)
    header = headers(data)[0]
    large = seal(
        data[BATCH_OVERHEAD:], base_offset=0, leader_epoch=0, attributes=0, last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp, max_timestamp=-1, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        count=header.count,
    )  # fmt: skip

    async def send() -> list[int]:
        sent = [node.produce_path.append(TOPIC_ID, 0, one, acks=-1, timeout_ms=5_000) for one in (large, batch(NOW_MS))]
        return [(await one).base_offset for one in sent]

    assert node.run(send()) == [0, 30_000]
    assert [one.max_timestamp for one in headers(stored(cluster))] == [NOW_MS + 69, NOW_MS]


def test_the_claim_of_an_append_time_is_taken_away_or_refused() -> None:
    """As in Kafka: away where records keep their times, refused where the broker sets them."""
    claims = batch(*TIMES, attributes=LOG_APPEND_TIME)
    cluster = led()
    cluster.produce_batch(1, claims)
    (header,) = headers(stored(cluster))
    assert not header.is_log_append_time and header.max_timestamp == NOW_MS + 200
    without_time = batch(*TIMES, attributes=LOG_APPEND_TIME, max_timestamp=NO_TIMESTAMP)
    for leader, refused in ((cluster, without_time), (led(message_timestamp_type="LogAppendTime"), claims)):
        with pytest.raises(InvalidRecord) as caught:
            leader.produce_batch(1, refused)
        assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
        assert [fault.number for fault in caught.value.faults] == list(range(len(TIMES)))


@rule("storage 1.10")
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_each_record_is_held_against_the_clock(codec: Codec) -> None:
    """Not only the first of a batch, and each that is too old or too new is named (KIP-467)."""
    cluster = led(message_timestamp_before_max_ms=str(DAY_MS), message_timestamp_after_max_ms=str(DAY_MS))
    now_ms = cluster.nodes[1].clock.wall_ms()
    times = (now_ms, now_ms - 2 * DAY_MS, -1, now_ms + 2 * DAY_MS, now_ms - DAY_MS // 2)
    with pytest.raises(InvalidRecord) as caught:
        cluster.produce_batch(1, batch(*times, codec=codec))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [fault.number for fault in caught.value.faults] == [1, 3]
    assert all(str(times[fault.number]) in fault.message for fault in caught.value.faults)
    assert cluster.produce_batch(1, batch(now_ms, -1, now_ms - DAY_MS // 2, codec=codec)) == 0


def test_a_leader_that_trusts_headers_asks_the_records_where_the_header_cannot_be_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`record.validation=header`."""
    cluster = led(message_timestamp_after_max_ms=str(DAY_MS))
    monkeypatch.setattr(cluster.nodes[1].produce_path, "_looks_inside", False)
    cluster.produce_batch(1, batch(*TIMES, max_timestamp=-1))
    assert headers(stored(cluster))[0].max_timestamp == NOW_MS + 200
    monkeypatch.setattr(produce_path, "check_records", None)
    monkeypatch.setattr(produce_path, "look_at_once", None)
    cluster.produce_batch(1, batch(*TIMES))
    with pytest.raises(ApiError) as caught:
        cluster.produce_batch(1, batch(*TIMES, max_timestamp=cluster.nodes[1].clock.wall_ms() + 2 * DAY_MS))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
