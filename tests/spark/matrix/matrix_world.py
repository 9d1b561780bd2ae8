"""The topics that the matrix reads, in any cluster: plain, stamped by the broker, with transactions, trimmed, empty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from quorumlog.client.blocking import Cluster
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.testing.waiting import wait_until

PLAIN, STAMPED, PAID, TRIMMED, BARE, UNEVEN = "plain", "stamped", "paid", "trimmed", "bare", "uneven"
RECORDS = 30  # of PLAIN, by turns in partitions 0 and 1; 2 is empty
SIZES = (100, 10, 1)  # of UNEVEN's partitions
TRIMMED_TO = (8, 20)  # of the 20 records of each partition of TRIMMED
TRANSACTION = 5  # records: one that is committed, one that is aborted, one that is committed, one that is open
PAID_END, PAID_STABLE = 4 * TRANSACTION + 3, 3 * TRANSACTION + 3  # with the markers of the first three
OPEN_MS = 900_000  # the most that a broker lets a transaction be open
SETTLED_S = 60.0
HEADERS = (
    (),
    (("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")),
    (("only", b"\x00\xff"),),
)
KEYS = (b"key", b"", None)
VALUES = (b"value", None, b"")


@contextmanager
def written(cluster: Cluster) -> Iterator[int]:
    """Makes the topics. Yields the time of PLAIN's first record in ms; in the block a transaction is open."""
    start_ms = time.time_ns() // 1_000_000 - 3_600_000
    for name, partitions in ((PLAIN, 3), (STAMPED, 1), (PAID, 1), (TRIMMED, 2), (BARE, 2), (UNEVEN, 3)):
        configs = {"message.timestamp.type": "LogAppendTime"} if name == STAMPED else {}
        cluster.admin.create_topic(name, partitions, 1, configs=configs)
    with cluster.producer() as producer:
        for number in range(RECORDS):
            producer.send(
                PLAIN, VALUES[number // 3 % 3], key=KEYS[number % 3], partition=number % 2,
                timestamp_ms=start_ms + number, headers=HEADERS[number % len(HEADERS)],
            )  # fmt: skip
        for number in range(4):
            producer.send(STAMPED, b"%d" % number, partition=0, timestamp_ms=start_ms)
        for partition, size in enumerate(SIZES):
            for number in range(size):
                producer.send(UNEVEN, b"%d" % number, partition=partition)
        for number in range(40):
            producer.send(TRIMMED, b"%d" % number, partition=number % 2)
    trim(cluster)
    with cluster.producer(transactional_id="matrix", transaction_timeout_ms=OPEN_MS) as paying:
        for end in (paying.commit, paying.abort, paying.commit, None):
            paying.begin()
            for number in range(TRANSACTION):
                paying.send(PAID, b"%d" % number, partition=0)
            paying.flush()
            if end is not None:
                end()
        wait_until(lambda: stable_end(cluster) == PAID_STABLE, SETTLED_S, "the markers")
        yield start_ms
        paying.abort()


def trim(cluster: Cluster) -> None:
    wanted = {(TRIMMED, partition): offset for partition, offset in enumerate(TRIMMED_TO)}
    cluster.admin.delete_records(wanted)

    def starts() -> dict[tuple[str, int], int]:
        found = cluster.admin.list_offsets(dict.fromkeys(wanted, EARLIEST))
        return {key: one.offset for key, one in found.items()}

    wait_until(lambda: starts() == wanted, SETTLED_S, "the trimmed starts")


def stable_end(cluster: Cluster) -> int:
    return cluster.admin.list_offsets({(PAID, 0): LATEST}, isolation_level="read_committed")[PAID, 0].offset
