"""Settings of brokers that Kafka takes at run time: each is taken here, too, or left out for a reason."""

from __future__ import annotations

import pytest

from quorumlog.configs.broker import BROKER_CONFIGS, stored_name_of
from quorumlog.configs.live import IDLE, IN_FORCE, connections_by_host, connections_of_listener
from quorumlog.errors import ApiError
from quorumlog.settings.config_key import Kind, parse_text
from quorumlog.settings.connections import ADDRESSES
from quorumlog_server.config.foreign_keys import IDLE as IDLE_IN_A_FILE
from quorumlog_server.config.keys import NODE_KEYS

OF_KAFKA = [
    "background.threads",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "config.providers",
    "cordoned.log.dirs",
    "follower.fetch.last.tiered.offset.enable",
    "follower.replication.throttled.rate",
    "group.consumer.assignment.interval.ms",
    "group.coordinator.cached.buffer.max.bytes",
    "leader.replication.throttled.rate",
    "listener.security.protocol.map",
    "listeners",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleaner.threads",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.local.retention.bytes",
    "log.local.retention.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "message.max.bytes",
    "metric.reporters",
    "min.insync.replicas",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "principal.builder.class",
    "producer.id.expiration.ms",
    "remote.fetch.max.wait.ms",
    "remote.list.offsets.request.timeout.ms",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "transaction.partition.verification.enable",
    "unclean.leader.election.enable",
]
"""`DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS` of Kafka 4.3.1, without ssl, sasl, remote.log, shares and streams."""

NOT_TAKEN = {
    "config.providers": "a client would choose which files of a node are read (CVE-2024-31141)",
    "listener.security.protocol.map": "listeners are opened at the start",
    "listeners": "listeners are opened at the start",
}


@pytest.mark.parametrize("name", OF_KAFKA)
def test_what_kafka_takes_at_run_time_is_taken_or_left_out_for_a_reason(name: str) -> None:
    if name in NOT_TAKEN:
        with pytest.raises(ApiError, match="not a setting that can be changed while brokers run"):
            stored_name_of(name)
    else:
        assert stored_name_of(name) in BROKER_CONFIGS


def test_what_has_no_effect_has_none_in_a_file_either() -> None:
    assert IDLE.keys() <= IDLE_IN_A_FILE.keys()


def test_defaults_are_those_of_a_file() -> None:
    for name, key in IN_FORCE.items():
        in_file = NODE_KEYS[name]
        assert in_file.default is not None
        if key.kind is Kind.LIST:
            assert in_file.parse(in_file.default) == key.default
        else:
            assert in_file.parse(in_file.default) == parse_text(key, key.default)


@pytest.mark.parametrize("name", [*IN_FORCE, *IDLE])
def test_defaults_are_allowed(name: str) -> None:
    parse_text(BROKER_CONFIGS[name], BROKER_CONFIGS[name].default)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("10.0.0.7:100, 10.0.0.8:0", {"10.0.0.7": 100, "10.0.0.8": 0}),
        ("fe80::1:5,::1:7", {"fe80::1": 5, "::1": 7}),
        ("localhost:5,host-7.example.org:1", {"localhost": 5, "host-7.example.org": 1}),
    ],
)
def test_connections_by_host(text: str, found: dict[str, int]) -> None:
    parse_text(BROKER_CONFIGS[ADDRESSES], text)
    assert connections_by_host(text) == found


@pytest.mark.parametrize("text", ["10.0.0.7", "10.0.0.7:", "10.0.0.7:-1", "a b:5", "10.0.0.7:5;10.0.0.8:5"])
def test_connections_of_what_is_no_host(text: str) -> None:
    with pytest.raises(ApiError, match="of HOST:CONNECTIONS"):
        parse_text(BROKER_CONFIGS[ADDRESSES], text)


def test_every_listener_may_have_a_maximum_of_its_own() -> None:
    name = connections_of_listener("CLIENT-2")
    assert name == stored_name_of("listener.name.client-2.max.connections")
    assert parse_text(BROKER_CONFIGS[name], "5") == 5 and name in IN_FORCE and name not in [*IN_FORCE]
    for text in ("0", "x"):
        with pytest.raises(ApiError):
            parse_text(BROKER_CONFIGS[name], text)


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.CLIENT.max.connections",
        "listener.name..max.connections",
        "listener.name.client.max.connections.per.ip",
        "max.connections.of.listener",
    ],
)
def test_what_is_no_key_of_a_listener(name: str) -> None:
    assert name not in BROKER_CONFIGS and BROKER_CONFIGS.get(name) is None
    with pytest.raises(ApiError, match="not a setting that can be changed"):
        stored_name_of(name)
