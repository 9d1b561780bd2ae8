"""A mirror as a Spark job: a query that copies records, and a timer for topics, settings, groups and heartbeats.

In each batch the target's topics are made and changed first, then what was done is written down (entries on the target,
the mirror's own file), then the rows are written. Killed between any two of these, the same steps come again.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.offsets import EARLIEST
from quorumlog.ids import Offset, show_uuid
from quorumlog.messages.cluster import TopicMetadata
from quorumlog.spark.mirror.checkpoint import Checkpoint, open_checkpoint
from quorumlog.spark.mirror.groups import GroupMirror, GroupsDone, Topics
from quorumlog.spark.mirror.kept import (
    Kept,
    KeptTopic,
    SideMadeAnew,
    check_sides,
    check_topics,
    kept_text,
    read_kept,
    with_topics,
)
from quorumlog.spark.mirror.lost import Losses, with_own_hint
from quorumlog.spark.mirror.origin import Home
from quorumlog.spark.mirror.records import Entries, Entry, Returned, entries_for, heartbeat_record
from quorumlog.spark.mirror.rows import READ_COLUMNS, Place, RowPlan, counted, rows_to_write, without_place
from quorumlog.spark.mirror.sides import MirrorSide
from quorumlog.spark.mirror.topics import (
    HEARTBEATS,
    Named,
    Names,
    Side,
    TopicShape,
    change_of,
    name_topics,
    topic_pattern,
    with_homes,
)
from quorumlog.spark.mirror.translation import Span, last_copy
from quorumlog.spark.write.options import EXACTLY_ONCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_EVERY_MS = 1_000  # between the beginnings of two batches
DEFAULT_GROUPS_EVERY_MS = 10_000
DEFAULT_MAX_BATCH = 1_000_000  # offsets of a batch, where this Spark can limit them
LOOK_S = 0.2  # between two looks at the query
Answer = TypeVar("Answer")
Ids = set[tuple[str, bytes, int]]  # name, id and partitions of topics
METADATA_WAIT_S = 20.0  # for a broker that is behind to learn of a topic or partition
MAX_RECORD_BYTES = 64 << 20  # of a copy, unless the target's options say another: nodes take requests up to 100 MiB
STOP_WAIT_S = 60.0  # for the batch that is under way, before the query is stopped in the middle of it


class SameCluster(ConfigError):
    """Both sides are one cluster."""


class NoPlace(QuorumlogError):
    """The query has read a topic or partition of the source that the mirror's own client does not find, or cannot make
    on the target."""


class RecordsLost(QuorumlogError):
    """Retention, or who deleted a topic, took records of the source before they were copied."""


class Stopped(QuorumlogError):
    """The mirror is asked to end; this batch has not begun, and comes first in its next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """source, target: options of the format, of reads and of writes, with bootstrap.servers. topics: regular
    expressions of whole names, with commas. checkpoint: a folder, or an address of a file system that Spark's Hadoop
    knows. restored: see `naming.name_topics`."""

    topics: str
    source: Mapping[str, str]
    target: Mapping[str, str]
    checkpoint: str
    names: Names = Names.PREFIXED
    name: str = "mirror"
    delivery: str = EXACTLY_ONCE
    restored: str = ""
    once: bool = False
    every_ms: int = DEFAULT_EVERY_MS
    groups_every_ms: int = DEFAULT_GROUPS_EVERY_MS
    max_batch: int = DEFAULT_MAX_BATCH
    skip_lost: bool = False


@dataclass(frozen=True, slots=True)
class BatchDone:
    """rows: read from the source. lag: offsets that are not yet read, by topic of the source."""

    batch: int
    rows: int
    lag: Mapping[str, int]


@dataclass
class Told:
    """What a mirror says while it runs."""

    batch: Callable[[BatchDone], None]
    groups: Callable[[GroupsDone], None]
    warn: Callable[[str], None]


@dataclass
class Mirror:
    """One run. Calls of the query come from a thread of Spark's, those of the timer from the caller's."""

    request: Request
    source: MirrorSide
    target: MirrorSide
    groups: GroupMirror
    told: Told
    kept: Kept | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    _calls: threading.RLock = field(default_factory=threading.RLock)  # the clients are asked by one thread at a time
    _pattern: str = ""  # which topics of the source are read
    _left_out: set[str] = field(default_factory=set)
    _begun: int = -1  # the last batch that was taken
    _written: int = -1  # the last batch of this run that was written
    _plan: RowPlan | None = None
    _seen: tuple[Ids, Ids] | None = None  # topics of both sides, when the plan was made
    _told_at: str = ""  # of the last progress report that was looked at
    _failure: QuorumlogError | None = None  # of a batch, which Spark's query tells as a text only
    _checkpoint: Checkpoint | None = None
    _losses: Losses = field(default_factory=Losses)

    # --- before it runs ---

    def begin(self, checkpoint: Checkpoint) -> None:
        """Raises SameCluster, SideMadeAnew, ConfigError before anything is written."""
        self._checkpoint = checkpoint
        self.source.learn_id()
        self.target.learn_id()
        if self.source.cluster_id == self.target.cluster_id:
            raise SameCluster(
                f"--from and --to are one cluster, {self.source.cluster_id}, by two names: each topic would be "
                "mirrored into itself; name two clusters"
            )
        self._pattern = with_homes(
            topic_pattern(self.request.topics), self._copies(), (self.target.cluster_id, self.request.restored)
        )
        names, found = self.request.names.value, checkpoint.read()
        if found is not None:
            self.kept = read_kept(found)
            check_sides(self.kept, self.source.cluster_id, self.target.cluster_id, self.source.alias, names)
            _in_time(self._check_kept)
            return
        self._keep(
            Kept(
                source=self.source.cluster_id, target=self.target.cluster_id, source_alias=self.source.alias,
                names=names, salt=uuid4().hex, start=self._start(),
            )
        )  # fmt: skip

    def _check_kept(self) -> None:
        """Also of topics that have no records now. Raises SideMadeAnew."""
        assert self.kept is not None
        here, there = self.target.topics(), self.source.topics()
        found = {}
        for name, one in self.kept.topics.items():
            if name in there:
                now = here.get(one.to)
                found[name] = KeptTopic(show_uuid(there[name].topic_id), one.to, show_uuid(now.topic_id) if now else "")
        check_topics(self.kept, found)

    def _start(self) -> str:
        """JSON for startingOffsets: behind the last copy that the target has of each partition. "": it has none."""
        there, here = self.source.topics(), self.target.topics()
        named, known = self._named(there), self.target.entries()
        start = {
            name: {str(part.index): int(EARLIEST) for part in topic.partitions}
            for name, topic in sorted(there.items())
            if self._is_read(name)
        }
        pairs = {
            (name, index): (named.to[name], index)
            for name in sorted(start.keys() & named.to.keys())
            if named.to[name] in here and self._may_have_copies(name, there[name], named, known)
            for index in range(min(len(there[name].partitions), len(here[named.to[name]].partitions)))
        }
        logs = self.target.logs(here, pairs.values())
        is_any = False
        for (name, index), key in pairs.items():
            log = logs[key]
            home = Home(self.source.cluster_id, show_uuid(there[name].topic_id), index)
            span = Span(log.start, log.end)
            if name in named.homes:  # its log is the home's own, and may be large
                first, end = known.returned[key[0], self.source.cluster_id].spans.get(index, (0, 0))
                span = Span(Offset(first), Offset(end)).within(log)
            last = last_copy(log, home, span)
            if last is not None:
                start[name][str(index)], is_any = last + 1, True
        return json.dumps(start) if is_any else ""

    def _may_have_copies(self, name: str, topic: TopicMetadata, named: Named, known: Entries) -> bool:
        """By what the target says of it, which is written before the first copy. Where there is none, a search would
        read the whole log, as of a topic that was made anew on the source."""
        key = named.to[name], self.source.cluster_id
        if name in named.homes:
            return key in known.returned
        return key in known.copies and known.copies[key].topic_id == show_uuid(topic.topic_id)

    def _is_read(self, name: str) -> bool:
        return re.search(self._pattern, name) is not None

    def _keep(self, kept: Kept) -> None:
        assert self._checkpoint is not None, "begin comes first"
        if kept != self.kept:
            self._checkpoint.keep(kept_text(kept))
            self.kept = kept

    # --- topics ---

    def _copies(self) -> dict[str, Entry]:
        """Which topics of the source hold copies."""
        return entries_for(self.source.entries().copies.values(), self.target.cluster_id)

    def _named(self, there: Mapping[str, TopicMetadata]) -> Named:
        request = self.request
        copies = self._copies()
        found = name_topics(
            there, self._pattern, request.names, Side(self.source.alias, self.source.cluster_id),
            Side(self.target.alias, self.target.cluster_id), copies, request.restored,
        )  # fmt: skip
        for name, why in found.left_out.items():
            if name not in self._left_out:
                self._left_out.add(name)
                self.told.warn(f"topic {name!r} is left out: {why}")
        return found

    def prepare(self, *, anew: bool = True) -> RowPlan:
        """Bring the target's topics up to the source's. Raises SideMadeAnew.

        anew: whatever was seen before; else the last plan holds as long as both sides have the same topics.
        """
        with self._calls:
            is_known = not anew and self._seen == (_ids(self.source.topics()), _ids(self.target.topics()))
            if self._plan is None or not is_known:
                self._plan = _in_time(self._prepare)
            return self._plan

    def _prepare(self) -> RowPlan:
        assert self.kept is not None, "begin comes first"
        there, here = self.source.topics(), self.target.topics()
        named = self._named(there)
        self._check_targets(named, there, here)
        known = self.target.entries().copies
        new = [
            Entry(to, self.source.cluster_id, topic, show_uuid(there[topic].topic_id))
            for topic, to in named.to.items()
            if topic not in named.homes
        ]
        self.target.add_entries([one for one in new if known.get((one.copy, one.cluster_id)) != one])
        shapes = self.source.shapes(there[topic] for topic in named.to)
        if self._make([topic for topic in shapes if named.to[topic] not in here], named, shapes):
            here = self.target.topics()
        if self._change(named, shapes, self.target.shapes(here[to] for to in named.to.values() if to in here)):
            here = self.target.topics()
        places = {topic: _place(there[topic], here[named.to[topic]]) for topic in shapes if named.to[topic] in here}
        kept = {topic: KeptTopic(one.source_id, one.to, one.target_id) for topic, one in places.items()}
        self._keep(with_topics(self.kept, kept))
        self._seen = _ids(there), _ids(here)
        alive = frozenset(show_uuid(topic.topic_id) for topic in here.values())
        return RowPlan(
            self.source.cluster_id, places, self.request.restored, alive, tuple(sorted(named.homes)),
            frozenset(named.left_out),
        )  # fmt: skip

    def _check_targets(
        self, named: Named, there: Mapping[str, TopicMetadata], here: Mapping[str, TopicMetadata]
    ) -> None:
        """Before a topic is made in the place of one that is gone."""
        assert self.kept is not None
        found = {}
        for topic, to in named.to.items():
            target_id = show_uuid(here[to].topic_id) if to in here else ""
            found[topic] = KeptTopic(show_uuid(there[topic].topic_id), to, target_id)
        check_topics(self.kept, found)

    def _make(self, missing: list[str], named: Named, shapes: Mapping[str, TopicShape]) -> bool:
        """With their settings, so that no record meets those of the cluster. Whether there are any."""
        if not missing:
            return False
        known = self.target.known_settings(self.target.topics())
        settings = {
            named.to[topic]: {
                name: value
                for name, value in change_of(
                    shapes[topic], TopicShape(partitions=shapes[topic].partitions, known=known), is_home=False
                ).settings.items()
                if value is not None
            }
            for topic in missing
        }
        self.target.make({named.to[topic]: shapes[topic] for topic in missing}, settings)
        return True

    def _change(self, named: Named, shapes: Mapping[str, TopicShape], now: Mapping[str, TopicShape]) -> bool:
        """Whether a topic has more partitions now."""
        is_larger = False
        for topic, shape in shapes.items():
            to = named.to[topic]
            if to in now:
                change = change_of(shape, now[to], is_home=topic in named.homes)
                if topic in named.homes and self.request.names is Names.PREFIXED:
                    change = replace(change, settings={})  # nothing but copies is in it, as a rule
                self.target.change(to, change)
                is_larger = is_larger or change.partitions > 0
        return is_larger

    # --- records ---

    def take(self, frame: DataFrame, batch: int) -> None:
        """A batch of the query."""
        if self.stopping.is_set():
            raise Stopped("the mirror is asked to end")
        self._begun = batch
        try:
            plan = self.prepare(anew=False)
            if self.request.skip_lost:
                self._losses.reads(batch, self._starts())
            while (missing := self._write_or_miss(frame, plan, batch)) is not None:
                plan = self._placed(*missing)
        except QuorumlogError as error:
            self._failure = error
            raise
        self._written = batch

    def _starts(self) -> dict[str, dict[int, Offset]]:
        with self._calls:
            return self.source.starts(topic for name, topic in self.source.topics().items() if self._is_read(name))

    def _write_or_miss(self, frame: DataFrame, plan: RowPlan, batch: int) -> tuple[str, int] | None:
        """The topic and partition of the source that the plan has no place for; nothing is decided then."""
        try:
            self._write(frame, plan, batch)
        except Exception as error:
            missing = without_place(_whole_text(error))
            if missing is None:
                raise
            return missing
        return None

    def _placed(self, topic: str, partition: int) -> RowPlan:
        """A plan with a place for it. Raises NoPlace."""
        deadline = time.monotonic() + METADATA_WAIT_S
        while True:
            plan = self.prepare()
            if topic in plan.left_out or (topic in plan.places and partition < plan.places[topic].partitions):
                return plan
            if time.monotonic() >= deadline:
                raise NoPlace(
                    f"the query has read {topic}-{partition} of the source, and for {METADATA_WAIT_S:.0f} s the mirror "
                    "has found no such topic and partition there, or has not been able to make it on the target. The "
                    "batch is not written. The same command tries it again; if the topic was deleted, --skip-lost "
                    "goes on without its records"
                )
            time.sleep(LOOK_S)

    def _write(self, frame: DataFrame, plan: RowPlan, batch: int) -> None:
        """What comes home is written down behind it: a batch that dies between the two comes again."""
        rows, observation = counted(rows_to_write(frame, plan), plan)
        if observation is None:
            write(rows, self.write_options(batch))
            return
        names = {plan.places[topic].to for topic in plan.homes if topic in plan.places}
        before = self._before(names, is_first=self._written < 0)
        write(rows, self.write_options(batch))
        came = {name for name, count in observation.get.items() if count}
        if came:
            after = self._ends(came)
            spans = {
                name: {index: (before[name].get(index, Offset(0)), end) for index, end in after[name].items()}
                for name in came
            }
            with self._calls:
                self.target.add_returned([Returned(name, self.source.cluster_id, of) for name, of in spans.items()])

    def _before(self, names: set[str], *, is_first: bool) -> dict[str, dict[int, Offset]]:
        """Ends of homes before this batch is written. The first one of a run may have been written by the run
        before."""
        assert self.kept is not None
        now = self._ends(names)
        if is_first:
            for name, ends in now.items():
                kept = self.kept.before.get(name, {})
                now[name] = {index: Offset(min(end, kept.get(str(index), end))) for index, end in ends.items()}
        told = {name: {str(index): int(end) for index, end in ends.items()} for name, ends in now.items()}
        self._keep(replace(self.kept, before=told))
        return now

    def _ends(self, names: set[str]) -> dict[str, dict[int, Offset]]:
        with self._calls:
            here = self.target.topics()
            return self.target.ends(here[name] for name in names if name in here)

    def write_options(self, batch: int) -> dict[str, str]:
        assert self.kept is not None
        given = {"kafka.max.request.size": str(MAX_RECORD_BYTES), **self.request.target}
        given |= {"delivery": self.request.delivery}
        if self.request.delivery == EXACTLY_ONCE:
            given |= {"writeId": f"mirror/{self.request.name}/{self.kept.salt}", "writeVersion": str(batch)}
        return given

    def read_options(self) -> dict[str, str]:
        from quorumlog.spark.format.stream_source import HAS_LIMITS

        assert self.kept is not None
        given = {
            **self.request.source,
            "subscribePattern": self._pattern,
            "startingOffsets": self._named_start() or "earliest",
            "includeHeaders": "true",
            "columns": READ_COLUMNS,
            "isolationLevel": "read_committed",
            "failOnDataLoss": str(not self.request.skip_lost).lower(),
        }
        return given | ({"maxOffsetsPerTrigger": str(self.request.max_batch)} if HAS_LIMITS else {})

    def _named_start(self) -> str:
        """Where it began, for the partitions that there are now: Spark asks again until its first batch is done."""
        assert self.kept is not None
        if not self.kept.start:
            return ""
        start = json.loads(self.kept.start)
        return json.dumps(
            {
                name: {str(part.index): start.get(name, {}).get(str(part.index), EARLIEST) for part in topic.partitions}
                for name, topic in sorted(self.source.topics().items())
                if self._is_read(name)
            }
        )

    def query(self, spark: SparkSession) -> Any:
        reader = spark.readStream.format("quorumlog").options(**self.read_options())
        writer = reader.load().writeStream.foreachBatch(self.take).queryName(f"mirror {self.request.name}")
        assert self._checkpoint is not None, "begin comes first"
        writer = writer.option("checkpointLocation", self._checkpoint.for_spark)
        if self.request.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.request.every_ms} milliseconds").start()

    # --- beside them ---

    def look_around(self) -> None:
        """Topics, settings, groups and a heartbeat."""
        with self._calls:
            self.prepare()
            there, here = self.source.topics(), self.target.topics()
            done = self.groups.mirror(
                Topics(
                    self._named(there), there, here, self.source, self.target,
                    self.source.entries().returned, self.target.entries().returned,
                )
            )  # fmt: skip
            beat = heartbeat_record(self.source.alias, self.target.alias, time.time_ns() // 1_000_000)
            self.target.keep(HEARTBEATS, [beat])
        self.told.groups(done)

    def _look_or_tell(self) -> None:
        """What a cluster cannot do now is tried again in the next turn. Raises SideMadeAnew, ConfigError."""
        try:
            self.look_around()
        except (SideMadeAnew, ConfigError):
            raise
        except (QuorumlogError, TimeoutError) as error:
            self.told.warn(f"groups and settings are not looked at in this turn: {error}")

    # --- the whole ---

    def run(self, spark: SparkSession) -> None:
        """To the end of what there is (`once`), or until `stopping` is set. Raises what the query failed with."""
        self.begin(open_checkpoint(self.request.checkpoint, spark))
        self.prepare()
        query = self.query(spark)
        seen = -1
        due = time.monotonic()
        try:
            while query.isActive and not self.stopping.wait(LOOK_S):
                seen = self._tell_progress(query, seen)
                if not self.request.once and time.monotonic() >= due:
                    self._look_or_tell()
                    due = time.monotonic() + self.request.groups_every_ms / 1_000
        finally:
            self._end(query)
        self._tell_progress(query, seen)
        error = query.exception()
        if error is not None and not self.stopping.is_set():
            raise self._why(error)
        if error is not None and Stopped.__name__ not in str(error):
            self.told.warn("the batch that was under way has failed at the end of the mirror: it comes first next time")
        self._look_or_tell()

    def _why(self, error: Exception) -> Exception:
        """What a query failed with, in the words of this command where there are any."""
        if self._failure is not None:
            return self._failure
        try:
            self._check_kept()  # the query finds a topic made anew, too, and calls it a loss
        except SideMadeAnew as anew:
            return anew
        except (QuorumlogError, TimeoutError):
            pass
        text = with_own_hint(why_failed(str(error)))
        return error if text is None else RecordsLost(text)

    def _end(self, query: Any) -> None:
        """Once the batch that is under way is done, so that its rows need not be written again."""
        if query.isActive:
            self.stopping.set()
        deadline = time.monotonic() + STOP_WAIT_S
        while query.isActive and self._done(query) < self._begun and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        query.stop()

    def _done(self, query: Any) -> int:
        last = query.lastProgress
        return -1 if last is None else int(last["batchId"])

    def _tell_progress(self, query: Any, seen: int) -> int:
        last = query.lastProgress
        if last is None or last["timestamp"] == self._told_at:
            return seen
        self._told_at = last["timestamp"]
        for progress in query.recentProgress:
            batch, source = int(progress["batchId"]), progress["sources"][0]
            if batch > seen:
                for text in self._losses.of(batch, _offsets(source["startOffset"]), _offsets(source["endOffset"])):
                    self.told.warn(f"not copied: {text}")
            if batch > seen and progress["numInputRows"]:
                seen = batch
                self.told.batch(BatchDone(batch, int(progress["numInputRows"]), lag_of(source)))
        return seen


def _in_time(step: Callable[[], Answer]) -> Answer:
    """What a step that looks at both sides ends with, once brokers that are behind can have learned of what is there.

    Raises SideMadeAnew if it is still so then.
    """
    deadline = time.monotonic() + METADATA_WAIT_S
    while True:
        try:
            return step()
        except SideMadeAnew:
            if time.monotonic() >= deadline:
                raise
            time.sleep(LOOK_S)


def _place(there: TopicMetadata, here: TopicMetadata) -> Place:
    return Place(show_uuid(there.topic_id), here.name, show_uuid(here.topic_id), len(here.partitions))


def _ids(topics: Mapping[str, TopicMetadata]) -> Ids:
    return {(name, topic.topic_id, len(topic.partitions)) for name, topic in topics.items()}


def write(rows: DataFrame, options: Mapping[str, str]) -> None:
    rows.write.format("quorumlog").options(**options).mode("append").save()


def _whole_text(error: BaseException) -> str:
    """With what Java says of its causes: the text of a failed write names the job only."""
    return f"{error}\n{getattr(error, '_stackTrace', '')}"


def lag_of(source: Mapping[str, Any]) -> dict[str, int]:
    """Of a source in a progress report: offsets between the end of its batch and the ends of the logs, by topic."""
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return {
        topic: sum(max(0, there - end.get(topic, {}).get(index, 0)) for index, there in parts.items())
        for topic, parts in latest.items()
    }


def _offsets(found: Any) -> dict[str, dict[str, int]]:
    told = json.loads(found) if isinstance(found, str) else found
    return dict(told.get("o", {})) if isinstance(told, dict) else {}


def why_failed(text: str) -> str:
    """The line of a failed query's text that says why: that of the last error of ours, behind the stack of Python, else
    its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"(quorumlog|builtins)[\w.]*\.\w+: ", line)]
    return (ours or lines[:1] or ["it said nothing"])[-1]
