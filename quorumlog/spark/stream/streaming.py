"""A stream between two calls of Spark: where it begins, how far a batch goes, what its tasks read. No pyspark here.

Spark asks for the beginning up to three times (twice for the first batch, and again after a restart before the first
commit), and keeps no answer. A beginning that time changes, which is `latest` or one by time, is therefore written into
the cluster once, under the option pinId, and read from there by whoever asks again (pins.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.errors import ConfigError, QuorumlogError, Unavailable
from quorumlog.client.offsets import LATEST
from quorumlog.ids import Offset, TopicPartition
from quorumlog.spark.read.options import MAX_NUMBER, StreamOptions
from quorumlog.spark.read.places import Place, TimePlace
from quorumlog.spark.read.planning import (
    DescribedLog,
    LogSpan,
    PartitionRange,
    bytes_in,
    check_named,
    end_within,
    resolve,
    tasks_of,
)
from quorumlog.spark.stream.offset import OtherCluster, StreamOffset, stream_offset
from quorumlog.spark.stream.planning import (
    Losses,
    Patience,
    Ranges,
    Spans,
    by_partition,
    is_same,
    moved,
    offsets_in,
    plan_batch,
    readable,
    share_out,
    share_out_bytes,
)

FINENESS = 4  # pieces of a share of bytes: its end is at most so much of it too early, and in no case too late

NO_PIN = (
    "a stream that begins at latest, or at a time, needs a name under which its beginning is kept: Spark asks for it "
    'again after a restart, and would skip the records between the two answers. Set .option("pinId", "a-name-of-this-'
    'query"), begin at startingOffsets=earliest or at offsets, or set allowUnpinnedLatest=true to accept the gap'
)


class StreamCluster(Protocol):
    """What a stream asks of the cluster; `cluster.OpenCluster` is the real one."""

    def cluster_id(self) -> str: ...

    def spans(self) -> list[LogSpan]:
        """Every partition of the subscription with its readable offsets now."""

    def place(self, place: Place | TimePlace, spans: list[LogSpan]) -> Place:
        """Looks times up. Raises ConfigError."""

    def ranges(self, option: str, wanted: Mapping[TopicPartition, RangeQuery]) -> DescribedLog:
        """How many bytes which offsets take. Raises ConfigError, with this option, where a cluster cannot say it."""

    def pinned(self, pin_id: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is kept under this name; if there is nothing, what `make` returns is from now on."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """For tools that show how far a group is."""

    def close(self) -> None: ...


class Stream:
    """One run of a query's source, in Spark's planning process. Calls come one after the other."""

    def __init__(
        self, options: StreamOptions, cluster: StreamCluster, now_ms: Callable[[], int], warn: Callable[[str], None]
    ) -> None:
        """now_ms: of a monotonic clock."""
        self._options = options
        self._cluster = cluster
        self._now_ms = now_ms
        self._warn = warn
        self._patience = Patience(options.max_trigger_delay_ms)
        self._initial: dict[str, Any] | None = None
        self._target: Spans | None = None  # of Trigger.AvailableNow
        self._seen: Spans = {}  # the last answer of the cluster
        self._cluster_id = ""
        self._told: set[str] = set()  # losses, each of which is told once
        self._planned: dict[str, Any] | None = None  # the end that was planned from `_seen`

    def initial(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins. The same in every call."""
        if self._initial is None:
            options = self._options
            if not _time_changes(options.starting) or options.allow_unpinned_latest:
                self._initial = self._begin()
            elif options.pin_id:
                self._initial = self._cluster.pinned(options.pin_id, self._begin)
            else:
                raise ConfigError(NO_PIN)
        return self._initial

    def prepare_available_now(self) -> None:
        """What is there now is what this run reads; records and partitions that come later are left to the next."""
        self._target = self._look()

    def latest(
        self, start: dict[str, Any], *, most: int | None = None, least: int = 0, most_bytes: int = 0
    ) -> dict[str, Any]:
        """Where the next batch ends; `start` itself if there is none. most, least: of offsets, as far as the limits go.

        most_bytes: of the log; 0: no limit.

        Raises DataLoss, OtherCluster.
        """
        begun = self._own(start)
        if self._initial is None and self._planned is None and self._options.names_start:
            self._warn("the query goes on from its checkpoint: starting options and pinId have no effect")
        spans = self._look() if self._target is None else self._target
        losses = Losses(fail=self._options.fail_on_data_loss)
        ranges = readable(begun, spans, losses)
        there = offsets_in(ranges)
        if self._target is None and least and self._patience.waits(there, least, self._now_ms()):
            return start
        ends = {key: end for key, (_, end) in ranges.items()} if most is None else share_out(ranges, most)
        if most_bytes:
            ends = self._within(ranges, ends, most_bytes)
        end = moved(begun, spans, ends, self._cluster_id)
        self._tell(losses.texts)
        if is_same(begun, end):
            return start
        self._planned = end.to_json()
        return self._planned

    def everything(self) -> dict[str, Any]:
        """Where all that is there ends, for a Spark that does not say where the batch begins. It never goes back."""
        start = self._planned or self._initial
        return self.latest(start if start is not None else StreamOffset(offsets={}).to_json())

    def known_end(self) -> dict[str, Any] | None:
        """Where the log's partitions ended when the cluster was last asked; for Spark's progress reports."""
        ends = {key: span.end for key, span in self._seen.items()}
        return moved(StreamOffset(offsets={}), self._seen, ends, self._cluster_id).to_json() if ends else None

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[PartitionRange]:
        """The ranges of a batch. Raises DataLoss, OtherCluster."""
        begun, ended = self._own(start), self._own(end)
        if is_same(begun, ended):
            return []
        for key, stop in ended.offsets.items():
            if stop < begun.offsets.get(key, 0) and begun.topic_ids.get(key[0]) == ended.topic_ids.get(key[0]):
                raise Unavailable(
                    f"{key[0]}-{key[1]}: its leader said that it ends at {stop}, and the query is at "
                    f"{begun.offsets[key]}; a leader that was just elected learns of the rest: start the query again"
                )
        spans = self._seen if end == self._planned else self._look()
        made = plan_batch(begun, ended, spans, fail_on_data_loss=self._options.fail_on_data_loss)
        self._tell(made.losses)
        return tasks_of(made.ranges, self._options, self._cluster.ranges)

    def committed(self, end: dict[str, Any]) -> None:
        """Spark has finished the batch that ended there. That nobody can see it fails no query."""
        group_id = self._options.commit_group
        if not group_id:
            return
        try:
            self._cluster.commit(group_id, self._own(end).offsets)
        except QuorumlogError as error:
            self._warn(f"commitGroup: group {group_id!r} does not show how far the query is: {error}")

    def close(self) -> None:
        self._cluster.close()

    def _within(
        self, ranges: Ranges, ends: dict[TopicPartition, Offset], most_bytes: int
    ) -> dict[TopicPartition, Offset]:
        """These ends, or earlier ones, so that the batch has no more bytes; each partition moves nevertheless.

        A topic that has gone since the run began is asked nothing; `tasks` tells its loss.
        """
        lives = {key: span.topic_id for key, span in (self._target or self._seen).items()}
        now = self._seen if self._target is None else self._look()
        still = {key for key, span in now.items() if span.topic_id == lives.get(key)}
        left = {key: (ranges[key][0], end) for key, end in ends.items() if key in still and ranges[key][0] < end}
        option = "maxBytesPerTrigger"
        enough = min(most_bytes + 1, MAX_NUMBER)
        there = self._cluster.ranges(option, {key: RangeQuery(*one, 0, enough) for key, one in left.items()})
        shares = share_out_bytes({key: bytes_in(found) for key, found in there.items()}, most_bytes)
        if shares is None:
            return ends
        asked = {key: RangeQuery(*left[key], max(share // FINENESS, 1), share) for key, share in shares.items()}
        cut = self._cluster.ranges(option, asked)
        return {**ends, **{key: end_within(found, shares[key]) for key, found in cut.items() if found}}

    def _begin(self) -> dict[str, Any]:
        spans = self._look()
        place = self._cluster.place(self._options.starting, list(spans.values()))
        check_named("startingOffsets", place, list(spans.values()))
        offsets = {key: resolve(place, span) for key, span in spans.items()}
        return moved(StreamOffset(offsets={}), spans, offsets, self._cluster_id).to_json()

    def _tell(self, losses: Iterable[str]) -> None:
        for text in losses:
            if text not in self._told:
                self._told.add(text)
                self._warn(text)

    def _look(self) -> Spans:
        if not self._cluster_id:
            self._cluster_id = self._cluster.cluster_id()
        self._seen = by_partition(self._cluster.spans())
        return self._seen

    def _own(self, found: dict[str, Any]) -> StreamOffset:
        """Raises OtherCluster for the position of a query that reads another cluster."""
        parsed = stream_offset(found)
        if not self._cluster_id:
            self._cluster_id = self._cluster.cluster_id()
        if parsed.cluster_id not in ("", self._cluster_id):
            raise OtherCluster(parsed.cluster_id, self._cluster_id)
        return parsed


def _time_changes(place: Place | TimePlace) -> bool:
    """Whether a later look would find another beginning."""
    if isinstance(place, TimePlace):
        return True
    return place == LATEST if isinstance(place, int) else LATEST in place.values()
