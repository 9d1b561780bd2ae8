"""The folder of a backup while it is made: only its owner can read it, and a run that was interrupted can go on.

`unfinished.json` begins with the cut; a line for each partition follows once its file is durable. The manifest is
written last, and then `unfinished.json` goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from quorumlog.backup.compaction_pause import CompactionPause
from quorumlog.backup.manifest import MANIFEST, METADATA, RECORDS, UNFINISHED, BackedUpPartition, Manifest, OpenAtCut
from quorumlog.ids import NO_EPOCH, Offset, TopicPartition, Uuid, format_uuid, parse_uuid
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.administration.export_partition import ExportedPart

_PAUSED = "compaction_paused_until_ms"
OWNER_ONLY_FOLDER, OWNER_ONLY = 0o700, 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a run that goes on needs of the cut. Times in ms since 1970."""

    cluster_id: str
    metadata_offset: Offset
    began_ms: int
    cut_ms: int
    held_ms: int
    topics: Mapping[str, Uuid]
    compacted: tuple[str, ...]  # those of the topics that compaction may take records of
    ends: Mapping[TopicPartition, Offset]
    producers: Mapping[int, str]

    def to_line(self) -> str:
        content: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        content["topics"] = {name: format_uuid(topic_id) for name, topic_id in self.topics.items()}
        content["ends"] = [[topic, index, end] for (topic, index), end in self.ends.items()]
        content["producers"] = [[producer, name] for producer, name in self.producers.items()]
        return json.dumps(content)

    @classmethod
    def of_line(cls, line: str) -> Begun:
        """Raises ValueError, KeyError, TypeError, AttributeError for anything else than a line of `to_line`."""
        content = json.loads(line)
        content["topics"] = {name: parse_uuid(topic_id) for name, topic_id in content["topics"].items()}
        content["ends"] = {(topic, index): end for topic, index, end in content["ends"]}
        content["producers"], content["compacted"] = dict(content["producers"]), tuple(content["compacted"])
        return cls(**content)


@dataclass(slots=True)
class BackupFolder:
    path: Path
    done: dict[TopicPartition, BackedUpPartition] = field(default_factory=dict)
    pause: CompactionPause = field(default_factory=CompactionPause)

    @classmethod
    def make(cls, path: Path) -> BackupFolder:
        """Raises CliError unless it is empty or not there, and outside of a node's directories: nodes delete there."""
        from quorumlog_storage.directory.meta_properties import META_PROPERTIES

        for parent in path.resolve().parents:
            if (parent / META_PROPERTIES).exists():
                raise CliError(
                    Exit.PRECONDITION,
                    f"{path} is in {parent}, a node's own, and nothing was written",
                    "name another one",
                )
        if path.exists() and any(path.iterdir()):
            more = " It is a backup that was interrupted: --resume goes on." if (path / UNFINISHED).exists() else ""
            raise CliError(
                Exit.PRECONDITION, f"{path} is not empty, and nothing was written.{more}", "name another one"
            )
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(OWNER_ONLY_FOLDER)
        (path / RECORDS).mkdir(mode=OWNER_ONLY_FOLDER)
        return cls(path)

    @classmethod
    def resume(cls, path: Path) -> tuple[BackupFolder, Begun]:
        """Raises CliError where there is nothing to go on with."""
        folder = cls(path)
        try:
            first, *rest = folder._whole_lines()
            begun = Begun.of_line(first)
            for line in rest:
                folder._note(json.loads(line))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"{path} holds no interrupted backup ({error!r})"
            raise CliError(Exit.PRECONDITION, text, "leave out --resume, and name an empty folder") from error
        return folder, begun

    def _whole_lines(self) -> list[str]:
        """A run that was killed may have left a part of one, which is taken away. Raises OSError, ValueError."""
        content = (self.path / UNFINISHED).read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(self.path / UNFINISHED, len(whole))
        return whole.decode().splitlines()

    def _note(self, one: dict[str, Any]) -> None:
        if _PAUSED in one:
            self.pause.renewed(one[_PAUSED])
            return
        parts = tuple(OpenAtCut(**part) for part in one.pop("open"))
        found = BackedUpPartition(**one, open=parts)
        self.done[found.topic, found.index] = found

    def check_pause(self, begun: Begun, now_ms: int) -> None:
        """Before a run goes on: compaction was paused all the time, or it could take nothing of what is left to copy.
        Raises PauseEnded."""
        left = {topic for topic, index in begun.ends if (topic, index) not in self.done}
        if not left.isdisjoint(begun.compacted):
            self.pause.due(now_ms)
        elif self.pause.until_ms <= now_ms:
            self.pause = CompactionPause()

    def note_pause(self) -> None:
        """A run that goes on knows by it whether compaction was paused all the time."""
        self._append({_PAUSED: self.pause.until_ms})

    def begin(self, begun: Begun, snapshot: bytes) -> None:
        _write(self.path / METADATA, snapshot)
        _write(self.path / UNFINISHED, begun.to_line().encode() + b"\n")
        self.note_pause()
        _sync_folder(self.path)

    def partition(self, key: TopicPartition, end: Offset, producers: Mapping[int, str]) -> PartitionFile:
        return PartitionFile(self.path / RECORDS / f"{key[0]}-{key[1]}", key, end, producers)

    def add(self, one: BackedUpPartition) -> None:
        """Its file is durable."""
        _sync_folder(self.path / RECORDS)
        self._append(asdict(one))
        self.done[one.topic, one.index] = one

    def _append(self, line: Mapping[str, Any]) -> None:
        with _opened(self.path / UNFINISHED, os.O_APPEND) as file:
            file.write(json.dumps(line).encode() + b"\n")
            _sync(file)

    def finish(self, begun: Begun, left_out: Mapping[str, str], ended_ms: int, made_by: str) -> Manifest:
        metadata = (self.path / METADATA).read_bytes()
        manifest = Manifest(
            cluster_id=begun.cluster_id,
            metadata_offset=begun.metadata_offset,
            metadata_sha256=hashlib.sha256(metadata).hexdigest(),
            began_ms=begun.began_ms,
            cut_ms=begun.cut_ms,
            ended_ms=ended_ms,
            held_ms=begun.held_ms,
            made_by=made_by,
            topics={name: topic_id for name, topic_id in begun.topics.items() if name not in left_out},
            partitions=tuple(self.done[key] for key in sorted(self.done) if key[0] not in left_out),
            left_out=left_out,
        )
        _write(self.path / f"{MANIFEST}.tmp", manifest.to_json().encode())
        (self.path / f"{MANIFEST}.tmp").rename(self.path / MANIFEST)
        _sync_folder(self.path)
        (self.path / UNFINISHED).unlink()
        return manifest

    def drop(self) -> None:
        """No cut was taken: nothing in the folder is of use."""
        shutil.rmtree(self.path / RECORDS, ignore_errors=True)


class PartitionFile:
    """One partition, as its parts come; `finish` once all have come."""

    def __init__(self, path: Path, key: TopicPartition, end: Offset, producers: Mapping[int, str]) -> None:
        from quorumlog.records.open_transactions import OpenTransactions

        self._path, self._key, self._end, self._producers = path, key, end, producers
        self._file = _opened(path.with_name(path.name + ".part"), os.O_TRUNC)
        self._digest, self._size, self._start = hashlib.sha256(), 0, end
        self._last_epoch, self._max_producer_id = NO_EPOCH, -1
        self._open = OpenTransactions()

    def take(self, part: ExportedPart) -> None:
        from quorumlog.records import headers

        self._start = min(part.log_start, self._end)
        for header in headers(part.records):
            self._open.follow(header, part.records[header.position : header.position + header.size])
            self._last_epoch = max(self._last_epoch, header.leader_epoch)
            self._max_producer_id = max(self._max_producer_id, header.producer_id)
        self._file.write(part.records)
        self._digest.update(part.records)
        self._size += len(part.records)

    def finish(self) -> BackedUpPartition:
        """Durable when it returns."""
        _sync(self._file)
        self._file.close()
        Path(self._file.name).rename(self._path)
        return BackedUpPartition(
            topic=self._key[0],
            index=self._key[1],
            start=self._start,
            end=self._end,
            size=self._size,
            sha256=self._digest.hexdigest(),
            last_epoch=self._last_epoch,
            max_producer_id=self._max_producer_id,
            open=tuple(
                OpenAtCut(
                    transactional_id=self._producers.get(producer, ""),
                    producer_id=producer,
                    first_offset=one.first_offset,
                )
                for producer, one in self._open.by_producer.items()
            ),
        )

    def close(self) -> None:
        self._file.close()


def _opened(path: Path, flags: int) -> BinaryIO:
    opener: Callable[[str, int], int] = lambda name, _: os.open(name, os.O_WRONLY | os.O_CREAT | flags, OWNER_ONLY)  # noqa: E731
    return open(path, "wb", opener=opener)


def _write(path: Path, content: bytes) -> None:
    with _opened(path, os.O_TRUNC) as file:
        file.write(content)
        _sync(file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
