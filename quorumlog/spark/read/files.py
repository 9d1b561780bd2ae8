"""Reads logs from their files in place of a cluster (`readFrom=files`): what a plan asks, and the records of a task.

The directories are those of a broker, of quorumlog or of Apache Kafka, mounted or copied. Nothing in them is changed,
and a broker may work in them meanwhile (quorumlog_storage/foreign/log_reader.py). A plan and each task look anew at
what there is: a task reads the offsets of its plan, and tells which of them have gone since.

With metadata_records.py it is all of the library that uses the storage engine
(docs/decisions/0107-read-a-log-from-its-files.md).
"""

from __future__ import annotations

import os
import re
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.fetching.position import Chunk, Position
from quorumlog.client.offsets import EARLIEST
from quorumlog.ids import Offset, TopicPartition, Uuid, show_uuid
from quorumlog.messages.fetch import AbortedTransaction, OffsetRange
from quorumlog.records import CorruptRecords, iter_headers
from quorumlog.spark.read.options import ReadOptions
from quorumlog.spark.read.places import Place, TimePlace
from quorumlog.spark.read.planning import DataLoss, DescribedLog, LogSpan, PartitionRange, found_by_time, times_of
from quorumlog.spark.read.reading import after_loss
from quorumlog.topic_name import METADATA_TOPIC, is_internal
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS
from quorumlog_storage.directory.partition_metadata import BadPartitionMetadata
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing, name_of, parent_of
from quorumlog_storage.files.names import BadDirectoryName, parse_directory
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.foreign.log_directory import LogDirectory, look_into
from quorumlog_storage.foreign.log_reader import Hole, LogReader, NoSegment, Outcomes, Part
from quorumlog_storage.foreign.source import CLEANED
from quorumlog_storage.log.aborted import transactional
from quorumlog_storage.segment.log_file import CorruptBatch

READ_BYTES = 2 << 20  # of a file at once, or one batch
MAX_VIEWS = 10  # of a log that a broker changes meanwhile, without a step forward
SHOWN = 5  # partitions, or topics, that a text names

T = TypeVar("T")


class UnreadableLog(QuorumlogError):
    """Files that cannot be read as a log. The text names the file, the position in it, and what to do."""


class LogFiles:
    """What a plan asks, as `cluster.OpenCluster` answers it. Keeps each log that it has looked at."""

    def __init__(self, options: ReadOptions, disk: Disk | None = None) -> None:
        self._options = options
        self._disk = ReadOnlyDisk() if disk is None else disk
        self._places: dict[TopicPartition, LogDirectory] = {}
        self._readers: dict[TopicPartition, LogReader] = {}

    def spans(self) -> list[LogSpan]:
        """Of every partition of the subscription. Warns of what is not shown. Raises ConfigError, UnreadableLog."""
        self._places = _chosen(self._options, look_into_all(self._disk, self._options.directories))
        above: dict[TopicPartition, str] = {}
        spans = [self._look(key, lambda reader: self._span(key, reader, above)) for key in sorted(self._places)]  # noqa: B023
        _check_topic_ids(spans)
        _warn_of(
            list(above.values()), "offsets are not shown", "readUpTo=logEnd shows what is above the high watermark"
        )
        _warn_of(
            list(filter(None, map(self._missing_before, spans))),
            "offsets are not in the files",
            "they were deleted a moment ago, or somebody lost files, or they are in remote storage, which is not read",
        )
        return spans

    def place(self, place: Place | TimePlace, spans: list[LogSpan]) -> Place:
        """Looks times up. Raises ConfigError where a partition has no record at or after its time."""
        if not isinstance(place, TimePlace):
            return place
        if not spans:
            return EARLIEST  # of nothing
        times, found = times_of(place, spans), dict[TopicPartition, Offset]()
        for span in spans:
            key = (span.topic, span.partition)
            offset = self._look(key, lambda reader: reader.first_since(times[key], span.end))  # noqa: B023
            found[key] = -1 if offset is None else offset
        return found_by_time(place, spans, found)

    def ranges(self, option: str, wanted: Mapping[TopicPartition, RangeQuery]) -> DescribedLog:
        return {key: self._look(key, lambda reader: _ranges(reader, query)) for key, query in wanted.items()}  # noqa: B023

    def close(self) -> None:
        self._readers.clear()

    def _span(self, key: TopicPartition, reader: LogReader, above: dict[TopicPartition, str]) -> LogSpan:
        end = self._visible_end(key, reader, above)
        if self._options.client["isolation_level"] == "read_committed":
            stable = reader.last_stable_offset(end)
            if reader.damage is not None and stable < end:
                raise reader.damage  # which may hide the end of the transaction that is open before it
            end = stable
        topic_id = self._places[key].topic_id(key) or b""
        start = reader.start_offset
        return LogSpan(topic=key[0], topic_id=topic_id, partition=key[1], start=start, end=max(start, end))

    def _missing_before(self, span: LogSpan) -> str:
        """What the log is noted to have before its first file; empty: nothing."""
        key = (span.topic, span.partition)
        noted = self._places[key].log_starts.get(key, span.start)
        if noted >= span.start:
            return ""
        return f"{span.topic}-{span.partition} begins at {span.start}, behind its log start {noted} in {LOG_STARTS}"

    def _visible_end(self, key: TopicPartition, reader: LogReader, above: dict[TopicPartition, str]) -> Offset:
        """Exclusive; beyond the reader's where it ends at damage, which a task tells that comes so far. above: takes a
        text for what is not shown."""
        name, start, end = f"{key[0]}-{key[1]}", reader.start_offset, reader.end_offset
        if start > end:
            above[key] = f"{name} ends at {end}, before its log start {start} in {LOG_STARTS}: none of it is read"
            return end
        if self._options.to_log_end:
            if reader.damage is not None:
                raise reader.damage
            return end
        noted = self._places[key].high_watermarks
        if noted is None:
            if end == start:
                return end
            raise ConfigError(
                f"{reader.path}: no {HIGH_WATERMARKS} beside it says how far its records are committed; copy that file "
                "along, or set readUpTo=logEnd, which also shows records that other replicas may lack"
            )
        high_watermark = noted.get(key, 0)
        if high_watermark > end:
            if reader.damage is not None:
                return high_watermark
            above[key] = (
                f"{name} ends at {end}, before its high watermark {high_watermark}: the rest is not in the files"
            )
        elif max(high_watermark, start) < end:
            first = max(high_watermark, start)
            above[key] = f"{name} has {end - first} offsets from {first} on above its high watermark"
        return min(high_watermark, end)

    def _look(self, key: TopicPartition, ask: Callable[[LogReader], T]) -> T:
        """What `ask` finds in a log; asked again where its files change meanwhile."""
        patience = Patience(self._places[key].path_of(key))
        while True:
            with patience:
                reader = self._readers.pop(key, None) or self._places[key].reader_of(key)
                found = ask(reader)
                self._readers[key] = reader
                return found


class Advice(NamedTuple):
    """What to do, by options that the read has. damage: in a segment. missing: about a log without one."""

    damage: str = "read another replica's directory, or leave this place out by startingOffsets and endingOffsets"
    missing: str = "leave the partition out by assign"


class Patience:
    """Around each try to read a log: takes what another look at the files may mend, and else says what to do.

    Raises UnreadableLog: for damage that is met twice at one place; for files that vanish again and again; for a disk.
    Raises Hole, for offsets that are missing twice at one place: a cleaner may have come there since the first look.
    """

    def __init__(self, path: str, advice: Advice | None = None) -> None:
        """advice: None: that of a read of topics."""
        self._path, self._advice = path, advice or Advice()
        self._met: tuple[str, int] | None = None  # the place of damage, or where offsets are missing
        self._missing = 0

    def moved_on(self) -> None:
        self._met, self._missing = None, 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Hole):
            return not self._is_met_twice(error.path, error.start)
        if isinstance(error, CorruptBatch):
            if not self._is_met_twice(error.path, error.position):
                return True
            raise UnreadableLog(
                f"{error.path} at byte {error.position}: {error.reason}; {self._advice.damage}"
            ) from error
        if isinstance(error, FileMissing):
            self._missing += 1
            if self._missing < MAX_VIEWS:
                return True
        if isinstance(error, QuorumlogError) or error is None:
            return False
        text = text_of(error, self._advice)
        if text:
            raise UnreadableLog(f"{self._path}: {text}" if isinstance(error, CorruptRecords) else text) from error
        return False

    def _is_met_twice(self, path: str, place: int) -> bool:
        is_twice, self._met = self._met == (path, place), (path, place)
        return is_twice


def text_of(error: BaseException, advice: Advice | None = None) -> str:
    """What is wrong with files, for the user; empty for errors of other kinds."""
    if isinstance(error, FileMissing):
        return f"{error.path} is not there, or goes away while it is read; look at who changes the directory"
    if isinstance(error, DiskError):
        return f"{error.path}: {error.op} failed ({os.strerror(error.errno)}); Spark's user must be able to read it"
    if isinstance(error, CorruptCheckpoint):
        return (
            f"{error.path} line {error.line}: {error.reason}; copy the file again, or read another replica's directory"
        )
    if isinstance(error, BadPartitionMetadata):
        return f"{error.path}: {error.reason}; copy the file again, or remove it from a copy"
    if isinstance(error, NoSegment):
        return f"{error}; copy the directory again, or {(advice or Advice()).missing}"
    return str(error) if isinstance(error, CorruptRecords) else ""


# --- directories ---


def look_into_all(disk: Disk, paths: Sequence[str]) -> list[LogDirectory]:
    """Raises ConfigError for what is no log directory, UnreadableLog."""
    found = []
    for path in paths:
        try:
            found.append(look_into(disk, path))
        except FileMissing as error:
            raise ConfigError(
                f"path: there is no directory {path} on {socket.gethostname()}; readFrom=files needs it at the same "
                "path on the driver's machine, which plans, and on every worker's: mount it there"
            ) from error
        except (DiskError, CorruptCheckpoint) as error:
            raise UnreadableLog(text_of(error)) from error
    if not any(one.partitions for one in found):
        raise ConfigError(_no_partitions(disk, paths))
    return found


def _no_partitions(disk: Disk, paths: Sequence[str]) -> str:
    text = f"path: {', '.join(paths)} on {socket.gethostname()} holds no partition (a directory <topic>-<number>)"
    for path in paths:
        if _is_partition(name_of(path)):
            return f"{text}; it is the directory of one partition: give {parent_of(path)}, and subscribe to its topic"
        if disk.is_directory(f"{path}/data"):
            return f"{text}; give {path}/data, if these are its logs"
    return f"{text}; give a directory of a broker's log.dirs, mounted at the same path on every machine"


def _is_partition(name: str) -> bool:
    try:
        return bool(parse_directory(name).topic)
    except BadDirectoryName:
        return False


def _chosen(options: ReadOptions, directories: Sequence[LogDirectory]) -> dict[TopicPartition, LogDirectory]:
    """Where each partition of the subscription lies. Warns of partitions that are not there. Raises ConfigError."""
    subscription, there = options.subscription, dict[str, list[int]]()
    for topic, index in sorted(set(chain.from_iterable(one.partitions for one in directories))):
        if topic != METADATA_TOPIC:
            there.setdefault(topic, []).append(index)
    wanted: dict[str, Sequence[int]] = {}
    if subscription.pattern:
        pattern = re.compile(subscription.pattern)
        names = [name for name in there if pattern.search(name) and not is_internal(name)]
        wanted = {name: there[name] for name in names}
    for name in subscription.names:
        wanted[name] = there.get(name, ())
    wanted |= subscription.assigned or {}
    for name, indexes in wanted.items():
        _check_there(name, indexes, there, directories)
    if subscription.assigned is None:
        _warn_of_gaps(wanted)
    return _only_places([(name, index) for name, indexes in wanted.items() for index in indexes], directories)


def _check_there(
    topic: str, wanted: Sequence[int], there: Mapping[str, Sequence[int]], directories: Sequence[LogDirectory]
) -> None:
    if topic == METADATA_TOPIC:
        raise ConfigError(f"{METADATA_TOPIC} is the cluster's own log: read it with table=metadata.records")
    missing = [index for index in wanted if index not in there.get(topic, ())]
    if topic in there and not missing:
        return
    where = ", ".join(one.path for one in directories)
    marked = [f"{one.path}/{name}" for one in directories for name, found in one.marked.items() if found.topic == topic]
    if topic in there:
        text = f"assign: {topic}-{missing[0]} is not in {where}, which has {_shown(there[topic])}"
    else:
        text = f"topic {topic!r} is not in {where}, which has {_shown(sorted(there))}"
    if marked:
        text += f"; {_shown(marked)}: such a directory is being deleted, set aside or moved in, and is not read"
    raise ConfigError(f"{text}. A broker holds its own replicas only: give the directory of one that has it")


def _shown(names: Sequence[object]) -> str:
    more = len(names) - SHOWN
    return ", ".join(map(str, names[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def _only_places(
    wanted: Sequence[TopicPartition], directories: Sequence[LogDirectory]
) -> dict[TopicPartition, LogDirectory]:
    places: dict[TopicPartition, LogDirectory] = {}
    for key in wanted:
        first, *others = [one for one in directories if key in one.partitions]
        if others:
            raise ConfigError(
                f"partition {key[0]}-{key[1]} lies twice: in {first.path_of(key)} and in {others[0].path_of(key)}; "
                "give the directories of one broker, and leave out the copy that is not wanted"
            )
        places[key] = first
    return places


def _check_topic_ids(spans: Sequence[LogSpan]) -> None:
    """Raises ConfigError where directories are left of a topic that had the name before."""
    first: dict[str, LogSpan] = {}
    for span in spans:
        other = first.setdefault(span.topic, span)
        if other.topic_id != span.topic_id:
            raise ConfigError(
                f"{other.topic}-{other.partition} and {span.topic}-{span.partition} are of two topics that have had "
                f"this name, {_shown_id(other.topic_id)} and {_shown_id(span.topic_id)} (partition.metadata); "
                "choose the partitions of one by assign"
            )


def _shown_id(topic_id: Uuid) -> str:
    return show_uuid(topic_id) if topic_id else "one whose id is not there"


def _warn_of_gaps(wanted: Mapping[str, Sequence[int]]) -> None:
    gaps = [f"{name}-{i}" for name, have in wanted.items() for i in range(max(have, default=0)) if i not in have]
    _warn_of(gaps, "partitions are not in these directories", "another broker has them")


def _warn_of(texts: Sequence[str], what: str, hint: str) -> None:
    if texts:
        warnings.warn(f"readFrom=files: {what}: {_shown(texts)}; {hint}", stacklevel=3)


def _ranges(reader: LogReader, query: RangeQuery) -> list[OffsetRange]:
    return [
        OffsetRange(start_offset=one.start, end_offset=one.end, size_bytes=one.size, max_timestamp_ms=one.max_timestamp)
        for one in reader.ranges(query.start, query.end, query.max_range_bytes)
    ]


# --- a task ---


def read_files(wanted: PartitionRange, options: ReadOptions, disk: Disk | None = None) -> Iterator[Chunk]:
    """Chunks that cover the range, except lost offsets. Raises DataLoss, UnreadableLog, ConfigError."""
    disk = ReadOnlyDisk() if disk is None else disk
    key = (wanted.topic, wanted.partition)
    position = Position(*key, wanted.start, wanted.end, topic_id=wanted.topic_id)
    patience = Patience(f"{wanted.topic}-{wanted.partition}")
    while not position.finished:
        try:
            with patience:
                for chunk in _read_on(wanted, position, options, disk):
                    patience.moved_on()
                    yield chunk
        except Hole as hole:
            position.reset(max(position.next_offset, hole.start))
            loss = _lost(wanted, position, hole.end, hole_text(hole))
            position.reset(after_loss(loss, options))
        except DataLoss as loss:
            position.reset(after_loss(loss, options))


def hole_text(hole: Hole) -> str:
    return (
        f"they are missing between two segments of {hole.path}, and {CLEANED} does not say that a cleaner has come so "
        "far; one of Apache Kafka that is at work there, or was interrupted, may have taken them all the same"
    )


def _read_on(wanted: PartitionRange, position: Position, options: ReadOptions, disk: Disk) -> Iterator[Chunk]:
    """From the position on, as the files are now. It ends where the range ends, or before a batch that is damaged."""
    directory = _place(wanted, position, options, disk)
    reader = directory.reader_of((wanted.topic, wanted.partition))
    if position.next_offset < reader.start_offset:
        why = f"the log starts at {reader.start_offset} now, older records were deleted"
        raise _lost(wanted, position, reader.start_offset, why)
    is_committed = options.client["isolation_level"] == "read_committed"
    outcomes = Outcomes(reader, position.next_offset) if is_committed else None
    for part in reader.parts(position.next_offset, wanted.end, READ_BYTES):
        before = position.next_offset
        chunk = _received(position, part, outcomes)
        if _life(wanted, directory) != wanted.topic_id:
            position.reset(before)
            return  # the files may be of a topic that was made again since the look into the directory
        if chunk is not None:
            yield chunk
        if position.next_offset < part.next_offset:
            return
    if reader.end_offset < wanted.end:
        if reader.damage is not None:
            raise reader.damage
        position.reset(max(position.next_offset, reader.end_offset))
        raise _lost(wanted, position, wanted.end, f"{reader.path} ends at {reader.end_offset} now")
    position.reset(wanted.end)


def _place(wanted: PartitionRange, position: Position, options: ReadOptions, disk: Disk) -> LogDirectory:
    """Where the partition lies now. Raises DataLoss if it is gone, or another topic's."""
    found = _look_for(wanted, options, disk) or _look_for(wanted, options, disk)  # a move may escape the first look
    if found is None:
        why = f"its directory is not in {', '.join(options.directories)} on {socket.gethostname()} any more"
        raise _lost(wanted, position, wanted.end, why)
    if _life(wanted, found) != wanted.topic_id:
        raise _lost(wanted, position, wanted.end, "the topic was deleted and created again")
    return found


def _look_for(wanted: PartitionRange, options: ReadOptions, disk: Disk) -> LogDirectory | None:
    key = (wanted.topic, wanted.partition)
    return next((one for one in look_into_all(disk, options.directories) if key in one.partitions), None)


def _life(wanted: PartitionRange, directory: LogDirectory) -> Uuid:
    """The id of the topic that the partition is of now; empty where no file says it."""
    return directory.topic_id((wanted.topic, wanted.partition)) or b""


def _received(position: Position, part: Part, outcomes: Outcomes | None) -> Chunk | None:
    """Verified. Raises CorruptBatch if the first new batch is damaged; before a later one the chunk ends."""
    aborted: list[AbortedTransaction] = []
    try:
        if outcomes is not None:
            found = outcomes.aborted(transactional(iter_headers(part.data)))
            aborted = [AbortedTransaction(producer_id=producer_id, first_offset=first) for producer_id, first in found]
        return position.received(part.data, part.next_offset, check_crcs=True, aborted=aborted)
    except CorruptRecords as error:
        raise CorruptBatch(part.path, part.position + error.position, error.reason) from error


def _lost(wanted: PartitionRange, position: Position, end: Offset, why: str) -> DataLoss:
    return DataLoss(wanted.topic, wanted.partition, position.next_offset, min(end, wanted.end), why)
