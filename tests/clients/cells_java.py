"""Kafka's own command-line tools, from its artifacts: its producer, consumer and admin client in Java."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from client_matrix import NO_ARTIFACTS, NO_JAVA, Place, Tool

from bench import kafka_tools as kafka
from bench.kafka_tools import Kafka, ToolFailed, Unavailable, get_kafka


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
    run(kafka.TOPICS, place, "--delete", "--topic", name)


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


def metadata_quorum(place: Place) -> None:
    said = run(kafka.METADATA_QUORUM, place, "describe", "--status")
    assert "LeaderId:" in said and "CurrentVoters:" in said
    assert "Leader" in run(kafka.METADATA_QUORUM, place, "describe", "--replication")


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


def cluster(place: Place) -> None:
    said = get_kafka().run(kafka.CLUSTER, "cluster-id", "--bootstrap-server", place.servers)
    assert "Cluster ID: " in said


def group(place: Place) -> None:
    """A subscribed console consumer ends with the error."""
    refused(kafka.CONSOLE_CONSUMER, place, "--topic", place.topic, "--timeout-ms", "9000")


def groups(place: Place) -> None:
    assert "Error" not in run(kafka.CONSUMER_GROUPS, place, "--list")


def transaction(place: Place) -> None:
    refused_by(
        get_kafka(), kafka.PRODUCER_PERF, "--topic", place.topic, "--num-records", "10", "--record-size", "10",
        "--throughput", "-1", "--transactional-id", "wanted",
        "--command-property", f"bootstrap.servers={place.servers}",
    )  # fmt: skip


def refused(main_class: str, place: Place, *arguments: str) -> None:
    refused_by(get_kafka(), main_class, "--bootstrap-server", place.servers, *arguments)


def refused_by(tools: Kafka, main_class: str, *arguments: str) -> None:
    try:
        said = tools.run(main_class, *arguments)
    except ToolFailed as error:
        said = error.output
    assert "UnsupportedVersion" in said or "not support" in said, said


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("kafka-topics", "create, describe, list, delete topics, add partitions", topics),
        Tool("kafka-producer-perf-test", "produce, idempotent by default", producer_perf),
        Tool("kafka-verifiable-producer", "produce, every record acknowledged", verifiable_producer),
        Tool("kafka-console-producer, kafka-console-consumer", "produce; consume with `--partition`", console),
        Tool("kafka-get-offsets", "earliest and latest offsets", get_offsets),
        Tool("kafka-configs", "describe, change, unset a topic's settings", configs),
        Tool("kafka-metadata-quorum", "describe the quorum's status and replication", metadata_quorum),
        Tool("kafka-broker-api-versions", "list every broker's versions", api_versions),
        Tool("kafka-delete-records", "delete the first records", delete_records),
        Tool("kafka-log-dirs", "describe the log directories", log_dirs),
        Tool("kafka-cluster", "show the cluster's id", cluster),
        Tool("kafka-consumer-groups", "list groups; there are none", groups),
        Tool("kafka-console-consumer, subscribed", "refused: it fails and ends", group),
        Tool("kafka-producer-perf-test, transactional", "refused: it fails and ends", transaction),
    )
}
