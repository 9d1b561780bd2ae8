"""A node's configuration: three equivalent forms, and errors that name the mistake."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.configs.broker import TOPIC_SYNONYMS
from quorumlog.configs.topic import TOPIC_CONFIGS
from quorumlog.rpc.transport import Address
from quorumlog.settings.groups import ConsumerGroupConfig
from quorumlog.settings.key import parse_bytes
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.settings.transactions import JointConfig
from quorumlog.settings.types import INT
from quorumlog_quorum.metadata.topic_settings import SET_IN_FILE
from quorumlog_server.config.config import NodeConfig, from_values, load, shown
from quorumlog_server.config.foreign_keys import idle_of
from quorumlog_server.config.keys import COARSER, NODE_KEYS, all_keys
from quorumlog_server.config.listeners import parse_address
from quorumlog_server.config.parts import broker_config, described, metadata_log_config
from quorumlog_server.config.properties import ConfigError, from_environment, parse_properties
from tests.rules import rule

MINIMAL = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}


def config(**changes: str) -> NodeConfig:
    return from_values({**MINIMAL, **{key.replace("_", "."): value for key, value in changes.items()}})


def test_a_minimal_file_has_kafkas_defaults_and_ours() -> None:
    node = config()
    assert node.roles == ("broker", "controller")
    assert [listener.name for listener in node.listeners] == ["CLIENT", "GRPC", "REPLICATION", "INTERNAL"]
    assert [listener.name for listener in node.listeners if listener.lane] == ["CLIENT", "REPLICATION"]
    assert node.internal_listener.internal
    assert node.internal_listener.address == Address("127.0.0.1", 9093)
    assert (node.lifecycle.heartbeat_interval_ms, node.lifecycle.session_timeout_ms) == (500, 9_000)
    assert (node.quorum.fetch_timeout_ms, node.quorum.election_timeout_ms) == (1_000, 500)
    assert node.broker.auto_create_topics
    assert node.metadata_log_dir == node.log_dirs[0]


def test_what_people_see_has_one_line_for_each_key_of_a_part() -> None:
    found = shown(config(controller_quorum_fetch_timeout_ms="100", broker_rack="r", record_validation="header"))
    assert (found["node_id"], found["quorum_fetch_timeout_ms"], found["rack"]) == (1, 100, "r")
    assert found["record_validation"] == "header" and found["log_tail_bytes"] == 64 << 20
    assert found["groups"]["consumer"]["max_size"] == 2**31 - 1
    assert not {"values", "replication", "controller", "wire"} & found.keys()


PROPERTIES = r"""
# a comment
! another
node.id=7
process.roles = broker
listeners: CLIENT://127.0.0.1:0,\
           INTERNAL://127.0.0.1:19093
controller.quorum.voters=1@127.0.0.1:9093,2@[::1]:9093
log.segment.bytes=1MiB
log.retention.hours=2
num.io.threads=8
"""
TOML = """
node.id = 7
process.roles = ["broker"]
listeners = ["CLIENT://127.0.0.1:0", "INTERNAL://127.0.0.1:19093"]
num.io.threads = 8
[controller.quorum]
voters = ["1@127.0.0.1:9093", "2@[::1]:9093"]
[log]
segment_bytes = "1MiB"
retention_hours = 2
"""


def test_properties_and_toml_are_the_same_tree() -> None:
    node = load("server.properties", PROPERTIES, {})
    assert dataclasses.replace(node, given={}) == dataclasses.replace(load("server.toml", TOML, {}), given={})
    assert [(voter.node_id, voter.address.host) for voter in node.voters] == [(1, "127.0.0.1"), (2, "::1")]
    assert node.topic_defaults == {"segment.bytes": "1048576", "retention.ms": "7200000"}
    assert node.warnings[0] == "no effect here: num.io.threads. A node has one loop and no pools of threads."


def test_the_environment_wins_and_ours_wins_over_kafkas() -> None:
    environment = {"KAFKA_NODE_ID": "8", "QUORUMLOG_LOG_SEGMENT_BYTES": "2MiB", "KAFKA_LOG_SEGMENT_BYTES": "3MiB"}
    node = load("server.properties", PROPERTIES, environment)
    assert node.node_id == 8
    assert node.topic_defaults["segment.bytes"] == str(2 << 20)


def test_a_broker_alone_is_told_which_settings_of_its_file_have_no_effect() -> None:
    keys = {"log_durability": "replicated", "unclean_leader_election_enable": "true"}
    assert config(**keys).warnings == ()
    alone = config(**keys, process_roles="broker", controller_quorum_voters="9@localhost:9093").warnings
    assert [text for text in alone if "log.durability, unclean.leader.election.enable" in text] == list(alone)[:1]


def test_a_listener_may_have_a_maximum_of_connections_of_its_own() -> None:
    given = {"listener.name.client.max.connections": "7", "listener.name.other.max.connections": "8"}
    node = from_values({**MINIMAL, **given, "listeners": "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093"})
    assert node.listener_max_connections == {name: int(text) for name, text in given.items()}
    (told,) = [text for text in node.warnings if "listener.name" in text]
    assert told == "no effect, no listener for Kafka's protocol has this name: listener.name.other.max.connections"
    (shown,) = [one for one in described(node) if one.name == "listener.name.client.max.connections"]
    assert (shown.value, shown.source, shown.config_type) == ("7", SET_IN_FILE, INT)
    for text in ("0", "many", "2147483648"):
        with pytest.raises(ConfigError, match=r"listener\.name\.client\.max\.connections"):
            from_values({**MINIMAL, "listener.name.client.max.connections": text})


def test_a_policy_with_an_empty_word_is_refused() -> None:
    assert config(log_cleanup_policy=" compact , delete ").topic_defaults["cleanup.policy"] == "compact , delete"
    with pytest.raises(ConfigError, match="a word is missing beside a comma; choose of compact, delete"):
        config(log_cleanup_policy="compact,,delete")


def test_a_finer_unit_wins() -> None:
    assert config(log_retention_hours="1", log_retention_minutes="2").topic_defaults["retention.ms"] == "120000"
    assert config(log_retention_minutes="2", log_retention_ms="3").topic_defaults["retention.ms"] == "3"
    assert config(log_retention_hours="-1").topic_defaults["retention.ms"] == "-1"


@rule("storage 7.6")
def test_cordoned_directories_are_some_of_the_nodes_own() -> None:
    assert config(log_dirs="/a,/b", cordoned_log_dirs="/b").cordoned_log_dirs == ("/b",)
    assert config(log_dirs="/a,/b", cordoned_log_dirs="*").cordoned_log_dirs == ("/a", "/b")
    node = config(log_dir="/a", cordoned_log_dirs="/a")
    assert broker_config(node, previous_broker_epoch=-1).replication.cordoned_directories == frozenset({"/a"})


ERRORS = [
    ("a cordoned directory of nobody", {"log.dirs": "/a", "cordoned.log.dirs": "/b"}, "/b is not in log.dirs (/a)"),
    ("typo", {"num.partition": "1"}, "unknown key num.partition; did you mean num.partitions?"),
    ("no node id", {"node.id": None}, "node.id is not set"),
    ("not a number", {"node.id": "one"}, "'one' is not a whole number"),
    ("negative", {"node.id": "-1"}, "below 0"),
    ("role", {"process.roles": "broker,zookeeper"}, "'zookeeper' is neither"),
    ("no roles", {"process.roles": " , "}, "process.roles is empty"),
    ("listener form", {"listeners": "127.0.0.1:9092"}, "is not NAME://HOST:PORT"),
    ("listener port", {"listeners": "CLIENT://127.0.0.1,INTERNAL://127.0.0.1:1"}, "has no port"),
    ("port range", {"listeners": "CLIENT://127.0.0.1:70000,INTERNAL://127.0.0.1:1"}, "has no port"),
    ("no internal", {"listeners": "CLIENT://127.0.0.1:9092"}, "there is no INTERNAL"),
    ("no client", {"listeners": "INTERNAL://127.0.0.1:9093"}, "no client listener"),
    ("internal port 0", {"listeners": "CLIENT://127.0.0.1:1,INTERNAL://127.0.0.1:0"}, "has port 0"),
    ("same port", {"listeners": "CLIENT://127.0.0.1:1,INTERNAL://127.0.0.1:1"}, "two listeners at 127.0.0.1:1"),
    ("listener twice", {"listeners": "CLIENT://127.0.0.1:1,client://127.0.0.1:2"}, "CLIENT is given twice"),
    ("any address", {"listeners": "CLIENT://0.0.0.0:1,INTERNAL://127.0.0.1:2"}, "which is not reachable"),
    ("advertised", {"advertised.listeners": "PLAINTEXT://a:1"}, "PLAINTEXT is not one of `listeners`"),
    ("TLS", {"listener.security.protocol.map": "CLIENT:SSL"}, "ssl.keystore.location is not set"),
    ("protocol form", {"listener.security.protocol.map": "CLIENT"}, "'CLIENT' is not NAME:PROTOCOL"),
    ("a name that means TLS", {"listeners": "SSL://a:1,INTERNAL://a:2"}, "SSL: ssl.keystore.location is not set"),
    ("two internal", {"controller.listener.names": "INTERNAL,OTHER"}, "one listener serves controllers"),
    ("no controller's", {"controller.listener.names": "CONTROLLER"}, "there is no CONTROLLER, the listener for calls"),
    ("topics that stay", {"delete.topic.enable": "false"}, "Topics can always be deleted. Remove it, or write delete"),
    ("authorizer", {"authorizer.class.name": "a.B"}, "'a.B': no class is loaded; write org.apache.kafka.metadata."),
    ("super user", {"super.users": "User:a;bob"}, "super.users: 'bob' is no principal of a client; write User:NAME"),
    ("a node as super user", {"super.users": "Node:1"}, "'Node:1' is no principal of a client"),
    ("ZooKeeper", {"zookeeper.connect": "a:1"}, "there is no ZooKeeper to connect to. Remove it"),
    ("voter form", {"controller.quorum.voters": "127.0.0.1:9093"}, "is not ID@HOST:PORT"),
    ("voter twice", {"controller.quorum.voters": "1@a:1,1@b:1"}, "node 1 is given twice"),
    ("no voters", {"controller.quorum.voters": ""}, "neither controller.quorum.voters nor"),
    ("server form", {"controller.quorum.bootstrap.servers": "somewhere"}, "has no port; write HOST:PORT"),
    ("not a voter", {"controller.quorum.voters": "2@a:1"}, "node.id=1 is not in controller.quorum.voters [2]"),
    ("voter only broker", {"process.roles": "broker"}, "process.roles has no controller"),
    ("topic default", {"log.segment.bytes": "12"}, "segment.bytes=12: must be between"),
    ("size", {"log.segment.bytes": "big"}, "'big' is not a size"),
    ("boolean", {"auto.create.topics.enable": "yes"}, "neither true nor false"),
    ("session", {"broker.session.timeout.ms": "500"}, "must be above"),
    ("classic groups", {"group.min.session.timeout.ms": "9000000"}, "no member could join"),
    ("limits of groups", {"group.consumer.session.timeout.ms": "44999"}, "must lie between group.consumer.min"),
    ("limits of a group", {"group.consumer.max.heartbeat.interval.ms": "4999"}, "must lie between"),
    ("assignments of groups", {"group.consumer.min.assignment.interval.ms": "1001"}, "must lie between"),
    (
        "heartbeats of groups",
        {"group.consumer.heartbeat.interval.ms": "45000", "group.consumer.max.heartbeat.interval.ms": "45000"},
        "no member stays alive",
    ),
    ("assignor", {"group.consumer.assignors": "uniform,sticky"}, "'sticky' is no assignor; there are uniform and"),
    ("assignors", {"group.consumer.assignors": ","}, "is no assignor"),
    ("assignor twice", {"group.consumer.assignors": "range,range"}, "names an assignor twice"),
    ("migration", {"group.consumer.migration.policy": "both"}, "must be one of bidirectional, upgrade"),
    (
        "codec",
        {"offsets.topic.compression.codec": "1"},
        "offsets.topic.compression.codec: 1 is a codec, but commits are",
    ),
    ("codec's name", {"offsets.topic.compression.codec": "gzip"}, "'gzip' is not a whole number"),
    (
        "one protocol",
        {"group.coordinator.rebalance.protocols": "classic"},
        "quorumlog feature downgrade group.version=0",
    ),
    ("protocol", {"group.coordinator.rebalance.protocols": "classic,consumer,raft"}, "'raft' is no protocol"),
    ("two phases", {"transaction.two.phase.commit.enable": "true"}, "no producer may prepare a transaction"),
    ("no joint group", {"joint.max.groups": "0"}, "joint.max.groups=0 is below 1"),
    ("a child that lasts for no time", {"joint.max.timeout.ms": "0"}, "joint.max.timeout.ms=0 is below 1"),
    (
        "a child that lasts for a month",
        {"joint.max.timeout.ms": "2592000000"},
        "joint.max.timeout.ms=2592000000 is above",
    ),
    ("decisions that are forgotten at once", {"joint.expiration.ms": "0"}, "joint.expiration.ms=0 is below 1"),
    ("regex refresh", {"group.consumer.regex.refresh.interval.ms": "9999"}, "below"),
    ("log format", {"log.format": "xml"}, "must be one of console, json"),
    ("directory twice", {"log.dirs": "/a,/b,/a"}, "/a is given twice"),
    ("directory by two names", {"log.dirs": "a,./b/../a/"}, "./b/../a/ is given twice, also as a"),
]


@rule("storage 7.1")
@pytest.mark.parametrize(("changes", "message"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_mistakes_are_named(changes: dict[str, str | None], message: str) -> None:
    values = {key: value for key, value in {**MINIMAL, **changes}.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        from_values(values)
    assert message in str(caught.value)


def test_a_controller_alone_has_no_client_listener() -> None:
    node = config(process_roles="controller", listeners="INTERNAL://127.0.0.1:9093")
    assert node.client_listeners == ()
    with pytest.raises(ConfigError, match="has no broker"):
        config(process_roles="controller")


def test_advertised_replaces_and_port_zero_stays() -> None:
    node = config(
        listeners="CLIENT://0.0.0.0:0,INTERNAL://127.0.0.1:9093", advertised_listeners="CLIENT://box.example:9092"
    )
    internal, grpc = Address("127.0.0.1", 9093), Address("box.example", 0)
    assert node.advertised == {"CLIENT": Address("box.example", 9092), "INTERNAL": internal, "GRPC": grpc}
    assert any("unauthenticated" in warning for warning in node.warnings)


LISTENERS = [  # listeners and what is said of them; the names of those that speak Kafka's protocol, and of the others
    ({"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2", "controller.listener.names": "CONTROLLER"}, "PLAINTEXT", "GRPC"),
    ({"listeners": "X://a:1,INTERNAL://a:2"}, "X", "GRPC"),
    ({"listeners": "X://a:1,Y://a:3,INTERNAL://a:2,REPLICATION://a:4"}, "X Y REPLICATION", "GRPC"),
    ({"listeners": "X://a:1,GRPC_OUTSIDE://a:3,INTERNAL://a:2"}, "X", "GRPC_OUTSIDE"),
    ({"listeners": "GRPC://a:1,INTERNAL://a:2"}, "", "GRPC"),
    ({"listeners": "X://a:1,INTERNAL://a:2", "lane.listeners": "X"}, "X", ""),
    ({"listeners": "X://a:1,INTERNAL://a:2", "lane.listeners": ""}, "", "X"),
]


@pytest.mark.parametrize(("given", "lanes", "others"), LISTENERS)
def test_a_listener_speaks_kafkas_protocol_but_for_the_internal_one_and_grpc(
    given: dict[str, str], lanes: str, others: str
) -> None:
    node = from_values({**MINIMAL, **given})
    assert [one.name for one in node.listeners if one.lane] == lanes.split()
    assert [one.name for one in node.client_listeners if not one.lane] == others.split()
    assert not node.internal_listener.lane and node.internal_address.port == 2


def test_the_listener_that_is_added_is_beside_the_first_of_the_clients() -> None:
    given = {"listeners": "X://10.0.0.1:1,INTERNAL://a:2", "advertised.listeners": "X://box:1"}
    node = from_values({**MINIMAL, **given})
    assert [one.address for one in node.client_listeners] == [Address("10.0.0.1", 1), Address("10.0.0.1", 0)]
    assert node.advertised["GRPC"] == Address("box", 0)
    assert any(warning.startswith("GRPC takes a free port at every start") for warning in node.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [("a=1\na=2", "line 2: a is given twice"), ("node.id", "line 1: no '='"), ("#x\n\nfoo bar", "line 3")],
)
def test_a_bad_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_properties("f", text)


def test_escapes_are_javas() -> None:
    assert parse_properties("f", "a\\=b=c\\:d\\\\\ne=f\\\n  g") == {"a=b": "c:d\\", "e": "fg"}


@pytest.mark.parametrize(
    ("text", "want"), [("0", 0), ("1048576", 1 << 20), ("1MiB", 1 << 20), ("1 GB", 10**9), ("2kib", 2048), ("-1", -1)]
)
def test_sizes(text: str, want: int) -> None:
    assert parse_bytes(text) == want


def test_every_synonym_names_a_topic_config_and_no_key_twice() -> None:
    assert all(name in TOPIC_CONFIGS for name in TOPIC_SYNONYMS.values())
    assert all(name in TOPIC_CONFIGS for name, _unit in COARSER.values())
    assert len(all_keys()) == len(set(all_keys()))
    assert not set(NODE_KEYS) & set(TOPIC_SYNONYMS)


COORDINATORS_OF_KAFKA = {  # group.coordinator.*, group.consumer.*, offsets.*, transaction.*: its defaults
    "group.consumer.assignment.interval.ms": "1000",
    "group.consumer.assignor.offload.enable": "true",
    "group.consumer.assignors": "uniform,range",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.max.assignment.interval.ms": "15000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.consumer.max.size": "2147483647",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.regex.refresh.interval.ms": "600000",
    "group.consumer.session.timeout.ms": "45000",
    "group.coordinator.append.linger.ms": "-1",
    "group.coordinator.background.threads": "2",
    "group.coordinator.cached.buffer.max.bytes": "1048588",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.coordinator.threads": "4",
    "offset.metadata.max.bytes": "4096",
    "offsets.commit.timeout.ms": "5000",
    "offsets.load.buffer.size": "5242880",
    "offsets.retention.check.interval.ms": "600000",
    "offsets.retention.minutes": "10080",
    "offsets.topic.compression.codec": "0",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.segment.bytes": "104857600",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
    "transaction.state.log.load.buffer.size": "5242880",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.segment.bytes": "104857600",
    "transaction.two.phase.commit.enable": "false",
    "transactional.id.expiration.ms": "604800000",
}


def test_keys_of_joint_transactions_reach_the_coordinators() -> None:
    assert from_values(MINIMAL).transactions.joint == JointConfig()
    changed = {"joint.max.timeout.ms": "7200000", "joint.expiration.ms": "259200000", "joint.max.groups": "5"}
    broker = broker_config(from_values({**MINIMAL, **changed}), -1)
    assert broker.transactions.joint == JointConfig(max_timeout_ms=7_200_000, expiration_ms=259_200_000, max_groups=5)
    short = from_values({**MINIMAL, "joint.expiration.ms": "60000"}).transactions.joint
    assert (short.expiration_ms, short.single_expiration_ms) == (60_000, 60_000)


def test_a_file_with_every_key_of_kafkas_coordinators_is_the_same_as_one_with_none() -> None:
    node = from_values({**MINIMAL, **COORDINATORS_OF_KAFKA})
    without = from_values(MINIMAL)
    assert (node.groups, node.transactions) == (without.groups, without.transactions)
    assert (node.offsets_topic, node.transactions_topic) == (without.offsets_topic, without.transactions_topic)
    idle = {key for key in COORDINATORS_OF_KAFKA if key not in NODE_KEYS}
    assert {key for keys in idle_of(COORDINATORS_OF_KAFKA).values() for key in keys} == idle
    assert len(node.warnings) == len(idle_of(COORDINATORS_OF_KAFKA))


def test_unknown_environment_variables_are_ignored() -> None:
    assert from_environment({"QUORUMLOG_PROFILE": "x", "KAFKA_HEAP_OPTS": "y"}, all_keys()) == {}


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (lambda: parse_properties("f", text), lambda: parse_address("k", text)):
        try:
            parse()
        except ConfigError:
            pass


def test_records_are_looked_at_unless_the_operator_says_otherwise() -> None:
    assert config().replication.looks_inside_batches
    lowered = config(record_validation="header")
    assert not lowered.replication.looks_inside_batches
    assert any("record.validation=header" in warning for warning in lowered.warnings)
    with pytest.raises(ConfigError, match="must be one of full, header"):
        config(record_validation="none")


def test_intervals_and_sizes_of_logs_reach_their_parts() -> None:
    node = config(
        metadata_log_segment_bytes="2KiB",
        log_flush_offset_checkpoint_interval_ms="2000",
        replica_high_watermark_checkpoint_interval_ms="500",
        log_tail_bytes="0",
        log_initial_task_delay_ms="7",
        producer_id_expiration_check_interval_ms="8",
        log_dir_failure_timeout_ms="9",
    )
    replication = broker_config(node, previous_broker_epoch=-1).replication
    assert replication.initial_task_delay_ms == 7
    assert replication.producer_id_expiration_check_interval_ms == 8
    assert broker_config(node, previous_broker_epoch=-1).lifecycle.directory_failure_timeout_ms == 9
    assert replication.recovery_checkpoint_interval_ms == 2_000
    assert replication.high_watermark_checkpoint_interval_ms == 500
    assert replication.tail_bytes == 0
    assert metadata_log_config(node).segment_bytes == 2_048


KAFKAS_OF_LOGS = """
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds background.threads
compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.records.purgatory.purge.interval.requests log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy log.dir log.dir.failure.timeout.ms log.dirs
log.flush.interval.messages log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.initial.task.delay.ms log.message.timestamp.after.max.ms
log.message.timestamp.before.max.ms log.message.timestamp.type log.preallocate log.retention.bytes
log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms log.roll.hours
log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms message.max.bytes
num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads producer.id.expiration.check.interval.ms
producer.id.expiration.ms replica.high.watermark.checkpoint.interval.ms transaction.partition.verification.enable
"""  # of Kafka 4.3.1, without tiered storage


@rule("storage 1.28")
def test_every_key_of_kafka_that_concerns_logs_is_accepted() -> None:
    assert [name for name in KAFKAS_OF_LOGS.split() if name not in all_keys()] == []


def test_settings_of_consumer_groups() -> None:
    assert config().groups.consumer == ConsumerGroupConfig()
    uniform = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
    groups = config(
        group_consumer_session_timeout_ms="50000",
        group_consumer_assignors=f"range, {uniform}",
        group_consumer_migration_policy="UPGRADE",
    ).groups.consumer
    assert (groups.session_timeout_ms, groups.assignors) == (50_000, ("range", "uniform"))
    assert groups.migration_policy == "upgrade"


def test_rights() -> None:
    on = {"authorizer_class_name": AUTHORIZER}
    found = config(**on, super_users="User:CN=a,O=b ; User:c:d;", allow_everyone_if_no_acl_found="true")
    assert found.rights.on and found.rights.super_users == ("User:CN=a,O=b", "User:c:d")
    assert found.rights.allow_everyone and not found.rights.report_only
    assert found.warnings == ()
    (warning,) = config(**on).warnings
    assert warning.startswith("super.users is empty")
    off = config(super_users="User:a", allow_everyone_if_no_acl_found="true")
    assert not off.rights.on
    told = "no effect without authorizer.class.name: allow.everyone.if.no.acl.found, super.users"
    assert off.warnings == (told,)
