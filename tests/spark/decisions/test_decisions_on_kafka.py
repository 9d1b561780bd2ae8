"""Exactly-once writes to an Apache Kafka: what readers of committed records see, and what is left open."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from bench.peers.kafka_tools import OLDER, VERSION
from quorumlog.client.administration.transactions import OpenProducer, Outcome, TransactionPlace
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import ConfigError, RequestFailed
from quorumlog.errors import ErrorCode as E
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.kafka.calls import TOPIC
from quorumlog.spark.write.kafka.core import DecidedTransactionLost, DecisionsRefused, Limits, Overrides, RunOver
from quorumlog.spark.write.kafka.decisions import prefix_of
from quorumlog.spark.write.kafka.delivery import KafkaDelivery, Runs, largest_timeout_ms
from quorumlog.spark.write.kafka.listing import forget_sink, list_sinks
from quorumlog.spark.write.kafka.steps import End, Step
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from tests.spark.decisions.world import PARTITIONS, TIMEOUT_MS, batch, values_of, write
from tests.spark.kafka_server import await_markers, client_of, kafka_server

SCRIPT_TIMEOUT_S = 180.0
WAIT_S = 60.0  # for a transaction that has timed out, and for markers
EXPIRES_MS = 4_000
MANY = 60  # tasks of a batch
SHORT = Limits(min_left_ms=500)


@pytest.fixture(scope="module", params=[VERSION, OLDER])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka") / "node", request.param) as address:
        yield address


@pytest.fixture(scope="module")
def kafka(servers: str) -> Iterator[Cluster]:
    with client_of(servers) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.originalname.removeprefix("test_")[:60]
    kafka.admin.create_topic(name, PARTITIONS)
    return name


def delivery(servers: str, *, timeout_ms: int = TIMEOUT_MS, **more: object) -> KafkaDelivery:
    """With a process's memory of its own."""
    return KafkaDelivery(
        {"bootstrap_servers": servers},
        transaction_timeout_ms=timeout_ms,
        runs=Runs(),
        **more,  # type: ignore[arg-type]
    )


def readable(kafka: Cluster, topic: str) -> list[bytes]:
    await_markers(kafka)
    found = kafka.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
    return sorted(one.value or b"" for one in found)


def open_of(kafka: Cluster, group: str) -> list[str]:
    listed = kafka.admin.list_transactions(states=["Ongoing", "PrepareCommit", "PrepareAbort"])
    return [
        one.transaction.transactional_id
        for one in listed
        if one.transaction.transactional_id.startswith(prefix_of(group))
    ]


def until(condition: Callable[[], bool], what: str = "transactions to end") -> None:
    wait_until(condition, WAIT_S, what)


def test_batches_are_there_once(servers: str, kafka: Cluster, topic: str) -> None:
    made = delivery(servers)
    for number in range(3):
        of = batch(topic, number, "run-0")
        attempts = [write(made, of, b"%d" % task, topic, values_of(number, task)) for task in range(2)]
        write(made, of, b"stray", topic, [b"stray"])
        assert len(open_of(kafka, topic)) == 3
        made.commit(of, [one for one in attempts if one], {"rows": 8})
        assert made.begin(of, b"late") is None, "it is decided"
        assert open_of(kafka, topic) == []
    made.close()
    want = [value for number in range(3) for task in range(2) for value in values_of(number, task)]
    assert readable(kafka, topic) == sorted(want)
    (sink,) = [one for one in list_sinks(kafka) if one.group == topic]
    assert sink.decision is not None
    assert (sink.decision.sequence, sink.decision.ended, sink.open) == (2, True, [])


def run_driver(servers: str, group: str, topic: str, sequence: int, run: str, fatal: int = -1) -> str:
    """What the process said last."""
    command = [sys.executable, "-m", "tests.spark.decisions.driver_script"]
    done = subprocess.run(
        [*command, servers, group, topic, str(sequence), run, str(fatal)],
        capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.timeout(900)
def test_a_driver_killed_between_any_two_steps(servers: str, kafka: Cluster, topic: str) -> None:
    """Each batch by a driver that dies, and by one that is started after it; the last one lives."""
    died_before, said, sequence = [], "", 0
    while said != "done":
        said = run_driver(servers, topic, topic, sequence, f"run-{sequence}", fatal=sequence)
        if said != "done":
            died_before.append(said.removeprefix("died before "))
            assert run_driver(servers, topic, topic, sequence, f"run-{sequence}-again") == "done"
        assert open_of(kafka, topic) == []
        sequence += 1
    want = [value for number in range(sequence) for task in range(2) for value in values_of(number, task)]
    assert readable(kafka, topic) == sorted(want)
    assert Counter(died_before) >= Counter(
        [
            "Read",
            "Read",
            "TakeOver",
            "Describe",
            "Describe",
            "Write",
            "Write",
            "Commit",
            "Commit",
            "End",
            "ListOpen",
            "Fence",
        ]
    )


def decide_only(servers: str, of: BatchOf, attempts: list[Attempt | None]) -> None:
    """A driver dies before the first end."""

    class Died(Exception):
        pass

    def watch(step: Step) -> None:
        if isinstance(step, End):
            raise Died

    with pytest.raises(Died):
        made = delivery(servers, watch=watch, limits=SHORT)
        made.commit(of, [one for one in attempts if one], {"rows": 8})


@pytest.mark.parametrize("mixed", [False, True], ids=["all aborted", "one committed"])
def test_children_whose_time_is_over(servers: str, kafka: Cluster, mixed: bool) -> None:
    """The one hole: the first child has committed, nobody came back, and the other one was aborted by time."""
    name = f"expired-{mixed}"
    kafka.admin.create_topic(name, PARTITIONS)
    tasks = delivery(servers, timeout_ms=EXPIRES_MS, limits=SHORT)
    of = batch(name, 0, "run-0")
    attempts = [write(tasks, of, b"%d" % task, name, values_of(0, task)) for task in range(2)]
    decide_only(servers, of, attempts)
    first = attempts[0]
    assert first is not None
    if mixed:
        one = OpenProducer(first.transactional_id, first.producer_id, first.producer_epoch)
        until(lambda: kafka.admin.end_transactions([one], commit=True)[first.transactional_id] is E.NONE)
    until(lambda: open_of(kafka, name) == [])
    again = batch(name, 0, "run-1")
    if not mixed:
        made = delivery(servers)
        attempts = [write(made, again, b"a%d" % task, name, values_of(0, task)) for task in range(2)]
        made.commit(again, [one for one in attempts if one], {"rows": 8})
        assert readable(kafka, name) == sorted(values_of(0, 0) + values_of(0, 1))
        return
    lost = rf"batch 0 of {name} was decided.*lost are the rows at {name}-0 offsets \d+ to \d+, {name}-1.*acceptLost=0"
    for _ in range(2):
        with pytest.raises(DecidedTransactionLost, match=lost):
            delivery(servers).commit(again, [], {"rows": 8})
    with pytest.raises(DecidedTransactionLost, match=lost):
        delivery(servers).begin(again, b"t")
    delivery(servers, overrides=Overrides(accept_lost=0)).commit(again, [], {"rows": 8})
    assert delivery(servers).begin(again, b"t") is None
    assert readable(kafka, name) == values_of(0, 0)


def test_how_a_transaction_has_ended_is_read_from_the_log(servers: str, kafka: Cluster, topic: str) -> None:
    tasks = delivery(servers)
    of = batch(topic, 0, "run-0")
    found = {}
    attempts = {name: write(tasks, of, name.encode(), topic, [b"x"]) for name in ("commits", "aborts", "stays")}
    for name, one in attempts.items():
        assert one is not None
        producer = OpenProducer(one.transactional_id, one.producer_id, one.producer_epoch)
        (written,) = one.written
        place = TransactionPlace(written.topic, written.partition, written.first, written.last)
        assert kafka.admin.transaction_outcome(one.producer_id, place) is Outcome.OPEN
        if name != "stays":
            assert kafka.admin.end_transactions([producer], commit=name == "commits") == {one.transactional_id: E.NONE}
            until(lambda: kafka.admin.transaction_outcome(one.producer_id, place) is not Outcome.OPEN)  # noqa: B023
        found[name] = (one, place)
    outcomes = {name: kafka.admin.transaction_outcome(one.producer_id, place) for name, (one, place) in found.items()}
    assert outcomes == {"commits": Outcome.COMMITTED, "aborts": Outcome.ABORTED, "stays": Outcome.OPEN}
    one, place = found["commits"]
    assert kafka.admin.transaction_outcome(one.producer_id + 1_000, place) is not Outcome.COMMITTED, (
        "of another producer"
    )
    tasks.abort_attempt(of, found["stays"][0])
    until(lambda: kafka.admin.transaction_outcome(one.producer_id + 1_000, place) is Outcome.UNKNOWN)
    assert kafka.admin.transaction_outcome(found["aborts"][0].producer_id, found["aborts"][1]) is Outcome.ABORTED
    beyond = place._replace(first=10_000, last=10_000)
    assert kafka.admin.transaction_outcome(one.producer_id, beyond) is Outcome.UNKNOWN


def test_a_second_start_ends_the_first(servers: str, kafka: Cluster, topic: str) -> None:
    first, second = delivery(servers), delivery(servers)
    first.commit(batch(topic, 0, "run-0"), [], {"rows": 0})
    second.commit(batch(topic, 0, "run-1"), [], {"rows": 0})
    late = write(first, batch(topic, 1, "run-0"), b"t", topic, [b"late"])
    assert late is not None
    for _ in range(2):
        with pytest.raises(RunOver, match="another one has taken over"):
            first.commit(batch(topic, 1, "run-0"), [late], {"rows": 1})
    first.abort(batch(topic, 1, "run-0"), [late])
    of = batch(topic, 1, "run-1")
    second.commit(of, [write(second, of, b"t", topic, [b"x"])], {"rows": 1})  # type: ignore[list-item]
    assert open_of(kafka, topic) == []
    assert readable(kafka, topic) == [b"x"]
    with pytest.raises(RequestFailed, match="a copy has the same query id") as caught:
        delivery(servers).commit(batch(topic, 2, "run-2", "/copy"), [], {})
    assert caught.value.code is E.CHECKPOINT_COPIED
    of = batch(topic, 2, "run-1")
    second.commit(of, [], {})


def test_abort_closes_what_a_batch_has_open(servers: str, kafka: Cluster, topic: str) -> None:
    made = delivery(servers)
    of = batch(topic, 0, "run-0")
    attempts = [write(made, of, b"%d" % task, topic, [b"x"]) for task in range(2)]
    made.abort(of, [one for one in attempts[:1] if one])
    until(lambda: open_of(kafka, topic) == [])
    assert readable(kafka, topic) == []


def test_a_tasks_failure_aborts_its_transaction(servers: str, kafka: Cluster, topic: str) -> None:
    made = delivery(servers)
    of = batch(topic, 0, "run-0")
    attempt = made.begin(of, b"t")
    assert attempt is not None
    with pytest.raises(ZeroDivisionError), made.sender(attempt) as sender:
        sender.partition_count(topic)
        sender.queue(topic, pa.record_batch({"value": pa.array([b"x"], pa.binary())}), 0)
        sender.finish()
        assert open_of(kafka, topic) != []
        raise ZeroDivisionError
    until(lambda: open_of(kafka, topic) == [])


def test_the_brokers_limit_and_a_time_that_is_too_short(servers: str, kafka: Cluster, topic: str) -> None:
    assert largest_timeout_ms(kafka) == 900_000
    made = delivery(servers, timeout_ms=3_600_000)
    attempt = write(made, batch(topic, 0, "run-0"), b"t", topic, [b"x"])
    assert attempt is not None
    told = kafka.admin.describe_transactions([attempt.transactional_id, "unknown"])
    assert {name: one.transaction_timeout_ms for name, one in told.items()} == {attempt.transactional_id: 900_000}
    with pytest.raises(ConfigError, match="transactionTimeout is 60000 ms"):
        delivery(servers, timeout_ms=60_000).begin(batch(topic, 0, "run-0"), b"t")
    made.abort_attempt(batch(topic, 0, "run-0"), attempt)


@pytest.mark.parametrize(
    ("partitions", "policy"), [(1, "delete"), (1, "compact,delete"), (2, "compact")], ids=lambda value: str(value)
)
def test_a_topic_that_may_lose_decisions_is_refused(servers: str, kafka: Cluster, partitions: int, policy: str) -> None:
    """At every start; it ends as it began."""
    if TOPIC in {one.name for one in kafka.admin.list_topics()}:
        kafka.admin.delete_topic(TOPIC)
    until(lambda: TOPIC not in {one.name for one in kafka.admin.list_topics()}, "the topic to go")
    kafka.admin.create_topic(TOPIC, partitions, configs={"cleanup.policy": policy})
    try:
        of = batch("refused", 0, "run-0")
        for call in (lambda: delivery(servers).begin(of, b"t"), lambda: delivery(servers).commit(of, [], {})):
            with pytest.raises(DecisionsRefused, match=rf"has {partitions} and {policy}"):
                call()
    finally:
        kafka.admin.delete_topic(TOPIC)


def test_a_single_batch_leaves_no_record_and_a_group_can_be_forgotten(servers: str, kafka: Cluster, topic: str) -> None:
    made = delivery(servers)
    of = replace(batch(f"write/{topic}", 0, "run-0", ""), kind=JointKind.SINGLE)
    attempt = write(made, of, b"t", topic, [b"single"])
    assert attempt is not None
    made.commit(of, [attempt], {"rows": 1})
    made.commit(batch(topic, 0, "run-0"), [], {})
    attempt = write(made, batch(topic, 1, "run-0"), b"t", topic, [b"open"])
    assert attempt is not None
    sinks = {one.group: one for one in list_sinks(kafka)}
    assert f"write/{topic}" not in sinks
    (opened,) = sinks[topic].open
    assert (opened.transactional_id, opened.sequence, opened.state) == (attempt.transactional_id, 1, "Ongoing")
    assert opened.partitions == ((topic, 0),)
    with pytest.raises(RequestFailed, match="has transactions that are open"), client_of(servers) as other:
        forget_sink(other, topic)
    made.abort(batch(topic, 1, "run-0"), [attempt])
    until(lambda: open_of(kafka, topic) == [])
    for want in (True, False):
        with client_of(servers) as other:
            assert forget_sink(other, topic) is want
    assert readable(kafka, topic) == [b"single"]


def test_the_command_tells_aborts_and_forgets_groups(
    servers: str, kafka: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, object]:
        code = main(["spark", "sink", *arguments, "-b", servers, "-o", "json"])
        said = capsys.readouterr().out
        return code, json.loads(said) if said else None

    def listed(*arguments: str) -> dict[str, object] | None:
        code, rows = run("list", *arguments)
        assert code == 0
        return next((one for one in rows if one["group"] == topic), None)  # type: ignore[attr-defined]

    made = delivery(servers)
    attempt = write(made, batch(topic, 0, "run-0"), b"t", topic, [b"a"])
    assert attempt is not None
    row = listed()
    assert row is not None and (row["batch"], row["open"]) == (None, 1)
    assert run("forget", topic)[0] == Exit.PRECONDITION
    made.commit(batch(topic, 0, "run-0"), [attempt], {"rows": 1})
    assert write(made, batch(topic, 1, "run-0"), b"u", topic, [b"b"]) is not None
    row, opened = listed(), listed("--open")
    assert row is not None and (row["batch"], row["kind"], row["run"], row["open"]) == (0, "stream", "run-0", 1)
    assert row["totals"] == {"rows": 1} and row["location"] == "/checkpoint"
    assert abs(time.time() * 1_000 - row["decided_at_ms"]) < WAIT_S * 1_000  # type: ignore[operator]
    assert opened is not None and opened["partitions"] == [{"topic": topic, "partition": 0}]
    assert run("abort", topic) == (0, {"group": topic, "aborted": 1})
    until(lambda: open_of(kafka, topic) == [])
    with pytest.raises(RunOver):
        made.commit(batch(topic, 1, "run-0"), [], {})
    assert run("forget", topic) == (0, {"forgotten": topic})
    assert run("forget", topic)[0] == Exit.NOT_FOUND and listed() is None
    assert readable(kafka, topic) == [b"a"]


def test_a_task_that_begins_behind_its_drivers_abort_ends_by_itself(servers: str, kafka: Cluster, topic: str) -> None:
    """It has looked before the abort, and sends its first row behind it."""
    made, driver = delivery(servers), delivery(servers)
    of = batch(topic, 0, "run-0")
    attempt = made.begin(of, b"late")
    assert attempt is not None
    driver.abort(of, None)
    with pytest.raises(RequestFailed, match="its driver is done") as caught, made.sender(attempt) as sender:
        sender.partition_count(topic)
        sender.queue(topic, pa.record_batch({"value": pa.array([b"late"], pa.binary())}), 0)
    assert caught.value.code is E.CHILD_NOT_OPEN
    until(lambda: open_of(kafka, topic) == [])
    with pytest.raises(RequestFailed, match="its driver is done"):
        made.begin(of, b"later")
    made.close()
    again = delivery(servers)
    attempt = write(again, batch(topic, 0, "run-1"), b"t", topic, [b"again"])
    assert attempt is not None
    again.commit(batch(topic, 0, "run-1"), [attempt], {"rows": 1})
    assert readable(kafka, topic) == [b"again"]


def test_abort_while_commit_runs(servers: str, kafka: Cluster, topic: str) -> None:
    """As `stop` does: one waits for the other, and the batch is there whole."""
    entered, aborting = threading.Event(), threading.Event()

    def watch(step: Step) -> None:
        if isinstance(step, End) and not entered.is_set():
            entered.set()
            aborting.wait(WAIT_S)

    made = delivery(servers, watch=watch)
    of = batch(topic, 0, "run-0")
    attempts = [write(made, of, b"%d" % task, topic, values_of(0, task)) for task in range(2)]
    known = [one for one in attempts if one]
    with ThreadPoolExecutor(2) as pool:
        commit = pool.submit(made.commit, of, known, {"rows": 8})
        assert entered.wait(WAIT_S)
        abort = pool.submit(made.abort, of, None)
        aborting.set()
        commit.result(WAIT_S)
        abort.result(WAIT_S)
    assert readable(kafka, topic) == sorted(values_of(0, 0) + values_of(0, 1))
    assert open_of(kafka, topic) == []


def test_many_tasks(servers: str, kafka: Cluster, topic: str) -> None:
    """Of one batch: one record names them all. Attempts that write nothing are not in it."""
    made = delivery(servers)
    of = batch(topic, 0, "run-0")
    attempts = [write(made, of, b"%d" % task, topic, [b"%03d" % task]) for task in range(MANY)]
    unused = made.begin(of, b"unused")
    made.commit(of, [one for one in (*attempts, unused) if one], {"rows": MANY})
    assert readable(kafka, topic) == [b"%03d" % task for task in range(MANY)]
    assert open_of(kafka, topic) == []
