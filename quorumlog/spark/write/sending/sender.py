"""The producer of one task: what it queues, waits for, and says of a row that the cluster refuses."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from quorumlog.client.blocking import ArrowFuture, Producer
from quorumlog.client.cluster.topic_limit import MOST_BYTES, BatchLimit
from quorumlog.client.errors import NoProtocol, NoSuchTopic, QuorumlogError, RecordTooLarge, RequestFailed
from quorumlog.client.transactions.errors import FatalTransactionError, TransactionAborted, TransactionFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import Uuid
from quorumlog.spark.session.kept_connections import Lease
from quorumlog.spark.write.sending.message import Spans
from quorumlog.spark.write.sending.topics import RowRefused

MAX_UNDER_WAY = 64  # tables that wait for acknowledgements; kafka.buffer.memory limits their bytes
TOPIC_WAIT_S = 5.0  # for a topic that the cluster does not know: it may have been made a moment ago
REFUSED = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
# What a leader or the coordinator says of a transaction that is not open any more.
ENDED = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
ENDED_MEANWHILE = (
    "this attempt's transaction has ended while the task wrote: it was open for longer than transactionTimeout, or its "
    "batch was decided or aborted. Nothing of it is readable. Raise transactionTimeout if batches take longer"
)
MADE_ANEW = (
    "topic {topic!r} was deleted and made anew while the task wrote, so a part of its rows may be gone with the former "
    "one. Nothing of this attempt is readable; the task is to be run again"
)


class AttemptEnded(QuorumlogError):
    """A task that is run again, in a batch that still is to be written, begins another attempt."""


class ClusterSender:
    """It connects here, in the worker, so that no connection crosses a fork. On an error of the task it drops what is
    queued, and waits for nothing. producer: of an attempt's transaction, made with the options `client`; None: there is
    no transaction, and a producer is made.
    """

    def __init__(self, client: Mapping[str, Any], producer: Producer | None = None) -> None:
        self.sent = Spans()
        self._producer = producer or Producer(dict(client), connect=Lease(0).of_kind)
        self._is_attempt = producer is not None
        self._by_grpc = client.get("transport") == "grpc"
        self._under_way: deque[tuple[str, ArrowFuture]] = deque()
        self._counts: dict[str, int] = {}
        self._limits: dict[str, BatchLimit] = {}
        self._lives: dict[str, Uuid] = {}  # of each topic as it was when the first row came for it

    def __enter__(self) -> ClusterSender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or self._under_way:
            self._producer.abandon()
        else:
            self._producer.close()

    def partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            try:
                self._counts[topic] = self._producer.partition_count(topic, TOPIC_WAIT_S)
            except NoSuchTopic as error:
                raise RowRefused(
                    f"topic {topic!r} does not exist; quorumlog topic create {topic} makes it ({error})"
                ) from error
            if self._by_grpc and not self._producer.is_ours(topic):
                raise NoProtocol(
                    "option transport: the cluster serves no gRPC, as an Apache Kafka does not; set it to auto, or to "
                    "lane for Kafka's protocol"
                )
            self._limits[topic] = self._producer.batch_limit(topic)
            self._lives[topic] = self._producer.topic_id(topic)
        return self._counts[topic]

    def queue(self, topic: str, rows: Any, keyless: int) -> None:
        self._collect(MAX_UNDER_WAY - 1)
        try:
            future = self._producer.queue_arrow(
                topic, rows, keyless=keyless, limit=self._limits[topic], all_or_none=True
            )
        except RecordTooLarge as error:
            raise RowRefused(_too_large(str(error))) from error
        except (TransactionFailed, FatalTransactionError) as error:
            raise self._first_of_all(topic, error) from error
        self._under_way.append((topic, future))

    def finish(self) -> None:
        self._collect(0)
        if self._is_attempt:
            self._refuse_new_lives()

    @property
    def lives(self) -> Mapping[str, Uuid]:
        return dict(self._lives)

    def _refuse_new_lives(self) -> None:
        """A request names the topic that this client knows, so what is acknowledged went into one that it has known."""
        for topic, life in self._lives.items():
            if self._producer.topic_id(topic) != life:
                raise AttemptEnded(MADE_ANEW.format(topic=topic))

    def _collect(self, most: int) -> None:
        """Take what has been acknowledged, and wait until at most so many tables are under way."""
        while self._under_way and (len(self._under_way) > most or self._under_way[0][1].done):
            topic, future = self._under_way[0]
            try:
                self.sent.took(future.result())
            except (RequestFailed, TransactionAborted) as error:
                raise self._first_of_all(topic, error) from error
            self._under_way.popleft()

    def _first_of_all(self, topic: str, error: Exception) -> Exception:
        """The failure that made the others of its transaction fail: a refused row, or what the cluster fails with."""
        if isinstance(error, TransactionFailed | TransactionAborted):
            for other, future in self._under_way:  # each of them ends with its transaction
                try:
                    future.result()
                except RequestFailed as first:
                    topic, error = other, first
                    break
                except QuorumlogError:
                    continue
        cause = error.__cause__ if isinstance(error, TransactionFailed | TransactionAborted) else None
        found = cause if isinstance(cause, RequestFailed) else error
        if isinstance(found, RequestFailed) and found.code in REFUSED:
            return RowRefused(self._refusal(topic, found))
        if self._is_attempt and getattr(found, "code", None) in ENDED:
            return AttemptEnded(f"{ENDED_MEANWHILE} ({found})")
        return found

    def _refusal(self, topic: str, error: RequestFailed) -> str:
        limit = self._limits[topic].batch_bytes
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE or limit == MOST_BYTES:
            return f"topic {topic!r}: a row is refused: {error}"
        return _too_large(f"topic {topic!r}: a row is above the topic's max.message.bytes ({error})")


def _too_large(what: str) -> str:
    return (
        f"{what}. Make the row smaller, set kafka.compression.type, or raise the limit: kafka.max.request.size of this "
        "write, max.message.bytes of the topic"
    )
