"""Which delivery writes exactly once: the cluster says it by its first answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorumlog.client.errors import NoJointTransactions, NotOurs, Unavailable
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.cluster_delivery import ClusterDelivery
from quorumlog.spark.write.options import OnceOptions, WriteOptions
from quorumlog.spark.write.sending.delivery import BatchOf

BATCH = BatchOf(group="spark/q", kind=JointKind.STREAM, location="/c", run="r", sequence=0)
CALLS: list[Callable[[ClusterDelivery], Any]] = [
    lambda one: one.begin(BATCH, b"t"),
    lambda one: one.commit(BATCH, (), {}),
    lambda one: one.abort(BATCH, None),
]


class Fake:
    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.calls, self.closed = error, list[str](), False

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> None:
            self.calls.append(name)
            if self.error is not None:
                raise self.error

        return call

    def close(self) -> None:
        self.closed = True


def made(joint: Fake, kafka: Fake, *, ours: bool = False) -> ClusterDelivery:
    def is_ours(client: Any) -> bool:
        assert client["bootstrap_servers"] == "a:1"
        return ours

    options = WriteOptions(client={"bootstrap_servers": "a:1"}, once=OnceOptions())
    return ClusterDelivery(options, OnceOptions(), joint=lambda *_: joint, kafka=lambda *_: kafka, is_ours=is_ours)


@pytest.mark.parametrize("call", CALLS, ids=["begin", "commit", "abort"])
def test_a_cluster_of_ours_is_asked_for_joint_transactions(call: Callable[[ClusterDelivery], Any]) -> None:
    joint, kafka = Fake(), Fake()
    delivery = made(joint, kafka)
    call(delivery)
    call(delivery)
    assert len(joint.calls) == 2 and kafka.calls == []


@pytest.mark.parametrize("call", CALLS, ids=["begin", "commit", "abort"])
def test_a_kafka_is_asked_once_and_has_decisions_in_a_topic(call: Callable[[ClusterDelivery], Any]) -> None:
    joint, kafka = Fake(NotOurs("no")), Fake()
    delivery = made(joint, kafka)
    call(delivery)
    call(delivery)
    assert len(joint.calls) == 1 and len(kafka.calls) == 2 and joint.closed
    delivery.close()
    assert kafka.closed


def test_an_older_cluster_of_ours_is_no_kafka() -> None:
    kafka = Fake()
    with pytest.raises(NoJointTransactions, match=r"this quorumlog is older.*upgrade its nodes") as caught:
        made(Fake(NotOurs("no")), kafka, ours=True).begin(BATCH, b"t")
    assert not isinstance(caught.value, NotOurs) and kafka.calls == []


PROTECTED = [
    ("SASL_PLAINTEXT", "gRPC takes a login over TLS only: set security_protocol=SASL_SSL"),
    ("SASL_SSL", "begins with GRPC and whose security.protocol is SASL_SSL"),
]


@pytest.mark.parametrize(("protocol", "says"), PROTECTED, ids=[case[0] for case in PROTECTED])
def test_a_protected_cluster_that_grpc_does_not_reach_is_not_called_old(protocol: str, says: str) -> None:
    user = {"sasl_mechanism": "PLAIN", "sasl_username": "ada", "sasl_password": "s3cret"}
    options = WriteOptions(client={"security_protocol": protocol, **user}, once=OnceOptions())
    delivery = ClusterDelivery(
        options, OnceOptions(), joint=lambda *_: Fake(NotOurs("no")), kafka=lambda *_: Fake(), is_ours=lambda _: True
    )
    with pytest.raises(NoJointTransactions) as caught:
        delivery.begin(BATCH, b"t")
    assert says in str(caught.value) and "at-least-once" in str(caught.value) and "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [NoJointTransactions("joint.version is 0"), Unavailable("no answer")], ids=["off", "gone"]
)
def test_what_a_cluster_of_ours_fails_with_is_told_as_it_is(error: Exception) -> None:
    kafka = Fake()
    with pytest.raises(type(error), match=str(error)):
        made(Fake(error), kafka).commit(BATCH, (), {})
    assert kafka.calls == []


def test_what_a_kafka_fails_with_is_asked_of_it_alone() -> None:
    joint, kafka = Fake(NotOurs("no")), Fake(Unavailable("gone"))
    delivery = made(joint, kafka)
    for _ in range(2):
        with pytest.raises(Unavailable):
            delivery.begin(BATCH, b"t")
