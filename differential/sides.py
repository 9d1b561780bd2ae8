"""Both clusters, one node each: Apache Kafka of the release in kafka_tools.py, and ours, with equal settings."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import SHORT_LIVED, Kafka
from differential.conversation import Conversation, Versions, codes_of
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

START_S = 90.0
POLL_S = 0.1
SMALL_HEAP = ("-Xms256M", "-Xmx1G", "-XX:-UseG1GC", *SHORT_LIVED)
# Neither waits for members that may still come, and neither makes topics by accident. One partition of each internal
# topic: a single coordinator, and a start in a second.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
    "log.retention.ms": "-1",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}

# Access rules are made and found, and nobody is refused by them: everybody is a super user.
RULES = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


class Sides:
    """theirs, ours: the conversations. versions: of each API that both announce, the versions that both do.

    turns: how often each seed was played here.
    """

    def __init__(self, theirs: tuple[str, int], ours: tuple[str, int]) -> None:
        self.theirs, self.ours = Conversation(theirs, "Apache Kafka"), Conversation(ours, "ours")
        (kafka, self.their_keys), (us, self.our_keys) = self.theirs.versions(), self.ours.versions()
        both = {
            name: (max(kafka[name][0], us[name][0]), min(kafka[name][1], us[name][1])) for name in kafka if name in us
        }
        self.turns: Counter[int] = Counter()
        _warm(self.theirs)
        _warm(self.ours)
        self.versions: Versions = {name: (low, high) for name, (low, high) in both.items() if low <= high}

    def close(self) -> None:
        self.theirs.close()
        self.ours.close()


@contextlib.contextmanager
def started(kafka: Kafka, folder: Path) -> Iterator[Sides]:
    """Both in `folder`, which must not exist; stopped at the end of the block. Raises AssertionError if one does not
    serve within START_S."""
    changes = {**SETTINGS, **RULES, "log.initial.task.delay.ms": "3600000"}
    peer = KafkaPeer(kafka, folder / "kafka", nodes=1, changes=changes, options=SMALL_HEAP)
    picker = PortPicker()
    try:
        peer.start()
        nodes = LocalNodes.create(folder / "ours", 1, {**SETTINGS, **RULES}, picker)
        try:
            nodes.start()
            nodes.wait_ready()
            theirs, ours = _address(peer.bootstrap_servers), _address(nodes.layout.bootstrap_servers)
            _wait_for(theirs, peer)
            sides = Sides(theirs, ours)
            try:
                yield sides
            finally:
                sides.close()
        finally:
            nodes.stop()
    finally:
        peer.close()
        picker.close()


def _warm(conversation: Conversation) -> None:
    """Until the coordinators of groups and of transactions serve: each is made at the first question for it."""
    plain = {"transactional_id": "warm", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    commit = {"group_id": "warm", "member_id": "", "generation_id_or_member_epoch": -1, "topics": []}
    asked = (
        ("find_coordinator", {"key_type": 0, "coordinator_keys": ["warm"]}), ("offset_commit", commit),
        ("find_coordinator", {"key_type": 1, "coordinator_keys": ["warm"]}), ("init_producer_id", plain),
    )  # fmt: skip
    until_s = time.monotonic() + START_S
    for api, values in asked:
        while True:
            answer = conversation.ask(api, 4, values)
            if not isinstance(answer, str) and not codes_of(answer):
                break
            assert time.monotonic() < until_s, f"{api} is still answered with {answer}"
            time.sleep(POLL_S)


def _address(bootstrap_servers: str) -> tuple[str, int]:
    host, _, port = bootstrap_servers.partition(":")
    return host, int(port)


def _wait_for(address: tuple[str, int], peer: KafkaPeer) -> None:
    """Until Kafka serves, which is later than that it listens: Metadata then names its broker."""
    until_s = time.monotonic() + START_S
    while True:
        with contextlib.suppress(OSError):
            with contextlib.closing(socket.create_connection(address, timeout=1)):
                conversation = Conversation(address, peer.name)
                answer = conversation.ask("metadata", 1, {"topics": []})
                conversation.close()
                if not isinstance(answer, str) and answer["brokers"]:
                    return
        assert time.monotonic() < until_s, (
            f"Kafka did not serve within {START_S:g} s: {peer.log(1).read_text()[-2_000:]}"
        )
        time.sleep(POLL_S)
