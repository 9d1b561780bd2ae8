"""One node of Apache Kafka on this machine: it writes partitions for our engine, or serves what we exported."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.peers.kafka_tools import SERVER, STORAGE, Kafka, properties_text
from quorumlog.testing.ports import HOST, PortPicker

CLUSTER_ID = "cXVvcnVtbG9nLXBlZXIwMA"
HEAP = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
START_S = 120.0
STOP_S = 60.0
ANSWER_S = 60.0


class KafkaNode:
    """A context: running inside. `data` is its only log directory, formatted if it is not there."""

    def __init__(self, kafka: Kafka, root: Path, settings: Mapping[str, object] | None = None) -> None:
        self._kafka, self._root = kafka, root
        self.data = root / "kafka-data"
        self.log = root / "kafka.log"
        self._picker = PortPicker()
        (self._ports,) = self._picker.pick(1)
        self._process: subprocess.Popen[bytes] | None = None
        root.mkdir(parents=True, exist_ok=True)
        self._config = root / "kafka.properties"
        self._config.write_text(properties_text(self._properties() | dict(settings or {})))
        kafka.run(STORAGE, "format", "-t", CLUSTER_ID, "-c", str(self._config), "--ignore-formatted")

    @property
    def servers(self) -> str:
        return f"{HOST}:{self._ports.client}"

    def start(self) -> None:
        """Returns once it answers."""
        assert self._process is None
        command = self._kafka.command(
            SERVER, [str(self._config)], (*HEAP, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
        )
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                pass_fds=self._picker.locks, env=dict(os.environ), start_new_session=True,
            )  # fmt: skip
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        deadline = time.monotonic() + START_S
        while True:
            try:
                admin.list_topics(timeout=1.0)
                return
            except Exception as error:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise AssertionError(f"Kafka did not start: {self.log.read_text()[-3_000:]}") from error

    def stop(self) -> None:
        """A clean end. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"Kafka did not stop: {self.log.read_text()[-3_000:]}") from None

    def __enter__(self) -> KafkaNode:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._picker.close()

    # --- as a client ---

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """config: topic settings, with `_` in place of `.`."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.servers})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        for future in admin.create_topics([topic]).values():
            future.result(ANSWER_S)

    def producer(self, **more: object) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 0, **more})

    def _properties(self) -> dict[str, object]:
        ports = self._ports
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{ports.internal}",
            "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.internal}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }
