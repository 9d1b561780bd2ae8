"""Exactly once, whichever cluster it is: by joint transactions on one of ours, by decisions in a topic on an Apache
Kafka. The cluster says which by its first answer, and nobody remembers it for another writer.

Which form of exactly-once writes a cluster takes: joint transactions, or decisions in a topic of an Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import NoJointTransactions, NotOurs
from quorumlog.client.options import CommonOptions, ProducerOptions, parse_options
from quorumlog.spark.write.joint_delivery import JointDelivery
from quorumlog.spark.write.kafka.core import Overrides
from quorumlog.spark.write.kafka.delivery import KafkaDelivery
from quorumlog.spark.write.options import OnceOptions, WriteOptions
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf, Delivery
from quorumlog.spark.write.sending.task import AttemptSender

OUR_FEATURE = "metadata.version"  # with a level of ours; Kafka's own is told under another name
OLDER = (
    "this quorumlog is older than the joint transactions by which a batch is written exactly once: upgrade its nodes, "
    'or say .option("delivery", "at-least-once") if that will do'
)
BY_GRPC = (
    "a batch is written exactly once into a quorumlog by gRPC, and {why}; "
    'or say .option("delivery", "at-least-once") if that will do'
)
NO_LISTENER = BY_GRPC.format(
    why="its nodes need a listener whose name begins with GRPC and whose security.protocol is {protocol}, too, or are "
    "older than joint transactions"
)


def is_quorumlog(cluster: Cluster) -> bool:
    """Raises what the client raises: a cluster that does not say is neither."""
    return any(one.name == OUR_FEATURE for one in cluster.admin.describe_features().features)


Found = TypeVar("Found")


class ClusterDelivery:
    """`Delivery`. joint, kafka, is_ours: made and asked for when they are needed. Every call raises what the delivery
    that it comes to raises; NoJointTransactions for a cluster of ours that has none."""

    def __init__(
        self,
        options: WriteOptions,
        once: OnceOptions,
        *,
        joint: Callable[[WriteOptions, OnceOptions], Delivery] = JointDelivery,
        kafka: Callable[[WriteOptions, OnceOptions], Delivery] | None = None,
        is_ours: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        self._options, self._once = options, once
        self._kafka, self._is_ours = kafka or kafka_delivery, is_ours or is_ours_by
        self._chosen = joint(options, once)
        self._is_known = False

    def begin(self, batch: BatchOf, token: bytes) -> Attempt | None:
        return self._ask(lambda one: one.begin(batch, token))

    def sender(self, attempt: Attempt) -> AttemptSender:
        return self._chosen.sender(attempt)

    def abort_attempt(self, batch: BatchOf, attempt: Attempt) -> None:
        self._chosen.abort_attempt(batch, attempt)

    def commit(self, batch: BatchOf, attempts: Sequence[Attempt], totals: Mapping[str, int]) -> None:
        self._ask(lambda one: one.commit(batch, attempts, totals))

    def abort(self, batch: BatchOf, attempts: Sequence[Attempt] | None) -> None:
        self._ask(lambda one: one.abort(batch, attempts))

    def close(self) -> None:
        self._chosen.close()

    def _ask(self, call: Callable[[Delivery], Found]) -> Found:
        """A cluster that does not know the call has done nothing for it."""
        if self._is_known:
            return call(self._chosen)
        try:
            found = call(self._chosen)
        except NotOurs as error:
            if self._is_ours(self._options.client):
                raise NoJointTransactions(self._why_none()) from error
            self._chosen.close()
            self._chosen = self._kafka(self._options, self._once)
            found = call(self._chosen)
        self._is_known = True
        return found

    def _why_none(self) -> str:
        """Of a cluster of ours: it is older, or this client cannot ask it by gRPC."""
        options = parse_options(ProducerOptions, self._options.client, {})
        if why := options.why_no_grpc:
            return BY_GRPC.format(why=why)
        protocol = options.protocol.value
        return OLDER if protocol == "PLAINTEXT" else NO_LISTENER.format(protocol=protocol)


def kafka_delivery(options: WriteOptions, once: OnceOptions) -> KafkaDelivery:
    return KafkaDelivery(
        options.client,
        transaction_timeout_ms=once.transaction_timeout_ms,
        overrides=Overrides(
            first_batch=once.first_batch,
            checkpoint_moved=once.checkpoint_moved,
            replay_mismatch=once.replay_mismatch,
            accept_lost=once.accept_lost,
        ),
    )


def is_ours_by(client: Mapping[str, Any]) -> bool:
    """client: options of a producer. See `is_quorumlog`."""
    common = {name: client[name] for name in CommonOptions.__dataclass_fields__ if name in client}
    with Cluster(**common) as cluster:
        return is_quorumlog(cluster)
