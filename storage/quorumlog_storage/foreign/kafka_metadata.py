"""The settings of topics in a metadata log that Kafka wrote, as far as an import needs them.

A metadata record is framed: uvarint frame version 1, uvarint type, uvarint version, message (flexible). Read here:
2 TopicRecord (name, id), 4 ConfigRecord (resource type i8, resource name, setting, value or null), 9 RemoveTopicRecord
(id). All others are passed over. The newest snapshot is read first, then the records behind it; what is cut or damaged
there ends the reading, because settings are a convenience, which the operator sees and may replace.
"""

from __future__ import annotations

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, decode_batch, headers, verify_crc
from quorumlog.records.format.flexible import INT8, Reader
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_storage.files.disk import Disk, DiskError
from quorumlog_storage.files.names import LOG_SUFFIX, OFFSET_DIGITS

TOPIC_RESOURCE = 2
FRAME_VERSION = 1
TOPIC, CONFIG, REMOVE_TOPIC = 2, 4, 9
CHECKPOINT = ".checkpoint"

Settings = dict[str, str]


def topic_settings(disk: Disk, log_directory: str) -> dict[str, Settings] | None:
    """Of every topic by name; None where no metadata log of Kafka lies in `log_directory`. Raises DiskError."""
    folder = f"{log_directory}/{METADATA_TOPIC}-0"
    try:
        names = disk.list(folder)
    except DiskError:
        return None
    snapshots = sorted(name for name in names if name.endswith(CHECKPOINT))
    settings = _Settings()
    begin: Offset = 0
    if snapshots:
        settings.take(disk.read_bytes(f"{folder}/{snapshots[-1]}"), 0)
        begin = int(snapshots[-1][:OFFSET_DIGITS])
    for name in sorted(name for name in names if name.endswith(LOG_SUFFIX)):
        settings.take(disk.read_bytes(f"{folder}/{name}"), begin)
    return settings.by_topic if settings.is_kafkas else None


class _Settings:
    def __init__(self) -> None:
        self.by_topic: dict[str, Settings] = {}
        self.is_kafkas = False  # a record of Kafka's frame was read
        self._names: dict[bytes, str] = {}  # by topic id

    def take(self, content: bytes, begin: Offset) -> None:
        """Every record at or after `begin`."""
        try:
            for header in headers(content, partial_tail=True):
                verify_crc(content, header)
                if header.is_control or header.next_offset <= begin:
                    continue
                for record in decode_batch(content, header):
                    if record.offset >= begin and record.value:
                        self._record(Reader(record.value))
        except CorruptRecords:
            return

    def _record(self, value: Reader) -> None:
        if value.uvarint() != FRAME_VERSION:
            return
        self.is_kafkas = True
        kind = value.uvarint()
        value.uvarint()
        if kind == TOPIC:
            name = value.text()
            self._names[value.uuid()] = name
            self.by_topic.setdefault(name, {})
        elif kind == CONFIG:
            self._config(value)
        elif kind == REMOVE_TOPIC:
            self.by_topic.pop(self._names.pop(value.uuid(), ""), None)

    def _config(self, value: Reader) -> None:
        if value.number(INT8) != TOPIC_RESOURCE:
            return
        topic, name, text = value.text(), value.text(), value.nullable_text()
        of_topic = self.by_topic.setdefault(topic, {})
        if text is None:
            of_topic.pop(name, None)
        else:
            of_topic[name] = text
