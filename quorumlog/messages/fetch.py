"""Reads of record batches, by consumers and following replicas; and queries about a log's offsets and epochs.

Written by `./dev proto` from proto/quorumlog/v1/fetch.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer, Pieces
from quorumlog.messages.common import CurrentLeader, EpochEndOffset, NodeEndpoint
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """max_wait_ms: How long to wait while fewer than `min_bytes` are available.
    max_bytes: Soft limit of the whole answer: the first batch is sent even if it is larger.
    replica: Set only by a following broker; refused on a client listener.
    isolation_level: 0: read uncommitted; 1: read committed.
    session_id: Incremental fetch sessions (KIP-227): 0 and -1 request none.
    forgotten: Partitions that the session no longer fetches.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    topics: tuple[FetchTopic, ...] = ()
    replica: ReplicaState | None = None
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    forgotten: tuple[ForgottenTopic, ...] = ()
    rack: str = ""


@message(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """A following broker. Its fetch offset acknowledges all records below it."""

    replica_id: int
    broker_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class FetchTopic:
    """topic_id: 16 bytes, or empty if the client knows only the name."""

    topic_id: bytes
    name: str = ""
    partitions: tuple[FetchPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """current_leader_epoch: The leader epoch known to the reader; -1: none.
    last_fetched_epoch: Epoch of the reader's last record; -1: none, then there is no divergence check.
    log_start_offset: The follower's log start offset; -1 from a consumer.
    """

    index: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class ForgottenTopic:
    """topic_id: As in the request that first named the partition: 16 bytes, or empty with a name."""

    topic_id: bytes
    partitions: tuple[int, ...] = ()
    name: str = ""


@message(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[FetchTopicResponse, ...] = ()
    session_id: int = 0
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class FetchTopicResponse:
    topic_id: bytes
    name: str = ""
    partitions: tuple[FetchPartitionResponse, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class FetchPartitionResponse:
    """high_watermark: Exclusive end of the offsets that consumers may read; -1 with an error.
    diverging_epoch: Set if the reader must truncate its log before it reads on.
    records: Whole batches, format v2; the first may begin below the fetch offset.
    """

    index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: CurrentLeader | None = None
    records: Buffer | Pieces = b""
    aborted_transactions: tuple[AbortedTransaction, ...] = ()
    preferred_read_replica: int = -1


@message(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int


@message(frozen=True, slots=True, kw_only=True)
class FetchChunkRequest:
    """Asks for one chunk of a partition: a credit for one answer. So no more chunks are on their way, or wait
    anywhere,
    than the reader has asked for. Answers come in the order of the requests.

    fetch: Of one partition: where to begin, and how large a chunk may be. Absent: behind the chunk before. What
    was asked
        for before a beginning and is not read yet is answered as behind the end.
    end_offset: Beside `fetch`: exclusive end of what the reader wants; -1: none.
    """

    fetch: FetchRequest | None = None
    end_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class FetchChunkResponse:
    """records: Those of the partition in `fetch`. The first field: a reader finds it before it reads the others.
    fetch: As that of Fetch, without its records. Absent: the end, until a request says where to begin. So it is
    behind the
        end offset, and behind an error or a diverging epoch.
    """

    records: Buffer | Pieces = b""
    error_code: int = 0
    error_message: str = ""
    fetch: FetchResponse | None = None


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    """replica_id: -1 from a consumer."""

    topics: tuple[ListOffsetsTopic, ...] = ()
    replica_id: int = -1
    isolation_level: int = 0
    timeout_ms: int = 30000


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    """topic_id: 16 bytes: of this topic only, whatever has its name now. Empty if the client knows only the name."""

    name: str
    partitions: tuple[ListOffsetsPartition, ...] = ()
    topic_id: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    """timestamp_ms: A timestamp in ms since 1970; -1: latest; -2: earliest; -3: the record with the largest
    timestamp.
    """

    index: int
    timestamp_ms: int
    current_leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    """timestamp_ms: -1: no record is at or after the requested timestamp."""

    index: int
    error_code: int = 0
    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class DescribeRangesRequest:
    """Asks a leader how its log is laid out: how many bytes which offsets take, and where batches end. Answered from
    the
    index of each segment; no record is read.

    isolation_level: As in FetchRequest: what such a reader may read is described.
    """

    topics: tuple[DescribeRangesTopic, ...] = ()
    isolation_level: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeRangesTopic:
    """topic_id: As in ListOffsetsTopic."""

    name: str
    topic_id: bytes = b""
    partitions: tuple[DescribeRangesPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeRangesPartition:
    """What lies from start_offset to end_offset, which is exclusive. Below and above what can be read there is
    nothing.

    end_offset: -1: the end of what can be read.
    max_range_bytes: A range is at most so large, except where the index knows no smaller one; 0: one range for
    each segment.
    enough_bytes: The description ends with the range that reaches so many; 0: it goes on to the end.
    """

    index: int
    start_offset: int = 0
    end_offset: int = -1
    max_range_bytes: int = 0
    enough_bytes: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeRangesResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[DescribeRangesTopicResponse, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeRangesTopicResponse:
    name: str
    partitions: tuple[DescribedRanges, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribedRanges:
    """ranges: In order; each begins where the one before it ends.
    next_offset: -1: the description is whole. Otherwise it is not, and this is the offset to ask again from.
    """

    index: int
    error_code: int = 0
    error_message: str = ""
    ranges: tuple[OffsetRange, ...] = ()
    next_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """end_offset: Exclusive. A batch ends before it, except at the end that was asked for.
    size_bytes: Of the batches that hold these offsets.
    max_timestamp_ms: In ms since 1970: no record of the range is later; -1: none has a time. The least is in no
    index.
    """

    start_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int = -1


@message(frozen=True, slots=True, kw_only=True)
class CountRecordsRequest:
    """Asks a leader how many records a reader would get from an offset on, and of what time the first of them is:
    the lag of
    a group. Markers, records of aborted transactions and what compaction has removed do not count.

    isolation_level: As in FetchRequest: what such a reader may read is counted.
    """

    topics: tuple[CountRecordsTopic, ...] = ()
    isolation_level: int = 0


@message(frozen=True, slots=True, kw_only=True)
class CountRecordsTopic:
    """topic_id: As in ListOffsetsTopic."""

    name: str
    topic_id: bytes = b""
    partitions: tuple[CountRecordsPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CountRecordsPartition:
    """start_offset: Of the first record that counts. What is deleted does not count."""

    index: int
    start_offset: int = 0


@message(frozen=True, slots=True, kw_only=True)
class CountRecordsResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[CountRecordsTopicResponse, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CountRecordsTopicResponse:
    name: str
    partitions: tuple[CountedRecords, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class CountedRecords:
    """is_estimate: The log was not read to the end for this: records is an upper bound. The next question goes on.
    first_timestamp_ms: In ms since 1970, of the first of them; -1: there is none, or its time is not known.
    age_ms: How long ago that was, by the clock of the leader; 0: there is none.
    end_offset: Exclusive, of what such a reader may read.
    """

    index: int
    error_code: int = 0
    error_message: str = ""
    records: int = 0
    is_estimate: bool = False
    first_timestamp_ms: int = -1
    age_ms: int = 0
    log_start_offset: int = -1
    end_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """Asks where an epoch ends in the broker's log (KIP-101, KIP-320).

    replica_id: -1 from a consumer. Replicas fetch with `last_fetched_epoch` instead.
    """

    replica_id: int = -1
    topics: tuple[EpochTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class EpochTopic:
    name: str
    partitions: tuple[EpochPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class EpochPartition:
    """current_leader_epoch: The leader epoch known to the sender; -1: none."""

    index: int
    current_leader_epoch: int = -1
    leader_epoch: int


@message(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[EpochTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class EpochTopicResult:
    name: str
    partitions: tuple[EpochPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class EpochPartitionResult:
    """leader_epoch: The largest epoch in the log that is not above the requested one, and its end offset
    (exclusive); -1: none.
    """

    index: int
    error_code: int = 0
    leader_epoch: int = -1
    end_offset: int = -1
