"""Batches and records as plain dictionaries, and as the lines that `kafka-dump-log` prints."""

from __future__ import annotations

import base64
import json
from typing import Any

from quorumlog.records import Codec, Record
from quorumlog_cli.offline.batches import FoundBatch

Plain = dict[str, Any]


def batch_document(found: FoundBatch) -> Plain:
    header = found.header
    return {
        "kind": "batch",
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "position": found.position,
        "size": header.size,
        "crc": f"0x{header.crc:08x}",
        "crc_ok": found.crc_ok,
        "codec": codec_name(header.codec),
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "max_timestamp": header.max_timestamp,
    }


def batch_line(found: FoundBatch) -> str:
    header = found.header
    time_name = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch} "
        f"isTransactional: {_word(header.is_transactional)} isControl: {_word(header.is_control)} "
        f"position: {found.position} {time_name}: {header.max_timestamp} size: {header.size} magic: {header.magic} "
        f"compresscodec: {codec_name(header.codec)} crc: {header.crc} isvalid: {_word(found.crc_ok)}"
    )


def record_document(record: Record, meaning: Plain | None) -> Plain:
    """meaning: of a control or metadata record; shown in place of its bytes."""
    document: Plain = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp_ms}
    if meaning is not None:
        return {**document, **meaning}
    headers = [[name, _base64(value)] for name, value in record.headers]
    return {**document, "key": _base64(record.key), "value": _base64(record.value), "headers": headers}


def record_line(record: Record, meaning: Plain | None) -> str:
    sizes = f"keySize: {_size(record.key)} valueSize: {_size(record.value)}"
    line = f"| offset: {record.offset} CreateTime: {record.timestamp_ms} {sizes}"
    if meaning is not None:
        details = " ".join(f"{name}: {_compact(value)}" for name, value in meaning.items())
        return f"{line} {details}"
    names = ",".join(name for name, _ in record.headers)
    return f"{line} headerKeys: [{names}] key: {_text(record.key)} payload: {_text(record.value)}"


def _compact(value: Any) -> Any:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if isinstance(value, dict) else value


def codec_name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec.__members__.values() else f"unknown({codec})"


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _text(data: bytes | None) -> str:
    return "null" if data is None else data.decode("utf-8", "backslashreplace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _word(value: bool) -> str:
    return "true" if value else "false"
