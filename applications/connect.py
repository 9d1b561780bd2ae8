"""Kafka Connect: a distributed worker with Kafka's file connectors, and one that takes its place after a kill -9.

The worker keeps its connectors, offsets and states in three compacted topics that it makes itself, and joins a group
for the work. Its connectors are given to its REST interface. The second round asks for exactly-once source connectors,
which produce in transactions.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from applications.application import Application, Stage
from applications.environments import get_jars
from applications.running import Process
from bench.peers.kafka_tools import SHORT_LIVED, Kafka, properties_text
from quorumlog.testing.ports import HOST, PortPicker

DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
TIMEOUT_S = 120.0
REQUEST_TIMEOUT_S = 10.0
ARTIFACTS = ("connect-runtime", "connect-file")
SOURCE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1"}

prepare = partial(get_jars, name="connect", artifacts=ARTIFACTS)


class Worker:
    """A process, and its REST interface."""

    def __init__(self, kafka: Kafka, folder: Path, properties: Path, port: int, number: int) -> None:
        self.process = Process(
            kafka.command(DISTRIBUTED, [str(properties)], SHORT_LIVED), log=folder / f"worker-{number}.log", cwd=folder
        )
        self._url = f"http://{HOST}:{port}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer; None while there is none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
                return json.loads(answer.read() or b"null")
        except (OSError, urllib.error.URLError):
            return None

    def runs(self, *connectors: str) -> bool:
        """The connectors and their tasks run."""
        for name in connectors:
            status = self.ask("GET", f"/connectors/{name}/status")
            parts = [] if status is None else [status["connector"], *status["tasks"]]
            if len(parts) < 2 or any(part["state"] != "RUNNING" for part in parts):
                return False
        return True


def run(stage: Stage, *, exactly_once: bool = False) -> None:
    """Each line of a file comes out of the other one, those of before the kill and those of after it."""
    kafka, folder = prepare(stage.cache), stage.folder
    source, sink, properties = folder / "in.txt", folder / "out.txt", folder / "worker.properties"
    picker = PortPicker()
    port = picker.pick(1)[0].client
    properties.write_text(properties_text(_properties(stage, port, exactly_once)))
    source.write_text("one\ntwo\n")
    try:
        for number in (1, 2):
            _round(Worker(kafka, folder, properties, port, number), number, source, sink)
    finally:
        picker.close()
    if exactly_once:
        lines = [json.loads(value or b"null")["payload"] for _, value in stage.cluster.read("lines")]
        assert lines == ["one", "two", "more 1", "more 2"], f"exactly once, yet the topic has {lines}"


def _round(worker: Worker, number: int, source: Path, sink: Path) -> None:
    """number: from 1; the first worker is given the connectors."""
    with worker.process as process:
        if number == 1:
            process.until(lambda: worker.ask("GET", "/connectors") is not None, "its REST answers", TIMEOUT_S)
            _put(worker, "lines-in", {**SOURCE, "file": str(source), "topic": "lines"})
            _put(worker, "lines-out", {**SINK, "file": str(sink), "topics": "lines"})
        process.until(lambda: worker.runs("lines-in", "lines-out"), "both connectors run", TIMEOUT_S)
        with source.open("a") as file:
            file.write(f"more {number}\n")
        wanted = ["one", "two", *(f"more {one}" for one in range(1, number + 1))]
        process.until(lambda: _is_there(sink, wanted), f"the lines {wanted} come out", TIMEOUT_S)


def _properties(stage: Stage, port: int, exactly_once: bool) -> dict[str, object]:
    """Those of Kafka's connect-distributed.properties, with one replica for the topics, as it has."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": stage.cluster.bootstrap_servers,
        "group.id": "connect-cluster",
        "key.converter": converter,
        "value.converter": converter,
        "offset.storage.topic": "connect-offsets",
        "offset.storage.replication.factor": 1,
        "config.storage.topic": "connect-configs",
        "config.storage.replication.factor": 1,
        "status.storage.topic": "connect-status",
        "status.storage.replication.factor": 1,
        "offset.flush.interval.ms": 1_000,
        "listeners": f"http://{HOST}:{port}",
    } | ({"exactly.once.source.support": "enabled"} if exactly_once else {})


def _put(worker: Worker, name: str, config: dict[str, str]) -> None:
    worker.process.until(
        lambda: worker.ask("PUT", f"/connectors/{name}/config", config) is not None, f"it takes {name}", TIMEOUT_S
    )


def _is_there(sink: Path, wanted: list[str]) -> bool:
    """Every line, perhaps more than once: a sink without transactions delivers at least once."""
    found = sink.read_text().splitlines() if sink.exists() else []
    return set(found) == set(wanted)


CONNECT = Application("connect", "a distributed worker with file connectors, killed and replaced", prepare, run)
CONNECT_EXACTLY_ONCE = Application(
    "connect-exactly-once", "the same with exactly.once.source.support", prepare, partial(run, exactly_once=True)
)
