"""What a task and the driver do with a batch that is written exactly once, against the real core of the coordinator."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.batches.delivery import DeliveredRange
from quorumlog.client.errors import (
    CheckpointRolledBack,
    ChildNotOpen,
    ConfigError,
    DeliveryTimeout,
    NoJointTransactions,
    ReplayDiffers,
    Superseded,
    Unavailable,
    refused,
)
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import AbortJointRequest, BeginJointRequest, CommitJointRequest, ListedJointGroup
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.rpc.transport import OutcomeUnknown
from quorumlog.spark.write.joint_delivery import NAME_BYTES, TOPICS_TOLD, JointDelivery, facts_of
from quorumlog.spark.write.once import (
    BATCH,
    MOST_REMEMBERED,
    QUERY,
    RUN,
    BatchFailed,
    LastBatches,
    abort_once,
    batch_of_job,
    batch_of_messages,
    batch_of_task,
    commit_once,
    query_at,
    unknown_batch,
    write_once,
)
from quorumlog.spark.write.options import OnceOptions, WriteOptions, parse_write_options
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from quorumlog.spark.write.sending.message import Part, Spans, TaskDone
from tests.broker.coordinator.joint.joint_world import JointWorld

HERE = "/checkpoints/q"
WRONG = pa.record_batch({"value": pa.array([b"v"]), "topic": pa.array([None], pa.string())})


class CoreCalls:
    """`JointCalls` of a coordinator without a network. lost: calls whose next answer does not come."""

    def __init__(self, world: JointWorld) -> None:
        self.world = world
        self.lost: set[str] = set()
        self.asked: list[Any] = []
        self.closed = 0

    def begin(self, request: BeginJointRequest, timeout_ms: int | None = None) -> Any:
        return self._answer("begin", self.world.call("begin_joint", request), request)

    def commit(self, request: CommitJointRequest, timeout_ms: int | None = None) -> Any:
        return self._answer("commit", self.world.call("commit_joint", request), request)

    def abort(self, request: AbortJointRequest, timeout_ms: int | None = None) -> Any:
        return self._answer("abort", self.world.call_long("abort_joint", request), request)

    def list_groups(self) -> list[ListedJointGroup]:
        return list(self.world.listed_groups().values())

    def close(self) -> None:
        self.closed += 1

    def _answer(self, name: str, number: int, request: Any) -> Any:
        self.asked.append(request)
        answer = self.world.answers[number]
        if name in self.lost:
            self.lost.discard(name)
            raise Unavailable("no answer")
        if answer.error_code:
            raise refused(ErrorCode(answer.error_code), answer.error_message)
        return answer


class SinksDelivery(JointDelivery):
    """The real one, but for the producer of a task."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink.options, sink.once, lambda _: sink.calls, sink.pause)
        self._sink = sink

    def sender(self, attempt: Attempt) -> Any:
        return NoSender(self._sink, attempt)


class NoSender:
    def __init__(self, sink: Sink, attempt: Attempt) -> None:
        self.attempt, self.lives = attempt, {"orders": sink.life}
        sink.sent.append(attempt)

    def __enter__(self) -> NoSender:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Sink:
    """Tasks and the driver of one query or job, and its coordinator. `start` is another start of the same query."""

    def __init__(self, **options: str) -> None:
        self.calls = CoreCalls(JointWorld())
        self.rng = random.Random(1)
        self.run, self.query = "run-1", "q"
        self.sent: list[Attempt] = []
        self.fails: BaseException | None = None
        self.pauses: list[Callable[[], object]] = []  # what happens in each pause of the driver's abort
        self.paused = 0
        self.life = b"1" * 16  # id of the topic `orders`
        self.set(**options)

    def set(self, **options: str) -> None:
        is_stream = "writeId" not in options
        given = {"bootstrap.servers": "h:1", "topic": "orders", **options}
        if is_stream:
            given.setdefault("checkpointLocation", HERE)
        self.options = parse_write_options(given, is_stream=is_stream)
        self.delivery = SinksDelivery(self)

    def pause(self, _: float) -> None:
        self.paused += 1
        if self.pauses:
            self.pauses.pop(0)()

    @property
    def once(self) -> OnceOptions:
        assert self.options.once is not None
        return self.options.once

    def batch(self, sequence: int) -> BatchOf:
        properties = {QUERY: self.query, BATCH: str(sequence), RUN: self.run}
        return batch_of_task(self.once, properties.get)

    def task(self, batch: BatchOf, *rows: int) -> TaskDone:
        """rows: of each of Spark's batches."""
        return write_once(
            [table(count) for count in rows], self.options, batch, self.delivery, self.send, self.rng.randbytes
        )

    def send(self, batches: Iterable[Any], _: Any) -> TaskDone:
        spans = Spans()
        for batch in batches:
            if batch is WRONG:
                return TaskDone(spans, "a row has no topic", all_told=False)
            spans.took([part("orders", 0, batch.num_rows)])
        if self.fails is not None:
            raise self.fails
        return TaskDone(spans)

    def commit(self, batch: BatchOf, *messages: TaskDone | None) -> None:
        commit_once(messages, self.options, batch, self.delivery)

    def write(self, sequence: int, *rows: int) -> None:
        batch = self.batch(sequence)
        self.commit(batch, *(self.task(batch, count) for count in rows))

    def open(self) -> int:
        return sum(len(group.open) for group in self.calls.list_groups())

    def decided(self, group: str = "spark/q") -> int:
        """The last sequence; -1: none."""
        listed = self.calls.world.listed_groups().get(group)
        return -1 if listed is None else listed.sequence


def table(rows: int) -> Any:
    return pa.record_batch({"value": pa.array([b"v"] * rows, pa.binary())})


def part(topic: str, partition: int, count: int) -> DeliveredRange:
    return DeliveredRange(topic=topic, partition=partition, base_offset=0, count=count, may_be_duplicated=False)


# --- a task ---


def test_a_task_begins_with_its_first_row() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch)
    assert (done.part, sink.calls.asked) == (Part(batch=batch, attempt=None, rows={}), [])
    assert sink.task(batch, 0, 0).part == done.part and sink.calls.asked == []
    done = sink.task(batch, 0, 3, 4)
    assert done.part is not None and done.part.attempt is not None and done.part.rows == {"orders": 7}
    assert len(sink.calls.asked) == 1 and sink.open() == 1


def test_each_call_of_write_has_a_token_of_its_own() -> None:
    sink = Sink()
    for _ in range(20):
        sink.task(sink.batch(0), 1)
    assert len({attempt.token for attempt in sink.sent}) == 20 == sink.open()


@pytest.mark.parametrize("error", [DeliveryTimeout("late", outcome_unknown=True), KeyboardInterrupt()], ids=repr)
def test_a_task_that_fails_aborts_its_own_attempt_only(error: BaseException) -> None:
    sink = Sink()
    sink.task(sink.batch(0), 1)
    sink.fails = error
    with pytest.raises(type(error)):
        sink.task(sink.batch(0), 1)
    assert sink.open() == 1


def test_a_task_that_refuses_a_row_aborts_its_attempt() -> None:
    sink = Sink()
    done = write_once([table(1), WRONG], sink.options, sink.batch(0), sink.delivery, sink.send, sink.rng.randbytes)
    assert (done.refusal, sink.open()) == ("a row has no topic", 0)


def test_an_abort_that_fails_hides_no_error() -> None:
    sink = Sink()
    sink.fails = RuntimeError("of the task")
    sink.calls.lost = {"abort"}
    with pytest.raises(RuntimeError, match="of the task"):
        sink.task(sink.batch(0), 1)


def test_a_begin_without_an_answer_leaves_nothing_open() -> None:
    sink = Sink()
    sink.calls.lost = {"begin"}
    with pytest.raises(Unavailable):
        sink.task(sink.batch(0), 1)
    assert sink.open() == 0


def test_a_decided_batch_is_counted_and_not_sent() -> None:
    sink = Sink()
    sink.write(0, 5, 7)
    sink.sent.clear()
    sink.run = "run-2"
    sink.write(0, 4, 4, 4)  # other tasks, as many rows
    assert sink.sent == []
    with pytest.raises(ReplayDiffers, match="was decided with orders=12, and is replayed with orders=11"):
        sink.write(0, 11)
    with pytest.raises(ReplayDiffers, match="is replayed with none"):
        sink.write(0)
    sink.set(replayMismatch="0")
    sink.write(0, 11)
    assert sink.open() == 0


def test_a_topic_that_was_made_anew_within_a_batch_fails_it_and_the_repetition_is_whole() -> None:
    """Else what went into the new topic would be readable, and what went into the former one never."""
    sink = Sink()
    batch = sink.batch(0)
    before = sink.task(batch, 5)
    sink.life = b"2" * 16
    after = sink.task(batch, 7)
    with pytest.raises(BatchFailed, match="topic 'orders' was deleted and made anew while the batch was written"):
        sink.commit(batch, before, after, sink.task(batch))
    assert sink.decided() == -1
    abort_once([before, after], batch, sink.delivery, "batch 0")
    assert sink.open() == 0
    sink.run = "run-2"
    sink.write(0, 5, 7)
    sink.life = b"3" * 16  # between two batches it is no harm
    sink.write(1, 5)
    assert sink.decided() == 1


def test_a_checkpoint_that_was_begun_anew_under_a_sink_id_does_not_pass_for_a_repetition() -> None:
    """Its batch 0 may have as many rows as the one that was decided, and they are others: they would vanish."""
    sink = Sink(sinkId="s")
    sink.write(0, 5)
    sink.run = "run-2"
    sink.write(0, 5)
    sink.run, sink.query = "run-3", "another"
    with pytest.raises(
        ReplayDiffers, match=r"If the \(query\) differs, the checkpoint was begun anew: give it another"
    ):
        sink.write(0, 5)
    sink.set(sinkId="s-2")
    sink.sent.clear()
    # the same coordinator, another group
    sink.write(0, 5)
    assert len(sink.sent) == 1 and (sink.decided("s"), sink.decided("s-2")) == (0, 0)


def test_a_decided_batch_with_a_row_that_cannot_be_is_refused() -> None:
    sink = Sink()
    sink.write(0, 1)
    by_row = WriteOptions(client={}, once=sink.once)
    done = write_once([WRONG], by_row, sink.batch(0), sink.delivery, sink.send, sink.rng.randbytes)
    assert done.refusal.startswith("a row has no topic: its column is null")


# --- the driver ---


def test_a_batch_without_rows_is_decided() -> None:
    sink = Sink()
    for sequence in range(3):
        sink.write(sequence, 0, 0)
    assert sink.decided() == 2


def test_only_the_winners_commit() -> None:
    sink = Sink()
    batch = sink.batch(0)
    loser, winner = sink.task(batch, 5), sink.task(batch, 5)
    sink.commit(batch, winner)
    assert loser.part is not None and winner.part is not None
    request = sink.calls.asked[-1]
    assert [(child.slot, child.token) for child in request.children] == [
        (winner.part.attempt.slot, winner.part.attempt.token) if winner.part.attempt else None
    ]
    assert sink.open() == 0, "the other attempt aborts"


@pytest.mark.parametrize("messages", [[None], [TaskDone(Spans())]], ids=["none", "without a part"])
def test_nothing_is_decided_without_each_tasks_word(messages: list[TaskDone | None]) -> None:
    sink = Sink()
    batch = sink.batch(0)
    with pytest.raises(BatchFailed, match="1 of 2 tasks did not tell"):
        sink.commit(batch, sink.task(batch, 1), *messages)
    assert not [request for request in sink.calls.asked if isinstance(request, CommitJointRequest)]


def test_tasks_of_two_runs_are_no_batch() -> None:
    sink = Sink()
    first = sink.task(sink.batch(0), 1)
    sink.run = "run-2"
    with pytest.raises(BatchFailed, match="the tasks tell of 2 batches"):
        batch_of_messages([first, sink.task(sink.batch(0), 1)])
    assert batch_of_messages([None]) is None


def test_a_child_that_took_too_long() -> None:
    sink = Sink(transactionTimeout="10s")
    batch = sink.batch(0)
    done = sink.task(batch, 1)
    sink.calls.world.pass_ms(60_000)
    why = (
        "it was open for longer than transactionTimeout; nothing was decided. transactionTimeout is 10000 ms; raise it"
    )
    with pytest.raises(ChildNotOpen, match=why):
        sink.commit(batch, done)
    sink.write(0, 1)
    assert sink.decided() == 0


def test_of_two_runs_the_one_that_decides_goes_on() -> None:
    """Two drivers of one checkpoint at once. The first one's tasks stop nobody, and it decides nothing more."""
    sink = Sink()
    sink.write(0, 5)
    old = sink.batch(1)
    late = sink.task(old, 5)
    sink.run = "run-2"
    sink.write(1, 5)
    for act in (lambda: sink.commit(old, late), lambda: sink.task(old, 5)):
        with pytest.raises(Superseded, match=r"run run-1 of spark/q is over.*stop one of the two"):
            act()
    sink.write(2, 5)
    assert sink.decided() == 2


def test_a_commit_without_an_answer_is_repeated_by_another_run() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch, 5)
    sink.calls.lost = {"commit"}
    with pytest.raises(Unavailable):
        sink.commit(batch, done)
    abort_once([done], batch, sink.delivery, "batch 0")
    sink.run = "run-2"
    sink.write(0, 5)
    assert len(sink.sent) == 1 and sink.decided() == 0


def test_markers_that_are_late_are_told() -> None:
    sink = Sink()
    sink.calls.world.automark = False
    batch = sink.batch(0)
    done = sink.task(batch, 5)
    attempt = done.part.attempt if done.part else None
    assert attempt is not None
    producer = (attempt.producer_id, attempt.producer_epoch)
    sink.calls.world.add(producer, ("a", 0), transactional_id=attempt.transactional_id)

    def commit(request: CommitJointRequest, timeout_ms: int | None = None) -> Any:
        number = sink.calls.world.call("commit_joint", request)
        sink.calls.world.pass_ms(request.commit_wait_ms)
        return sink.calls.world.answers[number]

    sink.calls.commit = commit  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match="sequence 0 of spark/q is decided, and readers .* do not see all of it after"):
        sink.commit(batch, done)


# --- batches with names, and without ---


def job(sink: Sink) -> BatchOf:
    return batch_of_job(sink.once, sink.rng.randbytes)


def write_job(sink: Sink, *rows: int) -> None:
    batch = job(sink)
    sink.commit(batch, *(sink.task(batch, count) for count in rows))


def test_a_job_without_a_name_is_a_batch_of_its_own() -> None:
    sink = Sink(writeId="a", writeVersion="0")
    once = OnceOptions()
    first, second = (batch_of_job(once, sink.rng.randbytes) for _ in range(2))
    assert first.kind == second.kind == JointKind.SINGLE and first.group != second.group and first.run != second.run
    assert first.group == f"write/{first.run}" and first.sequence == 0


def test_a_job_with_a_name_is_written_once() -> None:
    sink = Sink(writeId="nightly", writeVersion="7")
    assert job(sink).run != job(sink).run and job(sink).group == "write/nightly"
    write_job(sink, 5, 5)
    with pytest.warns(UserWarning, match="not written again"):
        write_job(sink, 5, 5)
    assert len(sink.sent) == 2
    sink.set(writeId="nightly", writeVersion="9")
    write_job(sink, 5)
    assert sink.decided("write/nightly") == 9


def test_a_version_that_is_not_written_again_is_told() -> None:
    """It may be another write of the same foreachBatch, whose rows would vanish without a word."""
    sink = Sink(writeId="nightly", writeVersion="7")
    with warnings.catch_warnings(action="error"):
        write_job(sink, 5, 5)
    with pytest.warns(
        UserWarning, match="nightly: version 7 was written before, and its 10 rows are not written again"
    ):
        write_job(sink, 4, 6)
    sink.set(writeId="nightly", writeVersion="8")
    with warnings.catch_warnings(action="error"):
        for _ in range(2):
            write_job(sink)


def test_an_older_version_is_an_error_or_skipped() -> None:
    sink = Sink(writeId="nightly", writeVersion="7")
    write_job(sink, 5)
    sink.set(writeId="nightly", writeVersion="6")
    for rows in ([], [3]):
        with pytest.raises(CheckpointRolledBack, match="is at sequence 7, and 6 is below it"):
            write_job(sink, *rows)
    sink.set(writeId="nightly", writeVersion="6", skipOlder="true")
    for rows in ([0], [3, 0]):
        with pytest.warns(UserWarning, match=r"write/nightly: version 6 is skipped \(skipOlder\)"):
            write_job(sink, *rows)
    assert len(sink.sent) == 1 and sink.open() == 0


def test_a_version_that_is_passed_after_its_first_row_fails_also_with_skip_older() -> None:
    sink = Sink(writeId="nightly", writeVersion="6", skipOlder="true")
    batch = job(sink)
    done = sink.task(batch, 3)
    sink.set(writeId="nightly", writeVersion="7")
    write_job(sink, 5)
    sink.set(writeId="nightly", writeVersion="6", skipOlder="true")
    with pytest.raises(CheckpointRolledBack):
        sink.commit(batch, done, sink.task(batch, 3))


# --- aborts ---


def test_an_abort_of_a_run_leaves_other_runs_alone() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch, 1)
    sink.task(batch, 1)  # its task died before it told
    sink.run = "run-2"
    sink.task(sink.batch(0), 1)
    abort_once([done, None], batch, sink.delivery, "batch 0")
    assert sink.open() == 1


def test_an_abort_without_a_message_finds_what_is_open_by_its_location() -> None:
    """`query.stop()` kills the workers, and readers of committed records would wait for transactionTimeout."""
    sink = Sink()
    sink.task(sink.batch(0), 1)
    sink.calls.world.begin(0, b"other", "run-9", group_id="spark/other", location="/checkpoints/other")
    sink.calls.world.begin(3, b"later", "run-9", group_id="spark/later", location=HERE, first_batch=3)
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    groups = sink.calls.world.listed_groups()
    assert {name: len(group.open) for name, group in groups.items() if group.open} == {
        "spark/other": 1,
        "spark/later": 1,
    }


def test_an_abort_without_a_message_aborts_nobody_if_two_runs_are_open() -> None:
    """One of them may be that of another driver, which goes on."""
    sink = Sink()
    for run in ("run-1", "run-2"):
        sink.run = run
        sink.task(sink.batch(0), 1)
    abort_once([], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    assert sink.open() == 2


@pytest.mark.parametrize("early", [0, 1], ids=["nothing is open yet", "one is open"])
def test_a_task_that_begins_behind_the_abort_leaves_nothing_open(early: int) -> None:
    """Spark calls abort at once, and ends the workers some seconds later."""
    sink = Sink()
    batch = sink.batch(0)
    for _ in range(early):
        sink.task(batch, 1)
    sink.pauses = [lambda: None, lambda: sink.task(batch, 1), lambda: None]
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    assert sink.paused == (0 if early else 2), "it is looked for until its run is known"
    with pytest.raises(ChildNotOpen, match="run run-1 has aborted sequence 0 of spark/q: its driver is done"):
        sink.task(batch, 1)
    assert len(sink.sent) == 1 and sink.open() == 0


def test_an_abort_leaves_the_next_start_alone() -> None:
    sink = Sink()
    sink.task(sink.batch(0), 1)
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    sink.run = "run-2"
    sink.task(sink.batch(0), 1)
    assert [child.run for child in sink.calls.list_groups()[0].open] == ["run-2"]


def test_an_abort_waits_for_nobody_if_all_tasks_have_told_or_the_batch_is_decided() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch, 1)
    abort_once([done], batch, sink.delivery, "batch 0")
    sink.run = "run-2"
    sink.write(0, 1)
    abort_once([done, None], sink.batch(0), sink.delivery, "batch 0")
    assert sink.paused == 0


def test_an_abort_without_a_message_aborts_nobody_if_two_queries_have_such_a_location() -> None:
    """`/checkpoints/q` of two machines: one of them goes on, and what stops there fails none of its batches."""
    sink = Sink()
    sink.task(sink.batch(0), 1)
    sink.calls.world.begin(0, b"other", "run-9", group_id="spark/other", location=HERE)
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    assert sink.open() == 2
    last = LastBatches()
    last.told(sink.batch(0))
    abort_once([None], unknown_batch(sink.once, 0, last), sink.delivery, "batch 0")
    assert {name for name, group in sink.calls.world.listed_groups().items() if group.open} == {"spark/other"}


def checkpoint(place: Path, text: str) -> str:
    place.mkdir()
    (place / "metadata").write_text(text)
    return str(place)


def test_an_abort_without_a_message_goes_by_the_query_of_its_checkpoint(tmp_path: Path) -> None:
    """Another machine's query has a checkpoint at such a path, and is the only one that has this batch open."""
    sink = Sink()
    sink.set(checkpointLocation=checkpoint(tmp_path / "q", '{"id":"q"}'))
    here = sink.once.location
    sink.calls.world.begin(0, b"other", "run-9", group_id="spark/other", location=here)
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    assert sink.open() == 1, "its children are not this query's"
    sink.task(sink.batch(0), 1)
    last = LastBatches()
    last.told(replace(sink.batch(0), group="spark/before"))  # of a checkpoint that was here before
    abort_once([None], unknown_batch(sink.once, 0, last), sink.delivery, "batch 0")
    assert {name for name, group in sink.calls.world.listed_groups().items() if group.open} == {"spark/other"}


METADATA = [
    ("as Spark writes it", '{"id":"2d8f4c3e-0000-4000-8000-000000000001"}', "2d8f4c3e-0000-4000-8000-000000000001"),
    ("no id", "{}", ""),
    ("no text", '{"id":7}', ""),
    ("no document", "[]", ""),
    ("damaged", '{"id":"q', ""),
    ("nothing", "", ""),
    ("larger than it may be", '{"id":"q","x":"' + "x" * 5_000 + '"}', ""),
]


@pytest.mark.parametrize(("text", "query"), [one[1:] for one in METADATA], ids=[one[0] for one in METADATA])
def test_the_query_of_a_checkpoint(text: str, query: str, tmp_path: Path) -> None:
    place = checkpoint(tmp_path / "q", text)
    assert query_at(place) == query
    for elsewhere in (str(tmp_path), str(tmp_path / "none"), f"hdfs://{place}", ""):
        assert query_at(elsewhere) == ""


def test_an_abort_without_a_message_is_kept_by_no_other_checkpoint() -> None:
    """A copy with the same query id may be open at the same batch, in the same group."""
    sink = Sink()
    sink.task(sink.batch(0), 1)
    sink.calls.world.begin(0, b"copy", "run-9", group_id="spark/q", location="/checkpoints/copy")
    abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")
    open_of = sink.calls.world.listed_groups()["spark/q"].open
    assert [child.location for child in open_of] == ["/checkpoints/copy"]


def test_the_group_of_a_stream_is_remembered_within_bounds() -> None:
    last = LastBatches()
    sink = Sink()
    for number in range(MOST_REMEMBERED + 1):
        last.told(BatchOf(group=f"spark/{number}", kind=0, location=f"/c/{number}", run="r", sequence=0))
    assert [last.group_at(f"/c/{number}") for number in (0, 1, MOST_REMEMBERED)] == ["", "spark/1", "spark/64"]
    last.told(BatchOf(group="spark/none", kind=0, location="", run="r", sequence=0))
    assert last.group_at("") == "", "queries without a location are not told apart"
    last.told(sink.batch(4))
    assert unknown_batch(sink.once, 5, last) == BatchOf(group="spark/q", kind=0, location=HERE, run="", sequence=5)
    sink.set(sinkId="s")
    assert unknown_batch(sink.once, 5, LastBatches()).group == "s"


def test_an_abort_that_fails_is_told() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch, 1)
    sink.calls.lost = {"abort"}
    with pytest.warns(UserWarning, match="batch 0 failed, and its transactions could not be aborted: no answer"):
        abort_once([done], batch, sink.delivery, "batch 0")


def test_an_abort_that_cannot_look_is_told() -> None:
    sink = Sink()

    def list_groups() -> list[ListedJointGroup]:
        raise OutcomeUnknown("a broker does not answer")

    sink.calls.list_groups = list_groups  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match="could not be aborted: a broker does not answer"):
        abort_once([None], unknown_batch(sink.once, 0, LastBatches()), sink.delivery, "batch 0")


def test_a_decided_batch_is_not_aborted() -> None:
    sink = Sink()
    batch = sink.batch(0)
    done = sink.task(batch, 1)
    sink.commit(batch, done)
    with warnings.catch_warnings(action="error"):
        abort_once([done], batch, sink.delivery, "batch 0")
    assert sink.decided() == 0


# --- what the batch is called ---


@pytest.mark.parametrize("missing", [QUERY, BATCH, RUN])
def test_a_task_outside_of_a_query_is_refused(missing: str) -> None:
    properties = {QUERY: "q", BATCH: "4", RUN: "r"}
    batch = batch_of_task(OnceOptions(location=HERE), properties.get)
    assert batch == BatchOf(group="spark/q", kind=JointKind.STREAM, location=HERE, run="r", sequence=4)
    named = batch_of_task(OnceOptions(sink_id="s"), properties.get)
    assert (named.group, named.query) == ("s", "q")
    del properties[missing]
    with pytest.raises(ConfigError, match="Spark has not told the task its query, batch and run"):
        batch_of_task(OnceOptions(), properties.get)


def test_a_cluster_without_joint_transactions_says_what_will_do() -> None:
    sink = Sink()

    def begin(_: BeginJointRequest, timeout_ms: int | None = None) -> Any:
        raise NoJointTransactions("the cluster has none")

    sink.calls.begin = begin  # type: ignore[method-assign]
    with pytest.raises(NoJointTransactions, match=r'has none\. Say .option\("delivery", "at-least-once"\)'):
        sink.task(sink.batch(0), 1)


NAMES = st.text("ab.", min_size=1, max_size=3) | st.text("xy", min_size=NAME_BYTES - 1, max_size=NAME_BYTES + 2)
TOTALS = st.dictionaries(NAMES, st.integers(1, 3), max_size=TOPICS_TOLD + 4)


@given(TOTALS, TOTALS)
def test_facts_are_equal_if_the_totals_are(some: Mapping[str, int], others: Mapping[str, int]) -> None:
    assert (facts_of(some) == facts_of(others)) == (dict(some) == dict(others))
    assert facts_of(dict(reversed(list(some.items())))) == facts_of(some)


@pytest.mark.parametrize("topics", [1, TOPICS_TOLD, TOPICS_TOLD + 1, TOPICS_TOLD + 5])
def test_totals_are_compared_in_each_topic(topics: int) -> None:
    totals = {f"t{number:02}": 10 + number for number in range(topics)}
    found = {facts_of(totals)}
    for topic, rows in totals.items():
        found |= {facts_of({**totals, topic: rows + 1}), facts_of({**totals, topic: 0})}
    assert len(found) == 1 + 2 * topics
    if topics > 1:
        first, last = "t00", f"t{topics - 1:02}"
        assert facts_of({**totals, first: totals[last], last: totals[first]}) not in found, "as many rows in all"


def test_any_number_of_topics_with_any_names_fits_into_a_decision() -> None:
    for topics in (0, 1, TOPICS_TOLD, TOPICS_TOLD + 1, 1_000):
        sink = Sink()
        number = sink.calls.world.call(
            "commit_joint",
            CommitJointRequest(
                group_id="spark/q",
                run="r",
                sequence=0,
                facts=facts_of({f"{n:0249}": 2**40 for n in range(topics)}, "q"),
            ),
        )
        assert sink.calls.world.answers[number].error_code == 0
