"""One member of the demo's consumer group: `python -m quorumlog_cli.demo.member`. It ends when its input ends.

It reads some flights, counts them per carrier, and commits the counts together with its offsets in one transaction. So
each flight is counted once, whichever process dies.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.client.blocking import Producer
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import CommitFailed, NotAssigned
from quorumlog.client.transactions.errors import TransactionFailed
from quorumlog_cli.demo.carriers import count_carriers

GROUP = "carriers"
SESSION_MS = 6_000  # the shortest that brokers take by default
HEARTBEAT_MS = 500
TRANSACTION_MS = 20_000
POLL_MS = 200


@dataclass(frozen=True, slots=True)
class Work:
    """column: of the carrier. at_once: records of one transaction."""

    source: str
    target: str
    column: int
    at_once: int


def count(consumer: Consumer, producer: Producer, work: Work, stop: threading.Event) -> None:
    """Until `stop`. Raises what the clients raise, but for a transaction that has to be done again."""
    producer.init_transactions()  # what an earlier life of this member left open is aborted now
    consumer.subscribe([work.source])
    while not stop.is_set():
        records = consumer.poll(work.at_once, timeout_ms=POLL_MS)
        if records:
            _count(consumer, producer, work, records)


def _count(consumer: Consumer, producer: Producer, work: Work, records: Sequence[ConsumedRecord]) -> None:
    counts = count_carriers((record.value or b"" for record in records), work.column)
    starts: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    for record in records:
        key = record.topic, record.partition
        starts.setdefault(key, record.offset)
        ends[key] = record.offset + 1
    try:
        with producer.transaction():
            for carrier, flights in counts.items():
                producer.send(work.target, str(flights), key=carrier)
            producer.send_offsets(ends, consumer.group_metadata())
    except (TransactionFailed, CommitFailed) as error:  # such as: the group has given the partitions to another member
        print(f"done again: {error}", file=sys.stderr, flush=True)
        for (topic, partition), offset in starts.items():
            try:
                consumer.seek(topic, partition, offset)
            except NotAssigned:
                pass  # its new owner reads from the last committed offset on


def _await_end(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m quorumlog_cli.demo.member")
    for name in ("bootstrap-servers", "transactional-id", "source", "target"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("column", "at-once"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args(arguments)
    stop = threading.Event()
    threading.Thread(target=_await_end, args=(stop,), name="end of input", daemon=True).start()
    servers = {"bootstrap_servers": given.bootstrap_servers}
    reader = {
        "group_id": GROUP, "enable_auto_commit": False, "auto_offset_reset": "earliest",
        "session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS,
    }  # fmt: skip
    writer = {"transactional_id": given.transactional_id, "transaction_timeout_ms": TRANSACTION_MS}
    with Consumer(servers, **reader) as consumer, Producer(servers, **writer) as producer:
        count(consumer, producer, Work(given.source, given.target, given.column, given.at_once), stop)


if __name__ == "__main__":
    main()
