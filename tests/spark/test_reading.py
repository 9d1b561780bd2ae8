"""One task against a scripted client: the whole range, once, or an error that names the loss."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import replace

import pytest

from quorumlog.client.errors import RequestFailed, TopicReplaced, Unavailable
from quorumlog.client.fetching.loop import TruncatedLog
from quorumlog.client.fetching.position import Chunk
from quorumlog.errors import ErrorCode
from quorumlog.spark.read.options import ReadOptions, parse_read_options
from quorumlog.spark.read.planning import DataLoss, LogSpan, PartitionRange
from quorumlog.spark.read.reading import MAX_REFUSALS, read_chunks

ID, OTHER_ID = b"i" * 16, b"j" * 16
WANTED = PartitionRange(topic="t", topic_id=ID, partition=3, start=10, end=30)
REPLACED = TopicReplaced("t", ID, OTHER_ID)
OUT_OF_RANGE = RequestFailed(ErrorCode.OFFSET_OUT_OF_RANGE, "t-3")


class Script:
    """steps: end offset of the next chunk, None for silence, or an error to raise. spans: (start, end) in turn."""

    def __init__(self, steps: list[int | Exception | None], spans: list[tuple[int, int]], topic_id: bytes = ID) -> None:
        self.steps = deque(steps)
        self.spans = deque(spans)
        self.topic_id = topic_id
        self.seeks: list[int] = []
        self.epochs: list[int] = []
        self.position = -1

    def span(self) -> LogSpan:
        start, end = self.spans.popleft() if len(self.spans) > 1 else self.spans[0]
        return LogSpan(topic="t", topic_id=self.topic_id, partition=3, start=start, end=end)

    def seek(self, start: int, epoch: int = -1) -> None:
        self.seeks.append(start)
        self.epochs.append(epoch)
        self.position = start

    def next_chunk(self, timeout_ms: int) -> Chunk | None:
        step = self.steps.popleft() if self.steps else None
        if isinstance(step, Exception):
            raise step
        if step is None:
            return None
        first, self.position = self.position, step
        return Chunk(
            topic="t", partition=3, records=b"", first_offset=first, stop_offset=min(step, WANTED.end),
            next_offset=step, high_watermark=step,
        )  # fmt: skip


def options(**given: str) -> ReadOptions:
    base = {"bootstrap.servers": "h:1", "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "20"}
    return parse_read_options({**base, **given})


def ranges(script: Script, **given: str) -> list[tuple[int, int]]:
    return [(chunk.first_offset, chunk.stop_offset) for chunk in read_chunks(WANTED, script, options(**given))]


def test_the_range_is_read_exactly_to_its_end() -> None:
    script = Script([15, None, 28, 40], [(0, 99)])
    assert ranges(script) == [(10, 15), (15, 28), (28, 30)]
    assert script.seeks == [10]


def test_silence_is_an_error_that_names_the_position() -> None:
    with pytest.raises(Unavailable, match="t-3 at offset 15 of 10 to 30"):
        ranges(Script([15], [(0, 99)]))


def test_a_new_leader_that_lags_is_not_a_loss() -> None:
    """A new leader learns its high watermark from its followers, so its end may be below the planned end."""
    assert ranges(Script([30], [(0, 12)])) == [(10, 30)]


LOSSES = [
    ("retention before the task", Script([OUT_OF_RANGE, 30], [(14, 99)]), "4 offsets from 10 to 14", [(14, 30)]),
    (
        "retention meanwhile", Script([12, OUT_OF_RANGE, 30], [(20, 99)]),
        "8 offsets from 12", [(10, 12), (20, 30)],
    ),
    ("all deleted", Script([OUT_OF_RANGE], [(50, 99)]), "20 offsets from 10 to 30", []),
    ("created again", Script([REPLACED], [(0, 99)]), "deleted and created again", []),
    ("created again, as its offsets tell", Script([OUT_OF_RANGE], [(0, 5)], OTHER_ID), "created again", []),
    (
        "created again meanwhile", Script([15, REPLACED], [(0, 99)]),
        "15 offsets from 15 to 30", [(10, 15)],
    ),
    ("shorter log", Script([20, OUT_OF_RANGE], [(0, 15)]), "10 offsets from 20 to 30", [(10, 20)]),
    ("truncated", Script([20, TruncatedLog("t", 3, 15), 30], [(0, 99)]), "truncated to 15", [(10, 20), (20, 30)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "script", "text", "left"), LOSSES, ids=[c[0] for c in LOSSES])
def test_a_loss_fails_the_task_or_is_reported_once(
    name: str, script: Script, text: str, left: list[tuple[int, int]]
) -> None:
    again = Script(list(script.steps), list(script.spans), script.topic_id)
    with pytest.raises(DataLoss, match=text):
        ranges(script)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ranges(again, failOnDataLoss="false") == left
    assert [text in str(warning.message) for warning in caught] == [True]


def test_an_offset_that_is_always_refused_ends_the_task() -> None:
    script = Script([OUT_OF_RANGE] * 99, [(0, 99)])
    with pytest.raises(RequestFailed):
        ranges(script)
    assert len(script.seeks) == MAX_REFUSALS + 1


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(RequestFailed, match="CORRUPT_MESSAGE"):
        ranges(Script([RequestFailed(ErrorCode.CORRUPT_MESSAGE, "")], [(0, 99)]), failOnDataLoss="false")


def test_the_epoch_of_the_last_read_tells_whether_those_records_are_still_there() -> None:
    """An epoch that nobody knows any more is no loss where the log reaches as far: it had no records of its own."""
    later = replace(WANTED, start_epoch=7)
    script = Script([TruncatedLog("t", 3, 10), 30], [(0, 99)])
    assert [chunk.stop_offset for chunk in read_chunks(later, script, options())] == [30]
    assert (script.seeks, script.epochs) == ([10, 10], [7, -1])
    with pytest.raises(DataLoss, match=r"3 offsets from 7 to 10 .* truncated to 7"):
        list(read_chunks(later, Script([TruncatedLog("t", 3, 7)], [(0, 99)]), options()))
