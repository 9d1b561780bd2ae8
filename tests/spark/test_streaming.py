"""A stream against a scripted cluster: batches follow each other without gap or repetition, and losses have names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pyspark.sql.types import StructType

from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.errors import ConfigError, Unavailable
from quorumlog.messages.fetch import OffsetRange
from quorumlog.spark.format import stream_source
from quorumlog.spark.read.options import StreamOptions, parse_stream_options
from quorumlog.spark.read.places import Place, TimePlace
from quorumlog.spark.read.planning import DataLoss, LogSpan, PartitionRange, found_by_time
from quorumlog.spark.stream.offset import OtherCluster, StreamOffset
from quorumlog.spark.stream.streaming import Stream

ID, NEW_ID = b"i" * 16, b"j" * 16
BATCH_BYTES = 30


def size_of(one: OffsetRange) -> int:
    return one.size_bytes


class Cluster:
    """logs: start and end of each partition. Times are offsets here."""

    def __init__(self, *logs: tuple[int, int], name: str = "cluster-a") -> None:
        self.logs = {("t", index): log for index, log in enumerate(logs)}
        self.name = name
        self.topic_id = ID
        self.pins: dict[str, str] = {}
        self.commits: list[tuple[str, dict[tuple[str, int], int]]] = []
        self.looks = 0
        self.asked: list[str] = []
        self.closed = False

    def cluster_id(self) -> str:
        return self.name

    def spans(self) -> list[LogSpan]:
        self.looks += 1
        return [
            LogSpan(topic=t, topic_id=self.topic_id, partition=p, start=start, end=end, end_epoch=3)
            for (t, p), (start, end) in self.logs.items()
        ]

    def place(self, place: Place | TimePlace, spans: list[LogSpan]) -> Place:
        if not isinstance(place, TimePlace):
            return place
        times = {(s.topic, s.partition): place.time_of((s.topic, s.partition)) for s in spans}
        found = {
            (s.topic, s.partition): (times["t", s.partition] if times["t", s.partition] < s.end else -1) for s in spans
        }
        return found_by_time(place, spans, found)

    def ranges(self, option: str, wanted: Mapping[tuple[str, int], RangeQuery]) -> dict[Any, list[OffsetRange]]:
        """Batches of three records, which take ten bytes each; every batch may be cut off."""
        self.asked.append(option)
        found: dict[Any, list[OffsetRange]] = {}
        for key, query in wanted.items():
            ranges, start = list[OffsetRange](), max(query.start, self.logs[key][0])
            while start < query.end and (not query.enough_bytes or sum(map(size_of, ranges)) < query.enough_bytes):
                batches = max(query.max_range_bytes // BATCH_BYTES, 1) if query.max_range_bytes else 10**9
                end = min((start // 3 + batches) * 3, query.end)
                size = (-(-end // 3) - start // 3) * BATCH_BYTES
                ranges.append(OffsetRange(start_offset=start, end_offset=end, size_bytes=size))
                start = end
            found[key] = ranges
        return found

    def pinned(self, pin_id: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if pin_id not in self.pins:
            self.pins[pin_id] = json.dumps(make())
        found: dict[str, Any] = json.loads(self.pins[pin_id])
        return found

    def commit(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        self.commits.append((group_id, dict(offsets)))

    def close(self) -> None:
        self.closed = True

    def grow(self, partition: int, count: int) -> None:
        start, end = self.logs["t", partition]
        self.logs["t", partition] = (start, end + count)


def options(**given: str) -> StreamOptions:
    return parse_stream_options({"bootstrap.servers": "h:1", "subscribe": "t", **given})


def stream(cluster: Cluster, **given: str) -> Stream:
    return Stream(options(**{"startingOffsets": "earliest", **given}), cluster, lambda: 0, print)


def parts(found: list[PartitionRange]) -> list[tuple[int, int, int]]:
    return [(part.partition, part.start, part.end) for part in found]


def offsets(found: dict[str, Any]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in found["o"].get("t", {}).items()}


def test_batches_follow_each_other() -> None:
    cluster = Cluster((0, 10), (5, 5))
    made = stream(cluster)
    first = made.initial()
    assert offsets(first) == {0: 0, 1: 5}
    second = made.latest(first)
    assert parts(made.tasks(first, second)) == [(0, 0, 10)]
    assert made.latest(second) is second  # nothing new is the very same position
    cluster.grow(1, 3)
    third = made.latest(second)
    assert parts(made.tasks(second, third)) == [(1, 5, 8)]
    assert made.tasks(third, third) == []


def test_a_task_is_told_the_epoch_of_what_was_read_before() -> None:
    cluster = Cluster((0, 10))
    made = stream(cluster, minPartitions="2")
    second = made.latest(made.initial())
    cluster.grow(0, 4)
    cluster.logs["t", 1] = (0, 1)
    third = made.latest(second)
    epochs = [(part.partition, part.start, part.start_epoch) for part in made.tasks(second, third)]
    assert epochs == [(0, 10, 3), (1, 0, -1)]
    cut = stream(cluster, minPartitions="4").tasks(second, third)
    assert [(part.partition, part.start, part.start_epoch) for part in cut] == [
        (0, 10, 3), (0, 11, -1), (0, 12, -1), (1, 0, -1)
    ]  # fmt: skip


def test_a_plan_from_the_last_look_asks_nothing_more() -> None:
    cluster = Cluster((0, 10))
    made = stream(cluster)
    first = made.initial()
    second = made.latest(first)
    looks = cluster.looks
    made.tasks(first, second)
    assert cluster.looks == looks


def test_latest_needs_a_name_for_its_beginning() -> None:
    """Spark asks again after a restart before the first commit, and what came between would be skipped."""
    for start in ({"startingOffsets": "latest"}, {"startingTimestamp": "5"}, {"startingOffsets": '{"t":{"0":-1}}'}):
        with pytest.raises(ConfigError, match=r"pinId.*earliest.*allowUnpinnedLatest"):
            stream(Cluster((0, 10)), **start).initial()
        assert offsets(stream(Cluster((0, 10)), allowUnpinnedLatest="true", **start).initial())
    with pytest.raises(ConfigError, match="pinId"):
        Stream(options(), Cluster((0, 10)), lambda: 0, print).initial()  # latest is the default, as in Kafka's source


def test_a_pinned_beginning_outlives_the_process() -> None:
    cluster = Cluster((0, 10))
    first = stream(cluster, startingOffsets="latest", pinId="p").initial()
    cluster.grow(0, 7)
    again = stream(cluster, startingOffsets="latest", pinId="p")
    assert again.initial() == first == again.initial()
    assert parts(again.tasks(first, again.latest(first))) == [(0, 10, 17)]


def test_offsets_and_earliest_need_no_pin() -> None:
    cluster = Cluster((3, 10), (0, 4))
    assert offsets(stream(cluster, pinId="p").initial()) == {0: 3, 1: 0}
    assert offsets(stream(cluster, startingOffsets='{"t":{"0":5,"1":-2}}').initial()) == {0: 5, 1: 0}
    assert not cluster.pins
    with pytest.raises(ConfigError, match="leaves out t-1"):
        stream(cluster, startingOffsets='{"t":{"0":5}}').initial()


def test_a_new_partition_is_read_from_its_beginning() -> None:
    cluster = Cluster((0, 10))
    made = stream(cluster)
    second = made.latest(made.initial())
    cluster.logs["t", 1] = (0, 0)
    assert made.latest(second) is second  # an empty one makes no batch
    cluster.grow(1, 4)
    third = made.latest(second)
    assert parts(made.tasks(second, third)) == [(1, 0, 4)]


def test_a_limit_is_shared_out_and_the_engine_may_ignore_it() -> None:
    cluster = Cluster((0, 100), (0, 100))
    made = stream(cluster, maxOffsetsPerTrigger="10")
    first = made.initial()
    assert offsets(made.latest(first, most=10)) == {0: 5, 1: 5}
    assert offsets(made.latest(first)) == {0: 100, 1: 100}  # Trigger.Once


def test_bytes_are_shared_out_and_end_between_batches() -> None:
    cluster = Cluster((0, 300), (0, 30), (5, 5))
    made = stream(cluster)
    first = made.initial()
    assert offsets(made.latest(first, most_bytes=660)) == {0: 45, 1: 18, 2: 5}  # of 660 and 300 bytes
    assert offsets(made.latest(first, most_bytes=660, most=11)) == {0: 10, 1: 1, 2: 5}  # whichever is less
    assert offsets(made.latest(first, most_bytes=1)) == {0: 3, 1: 3, 2: 5}  # what cannot be cut
    assert offsets(made.latest(first, most_bytes=3_300)) == {0: 300, 1: 30, 2: 5}
    assert offsets(made.latest(first)) == {0: 300, 1: 30, 2: 5}


SPREAD = ((0, 10_000), *[(7, 12)] * 9)  # most of it in one of ten partitions


def run_of_available_now(made: Stream, **limit: int) -> list[list[tuple[int, int, int]]]:
    """The tasks of each batch. Ends go forward only."""
    position, batches = made.initial(), []
    made.prepare_available_now()
    while (end := made.latest(position, **limit)) is not position:
        assert all(stop >= offsets(position)[partition] for partition, stop in offsets(end).items())
        batches.append(parts(made.tasks(position, end)))
        position = end
    return batches


@pytest.mark.parametrize("limit", [{"most": 3}, {"most_bytes": 1}], ids=["offsets", "bytes"])
def test_a_limit_smaller_than_the_number_of_partitions(limit: dict[str, int]) -> None:
    """SPARK-12073, HUDI-7506: no share is 0, none is without limit, and no partition waits for the large one."""
    batches = run_of_available_now(stream(Cluster(*SPREAD)), **limit)
    assert {partition for partition, _, _ in batches[0]} == set(range(len(SPREAD)))
    assert all(0 < sum(end - start for _, start, end in batch) <= 3 * len(SPREAD) for batch in batches)
    read = sorted((partition, offset) for batch in batches for partition, a, b in batch for offset in range(a, b))
    assert read == [(partition, offset) for partition, (a, b) in enumerate(SPREAD) for offset in range(a, b)]


def test_more_tasks_than_records() -> None:
    """None of them is empty or negative, and the batch is whole."""
    made = stream(Cluster(*[(3, 5)] * 10), minPartitions="64")
    first = made.initial()
    tasks = parts(made.tasks(first, made.latest(first)))
    assert tasks == [(partition, start, start + 1) for partition in range(10) for start in (3, 4)]


def test_available_now_keeps_to_its_bytes() -> None:
    cluster = Cluster((0, 100), (0, 10))
    made = stream(cluster, maxBytesPerTrigger="300")
    position = made.initial()
    made.prepare_available_now()
    cluster.grow(0, 50)
    batches = []
    while (end := made.latest(position, most_bytes=300)) is not position:
        batches.append(made.tasks(position, end))
        position = end
    assert offsets(position) == {0: 100, 1: 10}
    read = [part for batch in batches for part in batch]
    assert sum(part.end - part.start for part in read) == 110 and len(batches) >= 4
    assert all(sum(part.end - part.start for part in batch) <= 33 for batch in batches)


def test_the_largest_limit_of_bytes_takes_all_and_a_broker_is_asked_for_no_more_than_it_knows() -> None:
    cluster = Cluster((0, 50), (0, 20))
    asked: list[RangeQuery] = []
    ranges = cluster.ranges

    def noted(option: str, wanted: Mapping[tuple[str, int], RangeQuery]) -> dict[Any, list[OffsetRange]]:
        asked.extend(wanted.values())
        return ranges(option, wanted)

    cluster.ranges = noted  # type: ignore[method-assign]
    given = options(startingOffsets="earliest", maxBytesPerTrigger=str(2**63 - 1))
    query = Stream(given, cluster, lambda: 0, lambda text: None)
    end = query.latest(query.initial(), most_bytes=given.most_bytes)
    assert offsets(end) == {0: 50, 1: 20}
    assert asked and all(one.enough_bytes < 2**63 for one in asked)


def test_bytes_are_not_asked_of_a_topic_that_is_gone() -> None:
    """It was there when the run began. Its loss is told by name, and is no endless question."""
    cluster, found = Cluster((0, 100), (0, 100)), list[str]()
    given = options(startingOffsets="earliest", maxBytesPerTrigger="60", failOnDataLoss="false")
    made = Stream(given, cluster, lambda: 0, found.append)
    position = made.initial()
    made.prepare_available_now()
    first = made.latest(position, most_bytes=60)
    cluster.logs = {}
    last = made.latest(first, most_bytes=60)
    assert offsets(last) == {0: 100, 1: 100} and made.tasks(first, last) == []
    assert len(found) == 2 and all("does not exist any more" in text for text in found)
    assert made.latest(last, most_bytes=60) is last


def test_tasks_are_cut_by_bytes_between_batches() -> None:
    cluster = Cluster((1, 20), (0, 3))
    made = stream(cluster, maxBytesPerPartition="70")
    first = made.initial()
    assert parts(made.tasks(first, made.latest(first))) == [(0, 1, 6), (0, 6, 12), (0, 12, 18), (0, 18, 20), (1, 0, 3)]
    assert cluster.asked == ["maxBytesPerPartition"]


@pytest.mark.parametrize("limit", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"])
def test_an_older_spark_is_told_that_it_cannot_keep_a_limit(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(stream_source, "HAS_LIMITS", False)
    with pytest.raises(ConfigError, match=rf"{limit}.* need Spark 4\.2"):
        stream_source.stream_reader(options(**{limit: "5"}), StructType([]))


def test_available_now_ends_at_what_was_there() -> None:
    """Also where a batch of an earlier run is repeated first, and partitions were added since (SPARK-53560)."""
    cluster = Cluster((0, 10))
    before = stream(cluster)
    first = before.initial()
    planned = before.latest(first, most=4)
    cluster.logs["t", 1] = (0, 5)
    made = stream(cluster)
    made.prepare_available_now()
    cluster.grow(0, 50)
    cluster.logs["t", 2] = (0, 5)
    assert parts(made.tasks(first, planned)) == [(0, 0, 4)]
    position, read = planned, []
    while (end := made.latest(position, most=4)) is not position:
        read += parts(made.tasks(position, end))
        position = end
    assert offsets(position) == {0: 10, 1: 5}
    assert sum(end - start for _, start, end in read) == 6 + 5


def test_a_minimum_waits_but_not_in_available_now() -> None:
    cluster, now = Cluster((0, 5)), 0
    made = Stream(
        options(startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="1s"),
        cluster,
        lambda: now,
        print,
    )
    first = made.latest(made.initial(), least=10)
    assert offsets(first) == {0: 5}, "the first batch does not wait, as with Spark's own source"
    cluster.grow(0, 5)
    now = 999
    assert made.latest(first, least=10) is first
    now = 1_000
    assert offsets(made.latest(first, least=10)) == {0: 10}
    made.prepare_available_now()
    now = 1_001
    assert offsets(made.latest(first, least=10)) == {0: 10}


def lost(change: Callable[[Cluster], None], text: str, want: list[tuple[int, int, int]]) -> None:
    """The change comes after a batch up to offset 10. want: what is read after it, if losses are allowed."""
    cluster, found = Cluster((0, 10), (0, 10)), list[str]()
    made = stream(cluster)
    position = made.latest(made.initial())
    change(cluster)
    with pytest.raises(DataLoss, match=text):
        made.tasks(position, made.latest(position))
    made = Stream(options(startingOffsets="earliest", failOnDataLoss="false"), cluster, lambda: 0, found.append)
    end = made.latest(position)
    assert parts(made.tasks(position, end)) == want
    assert len([one for one in found if "not in the log" in one]) == 1


def test_losses_have_names() -> None:
    def retention(cluster: Cluster) -> None:
        cluster.logs["t", 0] = (15, 20)

    lost(retention, "t-0: 5 offsets from 10 to 15", [(0, 15, 20)])


def test_a_topic_that_is_gone_keeps_its_place() -> None:
    """It may come back: the broker that was asked may be behind."""
    cluster, found = Cluster((0, 10), (0, 10)), list[str]()
    made = stream(cluster)
    position = made.latest(made.initial())
    logs, cluster.logs = cluster.logs, {}
    with pytest.raises(DataLoss, match=r"t-0: offsets from 10 on.*does not exist"):
        made.latest(position)
    made = Stream(options(failOnDataLoss="false"), cluster, lambda: 0, found.append)
    assert made.latest(position) is position is made.latest(position)
    assert len(found) == 2  # each partition is told once
    cluster.logs = logs
    cluster.grow(0, 3)
    assert parts(made.tasks(position, made.latest(position))) == [(0, 10, 13)]


def test_a_broker_that_does_not_know_a_partition_yet_takes_nothing_back() -> None:
    cluster = Cluster((0, 10), (0, 10))
    made = stream(cluster)
    first = made.initial()
    position = made.latest(first)
    del cluster.logs["t", 1]
    cluster.grow(0, 2)
    end = made.latest(position)
    assert offsets(end) == {0: 12, 1: 10} and end["e"] == {"t": {"0": 3, "1": 3}}
    assert parts(stream(cluster).tasks(first, position)) == [(0, 0, 10), (1, 0, 10)]


def test_a_topic_that_was_made_again_is_named_by_both_ids() -> None:
    cluster, found = Cluster((0, 10)), list[str]()
    made = stream(cluster)
    first = made.initial()
    position = made.latest(first)
    cluster.topic_id, cluster.logs = NEW_ID, {("t", 0): (0, 30)}
    with pytest.raises(DataLoss, match=r"its id was aWlp.* and is ampq"):
        made.latest(position)
    with pytest.raises(DataLoss, match="created again"):
        stream(cluster).tasks(first, position)  # a repeated batch of the former topic
    made = Stream(options(startingOffsets="earliest", failOnDataLoss="false"), cluster, lambda: 0, found.append)
    assert parts(made.tasks(position, made.latest(position))) == [(0, 0, 30)]
    assert stream(cluster, failOnDataLoss="false").tasks(first, position) == []


def test_a_leader_that_was_just_elected_takes_nothing_back() -> None:
    cluster = Cluster((0, 10))
    made = stream(cluster)
    position = made.latest(made.initial())
    cluster.logs["t", 0] = (0, 7)
    assert made.latest(position) is position
    assert made.everything() is position  # below Spark 4.2
    lower = StreamOffset(offsets={("t", 0): 7}, cluster_id="cluster-a", topic_ids={"t": ID}).to_json()
    with pytest.raises(Unavailable, match="ends at 7, and the query is at 10"):
        made.tasks(position, lower)


def test_another_cluster_is_refused() -> None:
    position = stream(Cluster((0, 10))).initial()
    with pytest.raises(OtherCluster, match="is of cluster cluster-a, and these addresses lead to cluster cluster-b"):
        stream(Cluster((0, 10), name="cluster-b")).latest(position)


def test_start_options_have_no_effect_on_a_restart() -> None:
    """apache/paimon#8205: the checkpoint alone says where to go on, and one line says so."""
    cluster, found = Cluster((0, 10)), list[str]()
    position = stream(cluster).initial()
    made = Stream(options(startingOffsets="latest", pinId="other"), cluster, lambda: 0, found.append)
    end = made.latest(position)
    assert parts(made.tasks(position, end)) == [(0, 0, 10)]
    made.latest(end)
    assert not cluster.pins and len(found) == 1 and "no effect" in found[0]


def test_a_group_shows_how_far_the_query_is() -> None:
    cluster = Cluster((0, 10))
    made = stream(cluster, commitGroup="g")
    end = made.latest(made.initial())
    made.committed(end)
    assert cluster.commits == [("g", {("t", 0): 10})]
    assert made.known_end() == end
    stream(cluster).committed(end)
    assert len(cluster.commits) == 1

    def refused(group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        raise Unavailable("no coordinator")

    cluster.commit, found = refused, list[str]()  # type: ignore[method-assign]
    Stream(options(commitGroup="g"), cluster, lambda: 0, found.append).committed(end)
    assert len(found) == 1 and "no coordinator" in found[0]  # and the query goes on
    made.close()
    assert cluster.closed


class Runs(RuleBasedStateMachine):
    """Any growth, limits, restarts before and after a commit, with and without a repeated batch: each offset once."""

    @initialize(logs=st.lists(st.integers(0, 5), min_size=1, max_size=4))
    def begin(self, logs: list[int]) -> None:
        self.cluster = Cluster(*((0, end) for end in logs))
        self.read: dict[int, list[int]] = {}
        self.position: dict[str, Any] | None = None
        self.planned: dict[str, Any] | None = None  # as in Spark's log of offsets, before the commit
        self.restart()

    @rule()
    def restart(self) -> None:
        self.made = stream(self.cluster, startingOffsets="latest", pinId="p")
        if self.position is None:
            self.pinned = offsets(self.made.initial())

    @rule(partition=st.integers(0, 5), count=st.integers(1, 9))
    def grow(self, partition: int, count: int) -> None:
        if ("t", partition) in self.cluster.logs:
            self.cluster.grow(partition, count)

    @rule()
    def add_partition(self) -> None:
        self.cluster.logs["t", len(self.cluster.logs)] = (0, 0)

    @rule(most=st.one_of(st.none(), st.integers(1, 20)), most_bytes=st.sampled_from([0, 0, 1, 50, 200]))
    def plan(self, most: int | None, most_bytes: int) -> None:
        if self.planned is None:
            start = self.position or json.loads(json.dumps(self.made.initial()))
            end = self.made.latest(start, most=most, most_bytes=most_bytes)
            if json.dumps(end) != json.dumps(start):
                self.planned = json.loads(json.dumps(end))

    @rule()
    def run(self) -> None:
        if self.planned is not None:
            start = self.position or json.loads(json.dumps(self.made.initial()))
            for part in self.made.tasks(start, self.planned):
                self.read.setdefault(part.partition, []).extend(range(part.start, part.end))
            self.position, self.planned = self.planned, None

    @invariant()
    def each_offset_once_from_the_pin_on(self) -> None:
        for partition, found in self.read.items():
            first = self.pinned.get(partition, 0)
            assert found == list(range(first, first + len(found)))


Runs.TestCase.settings = settings(deadline=None)
TestRuns = Runs.TestCase
