"""`compression.type`: stored as sent where the codec is the topic's, or the topic has none; else compressed anew."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, values_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.format.batch import BATCH_OVERHEAD, Codec
from tests.rules import rule

NOW_MS = 1_700_000_000_000


def led(**config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**config)
    cluster.wait_led(1)
    return cluster


def batch(*values: str, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(n, NOW_MS, None, value.encode(), ()) for n, value in enumerate(values)]
    return encode_batch(records, codec=codec)


def stored(cluster: ReplicaCluster, node_id: int = 1) -> bytes:
    log = cluster.nodes[node_id].log()
    return log.read(0, 1 << 24, upper_bound=log.end_offset)


@rule("storage 10.6", "log 4.9")
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("setting", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_only_another_codec_is_compressed_anew(setting: str, codec: Codec) -> None:
    cluster = led(compression_type=setting)
    sent = batch("a" * 300, "b" * 300, codec=codec)
    assert cluster.produce_batch(1, sent) == 0
    wanted = (
        {"producer": codec, "uncompressed": Codec.NONE}.get(setting)
        if setting in ("producer", "uncompressed")
        else (Codec[setting.upper()])
    )
    found = stored(cluster)
    (header,) = headers(found)
    assert header.codec == wanted and values_of(found) == ["a" * 300, "b" * 300]
    if wanted == codec:
        assert found[BATCH_OVERHEAD:] == sent[BATCH_OVERHEAD:], "compressed again, for nothing"
    cluster.run_for(500)
    assert stored(cluster, 2) == found


def test_batches_keep_their_order_behind_one_that_is_compressed() -> None:
    cluster = led(compression_type="gzip")
    node = cluster.nodes[1]
    values = [f"{n}" * 200_000 if n % 2 == 0 else f"{n}" for n in range(6)]
    codecs = [Codec.NONE if n % 2 == 0 else Codec.GZIP for n in range(6)]

    async def send_all() -> list[int]:
        results = [
            node.produce_path.append(TOPIC_ID, 0, batch(value, codec=codec), acks=-1, timeout_ms=5_000)
            for value, codec in zip(values, codecs, strict=True)
        ]
        return [(await result).base_offset for result in results]

    assert node.run(send_all()) == list(range(6))
    assert values_of(stored(cluster)) == values


def test_log_append_time_and_another_codec() -> None:
    cluster = led(compression_type="lz4", message_timestamp_type="LogAppendTime")
    cluster.run_for(1_000)
    cluster.produce_batch(1, batch("a"))
    (header,) = headers(stored(cluster))
    assert header.codec == Codec.LZ4 and header.is_log_append_time and header.max_timestamp > NOW_MS


@pytest.mark.parametrize("setting", ["producer", "zstd"])
def test_a_bomb_is_refused(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from quorumlog.records.validation import recompression, record_check

    for module in (record_check.check_records, recompression.recompressed):
        monkeypatch.setitem(module.__kwdefaults__ or {}, "max_decompressed_bytes", 1 << 20)
    cluster = led(compression_type=setting)
    with pytest.raises(ApiError) as refused:
        cluster.produce_batch(1, batch("x" * (3 << 20), codec=Codec.GZIP))
    assert refused.value.code is ErrorCode.INVALID_RECORD and "limit" in str(refused.value)
    assert cluster.nodes[1].log().end_offset == 0


@rule("storage 1.12")
def test_a_batch_that_becomes_too_large_is_refused() -> None:
    cluster = led(compression_type="uncompressed", max_message_bytes="5000")
    with pytest.raises(ApiError) as refused:
        cluster.produce_batch(1, batch("x" * 20_000, codec=Codec.GZIP))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    cluster.produce_batch(1, batch("small", codec=Codec.GZIP))
    assert values_of(stored(cluster)) == ["small"]


def test_a_setting_takes_effect_while_brokers_run() -> None:
    from quorumlog.messages.metadata_records import ConfigRecord
    from quorumlog_quorum.metadata.image import TOPIC_RESOURCE

    cluster = led()
    cluster.produce_batch(1, batch("a"))
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="compression.type", value="zstd"))
    cluster.run_for(100)
    cluster.produce_batch(1, batch("b"))
    assert [header.codec for header in headers(stored(cluster))] == [Codec.NONE, Codec.ZSTD]
