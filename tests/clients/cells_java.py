"""Kafka's own command-line tools, from its artifacts: its producer, consumer and admin client in Java."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cells_brokers import acls, cluster
from cells_quorum import change_controllers
from cells_reassign import elect, reassign
from cells_users import delegation_tokens, quotas, scram
from client_matrix import NO_ARTIFACTS, NO_JAVA, Place, Tool

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import ToolFailed, Unavailable, get_kafka
from quorumlog_quorum.metadata.features import LATEST_LEVEL


@functools.cache
def missing() -> str:
    """Why the tools cannot run here; "" if they can. In CI a failure of Maven is an error."""
    if kafka.missing():
        return NO_JAVA
    try:
        get_kafka()
    except Unavailable:
        if "CI" in os.environ:
            raise
        return NO_ARTIFACTS
    return ""


def run(main_class: str, place: Place, *arguments: str, stdin: str = "") -> str:
    return get_kafka().run(main_class, "--bootstrap-server", place.servers, *arguments, stdin=stdin)


def topics(place: Place) -> None:
    name = f"{place.topic}-made"
    run(kafka.TOPICS, place, "--create", "--topic", name, "--partitions", "2")
    assert f"Topic: {name}" in run(kafka.TOPICS, place, "--describe", "--topic", name)
    run(kafka.TOPICS, place, "--alter", "--topic", name, "--partitions", "3")
    assert name in run(kafka.TOPICS, place, "--list")
    chosen = (*("--topic", f"{name}-chosen"), "--replica-assignment")
    run(kafka.TOPICS, place, "--create", *chosen, "1:2,2:3", "--config", "retention.ms=3600007")
    run(kafka.TOPICS, place, "--create", *chosen[:2], "--if-not-exists")
    with pytest.raises(ToolFailed, match="exists"):
        run(kafka.TOPICS, place, "--create", *chosen[:2])
    run(kafka.TOPICS, place, "--alter", *chosen, "1:2,2:3,3:1", "--partitions", "3")
    assert "Replicas: 3,1" in run(kafka.TOPICS, place, "--describe", *chosen[:2])
    assert "retention.ms=3600007" in run(kafka.TOPICS, place, "--describe", "--topics-with-overrides")
    assert f"{name}-chosen" in run(kafka.TOPICS, place, "--describe", "--at-min-isr-partitions")
    for lacking in ("under-replicated", "unavailable", "under-min-isr"):
        assert f"{name}-chosen" not in run(kafka.TOPICS, place, "--describe", f"--{lacking}-partitions")
    assert name in run(kafka.TOPICS, place, "--list", "--exclude-internal")
    for wrong in (("bad name",), (f"{name}-2", "--replication-factor", "9"), ("__cluster_metadata",)):
        with pytest.raises(ToolFailed, match=r"(Topic|Factor)Exception"):
            run(kafka.TOPICS, place, "--create", "--topic", *wrong)
    run(kafka.TOPICS, place, "--alter", "--topic", f"{name}-none", "--partitions", "3", "--if-exists")
    run(kafka.TOPICS, place, "--delete", "--topic", f"{name}-none", "--if-exists")
    run(kafka.TOPICS, place, "--delete", "--topic", f"{name}|{name}-chosen")
    assert name not in run(kafka.TOPICS, place, "--list")


def producer_perf(place: Place) -> None:
    said = get_kafka().run(
        kafka.PRODUCER_PERF, "--topic", place.topic, "--num-records", "1000", "--record-size", "100",
        "--throughput", "-1", "--command-property", f"bootstrap.servers={place.servers}",
    )  # fmt: skip
    assert "1000 records sent" in said


def verifiable_producer(place: Place) -> None:
    said = run(kafka.VERIFIABLE_PRODUCER, place, "--topic", place.topic, "--max-messages", "20")
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert sum(event["name"] == "producer_send_success" for event in events) == 20
    assert [event for event in events if event["name"] == "producer_send_error"] == []


def console(place: Place) -> None:
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="one\ntwo\n")
    said = run(
        kafka.CONSOLE_CONSUMER, place, "--topic", place.topic, "--partition", "0", "--offset", "earliest",
        "--max-messages", "2",
    )  # fmt: skip
    assert [line for line in said.splitlines() if line in ("one", "two")] == ["one", "two"]


def get_offsets(place: Place) -> None:
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="one\ntwo\n")
    assert f"{place.topic}:0:2" in run(kafka.GET_OFFSETS, place, "--topic", place.topic)
    assert f"{place.topic}:0:0" in run(kafka.GET_OFFSETS, place, "--topic", place.topic, "--time", "earliest")


def configs(place: Place) -> None:
    entity = ("--entity-type", "topics", "--entity-name", place.topic)
    run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", "retention.ms=3600007")
    assert "retention.ms=3600007" in run(kafka.CONFIGS, place, *entity, "--describe")
    run(kafka.CONFIGS, place, *entity, "--alter", "--delete-config", "retention.ms")
    assert "min.insync.replicas" in run(kafka.CONFIGS, place, *entity, "--describe", "--all")


def broker_configs(place: Place) -> None:
    """Of one broker and of all brokers; what was set is shown, the rates of throttles, too."""
    of = ("--entity-type", "brokers")
    for entity in ((*of, "--entity-name", "1"), (*of, "--entity-default")):
        for key, value in (("log.cleaner.backoff.ms", "14007"), ("leader.replication.throttled.rate", "1000007")):
            run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", f"{key}={value}")
            assert f"{key}={value}" in run(kafka.CONFIGS, place, *entity, "--describe")
            run(kafka.CONFIGS, place, *entity, "--alter", "--delete-config", key)
            assert f"{key}={value}" not in run(kafka.CONFIGS, place, *entity, "--describe")
        for wrong in ("no.such.key=1", "log.retention.ms=soon", "node.id=7"):
            with pytest.raises(ToolFailed, match="InvalidConfigurationException"):
                run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", wrong)


def loggers(place: Place) -> None:
    """Levels of a running broker's loggers."""
    entity, name = ("--entity-type", "broker-loggers", "--entity-name", "1"), "quorumlog.requests"
    assert f"{name}=INFO" in run(kafka.CONFIGS, place, *entity, "--describe")
    run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", f"{name}=DEBUG")
    assert f"{name}=DEBUG" in run(kafka.CONFIGS, place, *entity, "--describe")
    run(kafka.CONFIGS, place, *entity, "--alter", "--delete-config", name)
    assert f"{name}=INFO" in run(kafka.CONFIGS, place, *entity, "--describe")
    with pytest.raises(ToolFailed, match="LOUD"):
        run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", f"{name}=LOUD")


def metadata_quorum(place: Place) -> None:
    said = run(kafka.METADATA_QUORUM, place, "describe", "--status")
    assert "LeaderId:" in said and "CurrentVoters:" in said
    assert "Leader" in run(kafka.METADATA_QUORUM, place, "describe", "--replication")


def features(place: Place) -> None:
    """Our level has a name of its own on Kafka's wire, so the tool prints a number and no release of Kafka."""
    said = run(kafka.FEATURES, place, "describe")
    row = next(line for line in said.splitlines() if "quorumlog.metadata.version" in line)
    assert f"FinalizedVersionLevel: {LATEST_LEVEL}" in row and f"SupportedMaxVersion: {LATEST_LEVEL}" in row
    for name, level in (("group.version", 1), ("joint.version", 2), ("transaction.version", 2)):
        (other,) = [line for line in said.splitlines() if f"Feature: {name}" in line]
        assert "SupportedMinVersion: 0" in other and f"SupportedMaxVersion: {level}" in other
        assert f"FinalizedVersionLevel: {level}" in other
    assert re.search(r"Epoch: \d+", row) and not re.search(r"Feature: metadata\.version", said)
    below, latest = (f"quorumlog.metadata.version={level}" for level in (LATEST_LEVEL - 1, LATEST_LEVEL))
    assert "can be downgraded" in run(kafka.FEATURES, place, "downgrade", "--feature", below, "--dry-run")
    assert "was downgraded" in run(kafka.FEATURES, place, "downgrade", "--feature", below)
    assert f"FinalizedVersionLevel: {LATEST_LEVEL - 1}" in run(kafka.FEATURES, place, "describe")
    assert "was upgraded" in run(kafka.FEATURES, place, "upgrade", "--feature", latest)
    assert f"FinalizedVersionLevel: {LATEST_LEVEL}" in run(kafka.FEATURES, place, "describe")
    with pytest.raises(ToolFailed, match=r"the active controller supports metadata\.version from level 1"):
        run(kafka.FEATURES, place, "upgrade", "--feature", "quorumlog.metadata.version=99")
    with pytest.raises(ToolFailed, match="that numbering is Kafka's own"):
        run(kafka.FEATURES, place, "upgrade", "--metadata", "4.0-IV3")
    assert "metadata.version" in run(kafka.FEATURES, place, "version-mapping")
    assert run(kafka.FEATURES, place, "feature-dependencies", "--feature", "transaction.version=2")


def api_versions(place: Place) -> None:
    said = run(kafka.BROKER_API_VERSIONS, place)
    assert said.count("ApiVersions(18): 0 to 4") == 3


def delete_records(place: Place) -> None:
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="one\ntwo\n")
    wanted = {"version": 1, "partitions": [{"topic": place.topic, "partition": 0, "offset": 1}]}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "offsets.json"
        file.write_text(json.dumps(wanted))
        said = run(kafka.DELETE_RECORDS, place, "--offset-json-file", str(file))
    assert "low_watermark: 1" in said


def log_dirs(place: Place) -> None:
    said = run(kafka.LOG_DIRS, place, "--describe", "--topic-list", place.topic)
    found = next(json.loads(line) for line in said.splitlines() if line.startswith("{"))
    assert len(found["brokers"]) == 3


# tests/clients/test_acl_command.py shows it
WITH_RULES = "with one: add, list, remove, prefixed, deny, `--producer`, `--consumer`"
NEW_PROTOCOL = ("--command-property", "group.protocol=consumer")


def subscribed(place: Place, count: int, *more: str) -> str:
    return run(
        kafka.CONSOLE_CONSUMER, place, "--topic", place.topic, "--group", place.topic, "--max-messages", str(count),
        "--command-property", "auto.offset.reset=earliest", *more,
    )  # fmt: skip


def group(place: Place, *more: str) -> None:
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="one\ntwo\n")
    assert "one\ntwo\n" in subscribed(place, 2, *more)
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="three\n")
    said = subscribed(place, 1, *more)
    assert "three\n" in said and "one\n" not in said


def new_group(place: Place) -> None:
    group(place, *NEW_PROTOCOL)


def groups(place: Place, *more: str) -> None:
    """Every verb, on a group whose member has left."""
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="one\ntwo\n")
    subscribed(place, 2, *more)
    of_group = ("--group", place.topic)
    topic = (*of_group, "--topic", place.topic)
    assert place.topic in run(kafka.CONSUMER_GROUPS, place, "--list", "--state").split()
    row = [place.topic, place.topic, "0", "2", "2", "0", "-", "-", "-"]
    assert row in table(run(kafka.CONSUMER_GROUPS, place, "--describe", *of_group))
    assert "Empty" in run(kafka.CONSUMER_GROUPS, place, "--describe", "--state", *of_group)
    run(kafka.CONSUMER_GROUPS, place, "--reset-offsets", *topic, "--to-offset", "1", "--execute")
    row[3], row[5] = "1", "1"
    assert row in table(run(kafka.CONSUMER_GROUPS, place, "--describe", *of_group))
    assert "Successful" in run(kafka.CONSUMER_GROUPS, place, "--delete-offsets", *topic)
    assert "successful" in run(kafka.CONSUMER_GROUPS, place, "--delete", *of_group)
    assert place.topic not in run(kafka.CONSUMER_GROUPS, place, "--list").split()


def new_groups(place: Place) -> None:
    groups(place, *NEW_PROTOCOL)
    entity = ("--entity-type", "groups", "--entity-name", place.topic)
    run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in run(kafka.CONFIGS, place, *entity, "--describe")
    with pytest.raises(ToolFailed, match="must lie between"):
        run(kafka.CONFIGS, place, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=5000")


def table(said: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines()]


def verifiable_consumer(place: Place, *more: str) -> None:
    run(kafka.VERIFIABLE_PRODUCER, place, "--topic", place.topic, "--max-messages", "20")
    of_group = ("--group-id", place.topic, "--max-messages", "20")
    said = run(kafka.VERIFIABLE_CONSUMER, place, "--topic", place.topic, *of_group, *more)
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert {"partitions_assigned", "records_consumed", "offsets_committed"} <= {event["name"] for event in events}
    assert [event for event in events if event["name"] == "offsets_committed" and not event["success"]] == []


def new_verifiable_consumer(place: Place) -> None:
    verifiable_consumer(place, "--group-protocol", "consumer")


def consumer_perf(place: Place, *more: str) -> None:
    producer_perf(place)
    wanted = ("--num-records", "1000", "--timeout", "60000")
    said = run(kafka.CONSUMER_PERF, place, "--topic", place.topic, *wanted, *more)
    row = [word.strip() for word in said.splitlines()[-1].split(",")]
    assert row[4] == "1000", said


def new_consumer_perf(place: Place) -> None:
    consumer_perf(place, *NEW_PROTOCOL)


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("kafka-topics", "create, describe, list, delete topics, add partitions; all options", topics),
        Tool("kafka-producer-perf-test", "produce, idempotent by default", producer_perf),
        Tool("kafka-verifiable-producer", "produce, every record acknowledged", verifiable_producer),
        Tool("kafka-console-producer, kafka-console-consumer", "produce; consume with `--partition`", console),
        Tool("kafka-get-offsets", "earliest and latest offsets", get_offsets),
        Tool("kafka-configs", "describe, change, unset a topic's settings", configs),
        Tool("kafka-configs, brokers", "the same of a broker and of all brokers", broker_configs),
        Tool("kafka-configs, loggers", "show, set and reset the level of a broker's logger", loggers),
        Tool("kafka-configs, SCRAM", "set, describe and delete users' credentials", scram),
        Tool("kafka-configs, quotas", "set, describe and remove quotas of users, clients and addresses", quotas),
        Tool("kafka-delegation-tokens", "every verb is refused: tokens are off", delegation_tokens),
        Tool("kafka-metadata-quorum", "describe the quorum's status and replication", metadata_quorum),
        Tool("kafka-metadata-quorum, changing voters", "remove a controller and add it again", change_controllers),
        Tool("kafka-features", "describe, upgrade and downgrade quorumlog.metadata.version, `--dry-run`", features),
        Tool("kafka-broker-api-versions", "list every broker's versions", api_versions),
        Tool("kafka-delete-records", "delete the first records", delete_records),
        Tool("kafka-log-dirs", "describe the log directories", log_dirs),
        Tool("kafka-reassign-partitions", "generate, execute, list, verify, cancel", reassign),
        Tool("kafka-leader-election", "preferred, and both kinds where none is needed", elect),
        Tool("kafka-cluster", "show the cluster's id and its brokers, unregister a broker", cluster),
        Tool("kafka-acls", f"refused without an authorizer: SECURITY_DISABLED, as by Kafka; {WITH_RULES}", acls),
        Tool("kafka-consumer-groups", "list, describe, reset offsets, delete offsets, delete", groups),
        Tool("kafka-console-consumer, subscribed", "consume as a group, commit, resume", group),
        Tool("kafka-verifiable-consumer", "consume as a group, every commit succeeds", verifiable_consumer),
        Tool("kafka-consumer-perf-test", "consume as a group", consumer_perf),
        Tool(
            "kafka-console-consumer, `group.protocol=consumer`",
            "consume as a group, commit, resume",
            new_group,
        ),
        Tool("kafka-consumer-groups, `group.protocol=consumer`", "every verb; kafka-configs of the group", new_groups),
        Tool(
            "kafka-verifiable-consumer, `--group-protocol consumer`",
            "consume as a group, every commit succeeds",
            new_verifiable_consumer,
        ),
        Tool("kafka-consumer-perf-test, `group.protocol=consumer`", "consume as a group", new_consumer_perf),
    )
}
