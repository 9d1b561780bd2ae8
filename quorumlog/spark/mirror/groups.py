"""Groups of the source, set on the target where they have no members there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.cluster import TopicMetadata
from quorumlog.spark.mirror.records import Checkpoint, Returned, checkpoint_record, checkpoints_topic
from quorumlog.spark.mirror.sides import MirrorSide, ReadLog
from quorumlog.spark.mirror.topics import Named
from quorumlog.spark.mirror.translation import Span, translate

NOT_MIRRORED = re.compile(r"console-consumer-.*|connect-.*|__.*|spark-quorumlog-.*")  # as MirrorMaker, and our own
WITHOUT_MEMBERS = ("Empty", "Dead")
KINDS = ("", "classic", "consumer")  # brokers below Kafka 3.7 name no type


@dataclass(frozen=True, slots=True)
class GroupsDone:
    """set: groups of which an offset was committed on the target. busy: those that have members there."""

    set: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


class Seen(NamedTuple):
    """What a translation depends on: the group's offset, and where the two logs begin and end."""

    offset: Offset
    source_end: Offset
    start: Offset
    end: Offset


def forward(current: Offset | None, translated: Offset, end: Offset) -> Offset | None:
    """The offset to commit on the target; None: leave it as it is.

    Never backwards, and never beyond the end (exclusive).
    """
    found = min(translated, end)
    return found if current is None or found > current else None


def group_pattern(text: str) -> re.Pattern[str]:
    """Of whole names. Raises ConfigError."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(f"--groups {text!r} is not a regular expression: {error}") from error


@dataclass
class Topics:
    """Of one pass. there: of the source, here: of the target. Each log is asked for its ends once."""

    named: Named
    there: Mapping[str, TopicMetadata]
    here: Mapping[str, TopicMetadata]
    source: MirrorSide
    target: MirrorSide
    came_home: Mapping[tuple[str, str], Returned]  # entries of the source, of what came home there
    went_home: Mapping[tuple[str, str], Returned]  # of the target
    _of_source: Mapping[TopicPartition, ReadLog] = field(default_factory=dict)
    _of_target: Mapping[TopicPartition, ReadLog] = field(default_factory=dict)

    def to(self, key: TopicPartition) -> TopicPartition | None:
        """The partition of the target; None: it is not mirrored, or not there yet."""
        name = self.named.to.get(key[0])
        if name is None or name not in self.here or key[0] not in self.there:
            return None
        there, here = len(self.there[key[0]].partitions), len(self.here[name].partitions)
        return (name, key[1]) if key[1] < min(there, here) else None

    def look(self, keys: Iterable[TopicPartition]) -> None:
        """Ask once where the logs of these partitions of the source, and of their copies, begin and end."""
        pairs = {key: to for key in keys if (to := self.to(key)) is not None}
        self._of_source = self.source.logs(self.there, pairs)
        self._of_target = self.target.logs(self.here, pairs.values())

    def source_log(self, key: TopicPartition) -> ReadLog:
        return _anew(self._of_source[key])

    def target_log(self, key: TopicPartition) -> ReadLog:
        return _anew(self._of_target[key])

    def spans(self, key: TopicPartition, to: TopicPartition) -> tuple[Span, Span | None]:
        """Where the target may hold copies of the source's partition, and where the source copies of the target's."""
        if key[0] in self.named.homes:
            came = self.went_home.get((to[0], self.source.cluster_id))
            source = self.source_log(key)
            return _span(came, to[1]) or Span(Offset(0), Offset(0)), Span(source.start, source.end)
        target = self.target_log(to)
        return Span(target.start, target.end), _span(self.came_home.get((key[0], self.target.cluster_id)), key[1])


def _anew(log: ReadLog) -> ReadLog:
    """For another search, which has its own limit."""
    log.looked_at = 0
    return log


def _span(returned: Returned | None, partition: int) -> Span | None:
    found = None if returned is None else returned.spans.get(partition)
    return None if found is None else Span(Offset(found[0]), Offset(found[1]))


@dataclass
class GroupMirror:
    """Remembers what it has translated, so that a pass over groups that stand still asks for offsets only."""

    source: MirrorSide
    target: MirrorSide
    pattern: re.Pattern[str]
    tell: Callable[[str], None]
    _seen: dict[tuple[str, TopicPartition], Seen] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def mirror(self, topics: Topics) -> GroupsDone:
        """One pass."""
        done, busy, checkpoints = list[str](), list[str](), list[Checkpoint]()
        admin = self.source.client.admin
        names = [group.group_id for group in admin.list_groups() if self._is_mirrored(group)]
        committed = {name: admin.group_offsets(name) for name in names}
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] in committed}
        topics.look({key for offsets in committed.values() for key in offsets})
        for name, offsets in committed.items():
            found = self._translated(name, offsets, topics)
            checkpoints += found
            if found:
                ended = self._set(name, found, topics)
                if ended is not None:
                    (done if ended else busy).append(name)
        self.target.keep(checkpoints_topic(self.source.alias), [checkpoint_record(one) for one in checkpoints])
        return GroupsDone(tuple(done), tuple(busy))

    def _is_mirrored(self, group: ListedGroup) -> bool:
        name = group.group_id
        is_wanted = bool(name) and self.pattern.fullmatch(name) is not None and not NOT_MIRRORED.fullmatch(name)
        return is_wanted and group.group_type.lower() in KINDS

    def _translated(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset], topics: Topics
    ) -> list[Checkpoint]:
        """Of the partitions where something has changed since the last pass."""
        found = []
        for key, committed in offsets.items():
            to = topics.to(key)
            if to is None:
                continue
            offset = self._place(group, key, to, committed.offset, topics)
            if offset is not None:
                found.append(Checkpoint(group, *to, committed.offset, offset, committed.metadata))
        return found

    def _place(
        self, group: str, key: TopicPartition, to: TopicPartition, offset: Offset, topics: Topics
    ) -> Offset | None:
        """None: it is what it was, or nobody can tell."""
        source, target = topics.source_log(key), topics.target_log(to)
        now = Seen(offset, source.end, target.start, target.end)
        if self._seen.get((group, key)) == now:
            return None
        try:
            found = translate(offset, source, target, *topics.spans(key, to))
        except QuorumlogError as error:
            self._tell_once(f"group {group!r} is not set in {to[0]}-{to[1]}: {error}")
            return None
        if found is None:
            why = f"the copies that it has read are gone from {key[0]}-{key[1]}"
            self._tell_once(f"group {group!r} is not set in {to[0]}-{to[1]}: {why}")
        self._seen[group, key] = now
        return found

    def _set(self, group: str, found: list[Checkpoint], topics: Topics) -> bool | None:
        """True: an offset was committed. False: the group has members there. None: nothing was to be done."""
        admin = self.target.client.admin
        state = str(getattr(admin.describe_group(group).group, "group_state", ""))
        if state not in WITHOUT_MEMBERS:
            return self._again(group, ended=False)
        current = admin.group_offsets(group, [(one.topic, one.partition) for one in found])
        wanted: dict[TopicPartition, CommittedOffset] = {}
        for one in found:
            key = (one.topic, one.partition)
            before = current[key].offset if key in current else None
            offset = forward(before, one.offset, topics.target_log(key).end)
            if offset is not None:
                wanted[key] = CommittedOffset(offset, metadata=one.metadata)
        if not wanted:
            return None
        codes = admin.alter_group_offsets(group, wanted)
        if ErrorCode.UNKNOWN_MEMBER_ID in codes.values():  # a member has come meanwhile
            return self._again(group, ended=False)
        for (topic, partition), code in codes.items():
            if code is not ErrorCode.NONE:
                self.tell(f"group {group!r} is not set in {topic}-{partition}: {code.name}; it is tried again")
                return self._again(group, ended=None)
        return True

    def _again(self, group: str, *, ended: bool | None) -> bool | None:
        """It is tried again in the next pass, though nothing changes until then."""
        for key in [key for key in self._seen if key[0] == group]:
            del self._seen[key]
        return ended

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.tell(text)
