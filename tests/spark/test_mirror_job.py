"""A mirror's job without Spark and clusters: brokers that are behind, sides made anew, thousands of topics, what a
failed query says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from quorumlog.ids import Uuid, show_uuid
from quorumlog.messages.cluster import PartitionMetadata, TopicMetadata
from quorumlog.spark.mirror import job
from quorumlog.spark.mirror.job import MAX_RECORD_BYTES, Mirror, NoPlace, RecordsLost, Request, Told
from quorumlog.spark.mirror.kept import SideMadeAnew
from quorumlog.spark.mirror.origin import Home
from quorumlog.spark.mirror.records import Entries, Entry
from quorumlog.spark.mirror.rows import NO_PLACE, RowPlan
from quorumlog.spark.mirror.topics import Names, TopicShape
from tests.spark.test_mirror_translation import FakeLog


def topic(name: str, number: int = 1, partitions: int = 1) -> TopicMetadata:
    """number: of its id."""
    parts = tuple(PartitionMetadata(index=index, leader_id=1) for index in range(partitions))
    return TopicMetadata(name=name, topic_id=Uuid(number.to_bytes(16, "big")), partitions=parts)


@dataclass
class FakeSide:
    """behind: how many more answers come from a broker that knows `old` only."""

    alias: str
    there: dict[str, TopicMetadata] = field(default_factory=dict)
    old: dict[str, TopicMetadata] = field(default_factory=dict)
    behind: int = 0
    known: dict[tuple[str, str], Entry] = field(default_factory=dict)
    made: list[set[str]] = field(default_factory=list)
    asked_logs: list[Any] = field(default_factory=list)
    cluster_id: str = ""

    def learn_id(self) -> None:
        self.cluster_id = f"cluster-{self.alias}"

    def topics(self) -> dict[str, TopicMetadata]:
        self.behind -= 1
        return dict(self.old if self.behind >= 0 else self.there)

    def entries(self) -> Entries:
        return Entries(self.known)

    def add_entries(self, new: list[Entry]) -> None:
        self.known |= {(one.copy, one.cluster_id): one for one in new}

    def shapes(self, topics: Any) -> dict[str, TopicShape]:
        own = {"max.message.bytes": str(2**31 - 1)}
        return {one.name: TopicShape(partitions=len(one.partitions), own=own, known=frozenset(own)) for one in topics}

    def known_settings(self, topics: Any) -> frozenset[str]:
        return frozenset({"max.message.bytes"})

    def make(self, shapes: Mapping[str, TopicShape], settings: Mapping[str, Mapping[str, str]]) -> None:
        if shapes:
            self.made.append(set(shapes))
        assert all(settings[name] == {"max.message.bytes": str(2**31 - 1)} for name in shapes)
        for name, shape in shapes.items():
            self.there[name] = topic(name, 1_000 + len(self.there), shape.partitions)

    def change(self, name: str, change: Any) -> None:
        if change.partitions:
            self.there[name] = topic(name, int.from_bytes(self.there[name].topic_id, "big"), change.partitions)

    def logs(self, topics: Any, keys: Any) -> dict[Any, Any]:
        self.asked_logs += keys
        return {key: FakeLog(Home(self.cluster_id, "T" * 22, key[1])) for key in keys}


@dataclass
class FakeCheckpoint:
    text: str | None = None
    for_spark: str = "/c/spark"

    def read(self) -> str | None:
        return self.text

    def keep(self, text: str) -> None:
        self.text = text


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "METADATA_WAIT_S", 0.05)
    monkeypatch.setattr(job, "LOOK_S", 0.001)


def made(a: FakeSide, b: FakeSide, checkpoint: FakeCheckpoint | None = None, **options: Any) -> Mirror:
    given = {"topics": ".*", "source": {}, "target": {}, "checkpoint": "/c", **options}
    source, target, groups = a, b, None
    mirror = Mirror(Request(**given), source, target, groups, Told(print, print, print))  # type: ignore[arg-type]
    mirror.begin(checkpoint or FakeCheckpoint())
    return mirror


def writes(mirror: Mirror, monkeypatch: pytest.MonkeyPatch, *wanted: tuple[str, int]) -> list[RowPlan]:
    """Batches have a row of each of these topics and partitions. The plans that were written by."""
    done: list[RowPlan] = []

    def write(frame: Any, plan: RowPlan, batch: int) -> None:
        for name, partition in wanted:
            place = plan.places.get(name)
            if name not in plan.left_out and (place is None or partition >= place.partitions):
                raise RuntimeError(f"Job aborted: {NO_PLACE} {name}-{partition} and so on")
        done.append(plan)

    monkeypatch.setattr(mirror, "_write", write)
    return done


BEHIND: list[tuple[str, Callable[[FakeSide, FakeSide], Any]]] = [
    ("the source's broker does not know a new topic", lambda a, b: vars(a).update(old={"t": topic("t")}, behind=3)),
    ("the target's broker does not know what was made", lambda a, b: vars(b).update(old=dict(b.there), behind=3)),
]


@pytest.mark.parametrize("behind", [case[1] for case in BEHIND], ids=[case[0] for case in BEHIND])
def test_a_topic_that_the_query_knew_first_is_mirrored(
    behind: Callable[[FakeSide, FakeSide], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows were left out silently, and their batch was done."""
    a, b = FakeSide("a", {"t": topic("t")}), FakeSide("b")
    mirror = made(a, b)
    mirror.prepare()
    a.there["new"] = topic("new", 2)
    behind(a, b)
    done = writes(mirror, monkeypatch, ("t", 0), ("new", 0))
    mirror.take(None, 0)  # type: ignore[arg-type]
    assert [plan.places["new"].to for plan in done] == ["a.new"]


def test_a_partition_that_the_query_knew_first_is_mirrored(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = FakeSide("a", {"t": topic("t")}), FakeSide("b")
    mirror = made(a, b)
    mirror.prepare()
    a.there, a.old, a.behind = {"t": topic("t", 1, 3)}, dict(a.there), 2
    done = writes(mirror, monkeypatch, ("t", 2))
    mirror.take(None, 0)  # type: ignore[arg-type]
    assert done[0].places["t"].partitions == len(b.there["a.t"].partitions) == 3


def test_a_topic_that_is_found_by_nobody_ends_the_mirror_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = made(FakeSide("a", {"t": topic("t")}), FakeSide("b"))
    writes(mirror, monkeypatch, ("gone", 4))
    with pytest.raises(NoPlace, match=r"gone-4 of the source.*The batch is not written.*--skip-lost"):
        mirror.take(None, 0)  # type: ignore[arg-type]


def test_a_topic_that_is_left_out_needs_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    a = FakeSide("a", {"north.t": topic("north.t")})
    a.known = {("north.t", "n"): Entry("north.t", "n", "t", show_uuid(topic("t").topic_id))}
    mirror = made(a, FakeSide("b"))
    done = writes(mirror, monkeypatch, ("north.t", 0))
    mirror.take(None, 0)  # type: ignore[arg-type]
    assert done[0].left_out == {"north.t"} and not done[0].places


def test_a_target_whose_broker_is_behind_was_not_made_anew() -> None:
    a, b = FakeSide("a", {"t": topic("t")}), FakeSide("b")
    checkpoint = FakeCheckpoint()
    made(a, b, checkpoint).prepare()
    b.behind = 2
    again = made(a, b, checkpoint)
    b.behind = 2
    again.prepare()
    assert b.made == [{"a.t"}]
    del b.there["a.t"]
    with pytest.raises(SideMadeAnew, match=r"topic 'a.t' of the target .*not there any more"):
        again.prepare()
    assert b.made == [{"a.t"}], "and nothing is made in its place"


def test_what_a_failed_query_is_raised_as() -> None:
    a, b = FakeSide("a", {"t": topic("t")}), FakeSide("b")
    mirror = made(a, b)
    mirror.prepare()
    lost = "job\nquorumlog.spark.read.planning.DataLoss: t-0: 4 offsets from 0 to 4 (exclusive) are not in the log: x"
    assert isinstance(mirror._why(RuntimeError(lost)), RecordsLost)
    other = RuntimeError("something else")
    assert mirror._why(other) is other
    a.there["t"] = topic("t", 7)
    why = mirror._why(RuntimeError(lost))
    assert isinstance(why, SideMadeAnew) and "topic 't' of the source" in str(why) and "empty --checkpoint" in str(why)


def test_a_topic_made_anew_on_the_source_has_no_copies_to_look_for() -> None:
    """The search for its last copy read the target's whole log, and gave up above a limit: a new checkpoint was no way
    on."""
    a, b = FakeSide("a", {"t": topic("t")}), FakeSide("b")
    made(a, b).prepare()
    a.there["t"] = topic("t", 7)
    mirror = made(a, b)
    assert b.asked_logs == [] and mirror.kept is not None and mirror.kept.start == ""


def test_thousands_of_topics_are_made_and_checked_at_once() -> None:
    a = FakeSide("a", {f"t{number}": topic(f"t{number}", number, 3) for number in range(5_000)})
    b = FakeSide("b")
    mirror = made(a, b)
    plan = mirror.prepare()
    assert len(plan.places) == 5_000 and [len(names) for names in b.made] == [5_000]
    assert mirror.prepare(anew=False) is plan, "as long as both sides have the same topics"


def test_a_copy_may_be_larger_than_a_record_of_a_producer() -> None:
    mirror = made(FakeSide("a"), FakeSide("b"))
    assert mirror.write_options(3)["kafka.max.request.size"] == str(MAX_RECORD_BYTES)
    own = made(FakeSide("a"), FakeSide("b"), target={"kafka.max.request.size": "7"})
    assert own.write_options(3)["kafka.max.request.size"] == "7"


def test_the_same_names_take_the_same_topics() -> None:
    plan = made(FakeSide("a", {"t": topic("t")}), FakeSide("b"), names=Names.SAME).prepare()
    assert plan.places["t"].to == "t"
