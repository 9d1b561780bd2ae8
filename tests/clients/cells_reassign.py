"""Reassignments of partitions and elections of leaders: Kafka's tools, and the admin clients that have them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from client_matrix import Place

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import ToolFailed, get_kafka


def run(main_class: str, place: Place, *arguments: str) -> str:
    return get_kafka().run(main_class, "--bootstrap-server", place.servers, *arguments)


def reassign(place: Place) -> None:
    """Generate, execute, list, verify, and cancel what has ended."""
    with TemporaryDirectory() as folder:
        moved, wanted = Path(folder) / "topics.json", Path(folder) / "wanted.json"
        moved.write_text(json.dumps({"version": 1, "topics": [{"topic": place.topic}]}))
        said = run(
            kafka.REASSIGN, place, "--generate", "--topics-to-move-json-file", str(moved), "--broker-list", "1,2,3"
        )
        proposed = json.loads(said.partition("Proposed partition reassignment configuration")[2])
        assert [one["topic"] for one in proposed["partitions"]] == [place.topic]
        for replicas in ([2, 1], [3, 2]):
            partition = {"topic": place.topic, "partition": 0, "replicas": replicas}
            wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
            file = ("--reassignment-json-file", str(wanted))
            assert "Successfully started" in run(kafka.REASSIGN, place, "--execute", *file)
            while "is completed" not in (said := run(kafka.REASSIGN, place, "--verify", *file)):
                assert "still in progress" in said
            assert "No partition reassignments found" in run(kafka.REASSIGN, place, "--list")
            listed = ", ".join(map(str, replicas)).replace(" ", "")
            assert f"Replicas: {listed}" in run(kafka.TOPICS, place, "--describe", "--topic", place.topic)
        assert "None of the specified" in run(kafka.REASSIGN, place, "--cancel", *file)
        cancel(place, wanted)
        partition["replicas"] = [1, 9]
        wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        with pytest.raises(ToolFailed, match="9"):
            run(kafka.REASSIGN, place, "--execute", *file)


def cancel(place: Place, wanted: Path) -> None:
    """A reassignment that goes on, as its throttle lets almost nothing through, is cancelled with its throttles."""
    get_kafka().run(
        kafka.PRODUCER_PERF, "--topic", place.topic, "--num-records", "3000", "--record-size", "1000",
        "--throughput", "-1", "--command-property", f"bootstrap.servers={place.servers}",
    )  # fmt: skip
    wanted.write_text(json.dumps({"version": 1, "partitions": [_only(place, [1, 2])]}))
    file = ("--reassignment-json-file", str(wanted))
    rates = ("--throttle", "1000", "--replica-alter-log-dirs-throttle", "1000000")
    said = run(kafka.REASSIGN, place, "--execute", *file, *rates)
    assert "The inter-broker throttle limit was set" in said and "replica-alter-dir throttle limit was set" in said
    assert "adding: 1" in run(kafka.REASSIGN, place, "--list")
    with pytest.raises(ToolFailed, match="--additional"):
        run(kafka.REASSIGN, place, "--execute", *file)
    assert "still in progress" in run(kafka.REASSIGN, place, "--verify", *file, "--preserve-throttles")
    of_broker = ("--entity-type", "brokers", "--entity-name", "1", "--describe")
    assert "follower.replication.throttled.rate=1000" in run(kafka.CONFIGS, place, *of_broker)
    assert "Successfully cancelled" in run(kafka.REASSIGN, place, "--cancel", *file)
    assert "throttled" not in run(kafka.CONFIGS, place, *of_broker)
    assert "Replicas: 2,3" in run(kafka.TOPICS, place, "--describe", "--topic", place.topic)


def _only(place: Place, replicas: list[int]) -> dict[str, object]:
    return {"topic": place.topic, "partition": 0, "replicas": replicas}


def elect(place: Place) -> None:
    """A leader that is not the preferred one any more, and elections that are not needed."""
    make_leader_not_preferred(place)
    of_topic = ("--topic", place.topic, "--partition", "0")
    said = run(kafka.LEADER_ELECTION, place, "--election-type", "preferred", *of_topic)
    assert f"Successfully completed leader election (PREFERRED) for partitions {place.topic}-0" in said
    said = run(kafka.LEADER_ELECTION, place, "--election-type", "preferred", *of_topic)
    assert "Valid replica already elected" in said
    said = run(kafka.LEADER_ELECTION, place, "--election-type", "unclean", *of_topic)
    assert "Valid replica already elected" in said


def make_leader_not_preferred(place: Place) -> None:
    """Only the order of the replicas changes, which moves no leader."""
    with TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.json"
        said = run(kafka.TOPICS, place, "--describe", "--topic", place.topic)
        replicas = [int(one) for one in said.partition("Replicas: ")[2].split()[0].split(",")]
        partition = {"topic": place.topic, "partition": 0, "replicas": [*replicas[1:], replicas[0]]}
        wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        run(kafka.REASSIGN, place, "--execute", "--reassignment-json-file", str(wanted))
