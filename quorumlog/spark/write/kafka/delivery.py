"""Exactly once to an Apache Kafka, as the sink uses it: `Delivery` by decisions in a topic (decision 115).

What a driver's process keeps of its runs: a run becomes its group's driver once, so a second object must find it.

Spark makes a writer anew for each batch, and calls its `commit` and `abort` in one process that lives as long as the
query; `stop` can call `abort` while `commit` still runs.

The producer of a task's attempt: as `ClusterSender`, in a transaction that it leaves open for the driver to end.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from types import TracebackType
from typing import Any

from quorumlog.client.admin import BROKER_RESOURCE
from quorumlog.client.administration.hanging import MAX_TIMEOUT_MS
from quorumlog.client.administration.transactions import OpenProducer
from quorumlog.client.blocking import Cluster, Producer
from quorumlog.client.errors import ConfigError, QuorumlogError, RequestFailed
from quorumlog.client.options import CommonOptions
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.rpc.transport import RpcError
from quorumlog.spark.session.kept_connections import Lease
from quorumlog.spark.write.kafka import core
from quorumlog.spark.write.kafka.calls import Calls, Watch
from quorumlog.spark.write.kafka.core import Limits, Overrides, Run
from quorumlog.spark.write.kafka.decisions import attempt_id
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf, Written
from quorumlog.spark.write.sending.message import Spans
from quorumlog.spark.write.sending.sender import ClusterSender

MAX_RUNS = 64  # of a process; the one that was used longest ago is forgotten

Key = tuple[str, str, str]
"""Addresses of the cluster, group, run."""


class DriverRun:
    """lock: of everything that steps through the core."""

    def __init__(self, calls: Calls) -> None:
        self.run, self.calls = Run(), calls
        self.lock = threading.Lock()


class Runs:
    """Those of one process id: a fork begins with none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._runs: OrderedDict[Key, DriverRun] = OrderedDict()

    def of(self, key: Key, make: Callable[[], Calls]) -> DriverRun:
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._runs.clear()
            found = self._runs.get(key)
            if found is None:
                found = self._runs[key] = DriverRun(make())
            self._runs.move_to_end(key)
            old = self._runs.popitem(last=False)[1] if len(self._runs) > MAX_RUNS else None
        if old is not None:
            old.calls.close()
        return found

    def forget(self, key: Key) -> None:
        """It will not be asked for again."""
        with self._lock:
            found = self._runs.pop(key, None)
        if found is not None:
            found.calls.close()


RUNS = Runs()


class KafkaSender(ClusterSender):
    """producer: has the attempt's transactional id and is between transactions. Of a task that fails, the transaction
    is aborted; if the cluster cannot be asked, it ends by its time-out.

    check_wanted: raises if the driver waits for the attempt no more. It is asked once, as soon as the first rows are
    acknowledged: from then on the driver's list of open transactions has this one.
    """

    def __init__(
        self, client: Mapping[str, Any], producer: Producer, attempt: Attempt, check_wanted: Callable[[], None]
    ) -> None:
        super().__init__(client, producer)
        self._attempt, self._check_wanted = attempt, check_wanted
        self._is_checked = False
        producer.begin()

    def queue(self, topic: str, rows: Any, keyless: int) -> None:
        super().queue(topic, rows, keyless)
        if not self._is_checked:
            self._collect(0)
            self._check_wanted()
            self._is_checked = True

    @property
    def attempt(self) -> Attempt:
        """With what it has written so far. Ask after `finish`."""
        return replace(self._attempt, written=written(self.sent))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._under_way:
            self._producer.leave_open()
            return
        try:
            self._producer.abort()
        except QuorumlogError as failed:
            if error is not None:
                error.add_note(f"the attempt's transaction is left to its time-out: {failed}")
        finally:
            self._producer.abandon()


def written(sent: Spans) -> tuple[Written, ...]:
    return tuple(
        [
            Written(topic=topic, partition=partition, first=span.first, last=span.end - 1)
            for (topic, partition), span in sorted(sent.by_partition.items())
            if span.rows
        ]
    )


UNKNOWN = (
    "failed before a task told of it: what its tasks have open ends by its time-out, and readers of committed records "
    "wait for it until then or until the next batch is decided"
)
MAX_TIMEOUT = "transaction.max.timeout.ms"
ASKED_BROKERS = 3
COMMON = frozenset(one.name for one in fields(CommonOptions))  # what the admin client and the consumer take, too


class KafkaDelivery:
    """client: options of a producer. transaction_timeout_ms: what the user wants; the brokers may allow less.

    runs: of this process. Raises ConfigError for a time-out that leaves no time to decide. Every call raises what the
    clients raise, besides its own errors.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        *,
        transaction_timeout_ms: int,
        overrides: Overrides = Overrides(),
        limits: Limits = Limits(),
        runs: Runs = RUNS,
        watch: Watch = lambda step: None,
    ) -> None:
        self._client = dict(client)
        self._timeout_ms, self._excused, self._limits = transaction_timeout_ms, overrides, limits
        self._runs, self._watch = runs, watch
        self._cluster: Cluster | None = None
        self._begun: dict[bytes, tuple[Producer, BatchOf]] = {}  # by the attempt's token, until its sender takes it

    # --- of a task ---

    def begin(self, batch: BatchOf, token: bytes) -> Attempt | None:
        calls = Calls(self._connected(), self._watch)
        if calls.carry_out(core.begin(batch, self._excused, self._limits)):
            return None
        name = attempt_id(batch.group, batch.sequence, batch.run, token)
        options = {**self._client, "transactional_id": name, "transaction_timeout_ms": self._allowed_ms()}
        producer = Producer(options, connect=Lease(0).of_kind)
        try:
            producer.init_transactions()
        except BaseException:
            producer.abandon()
            raise
        self._begun[token] = producer, batch
        return Attempt(
            transactional_id=name,
            producer_id=producer.identity.producer_id,
            producer_epoch=producer.identity.epoch,
            token=token,
        )

    def sender(self, attempt: Attempt) -> KafkaSender:
        """Of an attempt that this object has begun. Its `attempt` is what the driver needs."""
        producer, batch = self._begun.pop(attempt.token)
        calls = Calls(self._connected(), self._watch)
        return KafkaSender(
            self._client,
            producer,
            attempt,
            lambda: calls.carry_out(core.check_wanted(batch, self._excused, self._limits)),
        )

    def abort_attempt(self, batch: BatchOf, attempt: Attempt) -> None:
        begun = self._begun.pop(attempt.token, None)
        if begun is not None:
            begun[0].abandon()
        one = OpenProducer(attempt.transactional_id, attempt.producer_id, attempt.producer_epoch)
        try:
            self._connected().admin.end_transactions([one], commit=False)
        except (QuorumlogError, RpcError):
            pass  # it ends by its time-out, or when the next batch is decided

    # --- of the driver ---

    def commit(self, batch: BatchOf, attempts: Sequence[Attempt], totals: Mapping[str, int]) -> None:
        """Raises RequestFailed with a code of joint transactions, RunOver, DecisionsRefused, DecidedTransactionLost,
        NotEnded (the batch is decided then)."""
        kept = self._run_of(batch)
        with kept.lock:
            kept.calls.carry_out(core.commit(kept.run, batch, attempts, totals, self._excused, self._limits))
        if batch.kind == JointKind.SINGLE:
            self._runs.forget(self._key(batch))

    def abort(self, batch: BatchOf, attempts: Sequence[Attempt] | None) -> None:
        """Raises as `commit`. Without its group or its run a batch is left to its time-out: whoever asks as another run
        takes the group from the one that goes on."""
        if not batch.group or not batch.run:
            warnings.warn(f"batch {batch.sequence} {UNKNOWN}", stacklevel=2)
            return
        kept = self._run_of(batch)
        with kept.lock:
            kept.calls.carry_out(core.abort(kept.run, batch, attempts, self._excused, self._limits))
        if batch.kind == JointKind.SINGLE:
            self._runs.forget(self._key(batch))

    def close(self) -> None:
        """Runs stay: the next batch's writer finds them."""
        for producer, _ in self._begun.values():
            producer.abandon()
        self._begun.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    # --- within ---

    def _run_of(self, batch: BatchOf) -> DriverRun:
        return self._runs.of(self._key(batch), lambda: Calls(Cluster(**self._common()), self._watch))

    def _key(self, batch: BatchOf) -> Key:
        return (str(self._client["bootstrap_servers"]), batch.group, batch.run)

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(**self._common())
        return self._cluster

    def _common(self) -> dict[str, Any]:
        return {name: value for name, value in self._client.items() if name in COMMON}

    def _allowed_ms(self) -> int:
        """The lesser of what the user wants and what the brokers allow."""
        allowed_ms = min(self._timeout_ms, largest_timeout_ms(self._connected()))
        if allowed_ms <= self._limits.min_left_ms:
            raise ConfigError(
                f"transactionTimeout is {allowed_ms} ms, and a batch is decided only while each of its transactions "
                f"has {self._limits.min_left_ms} ms left: raise it, and the brokers' {MAX_TIMEOUT} with it"
            )
        return allowed_ms


def largest_timeout_ms(cluster: Cluster) -> int:
    """transaction.max.timeout.ms: the smallest of a few brokers, for every task asks; Kafka's default where they do not
    tell. A coordinator with a smaller one than these refuses the attempt by name."""
    told = []
    for broker in cluster.admin.describe_cluster().brokers[:ASKED_BROKERS]:
        try:
            found = cluster.admin.describe_configs(
                str(broker.node_id), resource_type=BROKER_RESOURCE, names=[MAX_TIMEOUT]
            )
        except (RequestFailed, RpcError):
            continue  # it is down, or this user may not ask
        told += [int(one.value) for one in found.configs if one.name == MAX_TIMEOUT and one.value]
    return min(told, default=MAX_TIMEOUT_MS)
