"""What clients ask about brokers as members of the cluster, and about access rules."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from broker_fakes import FakeContext, Fakes, image_of, usual_image

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorumlog.messages.cluster import DescribeClusterRequest
from quorumlog.messages.metadata_records import UnregisterBrokerRecord
from quorumlog_broker.api.handlers import HANDLERS


def ask(fakes: Fakes, request: Any) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](fakes.services(), FakeContext(), request)

    return asyncio.run(run())


def test_describe_cluster_counts_partitions_only_when_asked() -> None:
    image = usual_image()
    for counts in (False, True):
        response = ask(Fakes(), DescribeClusterRequest(include_fenced_brokers=True, include_partition_counts=counts))
        for broker in response.brokers:
            every = [one for topic in image.topics.values() for one in topic.partitions.values()]
            leads = sum(one.leader == broker.node_id for one in every)
            holds = sum(broker.node_id in one.replicas for one in every)
            assert (broker.leaders, broker.replicas) == ((leads, holds) if counts else (-1, -1))
            assert broker.log_directories == image.brokers[broker.node_id].log_directories


def test_an_unregistered_broker_is_gone_from_the_answering_brokers_metadata() -> None:
    fakes = Fakes()
    fakes.controller.answers.append(UnregisterBrokerResponse())
    before = fakes.subscription.image
    record = UnregisterBrokerRecord(broker_id=3, broker_epoch=before.brokers[3].broker_epoch)
    fakes.subscription.next_images.append(image_of([record], before))
    response = ask(fakes, UnregisterBrokerRequest(broker_id=3))
    assert response.error_code == ErrorCode.NONE and 3 not in fakes.subscription.image.brokers


@pytest.mark.parametrize(
    "request_",
    [
        DescribeAclsRequest(resource_type_filter=2, operation=1, permission_type=1),
        CreateAclsRequest(),
        DeleteAclsRequest(),
    ],
    ids=lambda request: type(request).__name__,
)
def test_access_rules_are_refused_because_none_is_enforced(request_: Any) -> None:
    with pytest.raises(ApiError, match="no authorizer is on") as caught:
        ask(Fakes(), request_)
    assert caught.value.code is ErrorCode.SECURITY_DISABLED
