"""What the leader checks of a produced batch beside its bytes: its form, and what the topic asks of its records."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.configs.topic import TOPIC_CONFIGS, TopicConfig
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.format.batch import NO_TIMESTAMP, BatchHeader
from quorumlog.records.validation.record_check import (
    MAX_FAULTS,
    InvalidRecord,
    RecordFault,
    RecordRules,
    may_break_times,
)

LEAST_SEGMENT_BYTES = TOPIC_CONFIGS["segment.bytes"].minimum


def check_form(found: Sequence[BatchHeader], config: TopicConfig, *, is_verified: bool) -> None:
    """Kafka's rule of one batch per partition; no batch of a transaction that no coordinator vouches for, since nobody
    could end it; and, where the broker sets the append time, or the batch names none, none that claims to have it.
    (Elsewhere the leader takes the claim away, as Kafka's does.) Raises ApiError."""
    if len(found) > 1:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{len(found)} batches for one partition; a request holds one")
    if found[0].is_transactional and not is_verified:
        text = "a batch of a transaction without a transactional id: nobody could end it"
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)
    header = found[0]
    if header.is_log_append_time and (uses_append_time(config) or header.max_timestamp == NO_TIMESTAMP):
        text = "only the broker sets the append time"
        faults = [RecordFault(number, text) for number in range(min(header.count, MAX_FAULTS))]
        raise InvalidRecord(text, faults, ErrorCode.INVALID_TIMESTAMP)


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


def record_rules(config: TopicConfig, now_ms: int) -> RecordRules:
    """What each record must keep. now_ms: wall clock."""
    keys_required = "compact" in config.cleanup_policy
    if uses_append_time(config):
        return RecordRules(keys_required)
    oldest_ms = now_ms - config.message_timestamp_before_max_ms
    return RecordRules(keys_required, oldest_ms, now_ms + config.message_timestamp_after_max_ms)


def check_header_timestamps(header: BatchHeader, rules: RecordRules) -> None:
    """For a leader that does not look at records (`record.validation=header`). Raises ApiError."""
    if may_break_times(header.base_timestamp, header.max_timestamp, rules):
        text = f"timestamps from {header.base_timestamp} to {header.max_timestamp}"
        text = f"{text}, allowed are {rules.oldest_ms} to {rules.newest_ms}"
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, text)


def has_likely_timestamps(header: BatchHeader) -> bool:
    """False if the header's times cannot be right, so that the records must be asked."""
    return not header.is_log_append_time and NO_TIMESTAMP <= header.base_timestamp <= header.max_timestamp
