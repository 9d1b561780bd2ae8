"""Partitions that a Kafka writes for this test, transactions and compaction included, opened by our engine."""

from __future__ import annotations

import time
from pathlib import Path

from quorumlog.records import headers
from tests.formats.consumed import read_all
from tests.formats.kafka_directory import READ_COMMITTED, READ_UNCOMMITTED, batches_of, chosen, open_partition, rows_of
from tests.formats.kafka_dump import dump, files_below, kafka, must_be_sound
from tests.formats.kafka_node import KafkaNode
from tests.formats.test_kafka_dump import append_to
from tests.rules import rule

ISOLATIONS = (READ_COMMITTED, READ_UNCOMMITTED)
TOPICS = ("plain", "transactions", "compacted")
KEYS = 20
CLEANED_S = 60.0


@rule("storage 10.13")
def test_what_a_kafka_writes_now(tmp_path: Path) -> None:
    tool = kafka()
    settings = {"log.cleaner.backoff.ms": 200, "log.initial.task.delay.ms": 200}
    with KafkaNode(tool, tmp_path / "kafka", settings) as node:
        node.create("plain")
        node.create("transactions")
        node.create(
            "compacted", cleanup_policy="compact", segment_ms="200", min_cleanable_dirty_ratio="0.01",
            delete_retention_ms="0", max_compaction_lag_ms="500",
        )  # fmt: skip
        write_plain(node)
        write_transactions(node)
        write_compacted(node)
        read = {
            (topic, isolation): read_all(node.servers, topic, 0, isolation)
            for topic in TOPICS
            for isolation in ISOLATIONS
        }
        node.stop()
        for topic in TOPICS:
            check(node.data, topic, read)
            files = files_below(node.data / f"{topic}-0")
            must_be_sound(dump(tool, files, "--deep-iteration"), files)


def check(data: Path, topic: str, read: dict[tuple[str, str], list[list[object]]]) -> None:
    opened = open_partition(data, f"{topic}-0", clean=True)
    every = batches_of(opened.log)
    for isolation in ISOLATIONS:
        assert rows_of(chosen(every, isolation)) == read[topic, isolation], (topic, isolation)
    assert opened.high_watermark == opened.log.end_offset
    append_to(opened.log)
    opened.close()


def write_plain(node: KafkaNode) -> None:
    producer = node.producer(**{"compression.type": "lz4"})
    for number in range(1_000):
        producer.produce("plain", value=b"%d" % number, key=None if number % 3 else b"k", headers=[("h", None)])
    assert producer.flush(30) == 0


def write_transactions(node: KafkaNode) -> None:
    producer = node.producer(**{"transactional.id": "fresh"})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for n in range(5):
            producer.produce("transactions", value=b"%d-%d" % (number, n), partition=0)
        producer.flush(30)
        producer.abort_transaction(30) if number % 3 == 1 else producer.commit_transaction(30)


def write_compacted(node: KafkaNode) -> None:
    """Until the cleaner has taken records out."""
    producer = node.producer()
    deadline, number = time.monotonic() + CLEANED_S, 0
    while not was_cleaned(node.data / "compacted-0"):
        assert time.monotonic() < deadline, "Kafka's cleaner did not run"
        for _ in range(20):
            for _ in range(5):
                number += 1
                is_tombstone = number % 7 == 0
                producer.produce("compacted", key=b"%d" % (number % KEYS), value=None if is_tombstone else b"v" * 100)
            assert producer.flush(30) == 0
        time.sleep(0.3)  # for the segment to become old enough


def was_cleaned(folder: Path) -> bool:
    found = headers((folder / f"{0:020d}.log").read_bytes(), partial_tail=True)
    return bool(found) and (
        found[0].base_offset > 0 or any(header.count <= header.last_offset_delta for header in found)
    )
