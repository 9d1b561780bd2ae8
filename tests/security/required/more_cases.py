"""Other requests of the same rows, so that each right of a row is asked for by one of them; and what handlers find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorumlog.messages import admin, cluster, fetch, groups, joint, produce, transactions
from tests.security.required.cases import CASES, Names

Make = Callable[[Names], Any]


def _transactional(names: Names) -> produce.ProduceRequest:
    request: produce.ProduceRequest = CASES[produce.ProduceRequest].make(names)
    batch = bytearray(request.topics[0].partitions[0].records)
    batch[22] |= 0x10
    part = produce.ProducePartition(index=0, records=bytes(batch))
    topic = produce.ProduceTopic(name=names.topic, partitions=(part,))
    return replace(request, topics=(topic,), transactional_id=names.transactional_id)


def _configs(resource_type: int, name: str) -> tuple[Make, Make]:
    describe = cluster.ConfigResource(resource_type=resource_type, resource_name=name)
    alter = admin.AlterConfigsResource(resource_type=resource_type, resource_name=name)
    return (
        lambda _: cluster.DescribeConfigsRequest(resources=(describe,)),
        lambda _: admin.IncrementalAlterConfigsRequest(resources=(alter,), validate_only=True),
    )


_OF_GROUP, _OF_BROKER = _configs(32, "g"), _configs(4, "1")
_VERIFY = transactions.TransactionToExtend(transactional_id="x", producer_id=1, producer_epoch=0, verify_only=True)

MORE_CASES: dict[type, tuple[Make, ...]] = {
    produce.ProduceRequest: (_transactional,),
    cluster.MetadataRequest: (
        lambda _: cluster.MetadataRequest(all_topics=False, topics=(cluster.TopicQuery(name="not yet"),)),
    ),
    cluster.DeleteTopicsRequest: (
        lambda n: cluster.DeleteTopicsRequest(topics=(cluster.TopicQuery(topic_id=n.topic_id),), timeout_ms=1),
    ),
    cluster.DescribeConfigsRequest: (_OF_GROUP[0], _OF_BROKER[0]),
    admin.IncrementalAlterConfigsRequest: (_OF_GROUP[1], _OF_BROKER[1]),
    admin.FindCoordinatorRequest: (
        lambda n: admin.FindCoordinatorRequest(key_type=1, keys=(n.transactional_id,)),
        lambda _: admin.FindCoordinatorRequest(key_type=2, keys=("g:t:0",)),
    ),
    produce.InitProducerIdRequest: (lambda _: produce.InitProducerIdRequest(),),
    transactions.AddPartitionsToTxnRequest: (
        lambda _: transactions.AddPartitionsToTxnRequest(transactions=(_VERIFY,)),
    ),
    groups.OffsetFetchRequest: (
        lambda n: groups.OffsetFetchRequest(groups=(groups.OffsetFetchGroup(group_id=n.group),)),
    ),
}


def _chunk(_request: Any) -> fetch.FetchChunkResponse:
    part = (fetch.FetchPartitionResponse(index=0),)
    return fetch.FetchChunkResponse(
        records=b"records",
        fetch=fetch.FetchResponse(topics=(fetch.FetchTopicResponse(topic_id=b"", name="t", partitions=part),)),
    )


def _committed(request: Any) -> groups.OffsetFetchResponse:
    topics = (groups.OffsetFetchTopicResult(name="t"),)
    results = (groups.OffsetFetchGroupResult(group_id=one.group_id, topics=topics) for one in request.groups)
    return groups.OffsetFetchResponse(groups=tuple(results))


def _assigned(_request: Any) -> groups.ConsumerGroupDescribeResponse:
    topic = groups.AssignedTopic(topic_id=b"i" * 16, topic_name="t", partitions=(0,))
    member = groups.DescribedConsumerMember(
        member_id="m", member_epoch=1, client_id="c", client_host="h", assignment=(topic,)
    )
    group = groups.DescribedConsumerGroup(group_id="g", members=(member,))
    return groups.ConsumerGroupDescribeResponse(groups=(group,))


def _in_transaction(_request: Any) -> transactions.DescribeTransactionsResponse:
    topics = (transactions.TransactionTopic(name="t", partitions=(0,)),)
    one = transactions.DescribedTransaction(transactional_id="x", topics=topics)
    return transactions.DescribeTransactionsResponse(transactions=(one,))


def _transactions(_request: Any) -> transactions.ListTransactionsResponse:
    one = transactions.ListedTransaction(transactional_id="x", producer_id=1, state="Ongoing")
    return transactions.ListTransactionsResponse(transactions=(one,))


def _created(request: Any) -> cluster.CreateTopicsResponse:
    results = (cluster.CreateTopicResult(name=topic.name) for topic in request.topics)
    return cluster.CreateTopicsResponse(topics=tuple(results))


def _metadata(request: Any) -> cluster.MetadataResponse:
    topics = (cluster.TopicMetadata(name=one.name) for one in request.topics)
    return cluster.MetadataResponse(cluster_authorized_operations=8096, topics=tuple(topics))


MORE_ANSWERS: dict[type, Callable[[Any], Any]] = {
    fetch.FetchChunkRequest: _chunk,
    groups.OffsetFetchRequest: _committed,
    groups.ConsumerGroupDescribeRequest: _assigned,
    transactions.DescribeTransactionsRequest: _in_transaction,
    transactions.ListTransactionsRequest: _transactions,
    admin.ListGroupsRequest: lambda _: admin.ListGroupsResponse(groups=(admin.ListedGroup(group_id="g"),)),
    joint.ListJointRequest: lambda _: joint.ListJointResponse(groups=(joint.ListedJointGroup(group_id="x"),)),
    cluster.CreateTopicsRequest: _created,
    cluster.MetadataRequest: _metadata,
    cluster.DescribeClusterRequest: lambda _: cluster.DescribeClusterResponse(cluster_authorized_operations=8096),
}
"""What a handler answers here; others answer with their empty response."""
