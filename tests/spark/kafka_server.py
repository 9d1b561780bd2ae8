"""An Apache Kafka of one node for the tests of this folder. They are skipped where it cannot run, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import VERSION, Unavailable, get_kafka
from differential.sides import SETTINGS, SMALL_HEAP
from quorumlog.client.blocking import Cluster
from quorumlog.testing.waiting import wait_until


class Served(Protocol):
    """What tests use of a cluster, whoever serves it; `LocalCluster` is one of ours."""

    @property
    def client(self) -> Cluster: ...

    @property
    def bootstrap_servers(self) -> str: ...


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """folder: that of `kafka_server`."""

    client: Cluster
    bootstrap_servers: str
    folder: Path

    def log_bytes(self, topic: str) -> int:
        """Of the segments of its partitions."""
        total = 0
        for file in (self.folder / "data-1").glob(f"{topic}-*/*.log"):
            with suppress(FileNotFoundError):  # the cleaner has renamed it meanwhile
                total += file.stat().st_size
        return total


MARKERS_S = 60.0


def await_markers(client: Cluster) -> None:
    """Until committed records are readable.

    Kafka answers EndTxn once its coordinator has the decision; the markers go to the partitions behind that answer.
    """
    admin = client.admin
    decided = ["PrepareCommit", "PrepareAbort"]
    wait_until(lambda: not admin.list_transactions(states=decided), MARKERS_S, "the markers of what was decided")


WAIT_MS = 120_000  # for a virtual machine that starts beside Spark


@contextmanager
def kafka_server(folder: Path, version: str = VERSION) -> Iterator[str]:
    """Its address. folder: made by it. Needs Maven once."""
    try:
        kafka = get_kafka(version=version)
    except Unavailable as error:
        pytest.skip(str(error))
    peer = KafkaPeer(kafka, folder, nodes=1, changes=SETTINGS, options=SMALL_HEAP)
    try:
        peer.start()
        yield peer.bootstrap_servers
    finally:
        peer.close()


@contextmanager
def client_of(servers: str) -> Iterator[Cluster]:
    """A client, once the server answers."""
    with Cluster(servers, default_api_timeout_ms=WAIT_MS) as cluster:
        cluster.admin.describe_cluster()
        yield cluster
