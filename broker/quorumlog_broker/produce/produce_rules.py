"""What the leader checks of a produced batch beside its bytes: its form, and its timestamps against the clock."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.batch import NO_TIMESTAMP, BatchHeader
from quorumlog.topic_config import TOPIC_CONFIGS, TopicConfig

LEAST_SEGMENT_BYTES = TOPIC_CONFIGS["segment.bytes"].minimum


def check_form(found: Sequence[BatchHeader], *, is_verified: bool) -> None:
    """Kafka's rule of one batch per partition; and no batch of a transaction that no coordinator vouches for, since
    nobody could end it. Raises ApiError."""
    if len(found) > 1:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{len(found)} batches for one partition; a request holds one")
    if found[0].is_transactional and not is_verified:
        text = "a batch of a transaction without a transactional id: nobody could end it"
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)


def check_size(config: TopicConfig, found: Sequence[BatchHeader]) -> None:
    """A batch that is larger than a segment is refused, whatever `max.message.bytes` allows. Raises ApiError.

    Below the least `segment.bytes`, which only a test sets, each batch gets a segment of its own.
    """
    size = sum(header.size for header in found)
    if size > max(config.segment_bytes, LEAST_SEGMENT_BYTES):
        text = f"{size} bytes do not fit into a segment, segment.bytes is {config.segment_bytes}"
        raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{text}: send less at once, or raise it")


def uses_append_time(config: TopicConfig) -> bool:
    return config.message_timestamp_type == "LogAppendTime"


def check_timestamps(config: TopicConfig, found: Sequence[BatchHeader], now_ms: int) -> None:
    """now_ms: wall clock. Raises ApiError."""
    for header in found:
        ahead_ms, behind_ms = header.max_timestamp - now_ms, now_ms - header.base_timestamp
        if ahead_ms > config.message_timestamp_after_max_ms:
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"a record is {ahead_ms} ms ahead of this broker's clock")
        if header.base_timestamp != NO_TIMESTAMP and behind_ms > config.message_timestamp_before_max_ms:
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"a record is {behind_ms} ms behind this broker's clock")
