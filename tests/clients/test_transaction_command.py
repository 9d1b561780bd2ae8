"""`quorumlog transaction` beside Kafka's kafka-transactions, on transactions of another client: the same findings."""

from __future__ import annotations

import json
import time
from typing import Any

import cells_java
import pytest
from client_matrix import LISTED_SKIPS, Place
from transactions_confluent import reader, transactional, values

from bench.peers import kafka_tools as kafka
from quorumlog import Cluster
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit

WAIT_S = 20.0


class Command:
    """`quorumlog transaction ...` against one cluster."""

    def __init__(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        self._place, self._capsys = place, capsys

    def text(self, *arguments: str, code: Exit = Exit.DONE) -> str:
        self._capsys.readouterr()
        found = main(["transaction", *arguments, "-b", self._place.servers])
        said = self._capsys.readouterr()
        assert found == code, said.err
        return said.out + said.err * (code is not Exit.DONE)

    def document(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "-o", "json"))

    def state(self) -> str:
        return str(self.document("describe", self._place.topic)["state"])


@pytest.fixture
def place(cluster: LocalCluster) -> Any:
    with cluster.topic("transaction") as topic:
        yield Place(cluster.bootstrap_servers, topic.name)


@pytest.fixture
def command(place: Place, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(place, capsys)


def opened(place: Place, value: bytes) -> Any:
    """The producer of a transaction that is open. Its id is the topic's name."""
    made = transactional(place)
    made.begin_transaction()
    made.produce(place.topic, value)
    assert made.flush(WAIT_S) == 0
    return made


def test_an_open_transaction_is_listed_and_described(place: Place, command: Command) -> None:
    before_ms = time.time() * 1_000
    made = opened(place, b"open")
    name, where = place.topic, ("--topic", place.topic, "--partition", "0")
    (listed,) = command.document("list", "--transactional-id-pattern", name)
    assert (listed["transactional_id"], listed["state"]) == (name, "Ongoing")
    assert name in command.text("list", "--state", "Ongoing") and name not in command.text("list", "--state", "Empty")
    assert name not in command.text("list", "--duration-filter", "600000")
    assert name in command.text("list", "--state", "ongoing,empty")
    assert "--state Odd: it is none of Empty, Ongoing," in command.text("list", "--state", "Odd", code=Exit.USAGE)
    refused = command.text("list", "--transactional-id-pattern", "(", code=Exit.USAGE)
    assert "'(' is no RE2 expression: missing ): (" in refused
    found = command.document("describe", name)
    assert (found["state"], found["timeout_ms"], found["producer_id"]) == ("Ongoing", 60_000, listed["producer_id"])
    assert found["partitions"] == [{"topic": name, "partition": 0}]
    assert before_ms - 1_000 < found["start_time_ms"] < time.time() * 1_000 and found["duration_ms"] >= 0
    (producer,) = command.document("describe-producers", *where)
    assert (producer["producer_id"], producer["transaction_start_offset"]) == (listed["producer_id"], 0)
    words = command.text("describe-producers", *where).splitlines()[1].split()
    assert words[0] == str(listed["producer_id"]) and words[-1] == "0"
    assert command.document("find-hanging", "--topic", name, "--max-transaction-timeout", "0") == []
    made.commit_transaction(WAIT_S)
    wait_until(lambda: command.state() == "CompleteCommit", WAIT_S, "the markers to be written")
    assert command.document("describe-producers", *where)[0]["transaction_start_offset"] is None


def test_what_is_not_there_is_said_so(place: Place, command: Command) -> None:
    assert "nobody" in command.text("describe", "nobody", code=Exit.NOT_FOUND)
    assert "nobody" in command.text("abort", "--transactional-id", "nobody", code=Exit.NOT_FOUND)
    assert "nobody" not in command.text("list"), "asking does not make it"
    where = ("--topic", place.topic, "--partition", "0")
    assert "no open transaction" in command.text("abort", *where, "--start-offset", "0", code=Exit.NOT_FOUND)
    no_producer = ("--producer-id", "7", "--producer-epoch", "0", "--coordinator-epoch", "0")
    assert "producer 7 has no open transaction" in command.text("abort", *where, *no_producer, code=Exit.NOT_FOUND)
    nowhere = command.text("find-hanging", "--topic", place.topic, "--partition", "7", code=Exit.NOT_FOUND)
    assert f"there is no partition 7 of topic '{place.topic}'" in nowhere
    asks: list[tuple[str, ...]] = [
        ("describe-producers", "--partition", "0"),
        ("find-hanging",),
        ("abort", "--partition", "0", "--start-offset", "0"),
    ]
    for verb, *options in asks:
        said = command.text(verb, "--topic", "mistyped", *options, code=Exit.NOT_FOUND)
        assert "topic 'mistyped'" in said and "quorumlog topic list" in said
    for verb, *options in (asks[0], asks[1]):
        said = command.text(verb, "--topic", place.topic, *options, "--broker-id", "9", code=Exit.NOT_FOUND)
        assert "there is no broker 9, only 1, 2, 3" in said
    with Cluster(place.servers) as cluster:
        assert "mistyped" not in [topic.name for topic in cluster.admin.list_topics()], "asking does not make it"


def test_a_fenced_producer_loses_its_transaction(place: Place, command: Command) -> None:
    made = opened(place, b"lost")
    command.text("abort", "--transactional-id", place.topic)
    wait_until(lambda: command.state() in ("CompleteAbort", "Empty"), WAIT_S, "the abort to be complete")
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        made.commit_transaction(WAIT_S)
    after = opened(place, b"kept")
    after.commit_transaction(WAIT_S)
    with reader(place) as committed:
        assert values(committed, 1) == [b"kept"]


def test_an_abort_of_one_partition_lets_readers_pass(place: Place, command: Command) -> None:
    made = opened(place, b"open")
    where = ("--topic", place.topic, "--partition", "0")
    (producer,) = command.document("describe-producers", *where)
    command.text(
        "abort", *where, "--producer-id", str(producer["producer_id"]), "--producer-epoch",
        str(producer["producer_epoch"]), "--coordinator-epoch", str(producer["coordinator_epoch"] or -1),
    )  # fmt: skip
    assert command.document("describe-producers", *where)[0]["transaction_start_offset"] is None
    other = transactional(place, f"{place.topic}-other")
    other.begin_transaction()
    other.produce(place.topic, b"behind")
    other.commit_transaction(WAIT_S)
    with reader(place) as committed:
        assert values(committed, 1) == [b"behind"]
    del made


def test_kafkas_tool_says_the_same(place: Place, command: Command) -> None:
    reason = cells_java.missing()
    if reason:
        assert reason in LISTED_SKIPS
        pytest.skip(reason)
    made = opened(place, b"open")
    where = ("--topic", place.topic, "--partition", "0")
    ours = [row for row in command.document("list") if row["transactional_id"] == place.topic]
    theirs = [row for row in rows_of(place, "list") if row[:1] == [place.topic]]
    assert [row.pop("joint_group") for row in ours] == [None]
    assert [[str(value) for value in row.values()] for row in ours] == theirs
    described = command.document("describe", place.topic)
    (row,) = [row for row in rows_of(place, "describe", "--transactional-id", place.topic) if place.topic in row]
    wanted = [described[key] for key in ("coordinator", "transactional_id", "producer_id", "producer_epoch", "state")]
    assert row[:7] == [*map(str, wanted), str(described["timeout_ms"]), str(described["start_time_ms"])]
    (producer,) = command.document("describe-producers", *where)
    (row,) = [row for row in rows_of(place, "describe-producers", *where) if row[:1] == [str(producer["producer_id"])]]
    assert row[1] == str(producer["producer_epoch"]) and row[3] == str(producer["last_sequence"])
    assert row[4] == str(producer["last_timestamp_ms"]) and row[-1] == str(producer["transaction_start_offset"])
    made.abort_transaction(WAIT_S)


def rows_of(place: Place, *arguments: str) -> list[list[str]]:
    return cells_java.table(cells_java.run(kafka.TRANSACTIONS, place, *arguments))
