"""Groups of the source, set on the target where they have no members there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.group_offsets import CommittedOffset
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.cluster import TopicMetadata
from quorumlog.spark.mirror.internal_records import Checkpoint, checkpoint_record, checkpoints_topic
from quorumlog.spark.mirror.naming import Named
from quorumlog.spark.mirror.sides import MirrorSide, ReadLog
from quorumlog.spark.mirror.translation import translate

NOT_MIRRORED = re.compile(r"console-consumer-.*|connect-.*|__.*|spark-quorumlog-.*")  # as MirrorMaker, and our own
WITHOUT_MEMBERS = ("Empty", "Dead")
KINDS = ("classic", "consumer")


@dataclass(frozen=True, slots=True)
class GroupsDone:
    """set: groups, of which an offset was committed on the target. busy: those that have members there."""

    set: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


def forward(current: Offset | None, translated: Offset, end: Offset) -> Offset | None:
    """The offset to commit on the target; None: leave it as it is. Never backwards, never beyond the end
    (exclusive)."""
    found = min(translated, end)
    return found if current is None or found > current else None


def group_pattern(text: str) -> re.Pattern[str]:
    """Of whole names. Raises ConfigError."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(f"--groups {text!r} is not a regular expression: {error}") from error


@dataclass
class GroupMirror:
    """Remembers what it has translated, so that a pass over groups that stand still asks for offsets only."""

    source: MirrorSide
    target: MirrorSide
    pattern: re.Pattern[str]
    tell: Callable[[str], None]
    _known: dict[tuple[str, TopicPartition], tuple[Offset, Offset, Offset, Offset]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def mirror(self, named: Named, there: Mapping[str, TopicMetadata], here: Mapping[str, TopicMetadata]) -> GroupsDone:
        """there: topics of the source. here: of the target."""
        done, busy, checkpoints = list[str](), list[str](), list[Checkpoint]()
        logs: dict[tuple[str, TopicPartition], ReadLog] = {}
        for listed in self.source.client.admin.list_groups():
            group = listed.group_id
            if not group or not self.pattern.fullmatch(group) or NOT_MIRRORED.fullmatch(group):
                continue
            if listed.group_type and listed.group_type.lower() not in KINDS:
                continue
            committed = self.source.client.admin.group_offsets(group)
            found = {
                (named.to[key[0]], key[1]): one
                for key, one in committed.items()
                if key[0] in named.to and self._is_there(key, named, there, here)
            }
            back = {named.to[topic]: topic for topic in named.to}
            translated: dict[TopicPartition, CommittedOffset] = {}
            for key, one in found.items():
                offset = self._translated(group, (back[key[0]], key[1]), key, one.offset, named, there, here, logs)
                if offset is not None:
                    translated[key] = CommittedOffset(offset, metadata=one.metadata)
                    checkpoints.append(Checkpoint(group, key[0], key[1], one.offset, offset, one.metadata))
            if translated:
                self._set(group, translated, done, busy, logs)
        self.target.keep(checkpoints_topic(self.source.alias), [checkpoint_record(one) for one in checkpoints])
        return GroupsDone(tuple(done), tuple(busy))

    def _is_there(
        self, key: TopicPartition, named: Named, there: Mapping[str, TopicMetadata], here: Mapping[str, TopicMetadata]
    ) -> bool:
        to = named.to[key[0]]
        return key[0] in there and to in here and key[1] < len(here[to].partitions)

    def _translated(
        self,
        group: str,
        key: TopicPartition,
        to: TopicPartition,
        offset: Offset,
        named: Named,
        there: Mapping[str, TopicMetadata],
        here: Mapping[str, TopicMetadata],
        logs: dict[tuple[str, TopicPartition], ReadLog],
    ) -> Offset | None:
        """None: it is what it was, or nobody can tell."""
        source = self._log(self.source, there, key, logs)
        target = self._log(self.target, here, to, logs)
        known = self._known.get((group, key))
        now = (offset, source.end, target.start, target.end)
        if known == now:
            return None
        try:
            found = translate(offset, source, target, is_home=key[0] in named.homes)
        except QuorumlogError as error:
            self._tell_once(f"group {group!r} is not set in {to[0]}-{to[1]}: {error}")
            return None
        if found is None:
            self._tell_once(
                f"group {group!r} is not set in {to[0]}-{to[1]}: the copies that it has read are gone "
                f"from {key[0]}-{key[1]}"
            )
        self._known[group, key] = now
        return found

    def _log(
        self,
        side: MirrorSide,
        topics: Mapping[str, TopicMetadata],
        key: TopicPartition,
        logs: dict[tuple[str, TopicPartition], ReadLog],
    ) -> ReadLog:
        place = (side.cluster_id, key)
        if place not in logs:
            logs[place] = side.log(topics[key[0]], key[1])
        logs[place].looked_at = 0
        return logs[place]

    def _set(
        self,
        group: str,
        translated: Mapping[TopicPartition, CommittedOffset],
        done: list[str],
        busy: list[str],
        logs: Mapping[tuple[str, TopicPartition], ReadLog],
    ) -> None:
        admin = self.target.client.admin
        if _state(admin.describe_group(group).group) not in WITHOUT_MEMBERS:
            busy.append(group)
            self._forget(group)
            return
        current = admin.group_offsets(group, list(translated))
        wanted: dict[TopicPartition, CommittedOffset] = {}
        for key, one in translated.items():
            before = current.get(key)
            end = logs[self.target.cluster_id, key].end
            offset = forward(None if before is None else before.offset, one.offset, end)
            if offset is not None:
                wanted[key] = one._replace(offset=offset)
        if not wanted:
            return
        codes = admin.alter_group_offsets(group, wanted)
        if ErrorCode.UNKNOWN_MEMBER_ID in codes.values():  # a member has come meanwhile
            busy.append(group)
            self._forget(group)
            return
        failed = {key: code for key, code in codes.items() if code is not ErrorCode.NONE}
        if failed:
            (topic, partition), code = next(iter(failed.items()))
            self.tell(f"group {group!r} is not set in {topic}-{partition}: {code.name}")
            self._forget(group)
        else:
            done.append(group)

    def _forget(self, group: str) -> None:
        """It is tried again in the next pass."""
        for key in [key for key in self._known if key[0] == group]:
            del self._known[key]

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.tell(text)


def _state(group: object) -> str:
    """Of either protocol."""
    return str(getattr(group, "group_state", ""))
