"""Settings: of a topic, of a group; those of brokers are the cluster's."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from typing import Any

from quorumlog.messages.admin import (
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.cluster import ConfigDescription, DescribeConfigsRequest, DescribeConfigsResponse
from quorumlog.security.authorizer import CLUSTER_NAME
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged, answered
from quorumlog.security.required.need import (
    CLUSTER_ALTER_CONFIGS,
    CLUSTER_DESCRIBE_CONFIGS,
    GROUP_ALTER_CONFIGS,
    GROUP_DESCRIBE_CONFIGS,
    TOPIC_ALTER_CONFIGS,
    TOPIC_DESCRIBE_CONFIGS,
    Need,
)

TOPIC, GROUP = 2, 32  # Kafka's numbers of kinds of settings; every other one is the cluster's


def describe_configs(ask: Asker, request: DescribeConfigsRequest) -> Judged:
    needs = {TOPIC: TOPIC_DESCRIBE_CONFIGS, GROUP: GROUP_DESCRIBE_CONFIGS}
    return _split(ask, request, needs, CLUSTER_DESCRIBE_CONFIGS, DescribeConfigsResponse, ConfigDescription)


def alter_configs(ask: Asker, request: IncrementalAlterConfigsRequest) -> Judged:
    needs = {TOPIC: TOPIC_ALTER_CONFIGS, GROUP: GROUP_ALTER_CONFIGS}
    return _split(ask, request, needs, CLUSTER_ALTER_CONFIGS, IncrementalAlterConfigsResponse, AlterConfigsResult)


def _split(
    ask: Asker, request: Any, needs: dict[int, Need], of_cluster: Need, response_type: type, result_type: Any
) -> Judged:
    denied: list[Any | None] = []
    for one in request.resources:
        need = needs.get(one.resource_type, of_cluster)
        name = one.resource_name if one.resource_type in needs else CLUSTER_NAME
        denied.append(None if ask.allows(need, name) else _denied(result_type, one, need))
    if not any(denied):
        return Judged(request)
    kept = tuple(one for one, answer in zip(request.resources, denied, strict=True) if answer is None)
    if not kept:
        return answered(response_type(results=tuple(denied)))

    def finish(response: Any) -> Any:
        if response.error_code:
            return response
        found: dict[tuple[int, str], deque[Any]] = defaultdict(deque)  # in any order
        for result in response.results:
            found[_key(result)].append(result)
        results = (
            found[_key(one)].popleft() if answer is None else answer
            for one, answer in zip(request.resources, denied, strict=True)
        )
        return replace(response, results=tuple(results))

    return Judged(replace(request, resources=kept), finish)


def _key(one: Any) -> tuple[int, str]:
    return (one.resource_type, one.resource_name)


def _denied(result_type: Any, one: Any, need: Need) -> Any:
    return result_type(
        resource_type=one.resource_type, resource_name=one.resource_name, error_code=need.denied, error_message=""
    )
