"""Sends batches to the leaders: gets the producer's identity, takes sendable batches, handles the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quorumlog.client.batches.accumulator import Accumulator, Batch
from quorumlog.client.batches.numbering import Identity
from quorumlog.client.cluster.hung_leaders import PATIENCE_MS, HungLeaderWatch
from quorumlog.client.cluster.link import NODE_TIMEOUT_MS, Link, check
from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.errors import AuthenticationFailed, DeliveryTimeout, QuorumlogError, RequestFailed
from quorumlog.client.options import ProducerOptions
from quorumlog.client.transactions.driver import SOON_MS, TransactionDriver
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId, TopicPartition, Uuid
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from quorumlog.nursery import Nursery
from quorumlog.records import Codec
from quorumlog.rpc.transport import NotAuthenticated, NotDelivered, OutcomeUnknown, RpcError

# Errors that a leader returns before it appends. Any other error of a partition may follow an append.
NOT_APPENDED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
# Refused sequence numbers. Ignored while an older batch is in flight; otherwise the batches get new numbers.
OUT_OF_ORDER = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
LEADERSHIP = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)


class ProduceFlight:
    """One request in flight. batches: those whose outcome it still decides. task: waits for its answer; None: it has
    not begun to."""

    __slots__ = ("_sender", "batches", "node_id", "overdue_ms", "task")

    def __init__(self, sender: Sender, node_id: NodeId, batches: list[Batch], overdue_ms: int) -> None:
        self._sender, self.node_id, self.batches, self.overdue_ms = sender, node_id, batches, overdue_ms
        self.task: asyncio.Task[None] | None = None

    @property
    def topics(self) -> Sequence[str]:
        return [batch.topic for batch in self.batches]

    def leave_moved(self) -> None:
        self._sender.leave_moved(self)


class Sender:
    """One loop per producer, one task per request in flight. transactions: set after construction."""

    def __init__(self, link: Link, accumulator: Accumulator, options: ProducerOptions, nursery: Nursery) -> None:
        self.transactions: TransactionDriver | None = None
        self._link = link
        self._accumulator = accumulator
        self._options = options
        self._nursery = nursery
        self._codec = Codec[options.compression_type.upper()]
        self._in_flight: dict[NodeId, int] = {}
        self._hung_leaders = HungLeaderWatch(link)
        self._wake = asyncio.Event()
        self._flushing = 0
        self._refreshing = False
        self._refresh_attempt = 0
        self._identifying = False
        self._identify_attempt = 0
        self.retried_records = self.produce_requests = 0
        self._held_until_ms = self._held_ms = 0  # by a quota, as the last broker said that had reason to

    def start(self) -> None:
        self._nursery.start(self._run(), "producer sender")
        self._nursery.start(self._hung_leaders.run(), "producer's watch for hung leaders")
        self._nursery.start(self._link.keep_fresh(), "producer's metadata")

    def wake(self) -> None:
        self._wake.set()

    @property
    def in_flight(self) -> int:
        """Requests."""
        return sum(self._in_flight.values())

    @property
    def throttle_ms(self) -> int:
        """How long the last broker that had reason to has held this client back."""
        return self._held_ms

    def flushing(self, on: bool) -> None:
        """While a flush runs, batches do not linger."""
        self._flushing += 1 if on else -1
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now_ms = self._link.clock.now_ms()
            if self.transactions is not None:
                self.transactions.drop_if_failed()
            self._accumulator.give_up_expired(now_ms, self._gave_up)
            self._send_all(now_ms)
            due_ms = self._accumulator.next_due_ms(flushing=self._flushing > 0)
            await self._sleep_until(due_ms if due_ms is not None and due_ms > now_ms else None)

    async def _sleep_until(self, due_ms: int | None) -> None:
        """Wait for `due_ms` or for `wake`. A batch that is due but cannot be sent now waits for an answer."""
        wait_ms = None if due_ms is None else max(0, due_ms - self._link.clock.now_ms())
        try:
            async with asyncio.timeout(wait_ms / 1000 if wait_ms is not None else None):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _send_all(self, now_ms: int) -> None:
        if self._accumulator.needs_identity and self.transactions is None:
            self._identify_soon()
        while self._send_some(now_ms):
            pass

    def _send_some(self, now_ms: int) -> bool:
        """Send at most one batch of each partition. True if any was sent."""
        by_node: dict[NodeId, list[TopicPartition]] = {}
        unknown: list[TopicPartition] = []
        for key in self._accumulator.sendable(now_ms, flushing=self._flushing > 0):
            node_id = self._leader_of(key)
            if node_id is None:
                unknown.append(key)
            elif self.transactions is None or self.transactions.admit(key):
                by_node.setdefault(node_id, []).append(key)
        sent = False
        for node_id, keys in by_node.items():
            while keys and self._in_flight.get(node_id, 0) < self._options.max_in_flight_requests_per_connection:
                self._send(node_id, self._take(keys))
                sent = True
        if unknown:
            self._refresh_soon(unknown)
        return sent

    def _take(self, keys: list[TopicPartition]) -> list[Batch]:
        """Batches for one request: the first of each partition, up to `max_request_size`."""
        batches: list[Batch] = []
        size = 0
        while keys:
            size += self._accumulator.peek(keys[0]).size_bytes
            if batches and size > self._options.max_request_size:
                break
            batches.append(self._accumulator.take(keys.pop(0)))
        return batches

    def _send(self, node_id: NodeId, batches: list[Batch]) -> None:
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        self.produce_requests += 1
        flight = ProduceFlight(self, node_id, batches, self._link.clock.now_ms() + PATIENCE_MS)
        self._hung_leaders.began(flight)
        self._nursery.start(self._call(flight, self._request(batches)), f"produce to {node_id}")

    def _request(self, batches: list[Batch]) -> ProduceRequest:
        """Names the lives of the topics that are known now: a leader that knows another one refuses the batch."""
        topics: dict[str, list[ProducePartition]] = {}
        for batch in batches:
            part = ProducePartition(index=batch.partition, records=batch.encode(self._codec))
            topics.setdefault(batch.topic, []).append(part)
        cache = self._link.cache
        return ProduceRequest(
            acks=self._options.required_acks,
            timeout_ms=self._options.request_timeout_ms,
            topics=tuple(
                ProduceTopic(name=name, topic_id=cache.life_of(name).topic_id, partitions=tuple(parts))
                for name, parts in topics.items()
            ),
            transactional_id=self._options.transactional_id,
            transaction_version=0 if self.transactions is None else self.transactions.machine.level,
        )

    async def _call(self, flight: ProduceFlight, request: ProduceRequest) -> None:
        flight.task = asyncio.current_task()
        try:
            response = await self._link.call_node(flight.node_id, request)
        except NotAuthenticated as error:
            self._denied(AuthenticationFailed(str(error)), _open(flight.batches))
        except RpcError as error:
            self._lost(_open(flight.batches), error)
        else:
            self._answered(_open(flight.batches), response)
        finally:
            self._hung_leaders.ended(flight)
            self._in_flight[flight.node_id] -= 1
            self._wake.set()

    def leave_moved(self, flight: ProduceFlight) -> None:
        """Retry the batches that another node leads now, with their numbers; the first try's outcome is unknown."""
        moved = [batch for batch in _open(flight.batches) if self._is_led_elsewhere(batch, flight.node_id)]
        if not moved or flight.task is None:
            return
        flight.batches = [batch for batch in flight.batches if batch not in moved]
        for batch in moved:
            batch.unknown_outcomes += 1
            self._retry_or_fail(batch, OutcomeUnknown(f"node {flight.node_id} did not answer and leads no more"))
        if not flight.batches:
            flight.task.cancel()
        self._wake.set()

    def _is_led_elsewhere(self, batch: Batch, node_id: NodeId) -> bool:
        leader = self._link.cache.leader_of(batch.topic, batch.partition)
        return leader is not None and leader.leader_id not in (NO_NODE, node_id)

    def _denied(self, refusal: AuthenticationFailed, in_flight: list[Batch]) -> None:
        """Nobody takes records of this client: no batch waits for its deadline. What was sent before may be there."""
        for batch in in_flight:
            self._accumulator.failed(batch, refusal)
        self._accumulator.fail_all(lambda _: refusal)

    def _lost(self, batches: list[Batch], error: RpcError) -> None:
        for batch in batches:
            if not isinstance(error, NotDelivered):
                batch.unknown_outcomes += 1
            self._retry_or_fail(batch, error)
        self._refresh_soon([(batch.topic, batch.partition) for batch in batches])

    def _answered(self, batches: list[Batch], response: ProduceResponse | None) -> None:
        if response is None:  # acks=0: there is no answer, so the offset stays unknown
            for batch in batches:
                self._accumulator.delivered(batch, -1)
            return
        if response.throttle_time_ms > 0:
            self._held_ms = response.throttle_time_ms
            self._held_until_ms = self._link.clock.now_ms() + self._held_ms
        answers = {
            (topic.name, part.index): (topic.topic_id, part) for topic in response.topics for part in topic.partitions
        }
        for batch in batches:
            topic_id, answer = answers.get((batch.topic, batch.partition), (NO_ID, None))
            if answer is None:
                answer = ProducePartitionResponse(
                    index=batch.partition,
                    error_code=response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR,
                    error_message=response.error_message or "the answer does not contain this partition",
                )
            self._sort(batch, topic_id, answer, response)

    def _sort(self, batch: Batch, topic_id: Uuid, answer: ProducePartitionResponse, response: ProduceResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._accumulator.delivered(batch, answer.base_offset, answer.log_append_time_ms)
            return
        if code not in NOT_APPENDED:
            batch.unknown_outcomes += 1
        hint = answer.current_leader
        led = hint is not None and self._link.cache.take_hint(
            batch.topic, topic_id, batch.partition, hint, response.node_endpoints
        )
        if code is ErrorCode.UNKNOWN_TOPIC_ID:
            self._link.ask_another()
        if code in LEADERSHIP and not led:
            self._refresh_soon([(batch.topic, batch.partition)])
        error = RequestFailed(code, answer.error_message, outcome_unknown=batch.unknown_outcomes > 0)
        if code in OUT_OF_ORDER and batch.is_numbered and not self._fails_transaction(batch):
            self._retry_or_fail(batch, error, out_of_order=True)
        elif code.retriable and not (code is ErrorCode.CORRUPT_MESSAGE and batch.attempts > 1):
            self._retry_or_fail(batch, error)
        else:
            self._accumulator.failed(batch, error)

    def _fails_transaction(self, batch: Batch) -> bool:
        """Its number, or its epoch, was refused for good; behind another one it may be accepted in its turn."""
        return self.transactions is not None and self._accumulator.is_oldest(batch)

    def _retry_or_fail(self, batch: Batch, error: Exception, *, out_of_order: bool = False) -> None:
        now_ms = self._link.clock.now_ms()
        if self._accumulator.expired(batch, now_ms):
            self._accumulator.failed(batch, self._gave_up(batch, error))
        else:
            wait_ms = self._link.backoff_ms(batch.attempts)
            if isinstance(error, RequestFailed) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                wait_ms = min(wait_ms, SOON_MS << min(batch.attempts - 1, 10))  # the last one is being completed
            not_before_ms = now_ms + wait_ms
            self.retried_records += batch.count
            self._accumulator.retry(batch, not_before_ms, out_of_order=out_of_order)

    def _gave_up(self, batch: Batch, last: Exception | None = None) -> Exception:
        why = f"; last: {last}" if last else ""
        if not why and self._link.clock.now_ms() < self._held_until_ms:
            why = f"; a broker holds this client back for {self._held_ms} ms (a quota: quorumlog quota top)"
        return DeliveryTimeout(
            f"{batch.count} records for {batch.topic}-{batch.partition} were not acknowledged within "
            f"{self._options.delivery_timeout_ms} ms in {batch.attempts} tries{why}",
            outcome_unknown=batch.unknown_outcomes > 0,
        )

    def _identify_soon(self) -> None:
        if not self._identifying:
            self._identifying = True
            self._nursery.start(self._identify(), "producer identity")

    async def _identify(self) -> None:
        """One try; the loop starts the next one if needed. A fatal refusal fails all waiting batches."""
        try:
            self._identify_attempt += 1
            if self._identify_attempt > 1:
                await asyncio.sleep(self._link.backoff_ms(self._identify_attempt - 1) / 1000)
            response = await self._link.call_any(InitProducerIdRequest(), node_timeout_ms=NODE_TIMEOUT_MS)
            check(response)
            self._accumulator.identity = Identity(response.producer_id, response.producer_epoch)
            self._identify_attempt = 0
        except RequestFailed as error:
            refusal = error
            if not refusal.code.retriable:
                self._accumulator.fail_all(lambda _: refusal)
        except AuthenticationFailed as error:
            self._denied(error, [])
        except (QuorumlogError, RpcError):
            pass  # each batch has its own deadline
        finally:
            self._identifying = False
            self._wake.set()

    def _refresh_soon(self, keys: list[TopicPartition]) -> None:
        if keys and not self._refreshing:
            self._refreshing = True
            self._nursery.start(self._refresh(keys), "producer metadata")

    async def _refresh(self, keys: list[TopicPartition]) -> None:
        """One try, with back-off before each repetition; the loop repeats it until these partitions have leaders.

        A partition that a topic no longer has, because it was made anew, never gets one: its batches expire.
        """
        try:
            self._refresh_attempt += 1
            if self._refresh_attempt > 1:
                await asyncio.sleep(self._link.backoff_ms(self._refresh_attempt - 1) / 1000)
            await self._link.refresh(list(dict.fromkeys(topic for topic, _ in keys)))
            if all(self._leader_of(key) is not None for key in keys):
                self._refresh_attempt = 0
        except AuthenticationFailed as error:
            self._denied(error, [])
        except (QuorumlogError, RpcError):
            pass  # the loop asks again; each batch has its own deadline
        finally:
            self._refreshing = False
            self._wake.set()

    def _leader_of(self, key: TopicPartition) -> NodeId | None:
        """None if no leader is known, or not its address."""
        leader = self._link.cache.leader_of(*key)
        if leader is None or leader.leader_id == NO_NODE or leader.leader_id not in self._link.cache.brokers:
            return None
        return leader.leader_id


def _open(batches: list[Batch]) -> list[Batch]:
    """Batches that have not ended. A batch in flight can end early when the producer fails."""
    return [batch for batch in batches if not batch.done]
