"""Transactions of Kafka's own tools. Their producers get an epoch for each transaction (transaction.version 2)."""

from __future__ import annotations

import re
import time

from cells_confluent import produce
from cells_java import run, table
from client_matrix import Place, Tool
from transactions_confluent import reader, transactional, values

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import get_kafka

RECORDS = 2_000
WAIT_S = 30.0


def producer_perf(place: Place) -> None:
    """Many short transactions, each with an epoch of its own; a consumer of committed records sees all of them."""
    said = get_kafka().run(
        kafka.PRODUCER_PERF, "--topic", place.topic, "--num-records", str(RECORDS), "--record-size", "100",
        "--throughput", "1000", "--transactional-id", place.topic, "--transaction-duration-ms", "100",
        "--command-property", f"bootstrap.servers={place.servers}",
    )  # fmt: skip
    assert f"{RECORDS} records sent" in said
    (described,) = [
        row for row in table(transactions(place, "describe", "--transactional-id", place.topic)) if place.topic in row
    ]
    assert int(described[3]) > 3, "the epoch rises with each transaction"
    said = run_committed(place, RECORDS)
    assert f"Processed a total of {RECORDS} messages" in said


def run_committed(place: Place, count: int) -> str:
    return run(
        kafka.CONSOLE_CONSUMER, place, "--topic", place.topic, "--partition", "0", "--offset", "earliest",
        "--max-messages", str(count), "--isolation-level", "read_committed", "--timeout-ms", "20000",
    )  # fmt: skip


def console(place: Place) -> None:
    """Aborted records are left out, and nothing behind an open transaction is read."""
    made = transactional(place)
    for value, commits in ((b"first", True), (b"aborted", False), (b"second", True)):
        made.begin_transaction()
        made.produce(place.topic, value)
        made.flush()
        _ = made.commit_transaction() if commits else made.abort_transaction()
    made.begin_transaction()
    made.produce(place.topic, b"open")
    made.flush()
    run(kafka.CONSOLE_PRODUCER, place, "--topic", place.topic, stdin="behind\n")
    said = run_committed(place, 2)
    assert [line for line in said.splitlines() if line in ("first", "second", "aborted", "open", "behind")] == [
        "first", "second"
    ]  # fmt: skip
    made.commit_transaction()
    assert "second\nopen\nbehind\n" in run_committed(place, 4)


def transactions(place: Place, *arguments: str) -> str:
    return run(kafka.TRANSACTIONS, place, *arguments)


def verbs(place: Place) -> None:
    """Every verb, on an open transaction of another client."""
    made = transactional(place)
    made.begin_transaction()
    made.produce(place.topic, b"open")
    made.flush()
    where = ("--topic", place.topic, "--partition", "0")
    filters = ("--transactional-id-pattern", f"{place.topic[:-1]}.*", "--duration-filter", "0")
    (listed,) = [row for row in table(transactions(place, "list", *filters)) if row[:1] == [place.topic]]
    producer_id = listed[2]
    assert listed[3] == "Ongoing"
    described = transactions(place, "describe", "--transactional-id", place.topic)
    assert producer_id in described and f"{place.topic}-0" in described
    rows = [row for row in table(transactions(place, "describe-producers", *where)) if row[:1] == [producer_id]]
    assert rows and rows[0][-1] == "0", "where the transaction begins"
    assert producer_id not in transactions(
        place, "find-hanging", "--topic", place.topic, "--max-transaction-timeout", "0"
    )
    transactions(place, "abort", *where, "--start-offset", "0")
    produce(place, [b"behind"])
    with reader(place) as committed:
        assert values(committed, 1) == [b"behind"], "nothing is open any more"
    transactions(place, "forceTerminateTransaction", "--transactionalId", place.topic)
    deadline = time.monotonic() + WAIT_S
    while not re.search(r"CompleteAbort|Empty", transactions(place, "describe", "--transactional-id", place.topic)):
        assert time.monotonic() < deadline


PERF = "kafka-producer-perf-test, transactional"
CONSOLE = "kafka-console-consumer, `--isolation-level read_committed`"
VERBS = "list, describe, describe-producers, find-hanging, abort, forceTerminateTransaction"
TRANSACTION_TOOLS = {
    PERF: Tool(PERF, "commit every 100 ms, an epoch for each transaction", producer_perf),
    CONSOLE: Tool(CONSOLE, "leave out aborted and open records", console),
    "kafka-transactions": Tool("kafka-transactions", VERBS, verbs),
}
