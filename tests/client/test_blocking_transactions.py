"""`with producer.transaction():` of the blocking producer."""

from __future__ import annotations

from typing import Any

import pytest
from test_producer_transactions import GROUP, make, values
from transactional_cluster import TransactionalCluster

from quorumlog.client import real_edges as edge
from quorumlog.client.blocking import Producer
from quorumlog.client.errors import ClientClosed
from quorumlog.client.transactions.errors import TransactionFailed, TransactionStateError
from quorumlog.messages.transactions import EndTxnRequest
from quorumlog.records import headers


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> TransactionalCluster:
    cluster = TransactionalCluster()

    def producer(config: dict[str, Any], **options: Any) -> Any:
        return make(cluster, options.pop("transactional_id"), **config, **options)

    monkeypatch.setattr(edge, "producer", producer)
    return cluster


def test_a_block_commits_and_another_aborts(cluster: TransactionalCluster) -> None:
    with Producer(transactional_id="x") as producer:
        with producer.transaction():
            for number in range(100):
                producer.send("t", str(number), partition=0)
            producer.send_offsets({("in", 0): 5}, GROUP)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send("t", b"not this one", partition=1).result(5)
            raise ZeroDivisionError
        producer.begin()
        producer.send("t", b"last", partition=2)
        producer.commit()
    assert values(cluster) == [*(str(number).encode() for number in range(100)), b"last"]
    cluster.mark()
    assert cluster.committed_offsets == {("g", "in", 0): 5}


def test_a_send_outside_of_a_transaction_is_refused_at_once(cluster: TransactionalCluster) -> None:
    with Producer(transactional_id="x") as producer, pytest.raises(TransactionStateError, match="call begin"):
        producer.send("t", b"v")


def test_a_record_that_is_refused_behind_send_fails_the_transaction(cluster: TransactionalCluster) -> None:
    """`send` has returned when it is found out, and nobody may look at its future: the commit must."""
    with Producer(transactional_id="x") as producer:
        with pytest.raises(TransactionFailed, match="max_request_size"), producer.transaction():
            producer.send("t", b"fits", partition=0)
            producer.send("t", b"x" * (5 << 20), partition=0)
        with producer.transaction():
            producer.send("t", b"next", partition=0)
    assert values(cluster) == [b"next"]
    assert [one.committed for one in cluster.asked(EndTxnRequest)][-1]


def test_a_transaction_is_left_open_for_somebody_else(cluster: TransactionalCluster) -> None:
    """All of it is acknowledged then; `identity` is what ends it."""
    producer = Producer(transactional_id="x")
    producer.init_transactions()
    producer.begin()
    for number in range(300):
        producer.send("t", str(number), partition=0)
    identity = producer.identity
    producer.leave_open()
    producer.leave_open()
    assert cluster.asked(EndTxnRequest) == []
    assert cluster.topics["t"][0].end == 300
    batches = [header for _, _, data in cluster.topics["t"][0].batches for header in headers(data)]
    assert {(one.producer_id, one.producer_epoch) for one in batches} == {identity}
    with pytest.raises(ClientClosed):
        producer.begin()
